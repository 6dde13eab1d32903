"""HTTP exchanges with a server, as the proxy and the hub's tap both see them.

`Contexts` are shared: a client says the same in every request of a session, and a server in every
answer, so whoever writes a context down does it once. Where an interceptor has made a message
another, the headers that repeat it are put right (`mirrored`). Each message of a server's reply, be
it one or a stream of them, passes the steps (`Replies`), and what is left of it goes on.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    Request,
    Response,
    decode_message,
    encode_message,
)
from folkmoot.core.transport import Headers, HttpMetadata, SseMetadata, TransportContext
from folkmoot.core.verdict import Block
from folkmoot.mcp.client.headers import (
    ANSWER_HEADERS,
    Mirror,
    Path,
    allowed,
    as_text,
    as_value,
    stateless_version,
    value_at,
)
from folkmoot.mcp.framing import EventReader, SseEvent, encode_event
from folkmoot.mcp.server.heads import (
    check_once,
    connection_of,
    passed_on,
    read_head,
    request_of,
    unwrapped,
)
from folkmoot.mcp.server.responses import say
from folkmoot.mcp.wire import (
    EVENT_ID_HEADER,
    EVENT_STREAM,
    JSON,
    METHOD_HEADER,
    NAME_HEADER,
    PARAM_HEADERS,
    VERSION_HEADER,
    answered_id,
)
from folkmoot.relay.steps import TO_CLIENT, answer_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Scope, Send

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import ConnectionInfo
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.relay.conversation import HttpConversation
    from folkmoot.relay.steps import Envelope, Steps

LENGTH: Final = b"content-length"
"""What alone differs between requests that say the same of themselves, and never passes."""
MOST: Final = 4096
"""So many are remembered; then all are forgotten, which costs no more than making them anew."""

LONGEST: Final = 4096
"""Headers of more bytes are not remembered: a few clients could fill the memory with them."""


class Contexts(Entity):
    """The message contexts of one proxy, shared by equal content."""

    _known: dict[Any, TransportContext] = {}
    _headers: dict[tuple[tuple[bytes, bytes], ...], Headers] = {}

    def headers_of(self, scope: Scope, extra: tuple[str, ...] = ()) -> Headers:
        """The headers of a client's request that pass, and `extra` ones."""
        said = tuple([pair for pair in scope["headers"] if pair[0] != LENGTH])
        known = self._headers.get(said)
        if known is None:
            check_once(read_head(said))
            known = passed_on(said, extra)
            if sum(len(name) + len(value) for name, value in said) <= LONGEST:
                if len(self._headers) >= MOST:
                    self._headers.clear()
                self._headers[said] = known
        return known

    def of_request(self, scope: Scope, headers: Headers) -> TransportContext:
        """The context of a client's request."""
        key = (
            headers.pairs,
            scope["method"],
            scope["path"],
            scope["query_string"],
            scope.get("client"),
        )
        known = self._known.get(key)
        if known is None:
            known = TransportContext(request_of(scope, headers), connection_of(scope))
            self._keep(key, headers, known)
        return known

    def of_answer(
        self,
        asked: HttpMetadata,
        status: int,
        headers: Headers,
        connection: ConnectionInfo | None,
    ) -> TransportContext:
        """The context of a server's answer to a request."""
        over = None if connection is None else connection.connection_id
        key = (headers.pairs, status, asked.method, asked.uri, over)
        known = self._known.get(key)
        if known is None:
            said = HttpMetadata(headers, asked.method, asked.uri, status)
            known = TransportContext(said, connection)
            self._keep(key, headers, known)
        return known

    def _keep(self, key: Any, headers: Headers, context: TransportContext) -> None:
        if sum(len(name) + len(value) for name, value in headers) > LONGEST:
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = context


REPEATED: Final = frozenset({METHOD_HEADER, NAME_HEADER, VERSION_HEADER})

_mirror: Final = Mirror()


