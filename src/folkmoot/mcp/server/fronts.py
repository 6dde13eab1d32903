"""What the HTTP servers of the proxy have in common: their carriers, and how those are carried.

A front makes a carrier of each client, or of many, and gives it to `serve`, which carries that
conversation in a task of its own until it ends.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    decode_message,
    encode_message,
    members,
    message_from,
)
from folkmoot.core.session import ANONYMOUS
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier, EnvelopeQueue
from folkmoot.mcp.server.heads import read_carried, read_limited
from folkmoot.mcp.server.responses import DisconnectWatch, refuse
from folkmoot.mcp.wire import SUBSCRIPTION_KEY, readable_id, refusal
from folkmoot.taskgroups import group

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import MessageId, ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.server.heads import CarriedHead as Head
    from folkmoot.mcp.server.streams import Stream, StreamReader

logger = logging.getLogger("folkmoot.proxy")

Serve: TypeAlias = "Callable[[Carrier], Awaitable[None]]"
"""Carries one conversation until it ends."""
MOST_SESSIONS: Final = 10_000
SESSION_BYTES: Final = 16
GRACE_SECONDS: Final = 5.0
"""How long conversations may take to end when the front stops."""


class UnansweredRequest(msgspec.Struct, frozen=True, eq=False):
    """A request without an answer, and by which names its client knows it."""

    id: MessageId
    stream: Stream
    token: MessageId | None = None
    """What its progress is told by."""
    lists: bool = False
    """Whether its answer tells of tools."""


class FrontCarrier(Carrier):
    """A client on HTTP as the relay sees it, or many of them."""

    def __init__(self, clock: Clock, limits: Limits, context: TransportContext) -> None:
        super().__init__(MessageDirection.CLIENT_TO_SERVER, clock, limits)
        self.over = False
        self._context = context
        self._inbox = EnvelopeQueue()
        self._silence = asyncio.Event()
        self._open: dict[MessageId, UnansweredRequest] = {}
        """The requests without an answer by the id that the server knows, the newest last."""

    async def take(
        self, message: ProtocolMessage, transport: TransportContext, *, opening: bool = False
    ) -> None:
        """Hand a client's message to the relay, once it has room for it.

        The message that asks for a session is not part of one yet.
        """
        envelope = self.envelope_of(message, transport)
        if opening:
            envelope = envelope.with_session(ANONYMOUS)
        await self._inbox.put(envelope, len(message.raw or b""))
        if self.over:
            raise e.SessionNotFound("The session has ended.")

    def say(self, message: ProtocolMessage) -> None:
        """Tell the server something in the client's place."""
        self._inbox.add(self.envelope_of(message))

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        return bool(self._inbox.held)

    @property
    def reachable(self) -> bool:
        """Whether the conversation goes on: its end is that of all its streams."""
        return not self.over

    async def receive_envelope(self) -> MessageEnvelope[Any]:
        """The next message, in the order they came."""
        return await self._inbox.get()

    def current_context(self) -> TransportContext:
        """The request that began the conversation."""
        return self._context

    def check_open(self) -> None:
        """Refuse to send where nobody is any more."""
        if self.over:
            raise e.TransportClosed("The client has ended the conversation.")

    def end(self, error: e.FolkmootError | None = None) -> None:
        """End the conversation; whoever waits for an answer is told why there is none."""
        if self.over:
            return
        self.over = True
        self._inbox.end()
        self._silence.set()
        why = error or e.ServerUnreachable("The conversation with the server has ended.")
        for asked in self._open.values():
            told = encode_message(refusal(asked.id, why))
            asked.stream.put(told, None, last=True, status=why.http)
        self._open.clear()
        self._ended()

    async def silent(self) -> None:
        """Wait until the conversation has ended, whatever of it was not received yet."""
        await self._silence.wait()

    async def close(self) -> None:
        """End the conversation."""
        self.end()

    def _ended(self) -> None:
        """Release what else the carrier holds."""
        return


C = TypeVar("C", bound=FrontCarrier)


