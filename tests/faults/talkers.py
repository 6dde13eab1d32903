"""People who talk in rooms as fast as they can, are cut off, come back, and remember all of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from folkmoot.app import leaves
from tests.faults.letters import line
from tests.interaction.room_client import address, chat, rest

GONE = (OSError, ConnectionClosed, InvalidHandshake)
"""How a connection ends, or none is made, whose hub is not there any more."""

WINDOW = 16
"""How many messages someone may have sent that have not come back yet."""

PRESENCE = "system.presence."


class Talker:
    """One participant of a room, on one connection after the other."""

    def __init__(self, name: str, token: str, room: str, *, speaks: bool) -> None:
        self.name = name
        self.room = room
        self.heard: dict[int, bytes] = {}
        """Every message, by its `seq`."""
        self.sent: list[str] = []
        self.unsure: dict[str, str] = {}
        """What was said and has not come back, by id: it may have arrived or not."""
        self.acknowledged: dict[str, int] = {}
        self.codes: list[int] = []
        """How connections ended."""
        self.epoch: str | None = None
        self.promised = 0
        """The last `seq` there was when one came in."""
        self.speaks = speaks
        self._token = token

    @property
    def last(self) -> int:
        """The `seq` of the last message that was heard."""
        return len(self.heard)

    async def stay(
        self,
        port: int,
        heard: Callable[[], None],
        *,
        over: asyncio.Event | None = None,
    ) -> None:
        """Come in where one was cut off, and say again what has not come back.

        Then talk until one is cut off again; or, with `over`, only listen until that is set.
        """
        query = {"after": self.last, "conn": self.name, "epoch": self.epoch}
        given = {name: value for name, value in query.items() if value is not None}
        url = address(port, self._token, self.room, **given)
        try:
            async with connect(
                url, max_size=None, max_queue=None, compression=None, close_timeout=1
            ) as socket:
                self._came_in(json.loads(await socket.recv(decode=False)))
                heard()
                async with asyncio.TaskGroup() as tasks:
                    free = asyncio.Event()
                    both = [
                        tasks.create_task(self._speak(socket, free, talks=over is None)),
                        tasks.create_task(self._listen(socket, free, heard)),
                    ]
                    if over is not None:
                        await over.wait()
                        for task in both:
                            task.cancel()
        except* GONE as group:
            ends = [one for one in leaves(group) if isinstance(one, ConnectionClosed)]
            self.codes += [one.rcvd.code for one in ends[:1] if one.rcvd is not None]

    def _came_in(self, welcome: Any) -> None:
        assert welcome["kind"] == "system.welcome", welcome
        told = welcome["payload"]
        if self.epoch is not None:
            assert told["epoch"] == self.epoch
            assert told["resume"] == {"after": self.last, "complete": True, "reason": None}
        self.epoch = told["epoch"]
        self.promised = told["history"]["last_seq"]

    async def _speak(self, socket: ClientConnection, free: asyncio.Event, *, talks: bool) -> None:
        for id_, text in list(self.unsure.items()):
            await socket.send(json.dumps(chat(text, id=id_)))
        while self.speaks and talks:
            while len(self.unsure) >= WINDOW:
                free.clear()
                await free.wait()
            number = len(self.sent)
            id_ = f"{self.name}-{self.room}-{number}"
            text = f"{id_} {'x' * (number * 97 % 2000)}"
            self.sent.append(id_)
            self.unsure[id_] = text
            await socket.send(json.dumps(chat(text, id=id_)))

    async def _listen(
        self, socket: ClientConnection, free: asyncio.Event, heard: Callable[[], None]
    ) -> None:
        while True:
            self._hear(await socket.recv(decode=False))
            free.set()
            heard()

    def _hear(self, data: bytes) -> None:
        told = json.loads(data)
        if "seq" in told:
            # In order, without a gap, and nothing twice.
            assert told["seq"] == self.last + 1, (self.name, self.last, data)
            self.heard[told["seq"]] = data
            if told["from"] == self.name:
                self._arrived(told["id"], told["seq"])
        elif told["kind"] == "system.error":
            # It was said again, and had arrived the first time.
            assert told["payload"]["error"] == "id_used", told
            self._arrived(told["correlation_id"][0], told["payload"]["seq"])

    def _arrived(self, id_: str, seq: int) -> None:
        self.unsure.pop(id_, None)
        assert self.acknowledged.setdefault(id_, seq) == seq


class Gathering:
    """Several rooms, and in each the same people."""

    def __init__(self, rooms: int = 2, speakers: int = 3, listeners: int = 1) -> None:
        self.rooms = [f"room-{number}" for number in range(rooms)]
        self.names = [f"speaker{number}" for number in range(speakers)]
        self.names += [f"listener{number}" for number in range(listeners)]
        self.talkers: list[Talker] = []
        self.tokens: dict[str, str] = {}

    async def begin(self, port: int) -> None:
        """Make accounts and rooms; the first of all owns the rooms."""
        async with line(port) as stranger:
            for name in self.names:
                made = await stranger.call("msg_register", handle=name)
                self.tokens[name] = made["token"]
        for room in self.rooms:
            answer = await rest(port, self.owner, "POST", "", {"name": room, "access": "open"})
            assert answer.status == 201, answer
            self.talkers += [
                Talker(name, token, room, speaks=name.startswith("speaker"))
                for name, token in self.tokens.items()
            ]

    @property
    def owner(self) -> str:
        """The token of whoever owns the rooms."""
        return self.tokens[self.names[0]]

    @property
    def speakers(self) -> list[Talker]:
        """Those who do not only listen."""
        return [talker for talker in self.talkers if talker.speaks]

    @property
    def acknowledged(self) -> int:
        """How many messages have come back to their senders."""
        return sum(len(talker.acknowledged) for talker in self.talkers)

    async def talk(self, port: int, answers: int, end: Callable[[], Any]) -> None:
        """Have everyone talk; after so many answers something is done, and all are cut off."""
        wanted = self.acknowledged + answers
        ended = False

        def heard() -> None:
            nonlocal ended
            if not ended and self.acknowledged >= wanted:
                ended = True
                end()

        async with asyncio.TaskGroup() as tasks:
            for talker in self.talkers:
                tasks.create_task(talker.stay(port, heard))

    async def settle(self, port: int) -> None:
        """Have everyone come back, and stay until all is said and heard by all."""
        over = asyncio.Event()

        def heard() -> None:
            if all(self._is_settled(room) for room in self.rooms):
                over.set()

        for talker in self.talkers:
            talker.promised = -1
        async with asyncio.TaskGroup() as tasks:
            for talker in self.talkers:
                tasks.create_task(talker.stay(port, heard, over=over))

    def _is_settled(self, room: str) -> bool:
        here = [talker for talker in self.talkers if talker.room == room]
        last = max(talker.last for talker in here)
        return all(
            not talker.unsure and 0 <= talker.promised <= talker.last == last for talker in here
        )

    async def check(self, port: int) -> None:
        """Everyone heard the same, which is what is kept; all that was said is there once."""
        for room in self.rooms:
            here = [talker for talker in self.talkers if talker.room == room]
            kept = await self.history(port, room)
            assert [one["seq"] for one in kept] == list(range(1, len(kept) + 1))
            for talker in here:
                assert not talker.unsure
                for (seq, data), one in zip(talker.heard.items(), kept, strict=False):
                    assert json.loads(data) == one, (talker.name, seq)
            ids = Counter(one["id"] for one in kept)
            assert set(ids.values()) == {1}
            said = [one["id"] for one in kept if one["kind"] == "chat.message"]
            assert sorted(said) == sorted(id_ for talker in here for id_ in talker.sent)
            where = {one["id"]: one["seq"] for one in kept}
            for talker in here:
                assert talker.acknowledged.items() <= where.items()
                assert talker.acknowledged.keys() == set(talker.sent)

    async def history(self, port: int, room: str) -> list[Any]:
        """All that is kept of a room."""
        kept: list[Any] = []
        while True:
            path = f"/{room}/messages?after={len(kept)}&limit=500"
            page = (await rest(port, self.owner, "GET", path)).json()["messages"]
            if not page:
                return kept
            kept += page

    def presence(self) -> list[tuple[str, str, str]]:
        """Who came and went in which room, as the first in each heard it."""
        return [
            (talker.room, told["kind"].removeprefix(PRESENCE), told["payload"]["participant"]["id"])
            for talker in self.talkers
            if talker.name == self.names[0]
            for told in map(json.loads, talker.heard.values())
            if told["kind"].startswith(PRESENCE)
        ]

    def check_nobody_left(self) -> None:
        """Everyone came once, and nobody was told to have gone."""
        expected = [(room, "join", name) for room in self.rooms for name in self.names]
        assert sorted(self.presence()) == sorted(expected)
