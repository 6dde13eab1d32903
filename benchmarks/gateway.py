"""What a call through the gateway costs: beside the same call made directly, a bare HTTP proxy,
FastMCP's proxy and `mcp-proxy`.

Whoever is measured has one processor, and its clients and the server behind it another. Everything
is measured in turns and compared within a round; shown are the medians of the rounds. "CPU" is the
time the process under test ran for a call, which other work on the machine disturbs least. "Added"
is what a call takes longer than without anyone in between.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import uvloop

from benchmarks import gateway_flat
from benchmarks.gateway_flat import Rival
from benchmarks.gateway_places import NAMESPACE, Behind, GatewayPlaces
from benchmarks.proxy import on_their_processors, too_long
from benchmarks.proxy_load import CALLERS, Subject
from benchmarks.proxy_peer import HANDSHAKE, STATELESS
from benchmarks.proxy_table import DIRECT, Size, Way, compare
from benchmarks.rivals import FASTMCP, MCP_PROXY, NotInstalled, installed

FLOOR = "bare HTTP proxy"
OURS, OURS_OLD = "folkmoot, stateless", "folkmoot, handshake"
FAST, FAST_OLD = "FastMCP, stateless", "FastMCP, handshake"
OTHER = "mcp-proxy, handshake"
OF_FLOOR = 2.2
MOST_SECONDS = 900
FULL, QUICK = Size(5, 0.5), Size(3, 0.2)
"""FastMCP answers a few calls a round."""

Subjects: TypeAlias = dict[str, Subject]
BESIDE = dict.fromkeys((OURS, OURS_OLD, FAST, FAST_OLD, OTHER), FLOOR)


class Rivals(NamedTuple):
    """The commands of others, as far as they can be had."""

    fastmcp: str
    mcp_proxy: str


def over_http(era: str) -> Way:
    """A server over HTTP that speaks one of the eras."""
    goals = {OURS: OF_FLOOR, OURS_OLD: OF_FLOOR}
    return Way(f"HTTP backend, {era} era", f"{CALLERS} callers", BESIDE, goals, {})


ON_STDIO = Way("stdio backend, handshake era", f"{CALLERS} callers", BESIDE, {}, {})


def with_http(era: str) -> Callable[[GatewayPlaces, Rivals], Subjects]:
    """Everyone in front of a server over HTTP."""

    def begin(places: GatewayPlaces, rivals: Rivals) -> Subjects:
        server = places.server(era)
        behind = Behind(url=f"http://127.0.0.1:{server.port}/mcp")
        found: Subjects = {DIRECT: places.over_http(server)}
        if rivals.mcp_proxy:
            # It speaks HTTP on one side alone, so it is two of them, one behind the other.
            command = [rivals.mcp_proxy, "--log-level", "ERROR", "--transport", "streamablehttp"]
            found[OTHER] = places.over_http(places.rival(rivals.mcp_proxy, *command, behind.url))
        return {**found, **in_front(places, rivals, behind, behind.url, mirrored=era == STATELESS)}

    return begin


def with_stdio(places: GatewayPlaces, rivals: Rivals) -> Subjects:
    """Everyone in front of a server on pipes; the floor alone has one over HTTP."""
    peer = places.peer(HANDSHAKE)
    found: Subjects = {DIRECT: places.on_pipes(peer, measured=False)}
    if rivals.mcp_proxy:
        found[OTHER] = places.over_http(places.rival(rivals.mcp_proxy, *peer))
    url = f"http://127.0.0.1:{places.server().port}/mcp"
    return {**found, **in_front(places, rivals, Behind(command=peer), url, mirrored=False)}


def in_front(
    places: GatewayPlaces, rivals: Rivals, behind: Behind, floor: str, *, mirrored: bool
) -> Subjects:
    """Those who serve clients of both eras; FastMCP's proxy where the server speaks the same."""
    front = places.hub({NAMESPACE: behind})
    found: Subjects = {FLOOR: places.over_http(places.floor(floor))}
    for name, stateless in ((OURS, True), (OURS_OLD, False)):
        found[name] = places.over_http(front.running, stateless=stateless, words=front.words())
    if rivals.fastmcp:
        fast = places.fastmcp(rivals.fastmcp, behind)
        if mirrored:
            found[FAST] = places.over_http(fast, stateless=True)
        found[FAST_OLD] = places.over_http(fast)
    return found


WAYS: tuple[tuple[Way, Callable[[GatewayPlaces, Rivals], Subjects]], ...] = (
    (over_http(STATELESS), with_http(STATELESS)),
    (over_http(HANDSHAKE), with_http(HANDSHAKE)),
    (ON_STDIO, with_stdio),
)


def listing(rivals: Rivals, places: GatewayPlaces) -> list[Rival]:
    """Those whose lists are compared with ours."""
    return [Rival(FAST, partial(places.fastmcp, rivals.fastmcp))] if rivals.fastmcp else []


def found(requirement: str, program: str) -> str:
    """The command of another; nothing, and why, if it cannot be had."""
    try:
        return installed(requirement, program)
    except NotInstalled as error:
        print(f"{program} not measured: {error}")
        return ""


def main(*, quick: bool = False) -> None:
    """Print a table for each kind of server, then what grows with tools, backends and grants."""
    size = QUICK if quick else FULL
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MOST_SECONDS)
    rivals = Rivals("", "")
    if not quick:
        rivals = Rivals(found(FASTMCP, "fastmcp"), found(MCP_PROXY, "mcp-proxy"))
    with (
        tempfile.TemporaryDirectory() as folder,
        on_their_processors() as cores,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        for way, begin in WAYS:
            with closing(GatewayPlaces(runner, Path(folder), cores)) as places:
                compare(way, begin(places, rivals), size)
        gateway_flat.main(runner, Path(folder), cores, size, partial(listing, rivals))
    signal.alarm(0)


if __name__ == "__main__":
    main()
