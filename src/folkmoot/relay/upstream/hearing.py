"""Hearing: what comes of a server over one link, and whom it belongs to."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from folkmoot.core.errors import (
    CarryError,
    FolkmootError,
    ServerAnswerInvalid,
    ServerTimeout,
    ServerUnreachable,
    SessionNotFound,
    TransportClosed,
)
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    is_message_id,
)
from folkmoot.mcp.eras import EraBridge, ToServer
from folkmoot.mcp.eras.table import Refusal
from folkmoot.mcp.wire import (
    ASKING,
    CANCELLED,
    LOGGED,
    PING,
    PROGRESS,
    cancellation,
    params_of,
    refusal,
)
from folkmoot.relay.upstream.calls import Call, Calls, Unanswered
from folkmoot.relay.upstream.cancelled import CancelledRequests
from folkmoot.relay.upstream.listens import Listens
from folkmoot.relay.upstream.outbox import Outbox
from folkmoot.relay.upstream.pace import Pace
from folkmoot.relay.upstream.sessions import session_is_gone

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.client.link import Link
    from folkmoot.mcp.eras.steps import Step

logger = logging.getLogger("folkmoot.backend")

EXPIRE_SECONDS: Final = 300.0
"""How long a caller may take to answer what a server of the handshake era asked."""
LINK_FAILED: Final = (ServerUnreachable, SessionNotFound, TransportClosed)
"""What goes wrong with a link, and not with one request alone."""
MOST_NOTICE: Final = 64 * 1024
"""Bytes of what a server says without being asked; longer words are dropped, for many may wait."""
LONGEST_SAID: Final = 200
"""How much of a server's own words is passed on."""
NO_ANSWER: Final = (ServerUnreachable, ServerTimeout)
"""After these the server may still be at work on a request, though nobody hears its answer."""
NOT_AUTHORISED: Final = frozenset({401, 403})
"""Statuses after which another link may fare better, since it has its secrets read anew."""


