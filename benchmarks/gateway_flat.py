"""What a list costs for each byte of it, and that neither tools, backends, grants nor asks add to a
call.

Ten backends stand behind each hub, with one tool each or with a hundred.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.gateway_places import CALLER, NAMESPACE, Behind, Front, GatewayPlaces
from benchmarks.mail_load import VERSION
from benchmarks.mail_servers import Running
from benchmarks.proxy_load import Caller, Seen, Words, connected, measured
from benchmarks.proxy_places import Cores, family
from benchmarks.proxy_table import Round, Size, goal, micro, rounds_of
from benchmarks.rooms_idle import resident

BACKENDS = 10
FEW, MANY = 10, 1_000
MORE_BACKENDS = 60
MOST_GROWTH = 1.1
MOST_OF_ASKS = 1.05
MOST_OF_FLOOR = 2.5
MOST_BYTES = 1024 * 1024
SETTLE_SECONDS = 1.0
CALL = f"mcp.request.tools/call:{NAMESPACE}:"
OPEN_ASKS = 100_000
RULE = """
[asks.rule{}]
what = [{{ kind = "{}", payload = {{ params = {{ arguments = {{ text = "no{}" }} }} }} }}]
to = "bob"
"""
ASK_RULES = "".join(
    RULE.format(n, CALL + ("echo" if n < 3 else f"other{n}"), n) for n in range(100)
)
"""Rules about other tools, and some about other arguments of this one."""
LISTED = "  {:<34} {:>10} {:>12} {:>10}  {}"
LIST = Words(tool="")

PLENTY = {"grants by name": ("echo", "tool_{}"), "grants with *": ("ech*", "tool_{}_*")}
"""What a person may call: the tool, and many others."""


class Rival(NamedTuple):
    """Someone else's proxy in front of one server."""

    name: str
    start: Callable[[Behind], Running]


