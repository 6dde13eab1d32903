"""What the proxy costs: beside a bare HTTP proxy, beside a pipe of bytes, and beside `mcp-proxy`.

Whoever is measured has one processor, and its clients and the server behind it another. Everything
is measured in turns and compared within a round; shown are the medians of the rounds. "CPU" is the
time the proxy's process ran for a question and its answer, which other work on the machine disturbs
least. "Added" is what a question and its answer take longer than without a proxy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn, TypeAlias

import uvloop

from benchmarks import proxy_flat
from benchmarks.mail import processors
from benchmarks.proxy_load import CALLERS, WINDOW, Subject
from benchmarks.proxy_places import Cores, Places
from benchmarks.proxy_table import DIRECT, Round, Size, Way, compare
from benchmarks.rivals import MCP_PROXY, NotInstalled, installed

FLOOR, PIPE, RIVAL = "bare HTTP proxy", "pipe of bytes", "mcp-proxy"
OURS, RECORDED, STATELESS = "folkmoot proxy", "folkmoot, recording", "folkmoot, stateless"
OF_FLOOR, OF_OURS = 1.8, 1.15
MESSAGES = 20_000
MOST_SECONDS = 600
FULL, QUICK = Size(5, 0.5), Size(3, 0.2)

Subjects: TypeAlias = dict[str, Subject]

HTTP = Way(
    "HTTP ↔ HTTP",
    f"{CALLERS} callers",
    {OURS: FLOOR, RECORDED: OURS, STATELESS: FLOOR, RIVAL: FLOOR},
    {OURS: OF_FLOOR, RECORDED: OF_OURS, STATELESS: OF_FLOOR},
    {},
)
STDIO = Way(
    "stdio ↔ stdio",
    f"{WINDOW} open",
    {OURS: PIPE, RECORDED: OURS},
    {},
    {OURS: MESSAGES, RECORDED: MESSAGES},
)
TO_HTTP = Way(
    "client on stdio, server on HTTP", f"{WINDOW} open", {RECORDED: OURS, RIVAL: OURS}, {}, {}
)
TO_STDIO = Way(
    "client on HTTP, server on stdio", f"{CALLERS} callers", {RECORDED: OURS, RIVAL: OURS}, {}, {}
)


def http_to_http(places: Places, rival: str) -> Subjects:
    """Everyone between HTTP and HTTP; `mcp-proxy` can do it as two, one behind the other."""
    server = places.server()
    url = f"http://127.0.0.1:{server.port}/mcp"
    ours = places.proxy("--upstream", url)
    found: Subjects = {
        DIRECT: places.over_http(server),
        FLOOR: places.over_http(places.floor(url)),
        OURS: places.over_http(ours),
        RECORDED: places.over_http(places.proxy("--upstream", url, *places.recording())),
        STATELESS: places.over_http(ours, stateless=True),
    }
    if rival:
        behind = [rival, "--log-level", "ERROR", "--transport", "streamablehttp", url]
        found[RIVAL] = places.over_http(places.rival(rival, *behind))
    return found


def stdio_to_stdio(places: Places, _: str) -> Subjects:
    """Everyone between pipes and pipes."""
    peer = places.peer()
    return {
        DIRECT: places.on_pipes(peer, measured=False),
        PIPE: places.on_pipes(places.pipe()),
        OURS: places.on_pipes(places.command("--", *peer)),
        RECORDED: places.on_pipes(places.command(*places.recording(), "--", *peer)),
    }


def stdio_to_http(places: Places, rival: str) -> Subjects:
    """A client on pipes, and a server over HTTP."""
    server = places.server()
    url = f"http://127.0.0.1:{server.port}/mcp"
    found: Subjects = {
        DIRECT: places.over_http(server),
        OURS: places.on_pipes(places.command("--upstream", url)),
        RECORDED: places.on_pipes(places.command("--upstream", url, *places.recording())),
    }
    if rival:
        command = [rival, "--log-level", "ERROR", "--transport", "streamablehttp", url]
        found[RIVAL] = places.on_pipes(command)
    return found


def http_to_stdio(places: Places, rival: str) -> Subjects:
    """A client over HTTP, and a server on pipes."""
    peer = places.peer()
    found: Subjects = {
        DIRECT: places.on_pipes(peer, measured=False),
        OURS: places.over_http(places.proxy("--", *peer)),
        RECORDED: places.over_http(places.proxy(*places.recording(), "--", *peer)),
    }
    if rival:
        found[RIVAL] = places.over_http(places.rival(rival, *peer))
    return found


WAYS: tuple[tuple[Way, Callable[[Places, str], Subjects]], ...] = (
    (HTTP, http_to_http),
    (STDIO, stdio_to_stdio),
    (TO_HTTP, stdio_to_http),
    (TO_STDIO, http_to_stdio),
)


def find_rival() -> str:
    """The other proxy's command; nothing, and why, if it cannot be had."""
    try:
        return installed(MCP_PROXY, "mcp-proxy")
    except NotInstalled as error:
        print(f"{RIVAL} not measured: {error}")
        return ""


@contextmanager
def on_their_processors() -> Iterator[Cores]:
    """One processor for whoever is measured, and one for us and all others."""
    everywhere = os.sched_getaffinity(0)
    cores = Cores(*processors())
    os.sched_setaffinity(0, everywhere if cores.others is None else {cores.others})
    try:
        yield cores
    finally:
        os.sched_setaffinity(0, everywhere)


def too_long(*_: object) -> NoReturn:
    """End what hangs."""
    raise TimeoutError(f"the benchmark takes more than {MOST_SECONDS} seconds")


def main(*, quick: bool = False) -> None:
    """Print a table for each pair of sides, then what grows with sessions and rules."""
    size = QUICK if quick else FULL
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MOST_SECONDS)
    rival = "" if quick else find_rival()
    alone: list[Round] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        on_their_processors() as cores,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        for way, begin in WAYS:
            with closing(Places(runner, Path(folder), cores)) as places:
                rounds = compare(way, begin(places, rival), size)
            alone = alone or rounds
        proxy_flat.envelope([seen[OURS].cpu for seen in alone])
        proxy_flat.main(runner, Path(folder), cores, size)
    signal.alarm(0)


if __name__ == "__main__":
    main()
