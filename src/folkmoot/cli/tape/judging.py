"""`folkmoot tape diff`."""

from __future__ import annotations

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import JsonOption
from folkmoot.cli.tape.options import FirstArgument, IgnoreOption, SecondArgument


def diff(
    a: FirstArgument, b: SecondArgument, ignore: IgnoreOption = None, *, as_json: JsonOption = False
) -> None:
    """Compare two tapes call by call; exit with 1 if they differ.

    Calls with the same method and arguments are compared, in their order. Reports answers that
    differ and where, errors that appeared or disappeared, calls on one tape only, and tools that
    were added, removed or changed. Ids, progress tokens, times and the order of answers are
    ignored. List items with names are compared by name, and text that is JSON by its content.
    Latencies of both tapes are shown, but are not a difference.
    """
    from folkmoot.cli.tape.differing import tell_differences

    if not tell_differences(a, b, ignore or [], as_json=as_json):
        raise typer.Exit(ExitCode.FAILED)
