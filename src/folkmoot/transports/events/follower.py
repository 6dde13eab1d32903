"""One stream of events: its subscriptions, and the events it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from folkmoot.accounts.model import read_change
from folkmoot.core.entity import Entity
from folkmoot.core.events import (
    ACCOUNTS,
    CREDENTIALS,
    GRANTS,
    MEMBERS,
    ROOMS,
    SAID,
    UNREAD,
    subject,
)
from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.operations import events as rows
from folkmoot.transports.events import sources
from folkmoot.transports.limits import (
    MAX_EVENTS_WAITING,
    MAX_EVENTS_WAITING_BYTES,
    MAX_ROOMS_FOLLOWED,
)

if TYPE_CHECKING:
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Bus, Event
    from folkmoot.mcp.server.streams import Stream, StreamReader
    from folkmoot.operations.events import EventRow
    from folkmoot.transports.events.sources import Source, Told


IN: Final = ("member", "invited")
"""What one must be to a room to hear of it."""

_encode = msgspec.json.Encoder().encode
NAMES: Final = {
    row.name: TransportContext(SseMetadata("", event_type=row.name)) for row in rows.EVENTS
}
"""The name of each event as a stream wants it."""


class Following(Struct, frozen=True, kw_only=True):
    """The follower's identity and rights."""

    principal: Principal
    id: str = ""
    """Of the account or guest; empty for the operator at the hub's own socket."""
    credential_id: str = ""
    """What lets them follow: the stream ends with it."""
    is_account: bool = True
    operator: bool = False
    expires_in: float | None = None
    permits: Callable[[Principal, str, dict[str, Any]], bool] = lambda *_: True
    """Whether they may do an operation now."""