def mirrored(
    headers: Headers, message: ProtocolMessage, before: ProtocolMessage | None = None
) -> Headers:
    """The headers of a request that says this now; only the stateless era has any to change.

    `before` is what it said when its client made the headers.
    """
    version = stateless_version(message)
    if version is None or isinstance(message, Response):
        return headers
    kept: Iterator[tuple[str, str]] = (pair for pair in headers if pair[0] not in REPEATED)
    if isinstance(message, Request) and isinstance(before, Request):
        kept = _with_params(kept, _arguments(before), _arguments(message))
    return Headers((*kept, *_mirror.headers(message, version).items()))


def _with_params(
    headers: Iterator[tuple[str, str]], before: Any, now: Any
) -> Iterator[tuple[str, str]]:
    """Headers in which repeated arguments are those of now.

    Which argument a header repeats is told by its value; where several have that value, by its
    name. One that cannot be told stays, and is for the server to judge.
    """
    known = list(_leaves(before))
    for name, value in headers:
        if not name.startswith(PARAM_HEADERS):
            yield name, value
            continue
        paths = [path for path, leaf in known if leaf == unwrapped(value)]
        if len(paths) > 1:
            paths = [path for path in paths if path[-1].lower() == name.removeprefix(PARAM_HEADERS)]
        if len(paths) != 1:
            yield name, value
        elif (text := as_text(value_at(now, paths[0]))) is not None:
            yield name, as_value(text)


def _leaves(arguments: Any) -> Iterator[tuple[Path, str]]:
    """Every argument a header could repeat, with its path."""
    waiting: list[tuple[Path, Any]] = [((), arguments)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, name), each) for name, each in value.items()]
        elif path and (text := as_text(value)) is not None:
            yield path, text


def _arguments(request: Request) -> Any:
    return request.params.get("arguments") if isinstance(request.params, dict) else None


logger = logging.getLogger("folkmoot.proxy")

KEEP_ALIVE: Final = b": \n\n"
"""A comment: between events a stream has nothing else, and it keeps the connection open."""
MESSAGE_TYPES: Final = (None, "", "message")
"""The types of events that hold a message; others are nobody's business here."""

_streams = itertools.count(1)


class Replies(Entity):
    """The reply to one request of a client's: `asked` is the context of that request."""

    conversation: HttpConversation
    steps: Steps
    limits: Limits
    asked: TransportContext
    contexts: Contexts
    tell_server: Callable[[Envelope], Awaitable[None]]
    answered: Callable[[bool], Awaitable[None]] | None = None
    """Told of each response, and whether it passed."""
    connection: ConnectionInfo | None = None
    """What the answer came over, once it begins."""
    caller: Principal | None = None
    _reader: EventReader | None = None
    _stream: str = ""
    _told: bool = False

    def __post_init__(self) -> None:
        self._asked = cast("HttpMetadata", self.asked.metadata)
        self._last = self._asked.headers.get(EVENT_ID_HEADER)

    async def message(self, body: bytes, status: int, headers: Headers) -> bytes:
        """A reply of one message; anything else is passed on unchanged."""
        try:
            message = decode_message(body, self.limits)
        except e.MessageError:
            # Not ours to judge: an error page of whatever stands before the server may be JSON.
            return body
        said = self.contexts.of_answer(self._asked, status, headers, self.connection)
        return await self._through(message, said)

    async def events(self, chunk: bytes) -> bytes:
        """A piece of a stream: the events that it completes, or a sign of life."""
        if self._reader is None:
            self._reader = EventReader(self.limits.message_bytes)
        try:
            events = self._reader.feed(chunk)
        except e.MessageError as error:
            raise unreadable(error) from None
        return b"".join([await self._event(each) for each in events]) or KEEP_ALIVE

    async def _event(self, event: SseEvent) -> bytes:
        """An event with the same id, type and retry, and its message as it is to go on."""
        data = event.data
        if data and event.event_type in MESSAGE_TYPES:
            data = await self._said(event)
            if not data and event.event_id is None and event.retry is None:
                return b""
        return encode_event(
            data, event_id=event.event_id, event_type=event.event_type, retry=event.retry
        )

    async def _said(self, event: SseEvent) -> bytes:
        """What is left of the message in an event; its place in the stream stays in any case."""
        try:
            message = decode_message(event.data, self.limits)
        except e.MessageError as error:
            if not self._told:
                self._told = True
                logger.warning("the server sent something that is not a message")
            return self._refused(event.data, unreadable(error))
        if not self._stream:
            self._stream = f"stream-{next(_streams)}"
        said = SseMetadata(self._stream, event.event_id, event.event_type, event.retry, self._last)
        return await self._through(message, TransportContext(said, self.connection))

    def _refused(self, data: bytes, error: e.ServerAnswerInvalid) -> bytes:
        """What whoever waits is told instead of an answer that cannot be read."""
        answer = answer_of(Block(error), answered_id(data))
        if not self.conversation.conversation.awaits(TO_CLIENT, answer):
            return b""
        self.conversation.conversation.answered(TO_CLIENT, answer)
        return encode_message(answer)

    async def _through(self, message: ProtocolMessage, transport: TransportContext) -> bytes:
        """What is left of a message of the server's; nothing, if it was stopped."""
        conversation = self.conversation
        envelope = conversation.envelope(message, TO_CLIENT, transport, self.caller)
        passed = await self.steps.carry(envelope, conversation.conversation)
        self.steps.commit()
        if self.answered is not None and type(message) is Response:
            await self.answered(passed.stopped is None)
        if passed.back is not None:
            await self.tell_server(passed.back)
        return b"" if passed.onward is None else encode_message(passed.onward.message)


