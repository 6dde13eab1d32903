"""`folkmoot tape play`: be the client that is on a tape, and see what a live server says now."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import UNSET

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.headers import HeaderOption, sent_headers
from folkmoot.cli.looping import run_until_stopped
from folkmoot.cli.options import JsonOption, number
from folkmoot.cli.output import say
from folkmoot.cli.proxy_options import (
    TransportOption,
    UpstreamOption,
)
from folkmoot.cli.tape.options import IgnoreOption, TapeArgument
from folkmoot.cli.tape.replaying import TimingOption
from folkmoot.cli.tape.words import label
from folkmoot.cli.text import escape_json, one_line, say_data

if TYPE_CHECKING:
    from folkmoot.proxy.replay.playing import PlayedCall, PlayReport
    from folkmoot.proxy.tape.diff import Difference

LONGEST: Final = 200
MOST_TOLD: Final = 20
"""Differences of one answer that are shown; --json tells all."""
SECRET: Final = re.compile(r"(\[redacted:[a-z]+:[0-9a-f]+\])=([A-Za-z_][A-Za-z0-9_]*)")

CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND…]", help="The server, as the command that starts it.",
        show_default=False,
    ),
]  # fmt: skip
SecretOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret", metavar="PLACEHOLDER=VARIABLE",
        help="Send the value of this environment variable in place of the placeholder. May "
             "be repeated.",
        show_default=False,
    ),
]  # fmt: skip
PatienceOption = Annotated[
    int, number("--patience", 1, 3600, "Wait up to N seconds for each answer.  [default: 30]")
]


def play(
    file: TapeArgument,
    command: CommandArgument = None,
    upstream: UpstreamOption = None,
    transport: TransportOption = "auto",
    header: HeaderOption = None,
    ignore: IgnoreOption = None,
    secret: SecretOption = None,
    timing: TimingOption = 0.0,
    patience: PatienceOption = 30,
    *,
    as_json: JsonOption = False,
) -> None:
    """Replay a tape's client to a live server; report differences.

    Each answer is compared with the recorded one; the exit code is 1 if something differs. A
    request from which a secret was redacted is sent only with --secret.
    """
    if bool(command) is bool(upstream):
        raise typer.BadParameter("give either --upstream URL or a command after --")
    headers = tuple((name.lower(), value) for name, value in sent_headers(header).items())
    secrets = dict(map(read_secret, secret or ()))
    from folkmoot.clock import SystemClock
    from folkmoot.proxy.tape import read_tape
    from folkmoot.relay.play import play as play_tape
    from folkmoot.relay.proxy import ProxiedServer, ProxyOptions

    recorded = read_tape(file)
    server = ProxiedServer(tuple(command or ()), upstream or "", transport, headers)  # type: ignore[arg-type]

    async def run() -> PlayReport:
        async with server.upstream(SystemClock(), ProxyOptions()) as there:
            return await play_tape(
                recorded,
                there.connect,
                timing=timing,
                ignore=tuple(ignore or ()),
                secrets=secrets,
                answer_seconds=float(patience),
            )

    report = run_until_stopped(run())
    if report is None:
        raise typer.Abort
    if as_json:
        say_data({"summary": report.summary(), "same": report.same, **as_plain(report)})
    else:
        tell_report(report)
    if not report.same:
        raise typer.Exit(ExitCode.FAILED)


def read_secret(text: str) -> tuple[str, str]:
    """A placeholder and the value that stands in the environment for it."""
    parts = SECRET.fullmatch(text)
    if parts is None:
        raise typer.BadParameter("--secret must be '[redacted:KIND:HEX]=VARIABLE'")
    value = os.environ.get(parts[2])
    if value is None:
        raise typer.BadParameter(f"--secret: the environment variable {parts[2]} is not set")
    return parts[1], value


def as_plain(report: PlayReport) -> dict[str, Any]:
    """The report as JSON values."""
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(report)
    return plain


def tell_report(report: PlayReport) -> None:
    """What differs, place by place, and then the numbers."""
    for call in report.calls:
        tell_call(call)
    for question in report.unexpected:
        say(f"The server asked: {one_line(question)}")
    say(report.summary())


def tell_call(call: PlayedCall) -> None:
    """One request whose answer is not the same."""
    from folkmoot.proxy.replay.playing import PlayOutcome

    if call.outcome is PlayOutcome.SAME:
        return
    words = call.outcome.value.replace("_", " ")
    why = f": {one_line(call.why)}" if call.why else ""
    say(f"{call.seq}  {label(call.method, call.name)}  {words}{why}")
    for difference in call.differences[:MOST_TOLD]:
        say(f"    {one_line(difference.path)}")
        say(f"      - {shown(difference, 'recorded')}")
        say(f"      + {shown(difference, 'live')}")
    if len(call.differences) > MOST_TOLD:
        say(f"    and {len(call.differences) - MOST_TOLD} more")


def shown(difference: Difference, side: str) -> str:
    """What stands on one side, in a line."""
    import msgspec

    value = getattr(difference, side)
    if value is UNSET:
        return "(nothing)"
    text = escape_json(msgspec.json.encode(value).decode())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
