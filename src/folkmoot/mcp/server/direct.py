"""The direct path: Streamable HTTP of both eras in front of a service, in one task per request.

The head is read once, the body decoded once, the service awaited where the request came in, and its
answer encoded once. A request of a session is made one of the stateless era here, and its result is
given the form of the session's version; nothing behind this knows the difference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, field

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.entity import Entity
from folkmoot.core.message import Notification, Request, decode_message
from folkmoot.core.session import Era
from folkmoot.mcp import wire
from folkmoot.mcp.server.heads import (
    EITHER,
    VERSION_BYTES,
    check_answerable,
    check_json,
    check_repeated,
    check_wishes,
    claimed,
)
from folkmoot.mcp.server.responses import (
    OK,
    DisconnectWatch,
    HttpReply,
    has_left,
    leave_with,
    refuse,
    say,
)
from folkmoot.mcp.server.service import McpAnswer, McpRequest, Stopped, error_of, kept_meta
from folkmoot.mcp.server.sessions import SessionServer
from folkmoot.mcp.server.stateless import STATUS
from folkmoot.mcp.wire import readable_id
from folkmoot.taskgroups import Eager, group

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.message import MessageId, Response
    from folkmoot.mcp.server.heads import Head
    from folkmoot.mcp.server.resumable import StreamBudget
    from folkmoot.mcp.server.service import After, McpService
    from folkmoot.mcp.server.sessions import HandshakeSession

logger = logging.getLogger("folkmoot.mcp")

ACCEPTED: Final = 202
NEEDED: Final = frozenset((wire.VERSION_KEY, wire.CAPABILITIES_KEY))
"""What the `_meta` of a request of the stateless era must have."""
JSON_TYPE: Final = wire.JSON.encode()
CARRIED: Final = strict.Limits(message_bytes=64 * 1024 * 1024, nesting=256)
"""What a message may hold; how long it may be was seen to when it came."""


class UsualCall(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A request in the usual form; any other form is decoded as a general message."""

    jsonrpc: Literal["2.0"]
    id: str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    method: Annotated[str, Meta(min_length=1)]
    params: strict.ShallowObject


_usual = msgspec.json.Decoder(UsualCall).decode


class ServedRequest(Protocol):
    """One HTTP request whose sender is known."""

    @property
    def scope(self) -> Scope: ...

    @property
    def head(self) -> Head:
        """Its headers."""

    @property
    def session(self) -> HandshakeSession | None: ...

    @property
    def handshake(self) -> bool:
        """Whether it is of the era that knows sessions."""

    @property
    def leaving(self) -> asyncio.Event:
        """Set when its client has left, or need not be waited for any more."""

    @property
    def ending(self) -> e.FolkmootError | None:
        """Why its client is not waited for; None if it has left, or everyone is let go."""


class SessionHost(Protocol):
    """What a server needs from the endpoint that runs it."""

    async def open_session(
        self, visit: Any, version: str, capabilities: dict[str, Any]
    ) -> HandshakeSession:
        """Open a session for the sender of this request."""

    async def session_changed(self, session: Any) -> None:
        """Keep what a session has agreed on or chosen since it was opened."""

    async def end_session(self, session: Any) -> None:
        """Remove a session that its client ended."""

    def deliver(self, visit: Any, after: After) -> None:
        """Do what follows an answer, beside everything else."""

    def session_listens(self, session: Any, *, missed: bool) -> None:
        """A session hears of changes from now on; it may have `missed` some before."""