def unreadable(error: e.MessageError) -> e.ServerAnswerInvalid:
    """What is wrong with something of the server's, as an error of the server's."""
    return e.ServerAnswerInvalid(f"The server's answer cannot be read: {error.message}")


ACCEPTED: Final = 202


class Answering(Entity):
    """The answer to one request of a client's."""

    replies: Replies
    most: int
    send: Send
    _begun: bool = False
    _kept: bytes | None = None

    async def kept(self, answer: HttpAnswer) -> bytes:
        """The whole answer, to be looked at before it is passed on; nothing of a stream."""
        if answer.content_type == EVENT_STREAM:
            return b""
        self._kept = await self._whole(answer)
        return self._kept

    async def relay(self, answer: HttpAnswer) -> None:
        """Pass the server's answer on, each message in it through the steps."""
        headers = allowed(answer.headers, ANSWER_HEADERS)
        if answer.content_type == JSON or self._kept is not None:
            body = await self._whole(answer) if self._kept is None else self._kept
            body = await self.replies.message(body, answer.status, headers)
            await self._head(answer.status, headers, len(body))
            await self._part(body, more=False)
            return
        await self._head(answer.status, headers)
        streaming = answer.content_type == EVENT_STREAM
        async for chunk in answer.chunks():
            # What holds no message is passed on as it is.
            await self._part(await self.replies.events(chunk) if streaming else chunk)
        await self._part(b"", more=False)

    async def fail(self, told: Response, status: int) -> None:
        """Tell the client that there is no answer: by an answer of ours, if none has begun."""
        if not self._begun:
            await say_json(self.send, told, status)
            return
        if told.id is not None:
            await self._part(encode_event(encode_message(told), event_type="message"))
        await self._part(b"", more=False)

    async def _whole(self, answer: HttpAnswer) -> bytes:
        body = bytearray()
        async for chunk in answer.chunks():
            body += chunk
            if len(body) > self.most:
                raise e.ServerAnswerInvalid(
                    f"The server's answer has more than {self.most:,} bytes."
                )
        return bytes(body)

    async def _head(self, status: int, headers: Headers, length: int | None = None) -> None:
        told = [(n.encode("latin-1"), v.encode()) for n, v in headers]
        if length is not None:
            told.append((b"content-length", b"%d" % length))
        self._begun = True
        await self.send({"type": "http.response.start", "status": status, "headers": told})

    async def _part(self, body: bytes, *, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})


async def settle(send: Send, answer: Envelope | None) -> None:
    """End an exchange that nothing of goes to the server."""
    if answer is None:
        await say(send, ACCEPTED)
    else:
        await say_json(send, answer.message)


async def say_json(send: Send, answer: Response, status: int = 200) -> None:
    """Answer with a message of our own."""
    await say(send, status, encode_message(answer))
