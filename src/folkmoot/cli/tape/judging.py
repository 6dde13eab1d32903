"""The commands that judge tapes: `validate` and `diff`."""

from __future__ import annotations

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import JsonOption
from folkmoot.cli.tape.options import (
    FirstArgument,
    IgnoreOption,
    SecondArgument,
    StrictOption,
    TapesArgument,
)


def validate(
    files: TapesArgument, *, strict: StrictOption = False, as_json: JsonOption = False
) -> None:
    """Check every line of tapes; end with 1 if one is wrong.

    The format, the sequence of numbers, each message as strict JSON-RPC, directions, answers and
    the requests they belong to, the end line. Each finding is a line, FILE:LINE: what is wrong.

    A tape may be odd without being wrong: a request without an answer, no end line, a last line
    that was torn off. That is told as a warning.
    """
    from folkmoot.cli.tape.checking import check

    if not check(files, strict=strict, as_json=as_json):
        raise typer.Exit(ExitCode.FAILED)


def diff(
    a: FirstArgument, b: SecondArgument, ignore: IgnoreOption = None, *, as_json: JsonOption = False
) -> None:
    """Compare two tapes call by call; end with 1 if they differ.

    Calls with the same method and arguments belong together, in their order. Told are answers that
    differ, with the places where they do, errors that came or went, calls that stand on one tape
    only, and tools that were added, removed or described differently. Ids, tokens of progress,
    times and the order in which answers came do not count. Items of a list that have names are
    compared by name, and text that is JSON as what it says.
    """
    from folkmoot.cli.tape.differing import tell_differences

    if not tell_differences(a, b, ignore or [], as_json=as_json):
        raise typer.Exit(ExitCode.FAILED)
