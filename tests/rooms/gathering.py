"""What the tests of live rooms share: a hub's rooms on a real store, and ears that hear them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from folkmoot.accounts import Account, Accounts, AccountType
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.gateway.audit import CallAudit
from folkmoot.proxy.chain import Chain
from folkmoot.rooms import RoomOptions, Rooms, Visitor, read_spec, visitor_of
from folkmoot.rooms.ports import Enter
from folkmoot.transports.operations import Operations
from folkmoot.vault import Vault
from tests.mail.support import KEY, StillClock
from tests.stores import open_store

# Without a limit on chat.
QUIET = RoomOptions(chat={})


class Ear:
    """A connection that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.code: CloseCode | None = None
        self.held = False
        self.reads = asyncio.Event()
        self.reads.set()
        self._news = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self.code is None

    def tell(self, data: bytes) -> None:
        self.heard.append(json.loads(data))
        self._news.set()

    def close(self, code: CloseCode) -> None:
        if self.code is None:
            self.code = code
            self._news.set()

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    async def drained(self) -> None:
        if self.seqs:
            await self.reads.wait()

    @property
    def seqs(self) -> list[int]:
        return [message["seq"] for message in self.heard if "seq" in message]

    @property
    def kinds(self) -> list[str]:
        return [message["kind"] for message in self.heard]

    @property
    def texts(self) -> list[str]:
        return [one["payload"]["text"] for one in self.heard if one["kind"] == "chat.message"]

    async def until_seq(self, seq: int) -> None:
        """Wait until a message has been heard."""
        await self._until(lambda: seq in self.seqs)

    async def until_kind(self, kind: str) -> dict[str, Any]:
        """Wait until a message of a kind has been heard, and answer the last of them."""
        await self._until(lambda: kind in self.kinds)
        return next(message for message in reversed(self.heard) if message["kind"] == kind)

    async def until_text(self, text: str) -> None:
        """Wait until someone said this."""
        await self._until(lambda: text in self.texts)

    async def until_closed(self) -> CloseCode:
        await self._until(lambda: self.code is not None)
        assert self.code is not None
        return self.code

    async def _until(self, seen: Any) -> None:
        while not seen():
            assert self.code is None, f"closed with {self.code}"
            self._news.clear()
            await self._news.wait()


class Ears(dict[Any, None]):
    """Those who hear the same, in the order in which they came."""

    def add(self, outlet: Any) -> None:
        self[outlet] = None

    def remove(self, outlet: Any) -> None:
        self.pop(outlet, None)

    def broadcast(self, messages: Sequence[bytes]) -> None:
        for ear in self:
            for data in messages:
                ear.tell(data)


class Gathering(Struct):
    """Rooms, and short ways to use them."""

    store: Any
    clock: StillClock
    accounts: Accounts
    rooms: Rooms
    ann: Any = None
    # Two people, where the fixture has brought them.
    bob: Any = None

    async def people(self, *handles: str) -> list[Visitor]:
        return [visitor_of(await self.person(handle)) for handle in handles]

    async def person(self, handle: str, account_type: AccountType = "person") -> Account:
        return (await self.accounts.register(handle, account_type=account_type)).account

    async def create(self, owner: Visitor, name: str = "square", **spec: Any) -> None:
        await self.rooms.create(owner, read_spec({"name": name, **spec}))

    async def meet(self, *visitors: Visitor, **spec: Any) -> Any:
        """Let `ann` make a room, and these come in; the room, and their ears."""
        await self.create(self.ann, **spec)
        joined = [await self.join(visitor) for visitor in visitors]
        return joined[0][1], *(ear for ear, _ in joined)

    async def guest(self, name: str, room: str = "square") -> tuple[Visitor, str]:
        """Someone whom `ann` invited, and their credential."""
        invitation = await self.rooms.invite(self.ann, room, guest=name)
        return await self.rooms.exchange(room, invitation.token or "")

    async def join(
        self, visitor: Visitor, name: str = "square", ear: Ear | None = None, **how: Any
    ) -> tuple[Ear, Any]:
        """Come in, and wait for the welcome."""
        ear = ear or Ear()
        live, role = await self.rooms.enter(visitor, name)
        live.join(ear, visitor, role, **how)
        await ear.until_kind("system.welcome")
        return ear, live


def envelope(kind: str = "chat.message", payload: Any = None, **members: Any) -> bytes:
    payload = {"text": "hello"} if payload is None else payload
    return json.dumps({"protocol": "mcpx/v1", "kind": kind, "payload": payload, **members}).encode()


def chat(text: str, **members: Any) -> bytes:
    return envelope(payload={"text": text}, **members)


def shown_to(interceptors: Sequence[Interceptor], clock: Clock) -> Enter:
    """How messages pass interceptors; rooms ask for nothing at the hub themselves."""
    nobody: Any = None
    return Operations(Chain(interceptors), nobody, CallAudit(KEY), clock).enter


async def gathered(store: Any, clock: StillClock, **how: Any) -> Gathering:
    """The rooms on a store."""
    vault, owners = await Vault.load(store, KEY), store.room_owners
    accounts = Accounts(store, clock, vault, policy="open", owners=owners)
    how = {"options": QUIET, "crowd": Ears, **how}
    rooms = Rooms(store, clock, accounts, epoch=store.identity.epoch, owners=owners, **how)
    return Gathering(store, clock, accounts, rooms)


@asynccontextmanager
async def gathering(
    folder: Path,
    *,
    clock: StillClock | None = None,
    vfs: str | None = None,
    interceptors: Sequence[Interceptor] = (),
    **how: Any,
) -> AsyncIterator[Gathering]:
    """A hub's rooms, until the end of the test."""
    clock = clock or StillClock()
    store = await open_store(folder / "hub.db", vfs=vfs)
    try:
        pipeline = shown_to(interceptors, clock) if interceptors else None
        hub = await gathered(store, clock, pipeline=pipeline, **how)
        async with hub.rooms.running():
            yield hub
    finally:
        await store.close()
