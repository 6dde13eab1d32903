"""Peer: the open requests of one link, and the caller each message of the other side is for.

It does no I/O and knows no clock. A message is given to it with its tag, the request on whose own
stream it was read; the tag is fixed when the message is read, and never looked up afterwards.

What the other side says goes to the one call it belongs to: by its id, its tag, its progress token
or its subscription. Where nothing of that is told, it goes to a call only if it can be of no other
owner's. A call that was cancelled counts until the other side has answered it: however late it
speaks of that call, nobody else hears it.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.calls import offers
from folkmoot.mcp.wire import level_of, meta_of, params_of

MOST_OPEN: Final = 1024
"""Requests that may be unanswered at once; one more is refused."""
MOST_CANCELLED: Final = 256
"""Cancelled requests that may be unanswered; with one more, the link should be replaced."""
ANSWER_SECONDS: Final = 30.0
"""After how long a cancelled request will hardly be answered any more."""
EXTENDED: Final = 10
"""Progress lets a call take longer, up to so many times as long as it may be silent."""

Tag: TypeAlias = MessageId | None
"""The request on whose own stream a message was read; None for a stream that all share."""


class CallState(Enum):
    """What becomes of a request."""

    OPEN = "open"
    PARKED = "parked"
    """The other side works on it, and nobody waits here until it is taken up again."""
    LISTENING = "listening"
    """A subscription that the other side agreed to; it tells of changes under its id alone."""
    CANCELLED = "cancelled"
    """Nobody waits for it any more, and the other side has not answered it."""
    DONE = "done"

    # Members are themselves and nothing else; the hash of their name costs a call each time.
    __hash__ = object.__hash__


class PeerCall(Struct, kw_only=True, eq=False):
    """One request, from sending to answer."""

    id: MessageId
    method: str
    owner: str = ""
    """Who is behind it; empty where that is nobody in particular."""
    token: MessageId | None = None
    """Under which progress is told, if it is wanted."""
    level: int | None = None
    """The place of the level from which on log messages are wanted; None for none."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    """What its owner's client can be asked for."""
    seconds: float | None = None
    """How long the other side may be silent about it; None for ever."""
    slot: Any = None
    """What its maker keeps for it."""
    began: float
    heard: float
    state: CallState = CallState.OPEN
    error: e.FolkmootError | None = None
    """Why its answer is none of the other side's."""
    lingers: bool = False
    """Whether the other side may speak of it after such an answer."""
    bereft: bool = False
    """Whether it was told that log messages are lost to it."""

    @property
    def due(self) -> float | None:
        """The deadline for the answer, extended by progress."""
        if self.seconds is None or self.state is not CallState.OPEN:
            return None
        return min(self.heard + self.seconds, self.began + EXTENDED * self.seconds)

    def wants(self, place: int) -> bool:
        """Whether a caller of it wants log messages of this level."""
        return self.state is CallState.OPEN and self.level is not None and self.level <= place


class ResolveEffect(Struct, frozen=True):
    """A call is answered."""

    call: PeerCall
    response: Response


class TellEffect(Struct, frozen=True):
    """Progress, a log message, or a change that a call subscribed to."""

    call: PeerCall
    notice: Notification


class AskEffect(Struct, frozen=True):
    """A request of the other side's, and the call it belongs to; None if it can be tied to none."""

    question: Request
    call: PeerCall | None


class PassEffect(Struct, frozen=True, gc=False):
    """A notification that is about no call."""

    notice: Notification


class DropReason(Enum):
    """Why a message goes to nobody."""

    UNASKED = "unasked"
    """It answers what was not asked, or was answered already."""
    CANCELLED = "cancelled"
    UNWANTED = "unwanted"
    """It belongs to a call that does not want it."""
    UNTIED = "untied"
    """It cannot be told which of several calls it belongs to."""


class DropEffect(Struct, frozen=True, gc=False):
    """A message for nobody; it is counted."""

    message: ProtocolMessage
    why: DropReason


Effect: TypeAlias = ResolveEffect | TellEffect | AskEffect | PassEffect | DropEffect


