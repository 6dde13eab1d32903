"""Rounds in which programs ask, people decide and something is killed, and their checker.

`python -m tests.faults.asking --rounds 1000 --seed 7` does many. A round that fails names its seed
and number, and `--seed 7 --first 41 --rounds 1` begins the same again.

    journal   what the tool was called with: it writes a call to the disk before it answers
    book      what clients wanted, and what they were told
    asks      what the hub tells of all asks, at the end of a round
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Protocol

from tests.faults.cluster import Cluster, cluster
from tests.harness import Answer, read_answer
from tests.mcp_harness import sse_json
from tests.operator import ask_socket
from tests.ports import free_port
from tests.process import Process
from tests.siege.wire import ACCEPT, Line, bearer, call, registered, request, rpc
from tests.transports.rest.test_sessions import Browser

PROGRAMS = Path(__file__).with_name("asking_programs.py")
ASKERS: Final = ("ann", "cat", "dan")
DECIDER: Final = "bob"
COOKIE: Final = "the decider's browser"
# How many rounds have the same data.
ROUNDS_ON_ONE = 10
# How long a client may wait for an answer before that is a fault, on a machine with much to do.
PATIENCE_SECONDS = 120.0
CALL_SECONDS: Final = 5
# How long after its approval nothing can be noted of a call any more, see `relay/asked_calls.py`.
LOST_SECONDS: Final = CALL_SECONDS + 30
JUMPS: Final = (-86_400.0, -3_600.0, -50.0, -5.0, 5.0, 50.0, 3_600.0, 86_400.0)

STARTED: Final = frozenset(("running", "done", "unknown"))
OF_RULES: Final = STARTED | {"open", "rejected", "withdrawn", "expired", "edited"}
OF_PROGRAMS: Final = frozenset(
    ("open", "approved", "rejected", "withdrawn", "expired", "edited"),
)
# What an ask of which this was told can be later; one that has ended is the same for ever.
LATER: Final = {"open": OF_RULES | OF_PROGRAMS, "running": STARTED}


def call_of(tool: str, arguments: Any) -> str:
    """Stands for a call."""
    return f"{tool.rpartition(':')[2]} {json.dumps(arguments, sort_keys=True)}"


# The checker.


@dataclass(frozen=True, slots=True)
class ReadAsk:
    """What the hub tells of an ask."""

    id: str
    state: str
    tool: str
    arguments: Any
    rule: str = ""
    edited_as: str | None = None
    result: Any = None

    @property
    def call(self) -> str:
        return call_of(self.tool, self.arguments)


@dataclass(slots=True)
class Book:
    """What clients wanted, and what they were told."""

    wanted: set[str] = field(default_factory=set)
    """Calls that someone asked for, or that were to be approved instead, answered or not."""
    told: list[tuple[str, str, str]] = field(default_factory=list)
    """Asks with a state that somebody was told, and who that was."""
    won: list[tuple[str, str]] = field(default_factory=list)
    """Asks that somebody was told to have ended, and how."""
    shown: dict[str, str] = field(default_factory=dict)
    """The calls that whoever decides saw, by their asks."""
    edited: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The asks that took the place of others, and the calls that they are."""
    answers: list[tuple[str, str]] = field(default_factory=list)
    """Lines of the journal that the tool's answers name, with the key of what was called."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often what happened."""
    faults: list[str] = field(default_factory=list)
    """What is wrong whatever became of the asks."""
    events: int = 0

    def tell(self, ask: str, state: str, who: str) -> None:
        self.told.append((ask, state, who))
        self.events += 1


def line_of(result: Any) -> str | None:
    """The line of the journal that an answer of the tool names."""
    for part in (result or {}).get("content", ()):
        with suppress(ValueError, TypeError, KeyError):
            return str(json.loads(part["text"])["line"])
    return None


