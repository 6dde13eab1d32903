"""What an envelope costs, how much memory a session takes, and that neither sessions nor rules add
to what a call costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median

from benchmarks.mail_servers import Running
from benchmarks.measure import best
from benchmarks.proxy_load import (
    Caller,
    Seen,
    call,
    connected,
    greeted,
    measured,
    request,
)
from benchmarks.proxy_peer import answer
from benchmarks.proxy_places import Cores, Places
from benchmarks.proxy_table import Size, goal, micro, rounds_of
from benchmarks.rooms_idle import resident
from folkmoot.clock import SystemClock
from folkmoot.core.message import decode_message
from folkmoot.core.transport import UNKNOWN, Headers
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.conversation import HttpConversations
from folkmoot.relay.steps import TO_CLIENT, TO_SERVER

MOST_ENVELOPE = 0.01
MOST_BYTES = 100 * 1024
SESSIONS = (50, 500)
CHILDREN = 50
"""Sessions with a server of their own on pipes."""
FEW, MANY = 10, 1_000
AT_ONCE = 25
SETTLE_SECONDS = 1.0
MOST_GROWTH = 1.1
RULES = {
    "rules about other methods": "resources/read",
    "rules about calls of other tools": "tools/call",
}
"""Kinds of rules; those of the first are never looked at, those of the second all."""
RULE = """
[[rule]]
name = "rule {number}"
when = {{ method = "{method}", tool = "tool_{number}_*" }}
action = "block"
message = "Not here."
"""


def envelope(calls: Sequence[float]) -> None:
    """Print which part of a call over HTTP is spent on the envelopes of its two messages."""
    clock = SystemClock()
    talk = HttpConversations(SessionManager(clock), clock).of(Headers((("mcp-session-id", "1"),)))
    asked = decode_message(call(1))
    told = decode_message(answer(call(1)) or b"")

    def carry() -> None:
        for message, way in ((asked, TO_SERVER), (told, TO_CLIENT)):
            talk.conversation.enter(talk.envelope(message, way, UNKNOWN))

    [seconds] = best(carry)
    part = seconds / median(calls)
    print(
        f"\nenvelopes of a call and its answer: {micro(seconds)}, {part:.2%} of a call's CPU",
        end="",
    )
    print(f" over HTTP; {goal(f'< {MOST_ENVELOPE:.0%}', met=part < MOST_ENVELOPE)}")


async def sessions(port: int, count: int, *, listening: bool) -> tuple[list[Caller], list[str]]:
    """Open so many sessions, and the stream of each if it is wanted."""
    held: list[Caller] = []
    named: list[str] = []

    async def one() -> None:
        caller = await connected(port)
        named.append(await greeted(caller))
        if listening:
            caller.listen(named[-1])
            held.append(caller)
        else:
            caller.close()

    for _ in range(0, count, AT_ONCE):
        await asyncio.gather(*(one() for _ in range(min(AT_ONCE, count))))
    await asyncio.sleep(SETTLE_SECONDS)
    return held, named


class Flat:
    """The proxies whose sessions and rules are many."""

    def __init__(self, runner: asyncio.Runner, places: Places, size: Size, folder: Path) -> None:
        self._run = runner.run
        self._places = places
        self._size = size
        self._folder = folder
        server = places.server()
        self._upstream = ("--upstream", f"http://127.0.0.1:{server.port}/mcp")

    def memory(self) -> None:
        """Print what a session takes."""
        print("\nmemory of a session that does nothing")
        for count in SESSIONS:
            self._memory(f"{count} over HTTP", self._upstream, count)
            self._memory(f"{count} over HTTP, listening", self._upstream, count, listening=True)
        self._memory(f"{CHILDREN} with a server on stdio", ("--", *self._places.peer()), CHILDREN)

    def _memory(
        self, name: str, server: Sequence[str], count: int, *, listening: bool = False
    ) -> None:
        proxy = self._places.proxy(*server)
        # What is loaded for the first session belongs to none.
        callers, _ = self._run(sessions(proxy.port, FEW, listening=listening))
        before = resident(proxy.pid)
        more, _ = self._run(sessions(proxy.port, count, listening=listening))
        each = (resident(proxy.pid) - before) / count
        for caller in callers + more:
            caller.close()
        met = each < MOST_BYTES
        print(f"  {name:<34} {each / 1024:6.1f} KiB  {goal('< 100 KiB', met=met)}", flush=True)

    def flatness(self) -> None:
        """Print what a call costs among few and among many."""
        print(f"\nCPU of a call over HTTP, among {FEW} and {MANY:,}")
        few, many = (self._with_sessions(count) for count in (FEW, MANY))
        self._compare("sessions", few, many)
        for name, method in RULES.items():
            few, many = (self._with_rules(count, method) for count in (FEW, MANY))
            self._compare(name, few, many, flat=method != "tools/call")

    def _with_sessions(self, count: int) -> tuple[Running, list[str]]:
        proxy = self._places.proxy(*self._upstream)
        _, named = self._run(sessions(proxy.port, count, listening=False))
        return proxy, named

    def _with_rules(self, count: int, method: str) -> tuple[Running, list[str]]:
        file = self._folder / f"rules-{count}-{method.replace('/', '-')}.toml"
        rules = (RULE.format(number=number, method=method) for number in range(count))
        file.write_text("".join(rules))
        proxy = self._places.proxy(*self._upstream, "--rules", str(file))
        _, named = self._run(sessions(proxy.port, FEW, listening=False))
        return proxy, named

    def _compare(
        self,
        name: str,
        few: tuple[Running, list[str]],
        many: tuple[Running, list[str]],
        *,
        flat: bool = True,
    ) -> None:
        measures: dict[str, Callable[[float], Seen]] = {}
        for label, (proxy, named) in (("few", few), ("many", many)):
            asked = cycle([request(call(1), session) for session in named])
            caller = self._run(connected(proxy.port, asked))
            measures[label] = partial(self._measured, caller, proxy.pid)
        rounds = rounds_of(measures, self._size)
        ratio = median(r["many"].cpu / r["few"].cpu for r in rounds)
        costs = (micro(median(r[label].cpu for r in rounds)) for label in measures)
        met = goal(f"≤ {MOST_GROWTH:g} ×", met=ratio <= MOST_GROWTH) if flat else ""
        line = f"  {name:<34} {' → '.join(costs):<20} {ratio:.2f} ×  {met}"
        print(line.rstrip(), flush=True)

    def _measured(self, caller: Caller, pid: int, seconds: float) -> Seen:
        return self._run(measured([caller], [pid], seconds))[0]


def main(runner: asyncio.Runner, folder: Path, cores: Cores, size: Size) -> None:
    """Print both."""
    with closing(Places(runner, folder, cores)) as places:
        flat = Flat(runner, places, size, folder)
        flat.memory()
        flat.flatness()