class Peer(Entity, kw_only=True):
    """The open requests of one link; with `one_owner` they all belong to one person."""

    one_owner: bool = False
    _calls: dict[MessageId, PeerCall] = {}
    """In the order in which they were sent."""
    _tokens: dict[MessageId, PeerCall] = {}
    _cancelled: dict[MessageId, float] = {}
    """Since when, the oldest first."""
    dropped: Counter[DropReason] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._calls)

    def request(
        self, request: Request, now: float, *, level: str | None = None, **options: Any
    ) -> PeerCall:
        """A request is sent, which wants log messages from `level` on; see `PeerCall`."""
        if len(self._calls) - len(self._cancelled) >= MOST_OPEN:
            raise e.TooManyInFlight("The server already has too many open requests.")
        before = self._calls.get(request.id)
        if before is not None:
            self._close(before)
        place = None if level is None else level_of(level)
        call = self._calls[request.id] = PeerCall(
            id=request.id, method=request.method, began=now, heard=now, level=place, **options
        )
        if call.token is not None:
            self._tokens[call.token] = call
        return call

    def get(self, message_id: Any) -> PeerCall | None:
        """The unanswered call with this id."""
        return self._calls.get(message_id) if type(message_id) in (int, str) else None

    def park(self, call: PeerCall) -> None:
        """Nobody waits for a call for now, and the other side has not answered it."""
        if call.state is CallState.OPEN:
            call.state = CallState.PARKED
            call.slot = None

    def resume(
        self,
        call: PeerCall,
        now: float,
        *,
        level: str | None,
        capabilities: dict[str, Any],
        seconds: float,
        slot: Any,
    ) -> None:
        """Take up a parked call again."""
        if call.state is CallState.PARKED:
            call.state = CallState.OPEN
            call.level = level_of(level)
            call.capabilities, call.seconds, call.slot = capabilities, seconds, slot
            call.began = call.heard = now

    def cancel(self, call: PeerCall, now: float) -> None:
        """Nobody waits for a call any more; it is remembered until it is answered."""
        if self.one_owner or call.state is CallState.LISTENING:
            # There is nobody else to hear of it, or nothing but changes to tell.
            self._close(call)
        elif call.state in WORKING:
            call.slot = None
            self._remember(call, now)

    def forget(self, call: PeerCall) -> None:
        """The other side will say nothing of a call, or was never told of it."""
        self._close(call)

    def failed(self, call: PeerCall, error: e.FolkmootError, *, lingers: bool) -> None:
        """The answer that comes next to a call is made here, in the place of the other side's.

        `lingers` says that the other side may be at work on it nevertheless.
        """
        call.error, call.lingers = error, lingers and not self.one_owner

    @property
    def too_many_cancelled(self) -> bool:
        """Whether the link is to be replaced, since none of them may be forgotten."""
        return len(self._cancelled) > MOST_CANCELLED

    def stale(self, now: float) -> bool:
        """Whether a cancelled call will hardly be answered any more."""
        oldest = next(iter(self._cancelled.values()), None)
        return oldest is not None and now - oldest >= ANSWER_SECONDS

    @property
    def parked(self) -> bool:
        """Whether the other side works on something that may be taken up again."""
        return any(call.state is CallState.PARKED for call in self._calls.values())

    def late(self, now: float) -> tuple[list[PeerCall], float | None]:
        """The calls that should have been answered by now, and when to look again."""
        late: list[PeerCall] = []
        soonest: float | None = None
        for call in self._calls.values():
            due = call.due
            if due is None:
                continue
            if due <= now:
                late.append(call)
            elif soonest is None or due < soonest:
                soonest = due
        return late, soonest

    def receive(self, message: ProtocolMessage, tag: Tag, now: float) -> Effect:
        """The effect of a message from the other side."""
        if type(message) is Response:
            return self._answered(message, now)
        if type(message) is Notification:
            return self._notified(message, tag, now)
        return AskEffect(message, self._asked(message, tag))

    def _notified(self, notice: Notification, tag: Tag, now: float) -> Effect:
        if notice.method == wire.PROGRESS:
            token: Any = params_of(notice).get("progressToken")
            call = self._tokens.get(token) if type(token) in (int, str) else None
            return self._told(notice, call, now, DropReason.UNASKED)
        if notice.method != wire.LOGGED:
            return self._changed(notice, now)
        place = _place_of(notice)
        call = self._logged(tag, place)
        if call is not None and call.state is CallState.OPEN and not call.wants(place):
            return self._drop(notice, DropReason.UNWANTED)
        return self._told(notice, call, now, DropReason.UNTIED)

    def _answered(self, response: Response, now: float) -> Effect:
        call = None if response.id is None else self._calls.get(response.id)
        if call is None:
            return self._drop(response, DropReason.UNASKED)
        if call.state is CallState.CANCELLED:
            self._close(call)
            return self._drop(response, DropReason.CANCELLED)
        if call.lingers:
            self._remember(call, now)
        else:
            self._close(call)
        return ResolveEffect(call, response)

    def _told(
        self, notice: Notification, call: PeerCall | None, now: float, why: DropReason
    ) -> Effect:
        if call is None:
            return self._drop(notice, why)
        if call.state is not CallState.OPEN:
            cancelled = call.state is CallState.CANCELLED
            return self._drop(notice, DropReason.CANCELLED if cancelled else DropReason.UNWANTED)
        call.heard = now
        return TellEffect(call, notice)

    def _changed(self, notice: Notification, now: float) -> Effect:
        call = self.get(meta_of(notice).get(wire.SUBSCRIPTION_KEY))
        if call is None or call.method != wire.LISTEN:
            return PassEffect(notice)
        if call.state is CallState.OPEN and notice.method == wire.ACKNOWLEDGED:
            call.state = CallState.LISTENING
        if call.state is not CallState.LISTENING:
            return self._drop(notice, DropReason.CANCELLED)
        call.heard = now
        return TellEffect(call, notice)

    def _logged(self, tag: Tag, place: int) -> PeerCall | None:
        """The call that a log message is told to: its own, or one of its only possible owner."""
        if tag is not None:
            return self._calls.get(tag)
        if self.one_owner:
            calls = reversed(self._calls.values())
            return next((each for each in calls if each.wants(place)), None)
        working = [
            call
            for call in self._calls.values()
            if call.state in WORKING and call.method != wire.SET_LEVEL
        ]
        if not working:
            return None
        last = working[-1]
        alone = len(working) == 1 or (
            last.owner and {each.owner for each in working} == {last.owner}
        )
        if not alone or self._others_cancelled(last.owner):
            return None
        return next((each for each in reversed(working) if each.wants(place)), last)

    def bereft(self, notice: Notification) -> list[PeerCall]:
        """The calls that a dropped log message could have been of, each of them once."""
        place = _place_of(notice)
        found = [each for each in self._calls.values() if each.wants(place) and not each.bereft]
        for call in found:
            call.bereft = True
        return found

    def _asked(self, question: Request, tag: Tag) -> PeerCall | None:
        """The call that a question belongs to: by its tag, or since all are of one owner."""
        if question.method not in wire.NEEDED:
            return None
        if tag is not None:
            call = self._calls.get(tag)
            return call if call is not None and call.state in WORKING else None
        working = [call for call in self._calls.values() if call.state in WORKING]
        asking = [call for call in reversed(working) if call.method in wire.ASKING]
        if not asking:
            return None
        owner = asking[0].owner
        if not self.one_owner:
            owners = {call.owner for call in asking}
            # What nobody in particular asks, such as lists, makes no server ask anything.
            owners |= {call.owner for call in working if call.owner}
            if len(owners) > 1 or (not owner and len(asking) > 1):
                return None
            if self._others_cancelled(owner, wire.ASKING):
                return None
        return max(
            asking,
            key=lambda call: (offers(call.capabilities, question), call.state is CallState.OPEN),
        )

    def _others_cancelled(self, owner: str, methods: frozenset[str] | None = None) -> bool:
        """Whether a cancelled call, of these methods, may be of someone else than `owner`."""
        for message_id in self._cancelled:
            call = self._calls[message_id]
            if (methods is None or call.method in methods) and (not owner or call.owner != owner):
                return True
        return False

    def _remember(self, call: PeerCall, now: float) -> None:
        call.state = CallState.CANCELLED
        self._cancelled[call.id] = now

    def _close(self, call: PeerCall) -> None:
        call.state = CallState.DONE
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
            self._cancelled.pop(call.id, None)
        if call.token is not None and self._tokens.get(call.token) is call:
            del self._tokens[call.token]

    def _drop(self, message: ProtocolMessage, why: DropReason) -> DropEffect:
        self.dropped[why] += 1
        return DropEffect(message, why)


def _place_of(notice: Notification) -> int:
    place = level_of(params_of(notice).get("level"))
    return len(wire.LEVELS) - 1 if place is None else place


WORKING: Final = frozenset((CallState.OPEN, CallState.PARKED))
"""The states of calls that the other side works on, and that someone waits for or will."""
