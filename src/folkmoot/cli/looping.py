"""A loop that a signal ends, for commands that run until they are stopped."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import typer

from folkmoot.cli.output import say

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_PORT: Final = 65_535
ADDRESS: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]*)):([0-9]{1,5})")


def run_until_stopped(main: Coroutine[Any, Any, T]) -> T | None:
    """Run something until it ends or a signal asks it to; then the answer is None."""
    import uvloop

    async def stoppable() -> T | None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        stopped = False

        def stop() -> None:
            nonlocal stopped
            stopped = True
            if task is not None:
                task.cancel()

        for each in SIGNALS:
            # Whoever started this may want it to outlive the terminal, as `nohup` does.
            if signal.getsignal(each) is not signal.SIG_IGN:
                loop.add_signal_handler(each, stop)
        try:
            return await main
        except asyncio.CancelledError:
            if not stopped:
                raise
            return None

    # What is loaded by now stays: the collector of garbage need not look through it ever again.
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, suppress(KeyboardInterrupt):
        return runner.run(stoppable())
    return None


def host_and_port(text: str) -> tuple[str, int]:
    """The two halves of an address; `:0` is any free port of this machine."""
    found = ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > MOST_PORT:
        raise typer.BadParameter(
            f"--listen must be HOST:PORT, with a port from 0 to {MOST_PORT}, not {text!r}"
        )
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def announce(what: str, url: str) -> None:
    """Say where clients find it, on standard output for whoever waits for that, and how it ends."""
    lines = (
        f"{what}  {url}/mcp",
        f"{'for HTTP+SSE at':>{len(what)}}  {url}/sse",
        "Press Ctrl-C to stop.",
    )
    # It serves all the same if nobody reads this.
    with suppress(OSError):
        for line in lines:
            say(line)


def tell_waiting(otherwise: str) -> None:
    """Say to a person at a terminal that this waits for a program, and what can be done instead."""
    if sys.stdin is not None and sys.stdin.isatty():
        with suppress(OSError):
            say(
                "This command is meant to be started by an MCP client, which talks to it on",
                err=True,
            )
            say(f"standard input and output; {otherwise}. Press Ctrl-C to stop it.", err=True)
