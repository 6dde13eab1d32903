"""The interceptors and the tape of a hub: what is said at `/mcp` passes the steps of a proxy.

Who asks is made out before, so that rules can name them; whatever an interceptor makes of a message
is judged by policy afterwards. A hub that neither records nor intercepts has none of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request, decode_message, encode_message
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block, Mock
from folkmoot.mcp import wire
from folkmoot.mcp.client.headers import ANSWER_HEADERS, REQUEST_HEADERS, allowed
from folkmoot.mcp.wire import JSON, readable_id
from folkmoot.operations.concealment import ConcealingRecorder, conceal
from folkmoot.operations.finder import taken_out
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import HeldMessages
from folkmoot.proxy.plugins import load_plugins
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.sessions import SessionLimits, SessionManager
from folkmoot.proxy.tape import TapeSide
from folkmoot.relay.conversation import HttpConversations
from folkmoot.relay.exchanges import Contexts, Replies, mirrored, say_json, settle
from folkmoot.relay.recording import Recording
from folkmoot.relay.steps import TO_SERVER, Steps, answer_of
from folkmoot.taskgroups import background_tasks
from folkmoot.telemetry.logs import AUDIT_TRAIL, WITHHELD, AuditTrail
from folkmoot.transports.bodies import replaying
from folkmoot.transports.mcp.arrivals import REWRITTEN_KEY
from folkmoot.transports.mcp.session_ids import shown_header

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import Message, Scope, Send

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Bus, Clock, Interceptor
    from folkmoot.proxy.interceptors.base import Groups
    from folkmoot.relay.conversation import HttpConversation
    from folkmoot.relay.steps import Envelope
    from folkmoot.settings import Settings
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.endpoint import McpEndpoint

LENGTH: Final = b"content-length"
OUR_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"accept", wire.ACCEPT_BOTH.encode()),
)
SAID_ANEW: Final = frozenset(
    {
        b"accept",
        b"content-type",
        wire.EVENT_ID_HEADER.encode(),
        wire.METHOD_HEADER.encode(),
        wire.NAME_HEADER.encode(),
    }
)
"""What a request says of its own message, which is another one now."""


MOCKED: Final = "mocked"
"""The outcome of a call that a rule answered in the server's place."""


class Tap(Entity):
    """Has everything said at an endpoint pass the steps.

    `meant` answers the message that one stands for: a call inside another is taken out of it first,
    so that no rule is passed by in there, and no tape keeps what it should not.
    """

    steps: Steps
    conversations: HttpConversations
    limits: Limits
    meant: Callable[[ProtocolMessage], ProtocolMessage] = lambda message: message
    _contexts: Contexts = field(default_factory=Contexts)

    async def __call__(
        self,
        exchange: Exchange,
        body: bytes | None,
        send: Send,
        serve: Callable[[Scope, bytes | None, Send], Awaitable[None]],
        endpoint: McpEndpoint,
    ) -> None:
        """Take one request through, and what `serve` answers to it."""
        scope, caller = exchange.scope, endpoint.principal(exchange)
        headers = allowed(_shown(scope["headers"]), REQUEST_HEADERS)
        conversation = self.conversations.of(headers)
        request: Request | None = None
        asked = self._contexts.of_request(scope, headers)
        if body is not None:
            if len(body) > RECORDED_BYTES and self.steps.recorder and not caller.account_id:
                await say_json(send, answer_of(Block(too_much_to_record()), None), 413)
                return
            try:
                message = decode_message(body, self.limits)
            except e.MessageError as error:
                await say_json(send, answer_of(Block(error), readable_id(body)), error.http)
                return
            meant = self.meant(message)
            request = meant if isinstance(meant, Request) else None
            passed = await self.steps.carry(
                conversation.envelope(meant, TO_SERVER, asked, caller), conversation.conversation
            )
            self.steps.commit()
            if passed.onward is None:
                if passed.stopped is not None and request is not None:
                    endpoint.stopped(exchange, request, outcome_of(passed.stopped))
                await settle(send, passed.back)
                return
            if passed.onward.message is not message:
                body = encode_message(passed.onward.message)
                scope = _changed(scope, passed.onward.message, len(body))
        trail = AuditTrail()

        async def answered(passed: bool) -> None:  # noqa: FBT001 - the one thing to tell
            if passed:
                trail.deliver()
            elif not trail.withhold() and request is not None:
                endpoint.stopped(exchange, request, WITHHELD)

        tell = partial(tell_endpoint, endpoint, scope)
        replies = Replies(
            conversation, self.steps, self.limits, asked, self._contexts, tell, answered
        )
        replies.connection, replies.caller = asked.connection, caller
        tapped = _Tapped(self.conversations, conversation, replies, scope["method"], send)
        try:
            await serve({**scope, AUDIT_TRAIL: trail}, body, tapped)
        finally:
            trail.end()