class Flat:
    """The hubs whose tools and grants are many."""

    def __init__(self, runner: asyncio.Runner, places: GatewayPlaces, size: Size) -> None:
        self._run = runner.run
        self._places = places
        self._size = size
        self._few, self._many = (self._hub(count // BACKENDS) for count in (FEW, MANY))

    def _hub(self, tools: int, backends: int = BACKENDS) -> Front:
        url = f"http://127.0.0.1:{self._places.server(tools=tools).port}/mcp"
        others = {f"{NAMESPACE}{number}": Behind(url) for number in range(1, backends)}
        return self._places.hub({NAMESPACE: Behind(url), **others})

    def lists(self, rivals: Sequence[Rival]) -> None:
        """Print what a list costs, beside a server that has its bytes ready."""
        print("\ntools/list, one by one, and a bare server that has the answer ready")
        print(LISTED.format("", "bytes", "CPU", "per KiB", "").rstrip())
        server = self._places.server(tools=MANY)
        behind = Behind(f"http://127.0.0.1:{server.port}/mcp")
        callers = {
            f"bare server, {MANY:,} tools": self._caller(server, LIST),
            f"folkmoot, {FEW} tools": self._caller(self._few.running, self._few.words(tool="")),
            f"folkmoot, {MANY:,} tools": self._caller(
                self._many.running, self._many.words(tool="")
            ),
        }
        bare, few, many = callers
        for rival in rivals:
            callers[f"{rival.name}, {MANY:,} tools"] = self._caller(rival.start(behind), LIST)
        sizes = {name: self._run(size_of(caller)) for name, (caller, _) in callers.items()}
        rounds = self._rounds(callers)
        for name, size in sizes.items():
            cpu = median(r[name].cpu for r in rounds)
            each = cpu / size * 1024
            told = ""
            if name == many:
                by_byte = median(
                    (r[many].cpu / sizes[many]) / (r[few].cpu / sizes[few]) for r in rounds
                )
                beside = median(r[many].cpu / r[bare].cpu * sizes[bare] / size for r in rounds)
                told = "; ".join(
                    (
                        f"{by_byte:.2f} × that of {FEW} by the byte, "
                        + goal("≤ 1 ×", met=by_byte <= 1),
                        f"{beside:.2f} × the bare server's, "
                        + goal(f"≤ {MOST_OF_FLOOR:g} ×", met=beside <= MOST_OF_FLOOR),
                    )
                )
            line = LISTED.format(name, f"{size:,}", micro(cpu), micro(each), told)
            print(line.rstrip(), flush=True)

    def calls(self) -> None:
        """Print what a call costs among few and among many."""
        print(f"\nCPU of a call to an HTTP backend, among {FEW} and {MANY:,}")
        words = self._few.words(), self._many.words()
        self._compare("tools", (self._few.running, words[0]), (self._many.running, words[1]))
        one = self._hub(tools=1, backends=1)
        self._compare(
            f"backends, 1 and {BACKENDS}",
            (one.running, one.words()),
            (self._few.running, words[0]),
        )
        for name, (tool, other) in PLENTY.items():
            others = [CALL + other.format(number) for number in range(MANY - 1)]
            held = {CALLER: [CALL + tool], "bob": [*others, CALL + tool]}
            url = f"http://127.0.0.1:{self._places.server().port}/mcp"
            front = self._places.hub({NAMESPACE: Behind(url)}, held, everyone=False)
            few, many = ((front.running, front.words(who)) for who in held)
            self._compare(f"{name}, 1 and {MANY:,}", few, many)
        self._asks()

    def _asks(self) -> None:
        """The same of a call that rules of asks allow, and while many asks are open."""
        behind = {NAMESPACE: Behind(f"http://127.0.0.1:{self._places.server().port}/mcp")}
        plain = self._places.hub(behind)
        ruled = self._places.hub(behind, rules=ASK_RULES)
        full = self._places.hub(behind, rules=ASK_RULES, asks=OPEN_ASKS)
        first = plain.running, plain.words()
        for name, front in (
            ("without and with rules of asks", ruled),
            (f"and with {OPEN_ASKS:,} open asks", full),
        ):
            self._compare(name, first, (front.running, front.words()), MOST_OF_ASKS)

    def memory(self) -> None:
        """Print what a backend takes that nobody calls."""
        more = self._hub(tools=1, backends=MORE_BACKENDS)
        self._run(asyncio.sleep(SETTLE_SECONDS))
        grown = resident(more.running.pid) - resident(self._few.running.pid)
        each = grown / (MORE_BACKENDS - BACKENDS)
        met = goal("< 1 MiB", met=each < MOST_BYTES)
        print(f"\nmemory of an HTTP backend that nobody calls: {each / 1024:.1f} KiB  {met}")

    def _caller(self, running: Running, words: Words) -> tuple[Caller, list[int]]:
        asked = cycle([words.asking(version=VERSION)])
        return self._run(connected(running.port, asked)), family(running.pid)

    def _rounds(self, callers: dict[str, tuple[Caller, list[int]]]) -> list[Round]:
        held = dict(callers)

        def measure(name: str, seconds: float) -> Seen:
            caller, pids = held[name]
            seen, [awake] = self._run(measured([caller], pids, seconds))
            held[name] = awake, pids
            return seen

        return rounds_of({name: partial(measure, name) for name in callers}, self._size)

    def _compare(
        self,
        name: str,
        few: tuple[Running, Words],
        many: tuple[Running, Words],
        most: float = MOST_GROWTH,
    ) -> None:
        rounds = self._rounds({"few": self._caller(*few), "many": self._caller(*many)})
        ratio = median(r["many"].cpu / r["few"].cpu for r in rounds)
        costs = " → ".join(micro(median(r[key].cpu for r in rounds)) for key in ("few", "many"))
        met = goal(f"≤ {most:g} ×", met=ratio <= most)
        print(f"  {name:<34} {costs:<20} {ratio:.2f} ×  {met}", flush=True)


async def size_of(caller: Caller) -> int:
    """How many bytes an answer has."""
    return len(await caller.ask(next(caller.requests)))


def main(
    runner: asyncio.Runner,
    folder: Path,
    cores: Cores,
    size: Size,
    rivals: Callable[[GatewayPlaces], Sequence[Rival]],
) -> None:
    """Print all of it."""
    with closing(GatewayPlaces(runner, folder, cores)) as places:
        flat = Flat(runner, places, size)
        flat.lists(rivals(places))
        flat.calls()
        flat.memory()
