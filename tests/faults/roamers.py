"""People who use a hub of many nodes while its parts fail, and remember all of it.

Each goes to any node, and to another when that one does not answer. Whatever may or may not have
been done is tried again under the same id or key. What was acknowledged must be there once.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection

from tests.faults.letters import GONE as HUB_GONE
from tests.faults.talkers import GONE, Talker
from tests.harness import Answer
from tests.interaction.room_client import fulfilment, proposal, rest
from tests.siege.wire import Line, call, initialize

T = TypeVar("T")

# How long someone waits for a node before they go to another.
PATIENCE_SECONDS = 4.0
# Within which a message must be answered, on a connection on which others are heard.
ANSWER_SECONDS = 60.0
# Between two attempts.
PAUSE_SECONDS = 0.1
# Between two messages of one speaker.
PACE_SECONDS = 0.02
LETTER_SECONDS = 0.1
# What is tried again: the hub says that it could not, or that it does not know.
AGAIN = {429, 500, 502, 503, 504}

# Chooses a node.
Ports = Callable[[], int]


class Pulse:
    """How long a room was silent at most, since one last looked."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._seq = 0
        self._longest = 0.0

    def beat(self, seq: int) -> None:
        """A message was heard."""
        if seq > self._seq:
            self._longest = max(self._longest, time.monotonic() - self._last)
            self._seq, self._last = seq, time.monotonic()

    def longest(self) -> float:
        """The longest silence since the last look."""
        found = max(self._longest, time.monotonic() - self._last)
        self._longest = 0.0
        return found


class Roamer(Talker):
    """Someone in a room, at one node after the other."""

    window = 8
    longest = 500

    def __init__(
        self, name: str, token: str, room: str, pulse: Pulse, ports: Ports, *, speaks: bool
    ) -> None:
        super().__init__(name, token, room, speaks=speaks)
        self._pulse = pulse
        self._ports = ports
        self._again: list[str] = []
        self.errors: Counter[str] = Counter()
        # The node that was gone to last.
        self.port = 0
        self._said_at: dict[str, float] = {}

    def __str__(self) -> str:
        return (
            f"{self.name} in {self.room} at {self.port}: {self.last} heard, last "
            f"{self.heard.get(self.last, b'')[:300]!r}, {len(self.unsure)} unsure, "
            f"{self.codes[-5:]}, {dict(self.errors)}"
        )

    async def roam(self, over: asyncio.Event) -> None:
        """Be in the room, wherever one gets in, until it is over."""
        while not over.is_set():
            # In a task of its own: a group that failed leaves its task as if it were cancelled. In
            # the first versions of Python 3.11 a timeout in that task would end it without a word.
            with suppress(TimeoutError):
                await asyncio.create_task(self._visit(over))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _visit(self, over: asyncio.Event) -> None:
        self.port = self._ports()
        options = {"open_timeout": PATIENCE_SECONDS, "close_timeout": 0.2, "ping_interval": None}
        try:
            socket = await self.door(self.port, **options)
        except GONE as error:
            self.errors[f"not let in: {error}"] += 1
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.come_in(socket)
            async with asyncio.TaskGroup() as tasks:
                heard, free = asyncio.Event(), asyncio.Event()
                heard.set()
                all_ = [
                    tasks.create_task(self._roaming_speech(socket)),
                    tasks.create_task(self.listen(socket, free, heard.set)),
                    tasks.create_task(self._wait(heard)),
                ]
                ending = tasks.create_task(over.wait())
                ending.add_done_callback(lambda _: [task.cancel() for task in all_])
        except* (*GONE, TimeoutError) as group:
            self.ended(group)
        finally:
            socket.transport.abort()

    async def _wait(self, heard: asyncio.Event) -> None:
        """Lose patience with a node that tells nothing; one that does must answer everything."""
        while True:
            heard.clear()
            oldest = min(self._said_at.values(), default=math.inf)
            assert time.monotonic() - oldest < ANSWER_SECONDS, (
                f"{self.name} in {self.room} hears others, and no answer to {list(self.unsure)}"
            )
            async with asyncio.timeout(PATIENCE_SECONDS):
                await heard.wait()

    async def _roaming_speech(self, socket: ClientConnection) -> None:
        self._again = list(self.unsure)
        self._said_at.clear()
        while True:
            while self._again:
                if (id_ := self._again.pop(0)) in self.unsure:
                    await self.say(socket, id_)
            if self.speaks and len(self.unsure) < self.window:
                await self.say(socket, self.new())
                await asyncio.sleep(PACE_SECONDS)
            else:
                await asyncio.sleep(PAUSE_SECONDS)

    async def say(self, socket: ClientConnection, id_: str) -> None:
        self._said_at[id_] = time.monotonic()
        await super().say(socket, id_)

    def arrived(self, id_: str, seq: int) -> None:
        self._said_at.pop(id_, None)
        super().arrived(id_, seq)

    def refused(self, id_: str, told: Any) -> None:
        self.errors[told["error"]] += 1
        if told["error"] == "room_unavailable":
            self._again.append(id_)
            self._said_at.pop(id_, None)
        else:
            super().refused(id_, told)

    def hear(self, data: bytes) -> None:
        super().hear(data)
        self._pulse.beat(self.last)


