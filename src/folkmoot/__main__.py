"""`python -m folkmoot` is the `folkmoot` command."""

from __future__ import annotations

from folkmoot.cli import main

main()
