"""The streams of sessions: those of their requests, and the one that a session listens on.

All of them are resumed in the same way: by a GET that names the last event that was received.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from folkmoot.core.errors import EventUnknown, StreamExists
from folkmoot.core.message import Notification
from folkmoot.mcp.framing import encode_event
from folkmoot.mcp.server.heads import EVENT_ID, check_listener, check_once
from folkmoot.mcp.server.responses import Reply, leave_with
from folkmoot.mcp.server.resumable import (
    FIRST_PRIMED,
    FIRST_VERSION,
    UNKNOWN,
    ResumableStreams,
    is_listening,
)
from folkmoot.mcp.server.service import is_wanted, written
from folkmoot.mcp.server.streams import Stream
from folkmoot.mcp.wire import LOGGED

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.mcp.server.direct import DirectServer, Visit
    from folkmoot.mcp.server.sessions import HandshakeSession

LOST: Final = f"{UNKNOWN} Settings: mcp.resume_seconds, mcp.max_stream_bytes."
THINNED: Final = {
    "level": "warning",
    "logger": "folkmoot",
    "data": "Log messages of this call were dropped while its client was away.",
}


class SessionStreams:
    """Opens and resumes the streams of one server's sessions."""

    def __init__(self, server: DirectServer) -> None:
        self._server = server

    async def listen(
        self, session: HandshakeSession, visit: Visit, receive: Receive, send: Send
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
        reply = Reply(send, self._server.tasks, session.headers)
        writing = reply.follow(stream, after, first)
        writing.add_done_callback(lambda _: visit.leaving.set())
        if stream is session.stream:
            session.listening = visit.leaving
            missed = event_id is not None and after is None
            self._server.host.session_listens(session, missed=missed)
        watch = self._server.tasks.create_task(leave_with(receive, visit.leaving.set))
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
            except EventUnknown:
                pass
            if not is_listening(event_id):
                raise EventUnknown(LOST)
        elif session.listens:
            raise StreamExists("This session has a stream already; it may have one.")
        if session.stream is None or session.stream.done:
            session.stream = self._new_stream(session, listening=True)
        return session.stream, None

    def _can_resume(self, session: HandshakeSession) -> bool:
        return self._server.streams is not None and session.version >= FIRST_VERSION

    def _new_stream(self, session: HandshakeSession, *, listening: bool = False) -> Stream:
        if self._server.streams is None or not self._can_resume(session) or session.ended:
            return Stream(lossy=True)
        if session.streams is None:
            session.streams = ResumableStreams(self._server.streams)
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
