"""Sessions of the handshake era, in front of a service that knows none.

A session remembers what its client said when it was opened; each of its requests gets that from
here, as a request of the stateless era brings it along. Where the service wants to know something
first, the client is asked in the stream of its request, and the request is made again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    is_message_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.shapes import for_handshake, initialize_result
from folkmoot.mcp.server.heads import SESSION, check_wishes, claimed
from folkmoot.mcp.server.questions import in_rounds
from folkmoot.mcp.server.responses import HttpReply, say
from folkmoot.mcp.server.resumable import SessionStreams
from folkmoot.mcp.server.service import (
    McpAnswer,
    McpRequest,
    kept_meta,
    method_unknown,
)
from folkmoot.mcp.wire import members_of

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.core.message import MessageId
    from folkmoot.mcp.server.direct import DirectServer, ServedRequest
    from folkmoot.mcp.server.resumable import ResumableStreams
    from folkmoot.mcp.server.streams import Stream

STATELESS_METHODS: Final = frozenset((wire.DISCOVER, wire.LISTEN))
ENDED: Final = "The session has ended."


class HandshakeSession(Struct, eq=False, kw_only=True):
    """One session at the edge."""

    id: str
    version: str = ""
    """The version of MCP that was agreed on."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    """What its client can be asked for."""
    log_level: str = "info"
    """From which level on its client wants to hear log messages."""
    owner: str = ""
    """Whose account it is, as the last request that came in it showed."""
    stream: Stream | None = None
    """The stream in which it hears of changes, since it was first opened."""
    listening: asyncio.Event | None = None
    """Ends the response that this stream is written to."""
    streams: ResumableStreams | None = None
    """The streams that its client may come back to, since there was one."""
    requests: dict[MessageId, McpRequest] = field(default_factory=dict)
    """Those without an answer."""
    questions: dict[str, asyncio.Future[Response]] = field(default_factory=dict)
    """Those that its client has."""
    ended: bool = False

    def __repr__(self) -> str:
        """Without the id, which is a secret."""
        return f"{type(self).__name__}(version={self.version!r})"

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of every response in the session."""
        return [(SESSION, self.id.encode())]

    @property
    def listens(self) -> bool:
        """Whether its client listens now."""
        return self.stream is not None and self.stream.reader is not None

    @property
    def may_listen_again(self) -> bool:
        """Whether its client has listened, and comes back for what it has not heard."""
        return self.stream is not None and not self.stream.done

    def end(self) -> None:
        """Release everyone who waits in the session."""
        self.ended = True
        for asked in tuple(self.requests.values()):
            cancel(asked)
        if self.listening is not None:
            self.listening.set()
        if self.streams is not None:
            self.streams.close()


