"""The streams that clients of the handshake era may come back to, and what they may cost.

The id of an event is the boot id of the server, the name of its stream and the event's number:
`BOOT-cSTREAM-NUMBER` in the stream of a call, `BOOT-lSTREAM-NUMBER` in the one that a session
listens on. So no stream takes the id of another for one of its own, nor one of an earlier process.

A session, an account and the whole server each have a share of the memory. When one is full, the
streams in it that nobody reads are forgotten, first those that have arrived, then the oldest; the
calls that they belong to are ended.

`SessionStreams` resumes those of the hub's sessions: by a GET that names the last event received.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Notification
from folkmoot.mcp.framing import encode_event
from folkmoot.mcp.server.heads import EVENT_ID, check_listener, check_once
from folkmoot.mcp.server.responses import HttpReply, leave_with
from folkmoot.mcp.server.service import is_wanted, written
from folkmoot.mcp.server.streams import Stream
from folkmoot.mcp.wire import LOGGED

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.mcp.server.direct import DirectServer, ServedRequest
    from folkmoot.mcp.server.sessions import HandshakeSession

FIRST_VERSION: Final = "2025-03-26"
"""The first version whose clients resume streams."""
FIRST_PRIMED: Final = "2025-11-25"
"""The first version whose clients understand an event without data."""
BOOT_BYTES: Final = 8
NAME_BYTES: Final = 6
CALL, LISTENING = "c", "l"
EVENT: Final = re.compile("([0-9a-f]{8,64})-([cl])[0-9a-f]{12}-[0-9]{1,15}")
"""The id of an event: the process, in as many digits as the hub calls it by, and the stream."""

KEPT_SECONDS: Final = 60.0
MOST_BYTES: Final = 64 * 1024 * 1024
STREAM_BYTES: Final = 1024
CALL_BYTES: Final = 40 * 1024
"""What a stream takes beside its events, and what a call takes that goes on while nobody reads, by
a careful estimate: measured were 32 KB.
"""
ACCOUNT_SHARE: Final = 8
"""One in so many of the bytes is for one account, and for all those who have none."""
SESSION_SHARE: Final = 16
LOOKED_AT: Final = 16
"""So many streams are asked to give way for one event."""
UNKNOWN: Final = (
    "This stream cannot be resumed: it has ended, is no longer kept, or never existed. What was "
    "not received of it is lost; send the request again if its answer is needed."
)


class MemoryShare(Entity):
    """A part of the memory, and the streams that it is for, the oldest first."""

    most: int
    used: int = 0
    streams: OrderedDict[Stream, ResumableStreams] = field(default_factory=OrderedDict)
    """And the sessions that they belong to."""

    def make_room(self, wanting: Stream) -> None:
        """Have the oldest streams give way until there is room, and at last the one that wants."""
        for _ in range(LOOKED_AT):
            if self.used <= self.most or not self.streams:
                return
            oldest, session = next(iter(self.streams.items()))
            if oldest.give_way():
                self.streams.move_to_end(oldest)
            else:
                session.forget(oldest)
        if self.used > self.most and wanting in self.streams and not wanting.give_way():
            self.streams[wanting].forget(wanting)


class StreamBudget:
    """What all sessions of one server share: its boot id, the memory, and how long it is kept."""

    def __init__(
        self,
        boot_id: str = "",
        *,
        seconds: float = KEPT_SECONDS,
        most_bytes: int = MOST_BYTES,
        by_account: bool = True,
    ) -> None:
        self.boot_id = boot_id or secrets.token_hex(BOOT_BYTES)
        self.seconds = seconds
        self.whole = MemoryShare(most_bytes)
        self.most_of_session = most_bytes // SESSION_SHARE
        self._most_of_account = most_bytes // ACCOUNT_SHARE if by_account else most_bytes
        self._of_account: dict[str, MemoryShare] = {}

    def abandon(self) -> None:
        """Forget every call that goes on while nobody reads: the server stops."""
        for stream, session in tuple(self.whole.streams.items()):
            if stream.reader is None and not stream.done and not stream.listening:
                session.forget(stream)

    def share_of(self, account_id: str) -> MemoryShare:
        """The share of an account, or the one share of all strangers."""
        share = self._of_account.get(account_id)
        if share is None:
            share = self._of_account[account_id] = MemoryShare(self._most_of_account)
        return share

    def tidy(self, account_id: str) -> None:
        """Forget the share of an account that has no stream."""
        share = self._of_account.get(account_id)
        if share is not None and not share.streams:
            del self._of_account[account_id]


class StreamRecord(Entity):
    """Where a stream is counted, and when it is forgotten."""

    account_id: str
    shares: tuple[MemoryShare, ...]
    alone: bool = False
    """Whether its call goes on while nobody reads, and is counted as such."""
    timer: asyncio.TimerHandle | None = None


class ResumableStreams:
    """The streams of one session, counted for the account it has when they open."""

    def __init__(self, budget: StreamBudget, account_id: str = "") -> None:
        self.account_id = account_id
        self._budget = budget
        self._own = MemoryShare(budget.most_of_session)
        self._named: dict[str, Stream] = {}
        self._places: dict[Stream, StreamRecord] = {}
        self._ended = False

    def __len__(self) -> int:
        return len(self._named)

    def resume(self, event_id: str) -> tuple[Stream, int]:
        """The stream an event belongs to, and the event's number there."""
        stream = self._named.get(event_id.rpartition("-")[0])
        for each in self._named.values() if stream is None else (stream,):
            place = each.place_of(event_id) if each.begun else None
            if place is not None:
                return each, place
        raise e.EventUnknown(UNKNOWN)

    def forget(self, stream: Stream) -> None:
        """Keep a stream no longer, and end what it waits for."""
        place = self._places.get(stream)
        if place is None:
            return
        self._count(stream, place, alone=False)
        stop_timer(place)
        del self._named[stream.name], self._places[stream]
        for share in place.shares:
            share.used -= STREAM_BYTES + stream.size
            del share.streams[stream]
        self._budget.tidy(place.account_id)
        stream.close()

    def close(self) -> None:
        """Keep none of them any longer than it is read: the session has ended."""
        self._ended = True
        for stream in tuple(self._places):
            self.attended(stream)

    def enter(self, stream: Stream) -> None:
        """Keep a stream from now on, under a name that its events' ids begin with."""
        budget = self._budget
        kind = LISTENING if stream.listening else CALL
        stream.name = f"{budget.boot_id}-{kind}{secrets.token_hex(NAME_BYTES)}"
        shares = (self._own, budget.share_of(self.account_id), budget.whole)
        self._named[stream.name] = stream
        self._places[stream] = StreamRecord(self.account_id, shares)
        for share in shares:
            share.streams[stream] = self
        self.resized(stream, STREAM_BYTES)
        self.attended(stream)

    def resized(self, stream: Stream, change: int) -> None:
        """A stream holds so many bytes more, or less."""
        place = self._places.get(stream)
        if place is None:
            return
        for share in place.shares:
            share.used += change
        if change > 0:
            for share in place.shares:
                share.make_room(stream)

    def attended(self, stream: Stream) -> None:
        """See to it that a stream which nobody reads is forgotten after a while.

        One that is not done, and whose work cannot be ended, is kept until it is done.
        """
        place = self._places.get(stream)
        if place is None:
            return
        stop_timer(place)
        unread = stream.reader is None
        if unread and self._ended:
            self.forget(stream)
            return
        if unread and (stream.done or stream.abandoned is not None):
            loop = asyncio.get_running_loop()
            place.timer = loop.call_later(self._budget.seconds, self.forget, stream)
        if unread and stream.arrived:
            # Hardly anyone comes back to it.
            for share in place.shares:
                share.streams.move_to_end(stream, last=False)
        alone = unread and not stream.done and not stream.listening
        self._count(stream, place, alone=alone)

    def _count(self, stream: Stream, place: StreamRecord, *, alone: bool) -> None:
        if alone is not place.alone:
            place.alone = alone
            self.resized(stream, CALL_BYTES if alone else -CALL_BYTES)


