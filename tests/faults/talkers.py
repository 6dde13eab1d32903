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
from tests.interaction.room_client import address, chat, rest
from tests.siege.wire import history, registered

# How a connection ends, or none is made, whose hub is not there any more.
GONE = (OSError, ConnectionClosed, InvalidHandshake)

PRESENCE = "system.presence."


class Talker:
    """One participant of a room, on one connection after the other."""

    # How many messages someone may have sent that have not come back yet.
    window = 16
    longest = 2000

    def __init__(self, name: str, token: str, room: str, *, speaks: bool) -> None:
        self.name = name
        self.room = room
        # Every message, by its `seq`.
        self.heard: dict[int, bytes] = {}
        self.sent: list[str] = []
        # What was said and has not come back, by id: it may have arrived or not.
        self.unsure: dict[str, str] = {}
        self.acknowledged: dict[str, int] = {}
        # How connections ended.
        self.codes: list[int] = []
        self.epoch: str | None = None
        # The last `seq` there was when one came in.
        self.promised = 0
        self.speaks = speaks
        self.token = token

    @property
    def last(self) -> int:
        """The `seq` of the last message that was heard."""
        return len(self.heard)

    def door(self, port: int, **options: Any) -> connect:
        """A connection to the room that begins where one was cut off."""
        since = {} if self.epoch is None else {"epoch": self.epoch}
        url = address(port, self.token, self.room, after=self.last, conn=self.name, **since)
        return connect(url, max_size=None, max_queue=None, compression=None, **options)

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
        try:
            async with self.door(port, close_timeout=1) as socket:
                await self.come_in(socket)
                heard()
                async with asyncio.TaskGroup() as tasks:
                    free = asyncio.Event()
                    both = [
                        tasks.create_task(self._speak(socket, free, talks=over is None)),
                        tasks.create_task(self.listen(socket, free, heard)),
                    ]
                    if over is not None:
                        await over.wait()
                        for task in both:
                            task.cancel()
        except* GONE as group:
            self.ended(group)

    async def come_in(self, socket: ClientConnection) -> None:
        welcome = json.loads(await socket.recv(decode=False))
        assert welcome["kind"] == "system.welcome", welcome
        told = welcome["payload"]
        if self.epoch is not None:
            assert told["epoch"] == self.epoch
            assert told["resume"] == {"after": self.last, "complete": True, "reason": None}
        self.epoch = told["epoch"]
        self.promised = told["history"]["last_seq"]

    def ended(self, group: BaseExceptionGroup[Any]) -> None:
        """Remember the code of a close."""
        ends = (getattr(one, "rcvd", None) for one in leaves(group))
        self.codes += [end.code for end in ends if end is not None][:1]

    def new(self) -> str:
        """The id of something new to say."""
        number = len(self.sent)
        id_ = f"{self.name}-{self.room}-{number}"
        self.sent.append(id_)
        self.unsure[id_] = f"{id_} {'x' * (number * 97 % self.longest)}"
        return id_

    async def say(self, socket: ClientConnection, id_: str) -> None:
        await socket.send(json.dumps(chat(self.unsure[id_], id=id_)))

    async def _speak(self, socket: ClientConnection, free: asyncio.Event, *, talks: bool) -> None:
        for id_ in list(self.unsure):
            if id_ in self.unsure:
                await self.say(socket, id_)
        while self.speaks and talks:
            while len(self.unsure) >= self.window:
                free.clear()
                await free.wait()
            await self.say(socket, self.new())

    async def listen(
        self, socket: ClientConnection, free: asyncio.Event, heard: Callable[[], None]
    ) -> None:
        while True:
            self.hear(await socket.recv(decode=False))
            free.set()
            heard()

    def hear(self, data: bytes) -> None:
        told = json.loads(data)
        if "seq" in told:
            # In order, without a gap, and nothing twice.
            assert told["seq"] == self.last + 1, (self.name, self.last, data)
            self.heard[told["seq"]] = data
            if told["from"] == self.name:
                self.arrived(told["id"], told["seq"])
        elif told["kind"] == "system.error":
            for id_ in told["correlation_id"]:
                self.refused(id_, told["payload"])

    def refused(self, id_: str, told: Any) -> None:
        # It was said again, and had arrived the first time.
        assert told["error"] == "id_used", told
        self.arrived(id_, told["seq"])

    def arrived(self, id_: str, seq: int) -> None:
        self.unsure.pop(id_, None)
        assert self.acknowledged.setdefault(id_, seq) == seq


