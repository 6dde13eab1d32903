"""A real room behind a real socket, whose connections can be cut at any moment.

The room is the machine of `folkmoot.rooms.machine`; only its store is a list, and its server is
the `websockets` library. Tests that need no cuts at chosen moments use the hub itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from msgspec.structs import replace
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.rooms.machine import (
    Append,
    Attach,
    Close,
    Effect,
    Invite,
    Role,
    Room,
    RoomSettings,
    Tell,
)

Envelope: TypeAlias = dict[str, Any]
# Whether to cut a connection, or with which code to close it.  It is asked `before` and `after` a
# message is taken, and when one was `told bob`.
Cuts: TypeAlias = Callable[[str, Envelope], bool | CloseCode]

SETTINGS = RoomSettings(name="square", epoch="e1", chat={}, return_seconds=0.0)
ROLES = {"alice": Role.OWNER, "kim": Role.GUEST}
TYPES = {"kim": PrincipalType.GUEST}


def never(moment: str, envelope: Envelope) -> bool:
    """Cut nothing."""
    return False


class Client:
    """One connection, as the hub has it; what it is told waits in order."""

    def __init__(self, socket: ServerConnection, name: str) -> None:
        self.socket = socket
        self.name = name
        self.queue: asyncio.Queue[bytes | CloseCode] = asyncio.Queue()
        self.attached = False
        self.was_cut = False

    def cut(self, how: bool | CloseCode = True) -> bool:
        """Lose the connection without a word, or close it, with all that was not yet sent."""
        if how is False:
            return False
        self.was_cut = True
        if isinstance(how, CloseCode):
            self.queue.put_nowait(how)
        else:
            self.socket.transport.abort()
        return True


class CuttingHub:
    """One room, for everyone who comes with the token `sk_` and their name."""

    def __init__(self, settings: RoomSettings = SETTINGS) -> None:
        self.room = Room(settings, lambda: uuid4().hex)
        self.stored: list[Append] = []
        self.clients: list[Client] = []
        self.cuts: Cuts = never
        self.welcomes = 0
        self.knows_serving = True
        self.joins: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.refuses: tuple[int, str] | None = None
        self._server: Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def open(self) -> None:
        """Listen, the second time where it was the first time."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self._port,
            compression=None,
            max_size=None,
            ping_interval=None,
            close_timeout=0.1,
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more, and lose every connection."""
        assert self._server
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    def keep_out(self, name: str | None = None) -> None:
        """Lose connections, and let nobody come back until `refuses` is None again."""
        self.refuses = (CloseCode.RESTARTING, "")
        self.cut(name)

    def cut(self, name: str | None = None) -> None:
        """Lose every connection, or those of one participant."""
        for client in list(self.clients):
            if name in (None, client.name):
                client.cut()

    def cut_once(
        self,
        moment: str,
        kind: str = "",
        how: bool | CloseCode = True,
        then: Callable[[], object] | None = None,
    ) -> None:
        """Cut one connection, at this moment of the first message of this kind."""

        def cuts(now: str, envelope: Envelope) -> bool | CloseCode:
            if now != moment or not envelope["kind"].startswith(kind):
                return False
            self.cuts = never
            if then is not None:
                then()
            return how

        self.cuts = cuts

    def begin_anew(self, epoch: str) -> None:
        """A memory-only room after a restart."""
        self.room = Room(replace(self.room.settings, epoch=epoch), lambda: uuid4().hex)
        self.stored.clear()

    def tick(self) -> bool:
        """Let happen what is due, if anything is."""
        effects = self.room.tick(time.time())
        self.perform(effects)
        return bool(effects)

    def kinds(self) -> list[str]:
        return [append.kind for append in self.stored]

    def said(self) -> list[str]:
        """The texts of the chat, as they were stored."""
        messages = [strict.decode_object(append.data) for append in self.stored]
        return [m["payload"]["text"] for m in messages if m["kind"] == "chat.message"]

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request
        asked = {k: v[0] for k, v in parse_qs(urlsplit(socket.request.path).query).items()}
        self.joins.append(asked)
        token = socket.request.headers["Authorization"].removeprefix("Bearer ")
        self.tokens.append(token)
        if self.refuses is not None:
            await socket.close(*self.refuses)
            return
        name = token.partition("_")[2]
        client = Client(socket, name)
        try:
            self._join(client, asked, token)
        except e.FolkmootError as error:
            await socket.close(error.close.value, error.message)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._write(client))
                try:
                    async for data in socket:
                        self._take(client, data if isinstance(data, bytes) else data.encode())
                finally:
                    writing.cancel()
        except* ConnectionClosed:
            pass
        finally:
            self.clients.remove(client)
            self.perform(self.room.disconnect(client, time.time()))

    def _join(self, client: Client, asked: dict[str, str], token: str) -> None:
        kind = TYPES.get(client.name, PrincipalType.PERSON)
        principal = Principal(f"account-{client.name}", client.name, kind)
        more = {"credential": f"gk_{client.name}"} if token.startswith("gi_") else {}
        effects = self.room.join(
            client,
            principal,
            ROLES.get(client.name, Role.MEMBER),
            time.time(),
            conn=asked.get("conn"),
            after=int(asked["after"]) if "after" in asked else None,
            epoch=asked.get("epoch"),
            serve=asked.get("serve") == "1",
            more=more,
        )
        self.welcomes += 1
        self.clients.append(client)
        self.perform(effects)

    def _take(self, client: Client, data: bytes) -> None:
        envelope = strict.decode_object(data)
        if client.was_cut:
            return
        if client.cut(self.cuts("before", envelope)):
            return
        effects, _ = self.room.receive(client, [data], time.time())
        client.cut(self.cuts("after", envelope))
        self.perform(effects)

    def perform(self, effects: list[Effect]) -> None:
        """Carry out what the room asks for."""
        self.stored += [effect for effect in effects if isinstance(effect, Append)]
        for effect in effects:
            if isinstance(effect, Append):
                for client in self.clients:
                    if client.attached:
                        client.queue.put_nowait(effect.data)
            elif isinstance(effect, Tell):
                effect.connection.queue.put_nowait(effect.data)
            elif isinstance(effect, Attach):
                self._attach(effect)
            elif isinstance(effect, Close):
                effect.connection.attached = False
                effect.connection.queue.put_nowait(effect.code)
            elif isinstance(effect, Invite):
                made = {"room": "square", "guest": effect.guest, "token": f"gi_{effect.guest}"}
                at = time.time()
                self.perform(self.room.answer_invite(effect.connection, effect.id, made, at))

    def _attach(self, effect: Attach) -> None:
        client: Client = effect.connection
        welcome = strict.decode_object(effect.welcome)
        if not self.knows_serving:
            del welcome["payload"]["serving"], welcome["payload"]["waiting"]
        client.queue.put_nowait(strict.encode(welcome))
        if effect.after is not None:
            for append in self.stored:
                if effect.after < append.seq <= effect.through:
                    client.queue.put_nowait(append.data)
        client.attached = True

    async def _write(self, client: Client) -> None:
        while True:
            told = await client.queue.get()
            if isinstance(told, CloseCode):
                await client.socket.close(told.value)
                return
            if client.was_cut:
                continue
            await client.socket.send(told, text=True)
            client.cut(self.cuts(f"told {client.name}", strict.decode_object(told)))


@asynccontextmanager
async def cutting_hub(settings: RoomSettings = SETTINGS) -> AsyncIterator[CuttingHub]:
    """A hub that listens."""
    there = CuttingHub(settings)
    await there.open()
    try:
        yield there
    finally:
        await there.close()