class Front(ABC, Generic[C]):
    """An ASGI application. It carries conversations while `running` is entered, then ends them.

    A session ends when `serve` returns, when its client says so, or by `end`.
    """

    def __init__(
        self,
        serve: Serve,
        clock: Clock,
        *,
        limits: Limits = PROXY_LIMITS,
        most: int = MOST_SESSIONS,
        headers: Sequence[str] = (),
    ) -> None:
        self._serve = serve
        self._clock = clock
        self._limits = limits
        self._most = most
        self._headers = tuple(headers)
        self._sessions: dict[str, C] = {}
        self._tasks = asyncio.TaskGroup()
        self._watching = DisconnectWatch(self._tasks)
        self._carried: dict[asyncio.Task[None], FrontCarrier] = {}
        self.stopping = True

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            await self._answer(scope, read_carried(scope, self._headers), receive, send)
        except e.FolkmootError as error:
            await refuse(send, error)

    @abstractmethod
    async def _answer(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        """Serve one request whose head was read."""

    async def _read(self, receive: Receive, send: Send) -> ProtocolMessage | None:
        """The message in a request; None if there is none, which its client was told."""
        body = await read_limited(receive, self._limits.message_bytes)
        if body is None:
            return None
        try:
            return decode_message(body, self._limits)
        except e.MessageError as error:
            await refuse(send, error, readable_id(body))
            return None

    def _session(self, session_id: str) -> C:
        carrier = self._sessions.get(session_id)
        if carrier is None or carrier.over:
            raise e.SessionNotFound("The session has ended or does not exist.")
        return carrier

    def _open(self, make: Callable[[str, Clock, Limits, TransportContext], C], head: Head) -> C:
        if len(self._sessions) >= self._most:
            raise e.TooManyInFlight("Too many sessions are open.")
        session_id = secrets.token_hex(SESSION_BYTES)
        carrier = make(session_id, self._clock, self._limits, head.transport)
        self.begin(carrier, lambda: self._sessions.pop(session_id, None))
        self._sessions[session_id] = carrier
        return carrier

    def end(self, session_id: str) -> None:
        """End one session, such as one that is idle."""
        carrier = self._sessions.get(session_id)
        if carrier is not None:
            carrier.end(e.SessionNotFound("The session has ended."))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Carry conversations while entered."""
        async with group(self._tasks):
            self.stopping = False
            try:
                yield
            finally:
                self.stop()
                if self._carried:
                    await asyncio.wait(self._carried, timeout=GRACE_SECONDS)
                for task in list(self._carried):
                    task.cancel()

    def stop(self) -> None:
        """End every conversation and stream, so that the server can stop, and begin no other."""
        self.stopping = True
        for carrier in list(self._carried.values()):
            carrier.end(e.HubStopping("The proxy is stopping."))

    def begin(self, carrier: FrontCarrier, ended: Callable[[], object] = lambda: None) -> None:
        """Carry a conversation, and tell when it has ended."""
        self._check_running()
        task = self._tasks.create_task(self._carry(carrier, ended))
        self._carried[task] = carrier
        task.add_done_callback(self._carried.pop)

    def _check_running(self) -> None:
        if self.stopping:
            raise e.HubStopping("The proxy is stopping.")

    @contextmanager
    def watching(self, receive: Receive, reader: StreamReader) -> Iterator[None]:
        """Let a reader go when its client does, or at the end."""
        self._check_running()
        watched = self._watching.begin(receive, reader.leave)
        try:
            yield
        finally:
            self._watching.end(watched)
            reader.leave()

    async def _carry(self, carrier: FrontCarrier, ended: Callable[[], object]) -> None:
        error: e.FolkmootError = e.ServerUnreachable("The conversation with the server has ended.")
        try:
            await self._serve(carrier)
        except e.FolkmootError as failed:
            error = failed
            logger.warning("a conversation failed", extra={"error": failed.message})
        except Exception:
            error = e.InternalError("The proxy failed to carry this conversation.")
            logger.exception("a conversation failed")
        finally:
            carrier.end(error)
            ended()


Path: TypeAlias = tuple[str, ...]
M = TypeVar("M", Request, Response, Notification)

ID: Final[Path] = ("id",)
ASKED_TOKEN: Final[Path] = ("params", "_meta", "progressToken")
TOLD_TOKEN: Final[Path] = ("params", "progressToken")
CANCELLED_ID: Final[Path] = ("params", "requestId")
SUBSCRIPTION: Final[Path] = ("params", "_meta", SUBSCRIPTION_KEY)
ANSWERED_SUBSCRIPTION: Final[Path] = (
    "result",
    "_meta",
    SUBSCRIPTION_KEY,
)

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def renamed(message: M, changes: Mapping[Path, Any]) -> M:
    """The message with other values at places where it has some."""
    value: Any = members(message)
    raw = message.raw
    for path, new in changes.items():
        value = _put(value, path, new)
        raw = None if raw is None else _put_raw(raw, path, new)
    return message_from(value, raw)  # type: ignore[return-value]


def found(message: Request | Response | Notification, path: Path) -> Any:
    """The value at a place, or None."""
    value: Any = getattr(message, path[0], None)
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    name, *rest = path
    return {**value, name: _put(value[name], tuple(rest), new) if rest else new}


def _put_raw(raw: bytes | msgspec.Raw, path: Path, new: Any) -> bytes:
    name, *rest = path
    value = _object(raw)
    value[name] = msgspec.Raw(_put_raw(value[name], tuple(rest), new) if rest else _encode(new))
    return _encode(value)
