"""`folkmoot tape serve` and `play`: be the server, or the client, that is on a tape."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from msgspec import UNSET, Struct

from folkmoot.cli.call import (
    StartTimeoutOption,
    UpstreamOption,
    UpstreamTransportOption,
    note_start,
)
from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.options import (
    HeaderOption,
    argument,
    choice,
    flag,
    number,
    option,
    sent_headers,
)
from folkmoot.cli.output import (
    ExitCode,
    announce,
    escape_json,
    explain_waiting,
    host_and_port,
    one_line,
    run_until_stopped,
    say,
)
from folkmoot.cli.show import label
from folkmoot.cli.tape.options import IgnoreOption, TapeArgument, places

if TYPE_CHECKING:
    from folkmoot.core import errors as e
    from folkmoot.proxy.replay.playing import PlayedCall, PlayReport
    from folkmoot.proxy.tape.diff import Difference
    from folkmoot.relay.steps import Steps
    from folkmoot.relay.tape_server import Replay


SLOWEST: Final = 100.0


def _scale(value: Any) -> float:
    try:
        scale = float(value)
    except ValueError:
        scale = -1.0
    if 0 <= scale <= SLOWEST:
        return scale
    raise typer.BadParameter(f"must be a number from 0 to {SLOWEST:g}, not {value!r}")


TimingOption = Annotated[
    float,
    typer.Option(
        "--timing", metavar="SCALE",
        help="Replay the pauses of the tape at this scale: 1 as recorded, 0.5 half as long. "
             " [default: 0, no pauses]",
        parser=_scale, show_default=False,
    ),
]  # fmt: skip


MODES: Final = ("exact", "arguments", "order")
MOST_TOLD: Final = 20

ModeOption = Annotated[
    str,
    choice(
        "--mode", "MODE", MODES,
        "How requests are matched with recorded ones: by all params (exact), by name and "
        "arguments (arguments), or by the order of each method (order).  [default: arguments]",
    ),
]  # fmt: skip
OnceOption = Annotated[
    bool,
    flag(
        "--once",
        "Use each recorded answer once; otherwise the last answer to equal requests is repeated.",
    ),
]
StrictOption = Annotated[
    bool,
    flag(
        "--strict",
        "Exit with 1 when a request is not on the tape, or a recorded request was never made.",
    ),
]
ListenOption = Annotated[
    str | None,
    option(
        "--listen", "HOST:PORT",
        "Serve HTTP at /mcp on this address, instead of standard input and output.",
    ),
]  # fmt: skip
IgnoreMembersOption = Annotated[
    list[str] | None,
    places(
        "--ignore", "Ignore this path when matching requests, such as $.params.arguments.now. May "
                    "be repeated.",
    ),
]  # fmt: skip
MissesOption = Annotated[
    Path | None,
    option(
        "--misses", "FILE",
        "Append each request that is not on the tape to this file, as a line of JSON.",
    ),
]  # fmt: skip


def serve(
    file: TapeArgument,
    mode: ModeOption = "arguments",
    timing: TimingOption = 0.0,
    listen: ListenOption = None,
    ignore: IgnoreMembersOption = None,
    misses: MissesOption = None,
    *,
    once: OnceOption = False,
    strict: StrictOption = False,
) -> None:
    """Replay a tape as an MCP server.

    Uses standard input and output, or HTTP with --listen. A request that is not on the tape gets an
    error that names the nearest recorded one. At the end, it prints on stderr which requests were
    not on the tape, and which recorded ones were never made.
    """
    address = None if listen is None else host_and_port(listen)
    from folkmoot.clock import SystemClock
    from folkmoot.proxy.replay.matching import Mode
    from folkmoot.proxy.tape import read_tape
    from folkmoot.relay.tape_server import Replay

    replay = Replay(
        read_tape(file),
        SystemClock(),
        mode=Mode(mode),
        timing=timing,
        once=once,
        ignore=ignore or (),
        on_miss=None if misses is None else Misses(misses).note,
    )
    run_until_stopped(serve_replay(replay, address))
    if show_end(replay) and strict:
        raise typer.Exit(ExitCode.FAILED)


async def serve_replay(replay: Replay, address: tuple[str, int] | None) -> None:
    """Serve a tape on standard input and output, or at an address."""
    from folkmoot.clock import SystemClock
    from folkmoot.proxy.chain import Chain
    from folkmoot.relay.steps import Steps

    steps = Steps(Chain(), None, SystemClock())
    await (serve_stdio(replay, steps) if address is None else serve_http(replay, steps, address))


async def serve_stdio(replay: Replay, steps: Steps) -> None:
    """Serve the one client on standard input and output, until it leaves."""
    # Without all that HTTP needs, which takes longer to import than most tests to run.
    from folkmoot.mcp.server.stdio import StdioFront
    from folkmoot.proxy.sessions import SessionManager
    from folkmoot.relay.pump import carry

    explain_waiting("for HTTP clients, use --listen")
    front = StdioFront(steps.clock)
    await front.open()
    await carry(
        front,
        replay.connect,
        steps,
        SessionManager(steps.clock),
        key=secrets.token_hex(16),
        discoverable=replay.script.discoverable,
    )


async def serve_http(replay: Replay, steps: Steps, address: tuple[str, int]) -> None:
    """Serve everyone who comes to an address."""
    from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream

    options = ProxyOptions(discoverable=replay.script.discoverable)
    proxy = Proxy(Upstream(replay.connect), steps, options)
    async with proxy.listening(*address) as url:
        announce("The tape is served at", url)
        await proxy.ended()


class Misses(Struct, eq=False):
    """A file of what was asked for in vain; others may write to it at the same time."""

    path: Path

    def note(self, error: e.TapeExhausted) -> None:
        """Add a line."""
        line: dict[str, Any] = {"message": error.message, **error.data}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)


def show_end(replay: Replay) -> bool:
    """Say what did not fit; whether anything was said."""
    from folkmoot.proxy.replay.matching import told

    unasked = replay.unasked()
    show_block("Asked, but not on the tape", [error.message for error in replay.misses])
    show_block("Never asked for", [f"message {call.seq}, {told(call.message)}" for call in unasked])
    return bool(unasked or replay.misses)


def show_block(heading: str, lines: list[str]) -> None:
    """A list under its heading on stderr; nothing where it is empty."""
    if not lines:
        return
    say(f"{heading}:", err=True)
    for line in lines[:MOST_TOLD]:
        say(f"  {one_line(line)}", err=True)
    if len(lines) > MOST_TOLD:
        say(f"  and {len(lines) - MOST_TOLD} more", err=True)


LONGEST: Final = 200
MOST_CALLS_TOLD: Final = 20
"""Differences of one answer that are shown; --json tells all."""
SECRET: Final = re.compile(r"(\[redacted:[a-z]+:[0-9a-f]+\])=([A-Za-z_][A-Za-z0-9_]*)")

CommandArgument = Annotated[
    list[str] | None, argument("[-- COMMAND…]", "The server, as the command that starts it.")
]
SecretOption = Annotated[
    list[str] | None,
    option(
        "--secret", "PLACEHOLDER=VARIABLE",
        "Send the value of this environment variable in place of the placeholder. May be repeated.",
    ),
]  # fmt: skip
PatienceOption = Annotated[
    int, number("--patience", 1, 3600, "Wait up to N seconds for each answer.  [default: 30]")
]


@with_json_option
def play(
    file: TapeArgument,
    command: CommandArgument = None,
    upstream: UpstreamOption = None,
    transport: UpstreamTransportOption = "auto",
    header: HeaderOption = None,
    ignore: IgnoreOption = None,
    secret: SecretOption = None,
    timing: TimingOption = 0.0,
    patience: PatienceOption = 30,
    start_timeout: StartTimeoutOption = 300,
) -> Output:
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
        options = ProxyOptions(start_seconds=float(start_timeout), notify=note_start)
        async with server.upstream(SystemClock(), options) as there:
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
    told = {"summary": report.summary(), "same": report.same, **as_plain(report)}
    return Output(told, lambda: show_report(report), failed=not report.same)


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


def show_report(report: PlayReport) -> None:
    """What differs, place by place, and then the numbers."""
    for call in report.calls:
        show_call(call)
    for question in report.unexpected:
        say(f"The server asked: {one_line(question)}")
    say(report.summary())


def show_call(call: PlayedCall) -> None:
    """Print one request whose answer differs from the tape."""
    from folkmoot.proxy.replay.playing import PlayOutcome

    if call.outcome is PlayOutcome.SAME:
        return
    words = call.outcome.value.replace("_", " ")
    why = f": {one_line(call.why)}" if call.why else ""
    say(f"{call.seq}  {label(call.method, call.name)}  {words}{why}")
    for difference in call.differences[:MOST_CALLS_TOLD]:
        say(f"    {one_line(difference.path)}")
        say(f"      - {side_of(difference, 'recorded')}")
        say(f"      + {side_of(difference, 'live')}")
    if len(call.differences) > MOST_CALLS_TOLD:
        say(f"    and {len(call.differences) - MOST_CALLS_TOLD} more")


def side_of(difference: Difference, side: str) -> str:
    """One side of a difference, in a line."""
    import msgspec

    value = getattr(difference, side)
    if value is UNSET:
        return "(nothing)"
    text = escape_json(msgspec.json.encode(value).decode())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