def stop_timer(place: StreamRecord) -> None:
    """Let a stream be kept on."""
    if place.timer is not None:
        place.timer.cancel()
        place.timer = None


def is_listening(event_id: str) -> bool:
    """Whether an event would be one of a stream that a session listens on."""
    named = EVENT.fullmatch(event_id)
    return named is not None and named[2] == LISTENING


GONE: Final = (
    "This stream cannot be resumed: the process that had it has ended. Its call may or may not "
    "have been done. Open a new session with initialize."
)
THINNED: Final = {
    "level": "warning",
    "logger": "folkmoot",
    "data": "Log messages of this call were dropped while its client was away.",
}


class SessionStreams(Entity):
    """Opens and resumes the streams of one server's sessions."""

    server: DirectServer

    async def listen(
        self, session: HandshakeSession, visit: ServedRequest, receive: Receive, send: Send
    ) -> None:
        """Answer a GET: by the stream in which a session hears what belongs to none of its
        requests, or by any that its client comes back to.
        """
        check_listener(visit.head)
        check_once(visit.head, frozenset({EVENT_ID}))
        event_id = visit.head.text(EVENT_ID) or None
        stream, after = self._resumed(session, event_id)
        thinned = after is not None and stream.is_thinned(after)
        first = note_of_thinning(session) if thinned else b""
        reply = HttpReply(send, self.server.tasks, session.headers)
        writing = reply.follow(stream, after, first)
        writing.add_done_callback(lambda _: visit.leaving.set())
        if stream is session.stream:
            session.listening = visit.leaving
            missed = event_id is not None and after is None
            self.server.host.session_listens(session, missed=missed)
        watch = self.server.tasks.create_task(leave_with(receive, visit.leaving.set))
        try:
            await visit.leaving.wait()
        finally:
            watch.cancel()
            reply.left()
            await writing

    def _resumed(
        self, session: HandshakeSession, event_id: str | None
    ) -> tuple[Stream, int | None]:
        """The stream that a client comes back to, and after which event; or the one it listens on.

        What that one tells can be told again: where it cannot be resumed, it begins anew. All
        others are refused in the same words, be they lost, another session's or invented.
        """
        if event_id is not None and self._can_resume(session):
            try:
                if session.streams is not None:
                    return session.streams.resume(event_id)
            except e.EventUnknown:
                pass
            if not is_listening(event_id):
                raise self._lost(event_id)
        elif session.listens:
            raise e.StreamExists("This session has a stream already; it may have one.")
        if session.stream is None or session.stream.done:
            session.stream = self._new_stream(session, listening=True)
        return session.stream, None

    def _lost(self, event_id: str) -> e.RequestError:
        """Why a stream is not here: another process had it, which is gone, or nobody has it."""
        named, streams = EVENT.fullmatch(event_id), self.server.streams
        if named is not None and streams is not None and named[1] != streams.boot_id:
            return e.SessionNotFound(GONE)
        return e.EventUnknown(UNKNOWN)

    def _can_resume(self, session: HandshakeSession) -> bool:
        return self.server.streams is not None and session.version >= FIRST_VERSION

    def _new_stream(self, session: HandshakeSession, *, listening: bool = False) -> Stream:
        if self.server.streams is None or not self._can_resume(session) or session.ended:
            return Stream(lossy=True)
        if session.streams is None:
            session.streams = ResumableStreams(self.server.streams)
        session.streams.account_id = session.owner
        stream = Stream(lossy=True, listening=listening, keeper=session.streams)
        stream.primed = session.version >= FIRST_PRIMED
        return stream

    def of_request(self, session: HandshakeSession, abandoned: Callable[[], None]) -> Stream:
        """The stream of a request, which is `abandoned` if its client does not come back."""
        stream = self._new_stream(session)
        stream.abandoned = abandoned
        return stream


def note_of_thinning(session: HandshakeSession) -> bytes:
    """What a client is told that comes back when log messages were dropped."""
    notice = Notification(method=LOGGED, params=THINNED)
    if not is_wanted(notice, session.log_level):
        return b""
    return encode_event(msgspec.json.encode(written(notice)), event_type="message")