async def tell_endpoint(endpoint: McpEndpoint, scope: Scope, answer: Envelope) -> None:
    """Answer a request of the hub's in the client's place."""
    body = encode_message(answer.message)
    said = [pair for pair in scope["headers"] if pair[0] not in SAID_ANEW]
    told = {**scope, "method": "POST", "headers": [*said, *OUR_HEADERS]}
    asked = _with_length(told, len(body))
    await endpoint(asked, replaying(body, _gone), _say_nothing, tapped=True)


class _Tapped(Entity):
    """The way back of one answer."""

    conversations: HttpConversations
    conversation: HttpConversation
    replies: Replies
    method: str
    send: Send
    _head: Message = {}
    _headers: Headers = field(default_factory=Headers)
    _kind: str = ""
    _body: bytearray = bytearray()

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on, or keep it until the message in it is whole."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._kind == JSON:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._end()
        elif self._kind == wire.EVENT_STREAM and message.get("body"):
            await self.send({**message, "body": await self.replies.events(message["body"])})
        else:
            await self.send(message)

    async def _begin(self, message: Message) -> None:
        pairs = tuple(_shown(message.get("headers", ())))
        self._headers = allowed(pairs, ANSWER_HEADERS)
        self.conversations.heard(self.conversation, self.method, message["status"], dict(pairs))
        kind = self._headers.get("content-type") or ""
        self._kind = kind.partition(";")[0].strip().lower()
        self._head = message
        if self._kind == wire.EVENT_STREAM:
            # What is said in a stream may be another thing, and of another length.
            await self.send({**message, "headers": _without_length(message)})
        elif self._kind != JSON:
            await self.send(message)

    async def _end(self) -> None:
        status = self._head["status"]
        body = await self.replies.message(bytes(self._body), status, self._headers)
        told = [*_without_length(self._head), (LENGTH, b"%d" % len(body))]
        await self.send({**self._head, "headers": told})
        await self.send({"type": "http.response.body", "body": body})


def outcome_of(verdict: Block | Mock) -> str:
    """What became of a call that an interceptor stopped, in a word."""
    return MOCKED if isinstance(verdict, Mock) else verdict.error.code