async def insist(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Try something until it has an answer."""
    while True:
        with suppress(*HUB_GONE, TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                told = await attempt()
            if told is not None:
                return told
        await asyncio.sleep(PAUSE_SECONDS)


class Letters:
    """People who write to each other, each letter under its own key."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.tokens: dict[str, str] = {}
        # By what a letter says: its id and whom it is to.
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.errors: Counter[str] = Counter()

    async def write(self, sender: str, over: asyncio.Event) -> None:
        """Write one letter after the other until it is over."""
        others = [handle for handle in self.tokens if handle != sender]
        number = 0
        while not over.is_set():
            to, body = others[number % len(others)], f"{number} from {sender}"
            given = {"to": to, "body": body, "idempotency_key": body}

            async def attempt(given: dict[str, Any] = given) -> str | None:
                return self._read(await self._ask(sender, given))

            self.acknowledged[body] = (await insist(attempt), to)
            number += 1
            await asyncio.sleep(LETTER_SECONDS)

    async def _ask(self, sender: str, given: dict[str, Any]) -> Answer:
        async with Line(self._ports(), self.tokens[sender]) as mine:
            return await mine.answer("msg_send", given)

    def _read(self, answer: Answer) -> str | None:
        if answer.status in AGAIN or answer.headers["content-type"] != "application/json":
            # A stream is what someone gets who is to wait for longer.
            self.errors[str(answer.status)] += 1
            return None
        assert answer.status == 200, answer
        result = answer.json()["result"]
        said = json.loads(result["content"][0]["text"])
        if result.get("isError"):
            self.errors[said.get("code", str(said)[:200])] += 1
            return None
        return str(said["message_id"])

    async def check(self, port: int) -> None:
        """Every letter is in one inbox, once."""
        found: Counter[tuple[str, str, str]] = Counter()
        for handle, token in self.tokens.items():
            async with Line(port, token) as mine:
                async for each in mine.pages("msg_inbox", "messages", peek=True):
                    if each["from_handle"] in self.tokens:
                        found[each["body"], each["id"], handle] += 1
        sent = {(body, id_, to) for body, (id_, to) in self.acknowledged.items()}
        assert found == Counter(sent), (
            f"missing {sorted(sent - found.keys())[:5]}, "
            f"too many {[one for one in found if one not in sent or found[one] > 1][:5]}"
        )


class SessionLetters(Letters):
    """The same in sessions of the handshake era, each used at every node."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._sessions: dict[str, str] = {}

    async def _ask(self, sender: str, given: dict[str, Any]) -> Answer:
        token = self.tokens[sender]
        if sender not in self._sessions:
            answer = await self._post(initialize(token))
            if answer.status != 200:
                return answer
            self._sessions[sender] = answer.headers["mcp-session-id"]
        answer = await self._post(call("msg_send", given, token, self._sessions[sender]))
        if answer.status == 404:
            # As the specification has it: the session is gone, so its client begins another.
            del self._sessions[sender]
            return await self._ask(sender, given)
        return answer

    async def _post(self, raw: bytes) -> Answer:
        async with Line(self._ports()) as line:
            return await line.ask(raw)


class Works:
    """A room in which calls of a backend are proposed, and two people fulfil each at once."""

    room = "works"

    def __init__(self, ports: Ports, tally: Path) -> None:
        self._ports = ports
        self._tally = tally
        self.tokens: dict[str, str] = {}
        self.proposed: list[str] = []
        # The requests that were acknowledged, by their proposals.
        self.fulfilled: dict[str, str] = {}
        self.errors: Counter[str] = Counter()

    async def run(self, over: asyncio.Event) -> None:
        """Propose and fulfil until it is over."""
        proposer, *others = self.tokens
        number = 0
        while not over.is_set():
            id_ = f"proposal-{number}"
            asked = proposal("tally:note", {"number": number}, to=["tally"], id=id_)
            await self._post(proposer, asked)
            self.proposed.append(id_)
            await asyncio.gather(*(self._fulfil(one, asked) for one in others))
            number += 1
            await asyncio.sleep(LETTER_SECONDS)

    async def _fulfil(self, who: str, asked: dict[str, Any]) -> None:
        sent = fulfilment(asked, "tally", id=f"{who}-{asked['id']}")
        if await self._post(who, sent):
            first = self.fulfilled.setdefault(asked["id"], sent["id"])
            assert first == sent["id"], f"both {first} and {sent['id']} are in the room"

    async def _post(self, who: str, sent: dict[str, Any]) -> bool:
        """Whether a message is in the room; if not, the proposal was fulfilled by another."""

        async def attempt() -> bool | None:
            path = f"/{self.room}/messages"
            answer = await rest(self._ports(), self.tokens[who], "POST", path, sent)
            if answer.status == 201:
                return True
            code = answer.json()["error"]["code"]
            self.errors[code] += 1
            if code in ("id_used", "proposal_closed"):
                return bool(code == "id_used")
            assert answer.status in AGAIN, answer
            return None

        return await insist(attempt)

    def is_answered(self, history: list[Any]) -> bool:
        """Whether every request has an answer, be it that nobody knows what was done."""
        answered = Counter(self._about(history, "mcp.response."))
        assert not answered or max(answered.values()) == 1, answered.most_common(3)
        return answered.keys() == set(self.fulfilled.values())

    def check(self, history: list[Any]) -> None:
        """Each proposal is fulfilled once, and its backend was asked once at most."""
        assert sorted(self._about(history, "mcp.request.")) == sorted(self.proposed)
        about = {one["id"]: one.get("correlation_id") for one in history}
        for proposed, id_ in self.fulfilled.items():
            assert about[id_] == [proposed]
        done = Counter(f"proposal-{number}" for number in self._tally.read_text().split())
        assert max(done.values()) == 1, done.most_common(3)
        assert done.keys() <= set(self.proposed)
        # Whatever was answered with a result was done.
        answers = {one["correlation_id"][0] for one in history if "result" in one["payload"]}
        assert {about[id_][0] for id_ in answers} <= done.keys()

    @staticmethod
    def _about(history: list[Any], kind: str) -> list[str]:
        return [one["correlation_id"][0] for one in history if one["kind"].startswith(kind)]