class DirectServer(Entity):
    """Serves HTTP requests while `running` is entered."""

    service: McpService
    host: SessionHost
    limits: strict.Limits = CARRIED
    streams: StreamBudget | None = None
    """What may be kept of the streams of sessions; without it none can be resumed."""
    tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    """Who owns what is done beside requests."""

    def __post_init__(self) -> None:
        self._watching = DisconnectWatch(self.tasks)
        self._sessions = SessionServer(self)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own whoever writes streams or watches clients; on leaving, they are let end."""
        async with group(self.tasks):
            yield

    async def serve(
        self, visit: ServedRequest, body: bytes | None, receive: Receive, send: Send
    ) -> None:
        """Answer one HTTP request, with its body already read."""
        message_id: MessageId | None = None
        try:
            if body is None:
                await self._without_body(visit, receive, send)
                return
            head = visit.head
            if head.first.get(b"content-type") != JSON_TYPE:
                check_json(head)
            if head.first.get(b"accept") not in EITHER:
                check_answerable(head, both=True)
            call = strict.decode_whole(body, self.limits, _usual)
            try:
                message = (
                    decode_message(body, self.limits)
                    if call is None
                    else Request(id=call.id, method=call.method, params=call.params)
                )
            except e.MessageError as error:
                await refuse(send, error, readable_id(body))
                return
            if type(message) is not Request:
                await self._take(visit, message, send)
                return
            message_id = message.id
            if visit.handshake:
                await self._sessions.ask(visit, message, receive, send)
            else:
                await self._ask(visit, message, receive, send)
        except e.FolkmootError as error:
            # In the handshake era the status speaks of sessions, and not of messages.
            of_message = message_id is not None and isinstance(error, e.ParamsInvalid)
            await refuse(send, error, message_id, OK if visit.handshake and of_message else None)

    async def _without_body(self, visit: ServedRequest, receive: Receive, send: Send) -> None:
        method = visit.scope["method"]
        if not visit.handshake:
            raise e.MethodNotAllowed("Only POST is supported in protocol 2026-07-28.", allow="POST")
        if method == "GET":
            await self._sessions.listen(visit, receive, send)
        elif method == "DELETE":
            await self._sessions.end(visit, send)
        else:
            allow = "GET, POST, DELETE"
            raise e.MethodNotAllowed(f"This address takes {allow}.", allow=allow)

    async def _take(
        self, visit: ServedRequest, message: Notification | Response, send: Send
    ) -> None:
        """A message that wants no answer."""
        if visit.handshake:
            if visit.session is None:
                raise e.SessionRequired("The request names no session; initialize opens one.")
            self._sessions.take(visit.session, message)
            await say(send, ACCEPTED, headers=visit.session.headers)
        elif type(message) is Notification:
            # Whoever cancels closes the request; an id alone may be anybody's.
            check_version(visit.head.text(VERSION_BYTES))
            await say(send, ACCEPTED)
        else:
            raise e.InvalidResponse("Clients of the stateless era are asked nothing.")

    async def _ask(
        self, visit: ServedRequest, request: Request, receive: Receive, send: Send
    ) -> None:
        """A request of the stateless era."""
        params = request.params if type(request.params) is dict else {}
        meta = check_repeated(visit.head, request.method, params, NEEDED)
        del params["_meta"]
        if meta[wire.VERSION_KEY] != wire.STATELESS_VERSION:
            check_version(meta[wire.VERSION_KEY])
        capabilities = claimed(meta[wire.CAPABILITIES_KEY], meta.get(wire.CLIENT_KEY))
        token, level = meta.get(wire.TOKEN_KEY), meta.get(wire.LEVEL_KEY)
        if token is not None or level is not None:
            check_wishes(token, level)
        asked = McpRequest(
            request=request,
            params=params,
            meta={} if meta.keys() <= wire.REQUEST_KEYS else kept_meta(meta),
            caller=visit,
            version=wire.STATELESS_VERSION,
            era=Era.STATELESS,
            capabilities=capabilities,
            token=token,
            level=level,
            head=visit.head,
            reply=HttpReply(send, self.tasks),
        )
        answer = await self.perform(asked, receive, left)
        if answer is None:
            asked.reply.abandon()
        else:
            status = STATUS.get(answer.error.code, OK) if answer.error is not UNSET else OK
            await self.answer(asked, answer, answer.result, receive, status)

    async def perform(
        self,
        asked: McpRequest,
        receive: Receive,
        gone: Callable[[McpRequest], None],
        work: Awaitable[McpAnswer] | None = None,
    ) -> McpAnswer | None:
        """Have a request answered, here or as `work` does; None if nobody wants the answer.

        `gone` is called if its client leaves.
        """
        try:
            eager = Eager(self.service.perform(asked) if work is None else work)
            if eager.done:
                return eager.result
            watched = self._watching.begin(receive, partial(gone, asked), asked.reply)
            try:
                return await eager
            finally:
                self._watching.end(watched)
        except Stopped:
            return None
        except e.FolkmootError as error:
            return self.service.refusal(asked, error)
        except Exception:
            logger.exception("a request failed", extra={"method": asked.request.method})
            return error_of(e.InternalError("The request could not be answered."))
        except BaseException:
            asked.reply.abandon()
            raise

    def answer(
        self, asked: McpRequest, answer: McpAnswer, result: Any, receive: Receive, status: int = OK
    ) -> Awaitable[None]:
        """Write an answer, and run what follows its delivery."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.request.id}
        if answer.error is UNSET:
            message["result"] = result
        else:
            message["error"] = error_members(answer.error)
        if asked.reply.stream is None and answer.after is None:
            return asked.reply.answer(message, status)
        return self._answer(asked, message, answer.after, receive, status)

    async def _answer(
        self,
        asked: McpRequest,
        message: dict[str, Any],
        after: After | None,
        receive: Receive,
        status: int,
    ) -> None:
        reply = asked.reply
        if reply.stream is not None:
            if after is not None:
                reply.stream.delivered = partial(self.host.deliver, asked.caller, after)
            await self._finish(reply, message, receive)
            return
        gone = after is not None and (reply.lost or await has_left(receive))
        await reply.answer(message, status)
        if after is not None and not gone and not reply.lost:
            self.host.deliver(asked.caller, after)

    async def _finish(self, reply: HttpReply, message: Any, receive: Receive) -> None:
        """Write an answer as the end of a stream; a client that has left may come back for it."""
        if reply.lost or await has_left(receive):
            reply.left()
        watch = self.tasks.create_task(leave_with(receive, reply.left))
        try:
            await reply.answer(message)
        finally:
            watch.cancel()


def left(asked: McpRequest) -> None:
    """A client of the stateless era has closed its request: it is cancelled."""
    asked.caller.leaving.set()
    if asked.stop is not None:
        asked.stop()


def check_version(version: str | None) -> None:
    """Refuse a version of the stateless era that is not spoken here."""
    if version != wire.STATELESS_VERSION:
        raise e.VersionUnsupported(
            "This version of the protocol is not supported.",
            supported=[wire.STATELESS_VERSION],
            requested=(version or "")[:64],
        )


def error_members(error: Any) -> dict[str, Any]:
    """An error as members of a JSON object."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not UNSET:
        told["data"] = error.data
    return told