class Hearing:
    """The reading side of a link.

    `stirred` is set when it is over, in doubt or to be replaced, for whoever looks after it;
    `ended` for all others once it is not to be used any more.
    """

    def __init__(self, link: Link, *, one_client: bool) -> None:
        self.link = link
        self.bridge = EraBridge(one_client=one_client)
        self.calls = Calls()
        self.listens = Listens()
        self.outbox = Outbox(link)
        self.opening = True
        self.discovered: dict[str, Any] = {}
        """What the server says of itself, as the answer to `server/discover`."""
        self.stirred = asyncio.Event()
        self.ended = asyncio.Event()
        self.over: FolkmootError | None = None
        """Why nothing more can be asked."""
        self.doubtful = False
        """Whether something happened after which it is worth a question whether it still works."""
        self._loop = asyncio.get_running_loop()
        self.heard_at = self._loop.time()
        """When the server said something last, by the clock of the loop."""
        self.replaced = False
        """Whether another link is to take its place once what is open on it is answered."""
        self._one_client = one_client
        self._cancelled = CancelledRequests()
        self._unanswered: set[MessageId] = set()
        """Requests whose answer is the link's own, since the server gave none."""
        self._unheard = 0
        self._trouble: FolkmootError | None = None
        """What the server, or the link, had against our first words."""
        link.failing = self._failing
        link.answering = self._answering

    @property
    def dropped(self) -> int:
        """Messages that belonged to nobody, or that the server did not take."""
        return self._unheard + self.outbox.dropped

    def doubt(self) -> None:
        """Have someone look whether the server is still there."""
        self.doubtful = True
        self.stirred.set()

    def end(self, why: FolkmootError) -> None:
        """Have it be over, with everything that is open."""
        if self.over is None:
            self.over = why
            lost = Unanswered(why, begun=True, gone=True)
            self.calls.fail(lost)
            self.listens.fail(lost)
            self.stirred.set()
            self.ended.set()

    @property
    def busy(self) -> bool:
        """Whether someone waits for the server, or the server for someone."""
        return bool(len(self.calls) or self.bridge.in_flight)

    def replace(self) -> None:
        """Have another link take its place: too much is open here that nobody waits for."""
        if not self.replaced:
            self.replaced = True
            self.stirred.set()

    def leave(self) -> None:
        """Have whoever listens here listen elsewhere, while calls are waited for."""
        self.listens.fail(
            Unanswered(TransportClosed("The link is replaced."), begun=False, gone=True)
        )
        self.ended.set()

    def remember(
        self, message_id: MessageId | None, person: str = "", *, asks: bool = False
    ) -> None:
        """Remember that the server may speak of a request of `person` until it answers it.

        `asks` says that it may also ask something for it.
        """
        if self._one_client or (self.bridge.transparent and self.link.own_streams):
            # It is all one person's, or whatever is said of a request comes on its own stream.
            return
        self._cancelled.add(message_id, person, asks=asks)
        if self._cancelled.too_many:
            self.replace()

    async def say(self, messages: list[ProtocolMessage]) -> None:
        """Send messages, one after the other."""
        for message in messages:
            await self.link.send(message)

    def to_server(self, message: ProtocolMessage, person: str = "") -> list[ProtocolMessage]:
        """What to say to the server because we say this, for `person` if it is for anyone."""
        if self.bridge.transparent:
            return [message]
        return self._steps(self.bridge.from_client(message, person))

    def presume_handshake(self) -> list[ProtocolMessage]:
        """What to say to a server that does not say which era it speaks."""
        return self._steps(self.bridge.presume_handshake())

    def withdraw(self, message_id: int, person: str = "", *, asks: bool = False) -> None:
        """Tell the server that an answer is not wanted any more, which `person` wanted.

        `asks` says that the server may ask something before it knows.
        """
        if self.over is None:
            notice = cancellation(message_id, "The answer is no longer needed.")
            for message in self.to_server(notice):
                self.remember(_spoken_of(message), person, asks=asks)
                self.outbox.put(message)

    def unsaid(self, message_id: int) -> None:
        """Forget a request that the server was not told."""
        if self.over is not None:
            return
        for message in self.to_server(cancellation(message_id, "The request was not sent.")):
            if _spoken_of(message) == message_id:
                self._cancelled.answered(message_id)
            else:
                # A call that was taken up again has another id there.
                self.outbox.put(message)

    async def expire(self) -> None:
        """Now and then, give up what callers were asked and never came back with."""
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            for message in self._steps(self.bridge.expire(self._loop.time())):
                self.outbox.put(message)
            if self.replaced:
                self.stirred.set()

    def _give_up(self, message: ProtocolMessage) -> None:
        """Remember the call that the bridge gives up by this, whosever it was."""
        if type(message) is Notification and message.method == CANCELLED:
            self.remember(_spoken_of(message), asks=True)

    async def read(self) -> None:
        """Take what the server says, until it is gone."""
        link, bridge, pace = self.link, self.bridge, Pace()
        try:
            while True:
                envelope = await link.receive_envelope()
                message = envelope.message
                self.heard_at = self._loop.time()
                # Answers too: nobody may have asked for them.
                pace.spend(message.raw or b"")
                if type(message) is Notification and len(message.raw or b"") > MOST_NOTICE:
                    self._unheard += 1
                elif bridge.transparent:
                    self._hear(message, envelope)
                else:
                    await self._bridged(message, envelope)
                await pace.keep()
        except TransportClosed as error:
            self.end(ServerUnreachable(error.message))
        except CarryError as error:
            self.end(error)
        except Exception:
            logger.exception("a link to a server failed")
            self.end(ServerUnreachable("The link to the server failed."))

    async def _bridged(self, message: ProtocolMessage, envelope: MessageEnvelope[Any]) -> None:
        if isinstance(message, Notification) and message.method == LOGGED:
            # The bridge knows no streams, and would drop what we can tell whom it belongs to.
            self._hear(message, envelope)
            return
        about: MessageId | None = None
        if isinstance(message, Request):
            about = self.link.request_of(envelope.context.transport)
            if not self._is_tied(message, about, envelope.context.transport):
                self.outbox.put(refusal(message.id, Refusal.NOT_TIED.error()))
                return
        if isinstance(message, Response):
            # The bridge keeps to itself what nobody waits for.
            self._forget(message.id)
            if self.opening:
                self._note_trouble(message)
        for step in self.bridge.from_server(message, about):
            if not isinstance(step, ToServer):
                self._hear(step.message, envelope)
            elif self.opening:
                # What ends a handshake must be accepted before anything else is said.
                await self.link.send(step.message)
            else:
                self._give_up(step.message)
                self.outbox.put(step.message)

    def _answering(self, answer: Response, _: TransportContext) -> bool:
        """Take a result without it waiting for its turn; nothing came before it."""
        if self.opening or answer.error is not UNSET:
            return False
        if self.bridge.transparent:
            if self.calls.of(answer.id) is None:
                return False
            self.heard_at = self._loop.time()
            return self._answered(answer, None)
        self.heard_at = self._loop.time()
        self._forget(answer.id)
        for message in self._steps(self.bridge.from_server(answer)):
            self.outbox.put(message)
        return True

    def _steps(self, steps: list[Step]) -> list[ProtocolMessage]:
        """What is to be said to the server; what is for us is heard at once."""
        said = []
        for step in steps:
            if isinstance(step, ToServer):
                self._give_up(step.message)
                said.append(step.message)
            else:
                self._hear(step.message, None)
        return said

    def _hear(self, message: ProtocolMessage, envelope: MessageEnvelope[Any] | None) -> None:
        if isinstance(message, Response):
            heard = self._answered(message, envelope)
        elif isinstance(message, Request):
            heard = self._asked(message)
        elif message.method == PROGRESS:
            heard = self.calls.progress(message)
        elif message.method == LOGGED:
            call = self._only_one(message, envelope)
            heard = self.calls.log(message, call, anyone=self._one_client)
        else:
            heard = self.listens.tell(message)
        if not heard:
            self._unheard += 1

    def _answered(self, answer: Response, envelope: MessageEnvelope[Any] | None) -> bool:
        if self.bridge.transparent:
            self._forget(answer.id)
        call = self.calls.of(answer.id)
        if call is None:
            return self.listens.answered(answer)
        if call.answer.done():
            return False
        failure = self._failure_of(call, answer, envelope)
        if failure is None:
            call.answer.set_result(answer)
            return True
        forgotten = isinstance(failure, SessionNotFound)
        begun = not (forgotten or getattr(failure, "unsent", False))
        gone = isinstance(failure, LINK_FAILED)
        call.fail(Unanswered(failure, begun=begun, gone=gone))
        if forgotten:
            self.end(failure)
        elif gone or failure.data.get("status") in NOT_AUTHORISED:
            self.doubt()
        return True

    def _failure_of(
        self, call: Call, answer: Response, envelope: MessageEnvelope[Any] | None
    ) -> FolkmootError | None:
        """Why an answer is none of the server's, or only says that it was not asked rightly."""
        if answer.error is UNSET:
            return None
        if self.opening:
            return self._trouble or call.failure or _refused(answer)
        if call.failure is not None:
            return call.failure
        if not self.bridge.transparent and session_is_gone(answer, envelope):
            return SessionNotFound("The server no longer knows this session.")
        return None

    def _failing(self, message_id: MessageId, error: FolkmootError) -> None:
        call = self.calls.of(message_id)
        sent = not (self.opening or getattr(error, "unsent", False))
        if sent and self.link.own_streams and isinstance(error, NO_ANSWER):
            self._unanswered.add(message_id)
            wanted = None if call is None else call.wanted
            asks = wanted is None or wanted.method in ASKING
            self.remember(message_id, "" if wanted is None else wanted.person, asks=asks)
        if call is not None:
            call.failure = error
        elif self.opening:
            self._trouble = error

    def _forget(self, message_id: MessageId | None) -> None:
        """The server has answered a request, unless it is the link that did."""
        if message_id in self._unanswered:
            self._unanswered.remove(message_id)
        else:
            self._cancelled.answered(message_id)

    def _note_trouble(self, answer: Response) -> None:
        """The last that is said against us is what people are told."""
        if isinstance(answer.error, ErrorObject) and self.calls.of(answer.id) is None:
            self._trouble = self._trouble or _refused(answer)

    def _asked(self, question: Request) -> bool:
        """A server of the stateless era asks nothing but in its answers."""
        if question.method == PING:
            self.outbox.put(Response(id=question.id, result={}))
        else:
            self.outbox.put(refusal(question.id, Refusal.NOT_ASKED.error()))
        return True

    def _is_tied(
        self, question: Request, about: MessageId | None, transport: TransportContext
    ) -> bool:
        """Whether a question can be of no other requests than those of one person, who waits."""
        if self._one_client or question.method == PING:
            return True
        if self.link.on_request_stream(transport):
            # The bridge compares it with the one call that it finds in flight.
            return about is not None
        people, askers = self.calls.people, self.bridge.askers
        if len(people) > 1:
            return False
        # What the hub itself asks, such as lists, makes no server ask anything.
        person = next(iter(askers)) if len(askers) == 1 and people <= askers else ""
        if not self._cancelled.may_own(question, person):
            return True
        if self._cancelled.stale:
            # Without another link nobody could be asked anything here any more.
            self.replace()
        return False

    def _only_one(self, notice: Notification, envelope: MessageEnvelope[Any] | None) -> Call | None:
        """The only call that a log message can be of."""
        if envelope is not None and self.link.on_request_stream(envelope.context.transport):
            transport = envelope.context.transport
            about = self.link.request_of(transport)
            # What a server said last may be read when its stream has ended, and its answer has not.
            return self.calls.of(self.link.ended_request_of(transport) if about is None else about)
        only = self.calls.only
        if only is None or self.bridge.in_flight > 1 or self.listens.pending:
            return None
        return None if self._cancelled.may_own(notice, only.wanted.person) else only


def _spoken_of(message: ProtocolMessage) -> MessageId | None:
    """The request that a server has yet to be done with once it was told this."""
    if isinstance(message, Request):
        return message.id
    named = params_of(message).get("requestId") if isinstance(message, Notification) else None
    return named if is_message_id(named) else None


def _refused(answer: Response) -> FolkmootError:
    said = answer.error.message[:LONGEST_SAID] if isinstance(answer.error, ErrorObject) else ""
    return ServerAnswerInvalid(f"It refuses to be used: {said}")
