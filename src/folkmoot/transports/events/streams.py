"""All streams of `GET /v1/events`: how many there may be, who follows, and how one is resumed."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.mcp.server.resumable import ResumableStreams, StreamBudget
from folkmoot.mcp.server.streams import Stream
from folkmoot.operations import events as rows
from folkmoot.operations.call import EventStream
from folkmoot.transports.events.follower import Follower, Following
from folkmoot.transports.limits import EVENTS_RETRY_SECONDS

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts, Identity
    from folkmoot.core.ports import Bus, Clock
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mcp.server.streams import StreamReader
    from folkmoot.operations.call import Caller
    from folkmoot.operations.events import EventRow
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.transports.events.follower import Follower, Following


LONG: Final = 3600.0
"""Seconds; whoever writes the events says meanwhile that the stream is still there."""


class HubEvents(Entity):
    """Lets callers follow events, as `operations.call.EventFeed`."""

    streams: EventStreams
    accounts: Accounts
    rooms: Rooms
    policy: HubPolicy
    clock: Clock

    def __post_init__(self) -> None:
        self._authentication = self.accounts.authentication

    async def follow(self, caller: Caller, last_event_id: str) -> EventStream:
        """What changes from now on, or since an event, as far as the caller may know it."""
        who = await self._who(caller)
        follower, reader, first = self.streams.follow(who, last_event_id)
        try:
            await self._prepare(caller, follower)
        except BaseException:
            follower.end()
            raise
        return EventStream(Followed(follower, reader, first), ends_itself=True)

    async def _who(self, caller: Caller) -> Following:
        visitor = caller.visitor
        if visitor is None:
            # The hub's own socket: nobody's account, and nothing to be denied.
            return Following(principal=caller.principal, operator=True)
        credential = (await self._identity(caller)).credential
        ends = credential.expires_at
        return Following(
            principal=visitor.principal,
            id=visitor.principal.account_id,
            credential_id=credential.lasting_id,
            is_account=visitor.account is not None,
            operator=caller.operator or scope(visitor.principal.scope).has(OPERATE),
            expires_in=None if ends is None else ends - self.clock.now(),
            permits=self.policy.permits,
        )

    async def _identity(self, caller: Caller) -> Identity:
        identity = await self._authentication.by_id(caller.credential_id)
        if identity is None:
            raise e.TokenInvalid
        if identity.account is not None and identity.account.suspended_at is not None:
            raise e.AccountSuspended
        return identity

    async def _prepare(self, caller: Caller, follower: Follower) -> None:
        """Refuse one whose credential ended before the follower listened, and follow the rooms."""
        visitor = caller.visitor
        if visitor is None:
            return
        await self._identity(caller)
        if not follower.has_rooms:
            await follower.follow_rooms(partial(self.rooms.rooms_of, visitor))
        if not follower.who.is_account and not follower.rooms:
            raise e.TokenInvalid


class Followed(Entity):
    """What a follower is told, as bytes of the stream; closing it lets the client come back."""

    follower: Follower
    reader: StreamReader
    first: bytes

    def __aiter__(self) -> Followed:
        return self

    async def __anext__(self) -> bytes:
        """All that was told since the last time."""
        if self.first:
            first, self.first = self.first, b""
            return first
        while (told := await self.reader.more(LONG)) is not None:
            if told:
                return told
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """The client is gone; its stream is kept for a while."""
        self.reader.leave()


class AccountStreams:
    """The streams of one account, guest or operator."""

    __slots__ = ("followers", "kept")

    def __init__(self, budget: StreamBudget, account_id: str) -> None:
        self.kept = ResumableStreams(budget, account_id)
        self.followers: dict[Stream, Follower] = {}


class EventStreams(Entity):
    """Opens streams and resumes them; `most` at once, `most_each` of one account."""

    bus: Bus
    most: int
    most_each: int
    resume_seconds: float
    most_bytes: int
    _own: dict[str, AccountStreams] = {}
    _count: int = 0
    _stopping: bool = False
    told: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    _reloading: asyncio.TimerHandle | None = None
    _missed: bool = False

    def __post_init__(self) -> None:
        self._budget = StreamBudget(seconds=self.resume_seconds, most_bytes=self.most_bytes)
        self.bus.listen_missed(self._events_missed)

    def _events_missed(self) -> None:
        """Have everyone read again what they show: at once, then no more often than is useful."""
        self._missed = True
        if self._reloading is None:
            self._reload_missed()

    def _reload_missed(self) -> None:
        missed, self._missed, self._reloading = self._missed, False, None
        if not missed or self._stopping:
            return
        loop = asyncio.get_running_loop()
        self._reloading = loop.call_later(EVENTS_RETRY_SECONDS, self._reload_missed)
        for own in self._own.values():
            for follower in tuple(own.followers.values()):
                if not follower.ended:
                    follower.put(rows.RELOAD, rows.Reload("gap"))

    @property
    def open(self) -> int:
        """How many streams someone reads."""
        return sum(
            stream.reader is not None for own in self._own.values() for stream in own.followers
        )

    def __len__(self) -> int:
        return self._count

    def follow(
        self, who: Following, last_event_id: str = ""
    ) -> tuple[Follower, StreamReader, bytes]:
        """A follower, its reader, and what is written first.

        It goes on after the event with this id if its stream is kept and was opened with the same
        credential, of the same scope; else it begins anew, and is told that events may be missing.
        """
        own = self._own.get(who.id)
        if own is not None and last_event_id:
            found = self._resume(own, who, last_event_id)
            if found is not None:
                self.resumed += 1
                return found[0], found[1], b""
        self._make_room(own)
        if own is None:
            own = self._own[who.id] = AccountStreams(self._budget, who.id)
        stream = Stream(listening=True, keeper=own.kept)
        follower = own.followers[stream] = Follower(who, self.bus, stream, self._note)
        self._count += 1
        stream.abandoned = lambda: self._forget(who.id, stream)
        reader = follower.attach()
        first = stream.first()
        follower.begin()
        if last_event_id:
            follower.put(rows.RELOAD, rows.Reload("gap"))
        if self._stopping:
            stream.end()
        return follower, reader, first

    def stop(self) -> None:
        """End every stream: the hub stops, and clients come back to the next one."""
        self._stopping = True
        if self._reloading is not None:
            self._reloading.cancel()
        for own in self._own.values():
            for stream in tuple(own.followers):
                stream.end()

    def _resume(
        self, own: AccountStreams, who: Following, last_event_id: str
    ) -> tuple[Follower, StreamReader] | None:
        try:
            stream, after = own.kept.resume(last_event_id)
        except e.EventUnknown:
            return None
        follower = own.followers.get(stream)
        if follower is None or follower.ended or stream.done:
            return None
        # Two access tokens of one grant may have different scopes.
        before, opened_with = follower.who, follower.who.credential_id
        if before.principal.scope != who.principal.scope or before.operator != who.operator:
            return None
        if opened_with != who.credential_id:
            return None
        return follower, follower.attach(after)

    def _make_room(self, own: AccountStreams | None) -> None:
        """Make room for one more stream, or refuse it."""
        each = 0 if own is None else len(own.followers)
        if own is not None and each >= self.most_each and not self._drop_unread(own):
            raise e.ConnectionsExceeded(
                f"You follow events on {each} connections; close some.",
                setting="events.max_streams_per_account",
                retry_after=EVENTS_RETRY_SECONDS,
            )
        if self._count >= self.most and not any(map(self._drop_unread, [*self._own.values()])):
            raise e.HubFull(
                "Events are followed on as many connections as the hub may have.",
                setting="events.max_streams",
                retry_after=EVENTS_RETRY_SECONDS,
            )

    def _drop_unread(self, own: AccountStreams) -> bool:
        """Give up the oldest stream that is only kept for a client that may come back."""
        for stream, follower in own.followers.items():
            if stream.reader is None:
                follower.end()
                return True
        return False

    def _forget(self, who: str, stream: Stream) -> None:
        own = self._own.get(who)
        follower = None if own is None else own.followers.pop(stream, None)
        if own is None or follower is None:
            return
        follower.leave()
        self._count -= 1
        if not own.followers:
            del self._own[who]

    def _note(self, row: EventRow) -> None:
        self.told[row.name] += 1
