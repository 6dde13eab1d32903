"""`GET /v1/events` of one hub: makes out who follows, and what they may hear."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import AccountSuspended, TokenInvalid
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.operations.call import EventStream
from folkmoot.transports.events.follower import Following

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts, Identity
    from folkmoot.core.ports import Clock
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mcp.server.streams import StreamReader
    from folkmoot.operations.call import Caller
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.transports.events.follower import Follower
    from folkmoot.transports.events.streams import EventStreams

LONG: Final = 3600.0
"""Seconds; whoever writes the events says meanwhile that the stream is still there."""


class HubEvents:
    """Lets callers follow events, as `operations.call.EventFeed`."""

    def __init__(
        self,
        streams: EventStreams,
        accounts: Accounts,
        rooms: Rooms,
        policy: HubPolicy,
        clock: Clock,
    ) -> None:
        self.streams = streams
        self._authentication = accounts.authentication
        self._rooms = rooms
        self._policy = policy
        self._clock = clock

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
            credential_ids=tuple(filter(None, (credential.id, credential.parent_id))),
            is_account=visitor.account is not None,
            operator=caller.operator or scope(visitor.principal.scope).has(OPERATE),
            expires_in=None if ends is None else ends - self._clock.now(),
            permits=self._policy.permits,
        )

    async def _identity(self, caller: Caller) -> Identity:
        identity = await self._authentication.by_id(caller.credential_id)
        if identity is None:
            raise TokenInvalid
        if identity.account is not None and identity.account.suspended_at is not None:
            raise AccountSuspended
        return identity

    async def _prepare(self, caller: Caller, follower: Follower) -> None:
        """Refuse one whose credential ended before the follower listened, and follow the rooms."""
        visitor = caller.visitor
        if visitor is None:
            return
        await self._identity(caller)
        if not follower.has_rooms:
            await follower.follow_rooms(partial(self._rooms.rooms_of, visitor))
        if not follower.who.is_account and not follower.rooms:
            raise TokenInvalid


class Followed:
    """What a follower is told, as bytes of the stream; closing it lets the client come back."""

    def __init__(self, follower: Follower, reader: StreamReader, first: bytes) -> None:
        self._follower = follower
        self._reader = reader
        self._first = first

    def __aiter__(self) -> Followed:
        return self

    async def __anext__(self) -> bytes:
        """All that was told since the last time."""
        if self._first:
            first, self._first = self._first, b""
            return first
        while (told := await self._reader.more(LONG)) is not None:
            if told:
                return told
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """The client is gone; its stream is kept for a while."""
        self._reader.leave()
