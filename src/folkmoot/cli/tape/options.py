"""What the commands on tapes take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from folkmoot.cli.options import argument, choice, flag, number, option
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection

SAYERS = {
    "client": MessageDirection.CLIENT_TO_SERVER,
    "server": MessageDirection.SERVER_TO_CLIENT,
}
MOST = 999_999_999
FORMS = ("json", "har", "markdown")
SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?(ms|s|min|)")
UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 1.0}


def _words(name: str, metavar: str, what: str, check: Any) -> Any:
    """An option that may be given several times, each value checked."""

    def parse(values: list[str] | None) -> list[str]:
        for value in values or []:
            try:
                check(value)
            except e.FolkmootError as error:
                raise typer.BadParameter(error.message.rstrip(".")) from None
        return values or []

    return typer.Option(name, metavar=metavar, help=what, callback=parse, show_default=False)


def _kind(text: str) -> None:
    from folkmoot.core.capability import capability

    capability(text)


def _place(text: str) -> None:
    from folkmoot.proxy.jsonpath import JsonPath

    JsonPath.below(text)


def _anything(_: str) -> None:
    pass


def span(text: Any) -> float:
    """A time span in seconds: `500ms`, `2s`, or a number of seconds."""
    found = SPAN.fullmatch(str(text))
    if found is None:
        raise typer.BadParameter(f"must be a time such as 500ms or 2s, not {text!r}")
    return float(found[1]) * UNITS[found[2]]


def places(name: str, what: str) -> Any:
    """An option that takes places in a message, and may be given several times."""
    return _words(name, "PATH", what, _place)


TapeArgument = Annotated[Path, argument("FILE", "The tape.")]
TapesArgument = Annotated[list[Path], argument("FILE", "The tapes.")]
PathsArgument = Annotated[
    list[Path] | None, argument("PATH", "Tapes, or folders that hold some.  [default: this folder]")
]
MethodOption = Annotated[
    list[str] | None,
    _words(
        "--method", "PATTERN",
        "Only calls of this method and their answers; * matches anything. May be "
        "repeated.",
        _anything,
    ),
]  # fmt: skip
KindOption = Annotated[
    list[str] | None,
    _words(
        "--kind", "PATTERN",
        "Only messages of this kind, such as mcp.request.tools/call:read_*; with a ! "
        "in front, all others. May be repeated.",
        _kind,
    ),
]  # fmt: skip
DirectionOption = Annotated[
    str | None,
    choice(
        "--direction", "SIDE", tuple(SAYERS), "Only messages from the client, or from the server."
    ),
]
TextOption = Annotated[
    str | None, option("--text", "TEXT", "Only messages that contain this text; case is ignored.")
]
ErrorsOption = Annotated[bool, flag("--errors", "Only errors, failed tools and blocked messages.")]
SlowerOption = Annotated[
    float | None,
    typer.Option(
        "--slower-than", metavar="TIME", parser=span, show_default=False,
        help="Only answers that took longer, such as 500ms or 2s; with --pairs, their requests "
        "too.",
    ),
]  # fmt: skip
SessionOption = Annotated[
    str | None, option("--session", "ID", "Only the session whose id starts with this.")
]
FromOption = Annotated[int | None, number("--from", 0, MOST, "Start at message number N.")]
ToOption = Annotated[int | None, number("--to", 0, MOST, "Stop at message number N.")]
LimitOption = Annotated[int | None, number("--limit", 1, MOST, "Show at most N.")]
LastOption = Annotated[
    int | None,
    number("--last", 1, 100000, "Show only the last N; with --follow, those and what comes."),
]
PairsOption = Annotated[
    bool, flag("--pairs", "Show each answer below its request; filters then match either.")
]
FullOption = Annotated[bool, flag("--full", "Show each message in full.")]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow", "-f",
        help="Keep showing messages while the tape is recorded, until it ends or Ctrl-C.",
        show_default=False,
    ),
]  # fmt: skip
IgnoreOption = Annotated[
    list[str] | None,
    _words(
        "--ignore", "PATH",
        "Ignore differences at this path of an answer, such as "
        "$.result.content[*].text or $..timestamp. May be repeated.",
        _place,
    ),
]  # fmt: skip
FirstArgument = Annotated[Path, argument("A", "The first tape.")]
SecondArgument = Annotated[Path, argument("B", "The second tape.")]
FormatOption = Annotated[
    str, choice("--format", "FORM", FORMS, "json, har or markdown.  [default: json]")
]
ExportOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="The file to write.  [default: standard output]",
        show_default=False,
    ),
]  # fmt: skip
OverwriteOption = Annotated[bool, flag("--overwrite", "Replace OUT if it exists.")]
RedactedArgument = Annotated[Path, argument("OUT", "The new tape.")]
RedactPathOption = Annotated[
    list[str] | None,
    _words(
        "--path", "PATH",
        "Also redact this path in every message, such as $.params.arguments.ssn or "
        "$..pin. May be repeated.",
        _place,
    ),
]  # fmt: skip
KeyOption = Annotated[
    Path | None,
    option(
        "--redaction-key", "FILE",
        "The key that placeholders are made with; created if it does not exist.  [default: that "
        "of the tape's folder, or your own]",
    ),
]  # fmt: skip
