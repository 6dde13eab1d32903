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
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from folkmoot.app import leaves
from tests.faults.letters import GONE as HUB_GONE
from tests.faults.letters import line, pages
from tests.faults.talkers import GONE, Talker
from tests.harness import Answer, ask
from tests.interaction.room_client import address, chat, fulfilment, proposal, rest
from tests.mcp_harness import INITIALIZE, rpc

PATIENCE_SECONDS = 4.0
"""How long someone waits for a node before they go to another."""
ANSWER_SECONDS = 60.0
"""Within which a message must be answered, on a connection on which others are heard."""
PAUSE_SECONDS = 0.1
"""Between two attempts."""
WINDOW = 8
PACE_SECONDS = 0.02
"""Between two messages of one speaker."""
LETTER_SECONDS = 0.1
MANY = 100
CLOSED = {"proposal_closed"}
AGAIN = {429, 500, 502, 503, 504}
"""What is tried again: the hub says that it could not, or that it does not know."""
ACCEPT = "application/json, text/event-stream"

Ports = Callable[[], int]
"""Chooses a node."""


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

    def __init__(
        self, name: str, token: str, room: str, pulse: Pulse, ports: Ports, *, speaks: bool
    ) -> None:
        super().__init__(name, token, room, speaks=speaks)
        self._pulse = pulse
        self._ports = ports
        self._patience = 0.0
        self._refused: list[str] = []
        self.errors: Counter[str] = Counter()
        self.visits = 0
        self.port = 0
        """The node that was gone to last."""
        self.doing = ""
        self.latest = b""
        """What was heard last."""
        self._said_at: dict[str, float] = {}

    async def roam(self, over: asyncio.Event) -> None:
        """Be in the room, wherever one gets in, until it is over."""
        while not over.is_set():
            # In a task of its own: a group that failed leaves its task as if it were cancelled. In
            # the first versions of Python 3.11 a timeout in that task would end it without a word.
            with suppress(TimeoutError):
                await asyncio.create_task(self._visit(self._ports(), over))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _visit(self, port: int, over: asyncio.Event) -> None:
        self.port, self.doing = port, "connects"
        query = {"after": self.last, "conn": self.name, "epoch": self.epoch}
        given = {name: value for name, value in query.items() if value is not None}
        url = address(port, self._token, self.room, **given)
        try:
            socket = await connect(
                url,
                max_size=None,
                max_queue=None,
                compression=None,
                open_timeout=PATIENCE_SECONDS,
                close_timeout=0.2,
                ping_interval=None,
            )
        except GONE as error:
            self.errors[f"not let in: {error}"] += 1
            return
        self.visits += 1
        self.doing = "waits for the welcome"
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                self._came_in(json.loads(await socket.recv(decode=False)))
            self.doing = "is in"
            async with asyncio.TaskGroup() as tasks:
                heard, free = asyncio.Event(), asyncio.Event()
                heard.set()
                all_ = [
                    tasks.create_task(self._roaming_speech(socket, free, over)),
                    tasks.create_task(self._listen(socket, free, heard.set)),
                    tasks.create_task(self._wait(heard)),
                ]
                ending = tasks.create_task(over.wait())
                ending.add_done_callback(lambda _: [task.cancel() for task in all_])
        except* (*GONE, TimeoutError) as group:
            for one in leaves(group):
                code = getattr(getattr(one, "rcvd", None), "code", None)
                if code is not None:
                    self.codes.append(code)
        finally:
            self.doing = "leaves"
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

    async def _roaming_speech(
        self, socket: ClientConnection, free: asyncio.Event, over: asyncio.Event
    ) -> None:
        self._refused = list(self.unsure)
        self._said_at.clear()
        while True:
            while self._refused:
                id_ = self._refused.pop(0)
                if id_ in self.unsure:
                    self._said_at[id_] = time.monotonic()
                    await socket.send(json.dumps(chat(self.unsure[id_], id=id_)))
            if self.speaks and len(self.unsure) < WINDOW:
                number = len(self.sent)
                id_ = f"{self.name}-{self.room}-{number}"
                self.sent.append(id_)
                self.unsure[id_] = f"{id_} {'x' * (number * 97 % 500)}"
                self._said_at[id_] = time.monotonic()
                await socket.send(json.dumps(chat(self.unsure[id_], id=id_)))
                await asyncio.sleep(PACE_SECONDS)
            else:
                await asyncio.sleep(PAUSE_SECONDS)

    def _arrived(self, id_: str, seq: int) -> None:
        self._said_at.pop(id_, None)
        super()._arrived(id_, seq)

    def _hear(self, data: bytes) -> None:
        self.latest = data
        told = json.loads(data)
        if told["kind"] == "system.error" and "seq" not in told:
            code = told["payload"]["error"]
            self.errors[code] += 1
            if code == "room_unavailable":
                self._refused += told["correlation_id"]
                for id_ in told["correlation_id"]:
                    self._said_at.pop(id_, None)
                return
        super()._hear(data)
        if "seq" in told:
            self._pulse.beat(told["seq"])