def faults(journal: Iterable[dict[str, Any]], asks: Iterable[ReadAsk], book: Book) -> list[str]:
    """All that is not as it must be, whoever was killed when."""
    asks, lines, found = {ask.id: ask for ask in asks}, dict[str, Any](), [*book.faults]
    ran, started = Counter[str](), Counter[str]()
    for entry in journal:
        if entry["line"] in lines:
            found.append(f"twice in the journal: {entry}")
        lines[entry["line"]] = entry
        ran[call_of(entry["tool"], entry["arguments"])] += 1
    answered = Counter[str]()
    for ask in asks.values():
        if ask.state not in (OF_RULES if ask.rule else OF_PROGRAMS):
            found.append(f"not a state of such an ask: {ask}")
        if ask.call not in book.wanted:
            found.append(f"nobody wanted that: {ask}")
        if ask.call != book.shown.get(ask.id, ask.call):
            found.append(f"{book.shown[ask.id]} was shown: {ask}")
        if ask.rule and ask.state in STARTED:
            started[ask.call] += 1
        found += done_faults(ask, lines, answered) + edit_faults(ask, asks)
    for each, count in ran.items():
        if count > started[each]:
            found.append(f"ran {count} times, and was approved {started[each]} times: {each}")
    found += [
        f"the answer of {count} asks: {line}" for line, count in answered.items() if count > 1
    ]
    for line, key in book.answers:
        if line not in lines or lines[line]["arguments"]["key"].partition("+")[0] != key:
            found.append(f"{key} was answered with the line {line}: {lines.get(line)}")
    return found + told_faults(asks, book)


def done_faults(ask: ReadAsk, lines: dict[str, Any], answered: Counter[str]) -> list[str]:
    """What the tool answered is in its journal; the hub's own answer tells what went wrong."""
    if ask.state != "done":
        return [] if ask.result is None else [f"has an answer, and is not done: {ask}"]
    line = line_of(ask.result)
    if line is None:
        is_error = (ask.result or {}).get("isError")
        return [] if is_error else [f"is done, and has no answer: {ask}"]
    answered[line] += 1
    made = lines.get(line)
    if made is None or call_of(made["tool"], made["arguments"]) != ask.call:
        return [f"{made} was done for: {ask}"]
    return []


def edit_faults(ask: ReadAsk, asks: dict[str, ReadAsk]) -> list[str]:
    if (ask.state == "edited") is not (ask.edited_as is not None):
        return [f"edited into nothing, or not edited: {ask}"]
    if ask.edited_as is None:
        return []
    new = asks.get(ask.edited_as)
    if new is None or new.state not in STARTED | {"approved"} or new.tool != ask.tool:
        return [f"{new} took the place of: {ask}"]
    return []


def told_faults(asks: dict[str, ReadAsk], book: Book) -> list[str]:
    """Clients were told what is so."""
    found = []
    for id_, state, who in book.told:
        ask = asks.get(id_)
        if ask is None or ask.state not in LATER.get(state, {state}):
            found.append(f"{who} was told that it is {state}: {ask or id_}")
    winners = Counter(id_ for id_, _ in book.won)
    for id_, count in winners.items():
        if count > 1:
            how = [how for each, how in book.won if each == id_]
            found.append(f"{how} were all told to have ended: {asks.get(id_)}")
    for id_, (new, called) in book.edited.items():
        if id_ not in asks or asks[id_].edited_as != new or asks[new].call != called:
            found.append(f"{called} was approved instead as {new}: {asks.get(id_)}")
    return found


# Hubs that are killed.


def tables(journal: Path) -> str:
    """The settings of the tool, and of the rules that ask before it is called."""
    command = json.dumps([sys.executable, "-I", "-S", str(PROGRAMS), "tool", str(journal)])
    rules = "".join(
        f'[asks.{name}]\nwhat = ["journal:{name}"]\nto = "{DECIDER}"\n'
        f"wait_seconds = {wait}\nexpires_seconds = 60\n"
        for name, wait in (("patient", 0.6), ("hasty", 0))
    )
    return (
        f"[backends.journal]\ncommand = {command}\neveryone = true\ncall_seconds = {CALL_SECONDS}\n"
        f"{rules}"
    )


class Hubs(Protocol):
    """One hub, or the nodes of one."""

    journal: Path
    ports: list[int]
    control: Path
    """The socket of its operator."""
    jumps: bool

    async def kill(self, chance: random.Random) -> None:
        """Kill it, or one of its nodes, and start it again."""

    async def jump(self, seconds: float) -> None:
        """Have its clock be another by so much than it was at first."""

    async def settle(self) -> None:
        """Have the time of what was lost be over, where that need not be waited for."""


