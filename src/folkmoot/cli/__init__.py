"""The `folkmoot` command: one module per command group, over `folkmoot.app` and the control socket.

`program` assembles the commands and decides how a run ends. `commands` makes a function a command:
it adds the options that say as whom it runs, and shows its `Output` as text or as JSON. `options`
holds the options that commands share, `credentials` the accounts saved here, `operator` the hub as
its operator uses it; `show` and `output` write to the terminal, and `output` has the exit codes.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it without a traceback, even while it is being loaded."""
    try:
        try:
            from folkmoot.cli.program import main as run
        except EOFError as error:
            # A compiled module that is cut off; any of our own may be the one.
            sys.stderr.write(f"folkmoot: error: the installation is damaged: {error}\n")
            sys.exit(70)
        run()
    except KeyboardInterrupt:
        from folkmoot.cli.output import ExitCode

        sys.exit(ExitCode.INTERRUPTED)