class Letters:
    """People who write to each other, each letter under its own key."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.tokens: dict[str, str] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        """By what a letter says: its id and whom it is to."""
        self.errors: Counter[str] = Counter()

    async def write(self, sender: str, over: asyncio.Event) -> None:
        """Write one letter after the other until it is over."""
        others = [handle for handle in self.tokens if handle != sender]
        number = 0
        while not over.is_set():
            to, body = others[number % len(others)], f"{number} from {sender}"
            id_ = await self._send(sender, to, body)
            self.acknowledged[body] = (id_, to)
            number += 1
            await asyncio.sleep(LETTER_SECONDS)

    async def _send(self, sender: str, to: str, body: str) -> str:
        given = {"to": to, "body": body, "idempotency_key": body}
        while True:
            with suppress(*HUB_GONE, TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    answer = await self._ask(sender, given)
                told = self._read(answer)
                if told is not None:
                    return str(told["message_id"])
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, sender: str, given: dict[str, Any]) -> Answer:
        async with line(self._ports(), self.tokens[sender]) as mine:
            return await mine.ask("msg_send", given)

    def _read(self, answer: Answer) -> Any:
        if answer.status in AGAIN or answer.headers["content-type"] != "application/json":
            # A stream is what someone gets who is to wait for longer.
            self.errors[str(answer.status)] += 1
            return None
        assert answer.status == 200, answer
        told = answer.json()
        assert "result" in told, told
        said = json.loads(told["result"]["content"][0]["text"])
        if told["result"].get("isError"):
            self.errors[said.get("code", str(said)[:200])] += 1
            return None
        return said

    async def check(self, port: int) -> None:
        """Every letter is in one inbox, once."""
        found: Counter[tuple[str, str, str]] = Counter()
        for handle, token in self.tokens.items():
            async with line(port, token) as mine:
                async for each in pages(mine, "msg_inbox", "messages", peek=True):
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
        self._ids = count(1)

    async def _ask(self, sender: str, given: dict[str, Any]) -> Answer:
        if sender not in self._sessions:
            answer = await self._post(sender, INITIALIZE)
            if answer.status != HTTPStatus.OK:
                return answer
            self._sessions[sender] = answer.headers["mcp-session-id"]
        # One that was given up may still be open at the hub.
        call = rpc("tools/call", {"name": "msg_send", "arguments": given}, next(self._ids))
        answer = await self._post(sender, call)
        if answer.status == HTTPStatus.NOT_FOUND:
            # As the specification has it: the session is gone, so its client begins another.
            del self._sessions[sender]
            return await self._ask(sender, given)
        return answer

    async def _post(self, sender: str, message: dict[str, Any]) -> Answer:
        headers = {"content-type": "application/json", "accept": ACCEPT}
        if sender in self._sessions:
            headers["mcp-session-id"] = self._sessions[sender]
        path, body = f"/mcp?token={self.tokens[sender]}", json.dumps(message).encode()
        return await ask(self._ports(), path, method="POST", headers=headers, body=body)


class Works:
    """A room in which calls of a backend are proposed, and two people fulfil each at once."""

    room = "works"

    def __init__(self, ports: Ports, tally: Path) -> None:
        self._ports = ports
        self._tally = tally
        self.tokens: dict[str, str] = {}
        self.proposed: list[str] = []
        self.fulfilled: dict[str, str] = {}
        """The requests that were acknowledged, by their proposals."""
        self.errors: Counter[str] = Counter()

    async def run(self, over: asyncio.Event) -> None:
        """Propose and fulfil until it is over."""
        proposer, *others = self.tokens
        number = 0
        while not over.is_set():
            asked = proposal(
                "tally:note", {"number": number}, to=["tally"], id=f"proposal-{number}"
            )
            await self._post(proposer, asked)
            self.proposed.append(asked["id"])
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
        while True:
            with suppress(*HUB_GONE, TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    path = f"/{self.room}/messages"
                    answer = await rest(self._ports(), self.tokens[who], "POST", path, sent)
                if answer.status == 201:
                    return True
                code = answer.json()["error"]["code"]
                self.errors[code] += 1
                if code == "id_used":
                    return True
                if code in CLOSED:
                    return False
                assert answer.status in AGAIN, answer
            await asyncio.sleep(PAUSE_SECONDS)

    def is_answered(self, history: list[Any]) -> bool:
        """Whether every request has an answer, be it that nobody knows what was done."""
        answered = Counter(self._about(history, "mcp.response."))
        assert not answered or max(answered.values()) == 1, answered.most_common(3)
        return answered.keys() == set(self.fulfilled.values())

    def check(self, history: list[Any]) -> None:
        """Each proposal is fulfilled once, and its backend was asked once at most."""
        assert sorted(self._about(history, "mcp.request.")) == sorted(self.proposed)
        requests = {one["id"]: one for one in history}
        for proposed, id_ in self.fulfilled.items():
            assert requests[id_]["correlation_id"] == [proposed]
        done = Counter(f"proposal-{number}" for number in self._tally.read_text().split())
        assert max(done.values()) == 1, done.most_common(3)
        assert done.keys() <= set(self.proposed)
        # Whatever was answered with a result was done.
        answers = {one["correlation_id"][0] for one in history if "result" in one["payload"]}
        assert {self._proposal_of(requests[id_]) for id_ in answers} <= done.keys()

    @staticmethod
    def _proposal_of(request: Any) -> str:
        return str(request["correlation_id"][0])

    @staticmethod
    def _about(history: list[Any], kind: str) -> list[str]:
        return [one["correlation_id"][0] for one in history if one["kind"].startswith(kind)]