class Clock:
    """How wrong the clock of a hub's machine is: a number in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.latest = 0.0
        self.set(0.0)

    def set(self, ahead: float) -> None:
        self.latest = max(self.latest, ahead)
        # The hub has this file open.
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.write(struct.pack("d", ahead))


class OneHub:
    """A hub on SQLite, whose clock jumps."""

    jumps = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        self.ports = [free_port()]
        self.control = folder / "data" / "control.sock"
        self._clock = Clock(folder / "clock")
        self._process: Process | None = None
        (folder / "folkmoot.toml").write_text(tables(self.journal))

    async def start(self) -> None:
        self._process = await asyncio.to_thread(
            Process,
            self.folder / "data",
            port=self.ports[0],
            FOLKMOOT_CONFIG=str(self.folder / "folkmoot.toml"),
            FOLKMOOT_RATE_LIMITS="off",
            FOLKMOOT_LOG_LEVEL="warning",
            TEST_CLOCK_JUMPS=str(self._clock.path),
        )

    async def end(self, number: signal.Signals, expected: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.signal(number)
        code, said = await asyncio.to_thread(process.ended)
        process.__exit__()
        assert code == expected, (code, said[-2000:])
        assert "Traceback" not in said, said[-4000:]

    async def kill(self, _: random.Random) -> None:
        await self.end(signal.SIGKILL, -signal.SIGKILL)
        await self.start()

    async def jump(self, seconds: float) -> None:
        self._clock.set(seconds)

    async def settle(self) -> None:
        self._clock.set(self._clock.latest + LOST_SECONDS + 5)


class ThreeNodes:
    """The nodes of a hub, whose clock is their database's."""

    jumps = False

    def __init__(self, there: Cluster, journal: Path) -> None:
        self.there = there
        self.journal = journal
        self.ports = [node.port for node in there.nodes]
        self.control = there.nodes[0].folder / "control.sock"

    async def kill(self, chance: random.Random) -> None:
        node = chance.choice(self.there.nodes)
        await node.kill()
        await node.start()

    async def jump(self, seconds: float) -> None:
        raise NotImplementedError

    async def settle(self) -> None:
        """Nothing but time does that."""


@asynccontextmanager
async def one_hub(folder: Path) -> AsyncIterator[Hubs]:
    hub = OneHub(folder)
    await hub.start()
    try:
        yield hub
        await hub.end(signal.SIGTERM, 0)
    finally:
        with suppress(AssertionError):
            await hub.end(signal.SIGKILL, -signal.SIGKILL)


@asynccontextmanager
async def three_nodes(folder: Path) -> AsyncIterator[Hubs]:
    journal = folder / "asked"
    # A node that is not killed is to keep its lease, also on a machine with much to do.
    async with cluster(folder, lease_seconds=10, tables=tables(journal)) as there:
        yield ThreeNodes(there, journal)


# Those who ask and decide.

# How a request ends whose hub, or whose client, was killed.
GONE = (OSError, asyncio.IncompleteReadError, IndexError)