async def open_room(port: int, owner: str, name: str, **spec: Any) -> None:
    """Make a room that everyone may enter."""
    answer = await rest(port, owner, "POST", "", {"name": name, "access": "open", **spec})
    assert answer.status == 201, answer


async def check_room(here: list[Any], token: str, *ports: int) -> None:
    """Everyone heard the same, which is what each node keeps; all that was said is there once."""
    room = here[0].room
    kept = await history(ports[0], token, room)
    assert [one["seq"] for one in kept] == list(range(1, len(kept) + 1))
    for port in ports[1:]:
        # Someone who left meanwhile may be told of too.
        assert (await history(port, token, room))[: len(kept)] == kept
    where = {one["id"]: one["seq"] for one in kept}
    assert len(where) == len(kept)
    said = [one["id"] for one in kept if one["kind"] == "chat.message"]
    assert sorted(said) == sorted(id_ for one in here for id_ in one.sent)
    for one in here:
        heard = [json.loads(data) for data in one.heard.values()]
        assert heard == kept[: len(heard)], one.name
        assert one.acknowledged == {id_: where[id_] for id_ in one.sent}
        assert not one.unsure


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
        self.tokens = await registered(port, *self.names)
        for room in self.rooms:
            await open_room(port, self.owner, room)
            self.talkers += [
                Talker(name, token, room, speaks=name.startswith("speaker"))
                for name, token in self.tokens.items()
            ]

    @property
    def owner(self) -> str:
        """The token of whoever owns the rooms."""
        return self.tokens[self.names[0]]

    @property
    def acknowledged(self) -> int:
        """How many messages have come back to their senders."""
        return sum(len(talker.acknowledged) for talker in self.talkers)

    @property
    def codes(self) -> Counter[int]:
        """How connections ended, and how often."""
        return Counter(code for talker in self.talkers for code in talker.codes)

    def within(self, room: str) -> list[Talker]:
        return [talker for talker in self.talkers if talker.room == room]

    async def talk(self, port: int, answers: int, end: Callable[[], Any]) -> None:
        """Have everyone talk; after so many answers something is done, and all are cut off."""
        wanted = self.acknowledged + answers
        ended = False

        def heard() -> None:
            nonlocal ended
            if not ended and self.acknowledged >= wanted:
                ended = True
                end()

        await asyncio.gather(*(talker.stay(port, heard) for talker in self.talkers))

    async def settle(self, port: int) -> None:
        """Have everyone come back, and stay until all is said and heard by all."""
        over = asyncio.Event()

        def heard() -> None:
            if all(self._is_settled(room) for room in self.rooms):
                over.set()

        for talker in self.talkers:
            talker.promised = -1
        await asyncio.gather(*(talker.stay(port, heard, over=over) for talker in self.talkers))

    def _is_settled(self, room: str) -> bool:
        here = self.within(room)
        last = max(talker.last for talker in here)
        return all(
            not talker.unsure and 0 <= talker.promised <= talker.last == last for talker in here
        )

    async def check(self, port: int) -> None:
        """All that was said is there once, as everyone heard it, and nobody was said to leave."""
        for room in self.rooms:
            await check_room(self.within(room), self.owner, port)
        presence = [
            (talker.room, told["kind"].removeprefix(PRESENCE), told["payload"]["participant"]["id"])
            for talker in self.talkers
            if talker.name == self.names[0]
            for told in map(json.loads, talker.heard.values())
            if told["kind"].startswith(PRESENCE)
        ]
        expected = [(room, "join", name) for room in self.rooms for name in self.names]
        assert sorted(presence) == sorted(expected)