class Follower(Entity):
    """Listens on the bus for one stream."""

    who: Following
    bus: Bus
    stream: Stream
    told: Callable[[EventRow], None]
    ended: bool = False
    _listening: dict[str, Callable[[], None]] = {}
    _rooms: dict[int, str] | None = None
    """The rooms it hears of; None until they are known."""
    _since: dict[int, tuple[str, str | None]] = {}
    """Changes of membership that came before the rooms were known."""
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.principal = self.who.principal

    def begin(self) -> None:
        """Listen from now on."""
        who, listen = self.who, self._listen
        if who.credential_id:
            listen(subject(CREDENTIALS, who.credential_id), self._ended)
        if who.id:
            listen(subject(MEMBERS, who.id), self._membership_changed)
            self._pass_on(subject(UNREAD, who.id), sources.unread)
        if who.is_account and who.id:
            listen(subject(ACCOUNTS, who.id), self._account_changed)
            listen(subject(GRANTS, who.id), self._rights_changed)
            for pattern, source in sources.OWN.items():
                self._pass_on(subject(pattern, who.id), source)
            for pattern, source in sources.PUBLIC.items():
                self._pass_on(pattern, source)
        if who.operator:
            for pattern, source in sources.OPERATORS.items():
                self._pass_on(pattern, source, f"operator {pattern}")
        if who.expires_in is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, who.expires_in), self.end)

    @property
    def has_rooms(self) -> bool:
        """Whether it is known which rooms it hears of."""
        return self._rooms is not None

    @property
    def rooms(self) -> Mapping[int, str]:
        """The rooms it hears of."""
        return self._rooms or {}

    async def follow_rooms(self, find: Callable[[], Awaitable[Mapping[int, str]]]) -> None:
        """Hear of these rooms too; what changed while they were looked up counts."""
        found = dict(await find())
        for room_id, (room, state) in self._since.items():
            found.pop(room_id, None)
            if state in IN:
                found[room_id] = room
        self._since.clear()
        self._rooms = {}
        for room_id, room in found.items():
            self._follow(room_id, room)

    def send(self, row: EventRow, data: Struct) -> None:
        """Say something in the stream, where whoever follows may hear it."""
        if self.ended or not self._may_hear(row, data):
            return
        self.put(row, data)

    def put(self, row: EventRow, data: Struct) -> None:
        """Say something in the stream; where too much waits, only that it must be read again."""
        raw, stream = _encode(data), self.stream
        too_much = stream.unsent + len(raw) > MAX_EVENTS_WAITING_BYTES
        if too_much or stream.waiting >= MAX_EVENTS_WAITING:
            stream.drop_waiting()
            row = rows.RELOAD
            raw = _encode(rows.Reload("overflow"))
        stream.put(raw, NAMES[row.name])
        self.told(row)

    def end(self) -> None:
        """Listen no more, and close the stream: also for one who would come back to it."""
        if not self.ended:
            self.leave()
            self.stream.discard()

    def leave(self) -> None:
        """Listen no more."""
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        for stop in self._listening.values():
            stop()
        self._listening.clear()

    def attach(self, after: int | None = None) -> StreamReader:
        """A reader of the stream, from its start or after an event."""
        self.stream.begun = True
        return self.stream.attach(after)

    def _listen(self, where: str, listener: Callable[[Event], None], key: str = "") -> None:
        self._listening[key or where] = self.bus.listen(where, listener)

    def _pass_on(self, where: str, source: Source, key: str = "") -> None:
        self._listen(where, lambda event: self._send_all(source(event)), key)

    def _send_all(self, told: Iterable[Told]) -> None:
        for row, data in told:
            self.send(row, data)

    def _may_hear(self, row: EventRow, data: Struct) -> bool:
        if not row.needs:
            return True
        room = getattr(data, "room", None)
        arguments = {} if room is None else {"room": room}
        return self.who.permits(self.principal, row.needs, arguments)

    def _ended(self, _: Event) -> None:
        self.end()

    def _account_changed(self, event: Event) -> None:
        changed = read_change(event)
        # Rights go by the handle; the scope is that of the credential.
        self.principal = replace(self.principal, name=changed.handle)
        if changed.ends_tokens:
            self.end()
        elif changed.change in ("profile", "handle", "restored"):
            told = rows.AccountChanged(changed.handle, changed.change)
            self.send(rows.ACCOUNT_CHANGED, told)

    def _rights_changed(self, _: Event) -> None:
        """Read the follower's rights again."""
        if not self.ended:
            self.stream.drop_waiting()
            self.put(rows.RELOAD, rows.Reload("rights"))

    def _membership_changed(self, event: Event) -> None:
        room_id, room, state = (event.data[name] for name in ("room_id", "room", "state"))
        if not self.who.is_account:
            if state not in IN:
                self.end()
            return
        if self._rooms is None:
            self._since[room_id] = (room, state)
        elif state in IN:
            self._follow(room_id, room)
        else:
            self._unfollow(room_id)
        self.send(rows.ROOM_MEMBERSHIP, rows.RoomMembership(room, state))

    def _follow(self, room_id: int, room: str) -> None:
        rooms = self._rooms
        if rooms is None or room_id in rooms or len(rooms) >= MAX_ROOMS_FOLLOWED or self.ended:
            return
        rooms[room_id] = room
        number = str(room_id)
        self._pass_on(subject(SAID, number), partial(sources.room_messages, room))
        self._listen(subject(ROOMS, number), partial(self._room_changed, room_id, room))

    def _unfollow(self, room_id: int) -> None:
        if self._rooms is not None and self._rooms.pop(room_id, None) is not None:
            for pattern in (SAID, ROOMS):
                stop = self._listening.pop(subject(pattern, str(room_id)), None)
                if stop is not None:
                    stop()

    def _room_changed(self, room_id: int, room: str, event: Event) -> None:
        gone = event.data["gone"]
        self.send(rows.ROOM_CHANGED, rows.RoomChanged(room, "removed" if gone else "settings"))
        if gone:
            self._unfollow(room_id)
            if not self.who.is_account:
                self.end()