class Round:
    """What happens in one round."""

    def __init__(self, there: Hubs, book: Book, tokens: dict[str, str], name: str) -> None:
        self.there, self.book, self.tokens, self.name = there, book, tokens, name
        self.chance = random.Random(name)
        self._over = asyncio.Event()
        self._programs: list[asyncio.subprocess.Process] = []

    async def go(self) -> str:
        """Have everyone ask and decide while something is killed; what that was."""
        what = self.chance.choice(["hub", "hub", "hub", "tool", "tool", "asker", "jump", "nothing"])
        if what == "jump" and not self.there.jumps:
            what = "hub"
        jumps = self.there.jumps and (what == "jump" or self.chance.random() < 0.5)
        by = self.chance.choice(JUMPS) * self.chance.random() if jumps else 0.0
        # Each has chances of its own, since nobody knows who asks first.
        asking = [self._asks(f"{number}", self._own()) for number in range(3)]
        asking.append(self._asks_apart("3", self._own()))
        deciding = [self._decides(f"decider {number}", self._own()) for number in range(2)]
        strike = self._strike(what, by, self._own())
        async with asyncio.TaskGroup() as tasks:
            struck = tasks.create_task(strike)
            decided = [tasks.create_task(each) for each in deciding]
            await asyncio.gather(*asking)
            await struck
            self._over.set()
            await asyncio.gather(*decided)
        return f"{what}{f', clock {by:+.0f} s' if jumps else ''}"

    def _own(self) -> random.Random:
        return random.Random(self.chance.random())

    def _port(self, chance: random.Random) -> int:
        return chance.choice(self.there.ports)

    # What is killed.

    async def _strike(self, what: str, by: float, chance: random.Random) -> None:
        wanted, waited = self.book.events + chance.randint(1, 30), 0.0
        while self.book.events < wanted and waited < 2:
            await asyncio.sleep(0.002)
            waited += 0.002
        await asyncio.sleep(max(0.0, chance.uniform(-0.05, 0.05)))
        if by:
            await self.there.jump(by)
        match what:
            case "hub":
                await self.there.kill(chance)
                await ready(self.there, self.tokens)
            case "tool":
                running = tools(self.there.journal)
                if running:
                    os.kill(chance.choice(running), signal.SIGKILL)
            case "asker":
                for program in self._programs:
                    end(program)
        self.book.counts[f"{what} struck"] += 1

    # Who asks.

    async def _asks(self, who: str, chance: random.Random) -> None:
        for number in range(3):
            asker = chance.choice(ASKERS)
            await asyncio.sleep(chance.uniform(0, 0.05))
            arguments = self._arguments(f"{who}.{number}", chance)
            kind = chance.choice(["patient", "patient", "hasty", "program"])
            try:
                if kind == "program":
                    await self._program_asks(asker, arguments, chance)
                else:
                    await self._calls(asker, kind, arguments, chance)
            except TimeoutError:
                self.book.faults.append(f"{self.name}: {asker} had no answer: {kind} {arguments}")
            except GONE:
                self.book.counts["asker lost its hub"] += 1
                await asyncio.sleep(chance.uniform(0, 0.3))

    def _arguments(self, key: str, chance: random.Random) -> dict[str, Any]:
        data = chance.choice([None, 1, 1.5, -1e-7, 10**15, "ä\n☃", [1, {"a": []}], {"ß": True}])
        return {"key": f"{self.name}:{key}", "data": data}

    async def _calls(
        self, asker: str, tool: str, arguments: dict[str, Any], chance: random.Random
    ) -> None:
        """Call the tool, in one of the ways that clients do."""
        way = chance.choice(["plain", "plain", "twice", "gives up", "again", "again"])

        async def once() -> str:
            return await self._call(self._port(chance), asker, tool, arguments)

        if way == "gives up":
            calling = asyncio.ensure_future(once())
            await asyncio.wait({calling}, timeout=chance.uniform(0, 0.5))
            calling.cancel()
            with suppress(asyncio.CancelledError, *GONE):
                await calling
            return
        if way == "twice":
            both = await asyncio.gather(once(), once(), return_exceptions=True)
            for each in both:
                if isinstance(each, BaseException):
                    raise each
            id_ = str(both[0])
        else:
            try:
                id_ = await once()
            except TimeoutError:
                raise
            except GONE:
                if way == "plain":
                    raise
                # Whoever was not answered calls once more, as soon as there is a hub.
                await ready(self.there, self.tokens)
                id_ = await once()
        if id_ and chance.random() < 0.7:
            await self._look(self._port(chance), asker, id_, chance.choice([0, 1]))

    async def _call(self, port: int, asker: str, tool: str, arguments: dict[str, Any]) -> str:
        """What came of one call is noted; the id of its ask, if that is still open."""
        self.book.wanted.add(call_of(tool, arguments))
        raw = call(f"journal_{tool}", arguments, self.tokens[asker])
        async with Line(port, seconds=PATIENCE_SECONDS) as line:
            return self._hear(await line.ask(raw), arguments)

    def _hear(self, answer: Answer, arguments: dict[str, Any]) -> str:
        message = sse_json(answer)
        self.book.events += 1
        if "result" not in message:
            self.book.counts[f"call refused: {message['error'].get('message', '')[:60]}"] += 1
            return ""
        result = message["result"]
        if (line := line_of(result)) is not None:
            self.book.answers.append((line, arguments["key"]))
            self.book.counts["call answered by the tool"] += 1
            return ""
        told: dict[str, Any] = {}
        for part in result["content"]:
            with suppress(ValueError):
                told = json.loads(part["text"])
        code = told.get("status") or told.get("code") or "?"
        self.book.counts[f"call answered: {code}"] += 1
        id_ = str(told.get("ask_id", ""))
        if code in ("asked", "running"):
            self.book.tell(id_, "open" if code == "asked" else "running", "whoever called")
            return id_
        if code.startswith("ask_") and id_:
            self.book.tell(id_, code.removeprefix("ask_"), "whoever called")
        return ""

    async def _program_asks(
        self, asker: str, arguments: dict[str, Any], chance: random.Random
    ) -> None:
        """Ask what the hub does nothing about; take it back sometimes."""
        self.book.wanted.add(call_of("shell", arguments))
        body = {"tool": "shell", "arguments": arguments, "to": DECIDER}
        made = await self._rest(chance, asker, "POST", "/v1/asks", body)
        if made.status != 201:
            self.book.counts[f"ask refused: {made.refusal[1]}"] += 1
            return
        id_ = made.json()["ask_id"]
        self.book.tell(id_, "open", asker)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.uniform(0, 0.1))
            await self._end(chance, asker, id_, "DELETE", "")
        await self._look(self._port(chance), asker, id_, 1)

    async def _look(self, port: int, who: str, id_: str, wait: int) -> None:
        path = f"/v1/asks/{id_}?wait={wait}"
        headers = ACCEPT | bearer(self.tokens[who])
        async with Line(port, seconds=PATIENCE_SECONDS) as line:
            answer = await line.ask(request("GET", path, headers=headers))
        if answer.status == 200:
            self.book.tell(id_, answer.json()["state"], f"{who} who looked")
        else:
            self.book.counts[f"look refused: {answer.refusal[1]}"] += 1

    async def _asks_apart(self, who: str, chance: random.Random) -> None:
        """Have a program that can be killed call the tool, one call after another."""
        asker, port = chance.choice(ASKERS), self._port(chance)
        called = [
            (chance.choice(["patient", "hasty"]), self._arguments(f"{who}.{number}", chance))
            for number in range(3)
        ]
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(PROGRAMS), "ask", str(port)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._programs.append(program)
        assert program.stdin
        assert program.stdout
        try:
            for tool, arguments in called:
                self.book.wanted.add(call_of(tool, arguments))
                raw = call(f"journal_{tool}", arguments, self.tokens[asker])
                # The program reads an answer to its end.
                raw = raw.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
                program.stdin.write(base64.b64encode(raw) + b"\n")
            program.stdin.close()
            for _, arguments in called:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    line = await program.stdout.readline()
                if not line:
                    return
                reader = asyncio.StreamReader()
                reader.feed_data(base64.b64decode(line))
                reader.feed_eof()
                with suppress(*GONE):
                    self._hear(await read_answer(reader, chunks=True), arguments)
        except TimeoutError:
            self.book.faults.append(f"{self.name}: a program had no answer: {called}")
        except GONE:
            pass
        finally:
            end(program)
            await program.wait()

    # Who decides.

    async def _decides(self, who: str, chance: random.Random) -> None:
        while not self._over.is_set():
            try:
                seen = await self._rest(chance, DECIDER, "GET", "/v1/asks?kind=call&limit=100")
                if seen.status == 200:
                    await self._decide_some(who, seen.json()["asks"], chance)
            except TimeoutError:
                self.book.faults.append(f"{self.name}: {who} had no answer")
            except GONE:
                self.book.counts["decider lost its hub"] += 1
            await asyncio.sleep(chance.uniform(0.005, 0.06))

    async def _decide_some(self, who: str, listed: list[Any], chance: random.Random) -> None:
        asks = [each["call"] for each in listed]
        for ask in asks:
            self.book.shown.setdefault(ask["id"], call_of(ask["tool"], ask["arguments"]))
        # Some are left to be decided in another round, or never.
        asks = [ask for ask in asks if int(ask["id"][:2], 16) > 20] or asks
        if not asks or chance.random() < 0.1:
            return
        for ask in chance.sample(asks, min(len(asks), 3)):
            if chance.random() < 0.2:
                await asyncio.sleep(chance.uniform(0, 0.4))
            deciding = [self._decide(who, ask, chance)]
            if chance.random() < 0.3:
                deciding.append(self._decide(f"{who} again", ask, chance))
            both = await asyncio.gather(*deciding, return_exceptions=True)
            for each in both:
                if isinstance(each, BaseException):
                    raise each

    async def _decide(self, who: str, ask: Any, chance: random.Random) -> None:
        id_, way = ask["id"], chance.choice(["approve"] * 4 + ["reject", "edit"])
        if way != "edit":
            await self._end(chance, DECIDER, id_, "POST", f"/{way}", {}, who)
            return
        arguments = {**ask["arguments"], "key": f"{ask['arguments']['key']}+{chance.random()}"}
        self.book.wanted.add(call_of(ask["tool"], arguments))
        await self._end(chance, DECIDER, id_, "POST", "/edit", {"arguments": arguments}, who)

    async def _end(
        self,
        chance: random.Random,
        who: str,
        id_: str,
        method: str,
        way: str,
        body: Any = None,
        called: str = "",
    ) -> None:
        """Approve, reject, edit or withdraw."""
        answer = await self._rest(chance, who, method, f"/v1/asks/{id_}{way}", body)
        told, name = answer.json(), f"{called or who} ({way or 'withdraw'})"
        if answer.status != 200:
            error = told["error"]
            self.book.counts[f"{way or 'withdraw'} refused: {error['code']}"] += 1
            if error["code"] == "ask_closed":
                self.book.tell(id_, error["state"], name)
            return
        self.book.won.append((id_, name))
        self.book.counts[f"{way or 'withdraw'} won"] += 1
        if way == "/edit":
            self.book.tell(id_, "edited", name)
            self.book.edited[id_] = told["id"], call_of(told["tool"], body["arguments"])
        ended = {"/reject": "rejected", "": "withdrawn"}.get(way)
        if ended is not None and told["state"] != ended:
            self.book.faults.append(f"{name} was answered {told['state']}: {id_}")
        self.book.tell(told["id"], told["state"], name)

    async def _rest(
        self, chance: random.Random, who: str, method: str, path: str, body: Any = None
    ) -> Answer:
        data, port = b"" if body is None else json.dumps(body).encode(), self._port(chance)
        headers = bearer(self.tokens[who])
        if path.endswith("/edit"):
            # In a browser, with the token once more: what a rule asks about, no program edits.
            headers = {
                "cookie": self.tokens[COOKIE],
                "host": f"localhost:{port}",
                "origin": f"http://localhost:{port}",
                "folkmoot-page": "1",
                "folkmoot-confirm": self.tokens[who],
            }
        raw = request(method, path, data, ACCEPT | headers)
        async with Line(port, seconds=PATIENCE_SECONDS) as line:
            return await line.ask(raw)


