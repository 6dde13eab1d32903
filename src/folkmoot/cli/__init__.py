"""The `folkmoot` command: one module per command group, over `folkmoot.app` and the control socket.

`program` assembles the commands and decides how a run ends; `exits` is the table of exit codes;
`options` holds the options commands share; `output` is how anything is shown.
"""

from __future__ import annotations

from folkmoot.cli.program import main

__all__ = ["main"]