def _decoded(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _shown(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as everyone but the endpoint sees them."""
    return [shown_header(name, value) for name, value in _decoded(pairs)]


def _changed(scope: Scope, message: ProtocolMessage, length: int) -> Scope:
    """The request with another message in it."""
    said = mirrored(Headers(tuple(_decoded(scope["headers"]))), message)
    told = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said]
    return _with_length({**scope, "headers": told, REWRITTEN_KEY: True}, length)


def _with_length(scope: Scope, length: int) -> Scope:
    return {**scope, "headers": [*_without_length(scope), (LENGTH, b"%d" % length)]}


def _without_length(head: Scope | Message) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in head.get("headers", ()) if name != LENGTH]


async def _gone() -> Message:
    return {"type": "http.disconnect"}


async def _say_nothing(_: Message) -> None:
    pass


NESTING = 256
RECORDED_BYTES: Final = 16_384
"""A stranger's body at a hub that records: all of it is searched for secrets, while everyone waits.
"""


def too_much_to_record() -> e.BodyTooLarge:
    """The refusal of such a body."""
    why = f"This hub records: without a token a request may have at most {RECORDED_BYTES:,} bytes."
    return e.BodyTooLarge(why, limit=RECORDED_BYTES)


class HubInterception(Entity):
    """The recorder and the interceptors of one hub, as its settings have them."""

    settings: Settings
    clock: Clock
    bus: Bus
    given: Sequence[Interceptor] = ()
    rules: Rules | None = None
    interceptors: Chain = field(default_factory=Chain)
    """Those there are at the time."""
    _canonical: Callable[[str], str] = str
    _groups: Groups | None = None
    _watching: asyncio.Task[None] | None = None
    _recorder: ConcealingRecorder | None = None
    tap: Tap | None = None
    """What everything said at `/mcp` passes, if there is anything to do."""

    def __post_init__(self) -> None:
        self.held = HeldMessages(self.clock, self.bus)

    def load(self, canonical: Callable[[str], str], groups: Groups) -> None:
        """Read the rules and load the plugins.

        `canonical` is the one name of a tool, and `groups` has the groups that someone is in.
        """
        self._canonical, self._groups = canonical, groups
        self._plugins = (*load_plugins(self.settings.interceptors.plugins), *self.given)
        self.interceptors = Chain((), self.held, conceal)
        self._follow(self._read_rules(self.settings))

    def _read_rules(self, settings: Settings) -> Rules | None:
        chosen = settings.interceptors.rules
        if not chosen:
            return None
        path = Path(chosen).expanduser()
        return Rules.load(path, clock=self.clock, canonical=self._canonical, groups=self._groups)

    def _follow(self, rules: Rules | None) -> None:
        self.rules = rules
        self.interceptors.interceptors = (*(rules.interceptors if rules else ()), *self._plugins)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Record, and follow the file of rules, while entered."""
        async with background_tasks() as background:
            sessions = SessionManager(self.clock, self._session_limits())
            background.run(sessions.run())
            self._background = background
            self._conversations = HttpConversations(sessions, self.clock)
            self._watch()
            self._recorder = self._begin_recording(self.settings)
            self._renew()
            try:
                yield
            finally:
                if self._recorder is not None:
                    self._recorder.close()

    def apply(self, settings: Settings) -> None:
        """Go by other rules, and record or not, from now on; what cannot be raises first."""
        before, recorder, rules = self.settings, self._recorder, self.rules
        records, ruled = settings.record != before.record, settings.interceptors.rules
        if ruled != before.interceptors.rules:
            rules = self._read_rules(settings)
        if records:
            self._recorder = self._begin_recording(settings)
            if recorder is not None:
                recorder.close()
        self.settings = settings
        if rules is not self.rules:
            self._follow(rules)
            self._watch()
        self._renew()

    def _watch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self._watching = None if self.rules is None else self._background.run(self.rules.watch())

    def _begin_recording(self, settings: Settings) -> ConcealingRecorder | None:
        recording = self._recording(settings)
        if not recording.wanted:
            return None
        tape = recording.begin(self.clock, TapeSide("http"), TapeSide("hub"))
        return ConcealingRecorder(tape, tape.close)

    def _renew(self) -> None:
        """Have what is said pass the steps that there are now."""
        self.tap = None
        if self._recorder is not None or self.interceptors.interceptors:
            steps = Steps(self.interceptors, self._recorder, self.clock)
            limits = Limits(self.settings.http.max_body_bytes, NESTING)
            meant = partial(taken_out, canonical=self._canonical)
            self.tap = Tap(steps, self._conversations, limits, meant)

    def _recording(self, settings: Settings) -> Recording:
        chosen = settings.record
        return Recording(
            folder=Path(chosen.wanted).expanduser() if chosen.wanted else None,
            best_effort=chosen.best_effort,
            compress=chosen.compress or None,
            paths=chosen.redact,
            tape_bytes=chosen.tape_bytes,
        )

    def _session_limits(self) -> SessionLimits:
        chosen: Any = self.settings.mcp
        return SessionLimits(
            idle_seconds=chosen.session_idle_seconds,
            absolute_seconds=float("inf"),
            most=chosen.max_sessions,
        )