def end(program: asyncio.subprocess.Process) -> None:
    """Kill it; its own `kill` would also ask how it ended, which the loop does."""
    if program.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(program.pid, signal.SIGKILL)


def entries(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def tools(journal: Path) -> list[int]:
    """The processes of the tool that run."""
    running = []
    for entry in entries(journal):
        if process := entry.get("process"):
            with suppress(OSError):
                if str(journal).encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                    running.append(int(process))
    return running


async def ready(there: Hubs, tokens: dict[str, str]) -> None:
    """Wait until all nodes list the tool."""
    raw = rpc("tools/list", {}, token=tokens[ASKERS[0]])
    for port in there.ports:
        while True:
            with suppress(*GONE):
                async with Line(port, seconds=5) as line:
                    if b"journal_patient" in (await line.ask(raw)).body:
                        break
            await asyncio.sleep(0.02)


async def exported(line: Line, headers: dict[str, str]) -> list[Any]:
    """What is kept of all asks of someone."""
    answer = await line.ask(request("GET", "/v1/me/export", headers=headers))
    kept: list[Any] = answer.json()["asks"]
    return kept


async def read_asks(there: Hubs, tokens: dict[str, str]) -> list[ReadAsk]:
    """All asks, one after another, as whoever asked is told."""
    found = []
    for number, asker in enumerate(ASKERS):
        headers = ACCEPT | bearer(tokens[asker])
        async with Line(there.ports[number % len(there.ports)], seconds=PATIENCE_SECONDS) as line:
            for each in await exported(line, headers):
                answer = await line.ask(request("GET", f"/v1/asks/{each['id']}", headers=headers))
                assert answer.status == 200, answer
                told = answer.json()
                found.append(ReadAsk(**{it.name: told[it.name] for it in fields(ReadAsk)}))
    return found


async def are_running(there: Hubs, tokens: dict[str, str]) -> bool:
    """Whether anything runs, or was lost when it ran."""
    async with Line(there.ports[0], seconds=PATIENCE_SECONDS) as line:
        for asker in ASKERS:
            asks = await exported(line, ACCEPT | bearer(tokens[asker]))
            if any(each["state"] == "running" for each in asks):
                return True
    return False


async def settled(there: Hubs, tokens: dict[str, str]) -> list[ReadAsk]:
    """All asks once what runs has come to its end, or its end is not to be known any more."""
    for _ in range(10):
        if not await are_running(there, tokens):
            break
        await asyncio.sleep(0.05)
    await there.settle()
    return await read_asks(there, tokens)


@dataclass(slots=True)
class Outcome:
    """What came of many rounds."""

    rounds: int = 0
    states: Counter[str] = field(default_factory=Counter)
    ran: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        states = ", ".join(f"{name} {count}" for name, count in sorted(self.states.items()))
        return f"{self.rounds} rounds, {self.ran} calls; {states}"


class Failed(AssertionError):
    """A round did not end as it must."""


Start = Callable[[Path], Any]


async def rounds(
    folder: Path,
    seed: str,
    numbers: Iterable[int],
    outcome: Outcome,
    start: Start = one_hub,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Do some rounds with the same data, and check all asks after each."""
    book = Book()
    async with start(folder) as there:
        # Only an operator makes an account whose name the settings have.
        whose = {"handle": DECIDER}
        made = await asyncio.to_thread(ask_socket, there.control, "folkmoot/add_person", whose)
        page = await Browser(there.ports[0]).sign_in(made["token"])
        tokens = {
            DECIDER: made["token"],
            COOKIE: page.cookie,
            **await registered(there.ports[0], *ASKERS),
        }
        await ready(there, tokens)
        asks: list[ReadAsk] = []
        for number in numbers:
            name, began = f"{seed}:{number}", time.monotonic()
            try:
                what = await Round(there, book, tokens, name).go()
                asks = await settled(there, tokens)
                journal = [each for each in entries(there.journal) if "line" in each]
                found = faults(journal, asks, book)
            except Exception as error:
                error.add_note(f"in the round --seed {seed} --first {number}")
                raise
            if found:
                told = "\n  ".join(found)
                raise Failed(f"--seed {seed} --first {number} ({what}):\n  {told}")
            # What has ended stays as it is.
            book.told += [(ask.id, ask.state, f"who checked round {number}") for ask in asks]
            outcome.rounds += 1
            took = time.monotonic() - began
            tell(f"{name}: {what}; {len(asks)} asks, {len(journal)} calls; {took:.1f} s")
        if not there.jumps:
            asks = await lost(there, tokens, asks)
            journal = [each for each in entries(there.journal) if "line" in each]
            if found := faults(journal, asks, book):
                raise Failed(f"--seed {seed}, after all rounds: {found}")
        outcome.ran += len([each for each in entries(there.journal) if "line" in each])
        outcome.states.update(f"{'call' if ask.rule else 'program'} {ask.state}" for ask in asks)
        outcome.counts += book.counts


async def lost(there: Hubs, tokens: dict[str, str], asks: list[ReadAsk]) -> list[ReadAsk]:
    """All asks, once the time of those that ran last is over."""
    while any(ask.state == "running" for ask in asks):
        await asyncio.sleep(1)
        asks = await read_asks(there, tokens)
    return asks


async def many(
    seed: str, first: int, count: int, seconds: float, start: Start, each: bool
) -> Outcome:
    """Do many rounds, each few of them on new data, until the time is over."""
    outcome, began = Outcome(), time.monotonic()
    numbers = range(first, first + count)
    for at in range(0, count, ROUNDS_ON_ONE):
        if time.monotonic() - began > seconds:
            break
        with tempfile.TemporaryDirectory(prefix="folkmoot-asking-") as folder:
            some = numbers[at : at + ROUNDS_ON_ONE]
            await rounds(Path(folder), seed, some, outcome, start, say if each else lambda _: None)
        say(f"{time.monotonic() - began:6.0f} s  {outcome}")
    return outcome


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Do the rounds; the exit code is 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.asking", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--seconds", type=float, default=3600, help="begin nothing after that time")
    parser.add_argument("--nodes", action="store_true", help="on three nodes, not on one hub")
    parser.add_argument("--each", action="store_true", help="tell of each round")
    given = parser.parse_args()
    start = three_nodes if given.nodes else one_hub
    try:
        outcome = asyncio.run(
            many(given.seed, given.first, given.rounds, given.seconds, start, given.each)
        )
    except Failed as failed:
        say(str(failed))
        return 1
    for name, count in sorted(outcome.counts.items()):
        say(f"    {count:6} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
