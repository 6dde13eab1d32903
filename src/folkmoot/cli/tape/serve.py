"""`folkmoot tape serve`: be the server that is on a tape."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.looping import announce, host_and_port, run_until_stopped, tell_waiting
from folkmoot.cli.options import choice
from folkmoot.cli.output import say
from folkmoot.cli.tape.options import TapeArgument, places
from folkmoot.cli.tape.replaying import TimingOption
from folkmoot.cli.text import one_line

if TYPE_CHECKING:
    from folkmoot.core.errors import TapeExhausted
    from folkmoot.relay.steps import Steps
    from folkmoot.relay.tape_server import Replay

MODES: Final = ("exact", "arguments", "order")
MOST_TOLD: Final = 20

ModeOption = Annotated[
    str,
    choice(
        "--mode", "MODE", MODES,
        "How requests are matched with recorded ones: by all params (exact), by name "
        "and arguments (arguments), or by the order of each method (order).  [default: "
        "arguments]",
    ),
]  # fmt: skip
OnceOption = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Use each recorded answer once; otherwise the last answer to equal requests is "
        "repeated.",
        show_default=False,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with 1 when a request is not on the tape, or a recorded request was never made.",
        show_default=False,
    ),
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="HOST:PORT",
        help="Serve HTTP at /mcp on this address, instead of standard input and output.",
        show_default=False,
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    places(
        "--ignore", "Ignore this path when matching requests, such as $.params.arguments.now. May "
                    "be repeated.",
    ),
]  # fmt: skip
MissesOption = Annotated[
    Path | None,
    typer.Option(
        "--misses",
        metavar="FILE",
        help="Append each request that is not on the tape to this file, as a line of JSON.",
        show_default=False,
    ),
]


def serve(
    file: TapeArgument,
    mode: ModeOption = "arguments",
    timing: TimingOption = 0.0,
    listen: ListenOption = None,
    ignore: IgnoreOption = None,
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
    if tell_end(replay) and strict:
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

    tell_waiting("for HTTP clients, use --listen")
    front = StdioFront(steps.clock)
    await front.open()
    await carry(
        front, replay.connect, steps, SessionManager(steps.clock), key=secrets.token_hex(16)
    )


async def serve_http(replay: Replay, steps: Steps, address: tuple[str, int]) -> None:
    """Serve everyone who comes to an address."""
    from folkmoot.relay.proxy import Proxy, Upstream

    proxy = Proxy(Upstream(replay.connect), steps)
    async with proxy.listening(*address) as url:
        announce("The tape is served at", url)
        await proxy.ended()


class Misses:
    """A file of what was asked for in vain; others may write to it at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, error: TapeExhausted) -> None:
        """Add a line."""
        line: dict[str, Any] = {"message": error.message, **error.data}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(descriptor)


def tell_end(replay: Replay) -> bool:
    """Say what did not fit; whether anything was said."""
    from folkmoot.proxy.replay.matching import told

    unasked = replay.unasked()
    tell("Asked, but not on the tape", [error.message for error in replay.misses])
    tell("Never asked for", [f"message {call.seq}, {told(call.message)}" for call in unasked])
    return bool(unasked or replay.misses)


def tell(heading: str, lines: list[str]) -> None:
    """A list under its heading on stderr; nothing where it is empty."""
    if not lines:
        return
    say(f"{heading}:", err=True)
    for line in lines[:MOST_TOLD]:
        say(f"  {one_line(line)}", err=True)
    if len(lines) > MOST_TOLD:
        say(f"  and {len(lines) - MOST_TOLD} more", err=True)