class SessionServer:
    """Serves the requests of sessions."""

    def __init__(self, server: DirectServer) -> None:
        self._server = server
        self._streams = SessionStreams(server)

    async def ask(
        self, visit: ServedRequest, request: Request, receive: Receive, send: Send
    ) -> None:
        """Serve a request in a session, or the one that opens it."""
        if request.method == wire.INITIALIZE:
            await self._initialize(visit, request, receive, send)
            return
        session = known(visit)
        if request.id in session.requests:
            raise e.InvalidId("A request with this id is already open.")
        abandoned = partial(abandon, session, request.id)
        new_stream = partial(self._streams.of_request, session, abandoned)
        reply = HttpReply(send, self._server.tasks, session.headers, new_stream)
        asked = asked_in(session, request, visit, reply)
        session.requests[request.id] = asked
        try:
            work = self._work(session, asked)
            answer = await self._server.perform(asked, receive, left, work)
        finally:
            session.requests.pop(request.id, None)
        if answer is None or asked.cancelled or (reply.lost and visit.ending is not None):
            # The client has said so, and waits for the end of the stream; or it may not come back.
            await reply.end()
            return
        # A page of a list is written already, for this era.
        result = for_handshake(request.method, answer.result)
        await self._server.answer(asked, answer, result, receive)

    def take(self, session: HandshakeSession, message: Notification | Response) -> None:
        """A message in a session that wants no answer."""
        if type(message) is Response:
            waiting = session.questions.get(message.id) if type(message.id) is str else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif message.method == wire.CANCELLED:
            cancelled: Any = members_of(message.params).get("requestId")
            asked = session.requests.get(cancelled) if is_message_id(cancelled) else None
            if asked is not None:
                cancel(asked)

    async def listen(self, visit: ServedRequest, receive: Receive, send: Send) -> None:
        """A stream that no request of this session begins, or that goes on from where it broke."""
        await self._streams.listen(known(visit), visit, receive, send)

    async def end(self, visit: ServedRequest, send: Send) -> None:
        session = known(visit)
        await self._server.host.end_session(session)
        await say(send, 200, headers=session.headers)

    async def _initialize(
        self, visit: ServedRequest, request: Request, receive: Receive, send: Send
    ) -> None:
        """Open a session, or agree anew on what is spoken in one."""
        params = members_of(request.params)
        version, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if type(version) is not str:
            raise e.ParamsInvalid("protocolVersion must be a string.")
        client = params.get("clientInfo")
        if client is None:
            raise e.ParamsInvalid("clientInfo must be an object.")
        offered = claimed(capabilities, client)
        spoken = next(
            (each for each in wire.HANDSHAKE_VERSIONS if each == version), wire.HANDSHAKE_VERSION
        )
        discover = Request(id=request.id, method=wire.DISCOVER, params={})
        opening = HandshakeSession(id="", version=spoken, capabilities=offered)
        asked = asked_in(opening, discover, visit, HttpReply(send, self._server.tasks))
        answer = await self._server.service.perform(asked)
        session = visit.session
        if session is None:
            session = await self._server.host.open_session(visit, spoken, offered)
        elif session.ended:
            raise e.SessionNotFound(ENDED)
        elif (session.version, session.capabilities) != (spoken, offered):
            session.version, session.capabilities = spoken, offered
            await self._server.host.session_changed(session)
        asked.reply = HttpReply(send, self._server.tasks, session.headers)
        result = initialize_result(members_of(answer.result), spoken, tasks=True)
        await self._server.answer(asked, answer, result, receive)

    async def _work(self, session: HandshakeSession, asked: McpRequest) -> McpAnswer:
        """Answer a request in rounds, until its client was asked all that the service wants."""
        method = asked.request.method
        if method == wire.PING:
            return McpAnswer(result={})
        if method in STATELESS_METHODS:
            return method_unknown(method)
        if method == wire.SET_LEVEL:
            level = asked.params.get("level")
            if level not in wire.LEVELS:
                told = f"level must be one of {', '.join(wire.LEVELS)}."
                raise e.ParamsInvalid(told)
            if level != session.log_level:
                session.log_level = level
                await self._server.host.session_changed(session)
            return McpAnswer(result={})
        return await in_rounds(session, asked, self._server.service.perform)


def known(visit: ServedRequest) -> HandshakeSession:
    """The session of a request, which must have one."""
    session = visit.session
    if session is None:
        raise e.SessionRequired("The request names no session; initialize opens one.")
    if session.ended:
        raise e.SessionNotFound(ENDED)
    return session


def asked_in(
    session: HandshakeSession, request: Request, visit: ServedRequest, reply: HttpReply
) -> McpRequest:
    """A request of a session, with what its session knows."""
    params = members_of(request.params)
    meta = params.pop("_meta", None)
    if meta is None:
        meta = {}
    if type(meta) is not dict:
        raise e.ParamsInvalid("_meta must be an object.")
    token = meta.get(wire.TOKEN_KEY)
    if token is not None:
        check_wishes(token, None)
    return McpRequest(
        request=request,
        params=params,
        meta=kept_meta(meta) if meta else meta,
        caller=visit,
        version=session.version,
        capabilities=session.capabilities,
        token=token,
        level=session.log_level,
        reply=reply,
    )


def left(asked: McpRequest) -> None:
    """The client of a request has left: it ends, unless its client can come back for the answer."""
    if not asked.reply.left():
        asked.caller.leaving.set()


def abandon(session: HandshakeSession, request_id: MessageId) -> None:
    """The client of a request has not come back in time, or its stream had to give way."""
    asked = session.requests.get(request_id)
    if asked is not None:
        cancel(asked)


def cancel(asked: McpRequest) -> None:
    """End a request that is not wanted any more."""
    asked.cancelled = True
    asked.caller.leaving.set()
    if asked.stop is not None:
        asked.stop()
