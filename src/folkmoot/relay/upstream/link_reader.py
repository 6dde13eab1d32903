"""The reading side of one link: a server's messages, and their owners."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras import EraBridge, ToServer
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.peer import (
    AskEffect,
    CallState,
    DropReason,
    PassEffect,
    Peer,
    PeerCall,
    ResolveEffect,
    Tag,
    TellEffect,
)
from folkmoot.mcp.wire import cancellation, meta_of, params_of, refusal
from folkmoot.relay.upstream.requests import (
    LinkOutbox,
    Listen,
    Pace,
    PendingCall,
    Unanswered,
    session_is_gone,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.client.link import ServerLink
    from folkmoot.mcp.eras.steps import Step

logger = logging.getLogger("folkmoot.backend")

EXPIRE_SECONDS: Final = 300.0
"""How long a caller may take to answer what a server of the handshake era asked."""
LINK_FAILED: Final = (e.ServerUnreachable, e.SessionNotFound, e.TransportClosed)
"""What goes wrong with a link, and not with one request alone."""
MOST_NOTICE: Final = 64 * 1024
"""Bytes of what a server says without being asked; longer words are dropped, for many may wait."""
LONGEST_SAID: Final = 200
"""How much of a server's own words is passed on."""
LOST: Final = {
    "logger": "folkmoot",
    "data": "Log messages of this server are dropped while several calls share it: "
    "they do not say which call they belong to.",
}
"""What each of these calls is told once."""
NO_ANSWER: Final = (e.ServerUnreachable, e.ServerTimeout)
"""After these the server may still be at work on a request, though nobody hears its answer."""
NOT_AUTHORISED: Final = frozenset({401, 403})
"""Statuses after which another link may fare better, since it has its secrets read anew."""


class LinkReader:
    """The reading side of a link: its `Peer` finds a message's owner, its bridge the meaning.

    `wakeup` is set when it is over, in doubt or to be replaced, for whoever looks after it;
    `ended` for all others once it is not to be used any more.
    """

    def __init__(self, link: ServerLink, *, one_client: bool) -> None:
        self.link = link
        self.bridge = EraBridge(one_client=one_client, native_tasks=True)
        self.peer = Peer(one_owner=one_client)
        self.waiting: dict[MessageId, PendingCall] = {}
        self.listens: dict[MessageId, Listen] = {}
        self.outbox = LinkOutbox(link)
        self.opening = True
        self.discovered: dict[str, Any] = {}
        """What the server says of itself, as the answer to `server/discover`."""
        self.wakeup = asyncio.Event()
        self.ended = asyncio.Event()
        self.over: e.FolkmootError | None = None
        """Why nothing more can be asked."""
        self.suspect = False
        """Whether something happened after which it is worth a question whether it still works."""
        self._loop = asyncio.get_running_loop()
        self.heard_at = self._loop.time()
        """When the server said something last, by the clock of the loop."""
        self.refused_question = False
        """Whether a server of the stateless era asked something, which nobody can answer there."""
        self.replaced = False
        """Whether another link is to take its place once what is open on it is answered."""
        self.kept_until = 0.0
        """Until when it is not idle, since the server may know its tasks by this link alone."""
        self.task_changed: Callable[[str], None] = lambda _own: None
        """Told of each task that a handshake server says has changed."""
        self._one_client = one_client
        self._unheard = 0
        self._trouble: e.FolkmootError | None = None
        """What the server, or the link, had against our first words."""
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = 0.0
        link.failing = self._failing
        link.answering = self._answering

    @property
    def dropped(self) -> int:
        """The number of messages dropped: received ones without an owner, and unsent ones."""
        return self._unheard + self.peer.dropped.total() + self.outbox.dropped

    def mark_suspect(self) -> None:
        """Have someone look whether the server is still there."""
        self.suspect = True
        self.wakeup.set()

    def end(self, why: e.FolkmootError) -> None:
        """Have it be over, with everything that is open."""
        if self.over is None:
            self.over = why
            lost = Unanswered(why, begun=True, gone=True)
            for waiting in list(self.waiting.values()):
                waiting.fail(lost)
            self._end_listens(lost)
            if self._timer is not None:
                self._timer.cancel()
            self.wakeup.set()
            self.ended.set()

    def _end_listens(self, lost: Unanswered) -> None:
        for listen in list(self.listens.values()):
            listen.end(lost)
        self.listens.clear()

    @property
    def busy(self) -> bool:
        """Whether someone waits for the server, or the server for someone or for a task's end."""
        kept = self.kept_until > self._loop.time()
        return bool(self.waiting) or self.peer.parked or kept

    def replace(self) -> None:
        """Ask for another link: too many abandoned requests are open here."""
        if not self.replaced:
            self.replaced = True
            self.wakeup.set()

    async def drained(self, seconds: float) -> None:
        """Wait until nobody waits for the server, for so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.over is None and self.busy:
                    await self.wakeup.wait()
                    self.wakeup.clear()

    def leave(self) -> None:
        """Have whoever listens here listen elsewhere, while calls are waited for."""
        replaced = e.TransportClosed("The link is replaced.")
        self._end_listens(Unanswered(replaced, begun=False, gone=True))
        self.ended.set()

    async def say(self, messages: list[ProtocolMessage]) -> None:
        """Send messages one after the other."""
        for message in messages:
            await self.link.send(message)

    def to_server(
        self, message: ProtocolMessage, waiting: PendingCall | None = None
    ) -> list[ProtocolMessage]:
        """What to say to the server because we say this, for whoever waits for the answer."""
        if self.bridge.transparent:
            self._said(message, waiting)
            return [message]
        messages = self._steps(self.bridge.from_client(message), waiting)
        if waiting is not None and waiting.call is None:
            self._take_up(waiting)
        return messages

    def presume_handshake(self) -> list[ProtocolMessage]:
        """What to say to a server that does not say which era it speaks."""
        return self._steps(self.bridge.presume_handshake())

    def withdraw(self, message_id: int) -> None:
        """Tell the server that an answer is not wanted any more."""
        if self.over is None:
            notice = cancellation(message_id, "The answer is no longer needed.")
            for message in self.to_server(notice):
                self.outbox.put(message)

    def unsaid(self, waiting: PendingCall) -> None:
        """Forget a request that the server was not told."""
        if self.over is not None:
            return
        call = waiting.call
        messages = self.to_server(cancellation(waiting.id, "The request was not sent."))
        if call is None:
            return
        if call.id == waiting.id:
            self.peer.forget(call)
            return
        # A call that was taken up again has another id there, and the server has it.
        for message in messages:
            self.outbox.put(message)

    async def expire(self) -> None:
        """Now and then, give up what callers were asked and never came back with."""
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            for message in self._steps(self.bridge.expire(self._loop.time())):
                self.outbox.put(message)
            if self.replaced:
                self.wakeup.set()

    async def read(self) -> None:
        """Take what the server says, until it is gone."""
        link, pace = self.link, Pace()
        try:
            while True:
                envelope, tag = await link.receive_tagged()
                message = envelope.message
                self.heard_at = self._loop.time()
                # Answers too: nobody may have asked for them.
                pace.spend(message.raw or b"")
                if type(message) is Notification and len(message.raw or b"") > MOST_NOTICE:
                    self._unheard += 1
                else:
                    await self._take(envelope, tag)
                await pace.keep()
        except e.TransportClosed as error:
            self.end(e.ServerUnreachable(error.message))
        except e.CarryError as error:
            self.end(error)
        except Exception:
            logger.exception("a link to a server failed")
            self.end(e.ServerUnreachable("The link to the server failed."))

    async def _take(self, envelope: MessageEnvelope[Any], tag: Tag) -> None:
        effect = self.peer.receive(envelope.message, tag, self.heard_at)
        if isinstance(effect, TellEffect):
            effect.call.slot.hear(effect.notice)
        elif isinstance(effect, ResolveEffect):
            self._see_cancelled()
            if self.opening and effect.call.slot is None:
                self._note_trouble(effect.response)
            await self._translate(effect.response, None, envelope)
        elif isinstance(effect, AskEffect):
            await self._asked(effect.question, effect.call, envelope)
        elif isinstance(effect, PassEffect):
            await self._translate(effect.notice, None, envelope)
        elif (
            tag is None
            and effect.why is DropReason.UNTIED
            and isinstance(effect.message, Notification)
        ):
            level = params_of(effect.message).get("level")
            lost = Notification(method=wire.LOGGED, params={**LOST, "level": level})
            for call in self.peer.bereft(effect.message):
                call.slot.hear(lost)
        elif self.opening and isinstance(effect.message, Response):
            self._note_trouble(effect.message)

    async def _translate(
        self, message: ProtocolMessage, about: MessageId | None, envelope: MessageEnvelope[Any]
    ) -> None:
        """Hear a message of the server's in the words of our era."""
        if self.bridge.transparent:
            self._hear(message, envelope)
            return
        for step in self.bridge.from_server(message, about):
            if not isinstance(step, ToServer):
                self._hear(step.message, envelope)
                continue
            self._said(step.message)
            if self.opening:
                # What ends a handshake must be accepted before anything else is said.
                await self.link.send(step.message)
            else:
                self.outbox.put(step.message)

    def _answering(self, answer: Response, _: TransportContext) -> bool:
        """Take a result without it waiting for its turn; nothing came before it."""
        if self.opening or answer.error is not UNSET:
            return False
        self.heard_at = self._loop.time()
        if type(self.peer.receive(answer, None, self.heard_at)) is ResolveEffect:
            if self.bridge.transparent:
                if self._answered(answer, None) is None:
                    self._unheard += 1
            else:
                for message in self._steps(self.bridge.from_server(answer)):
                    self.outbox.put(message)
        return True

    def _steps(
        self, steps: list[Step], waiting: PendingCall | None = None
    ) -> list[ProtocolMessage]:
        """What is to be said to the server; what is for us is heard at once."""
        said = []
        for step in steps:
            if isinstance(step, ToServer):
                self._said(step.message, waiting)
                said.append(step.message)
            else:
                self._hear(step.message, None)
        return said

    def _said(self, message: ProtocolMessage, waiting: PendingCall | None = None) -> None:
        """Have the peer know what the server is about to be told."""
        now = self._loop.time()
        if type(message) is Request:
            if waiting is None or message.method != waiting.wanted.method:
                self.peer.request(message, now)
                return
            wanted = waiting.wanted
            waiting.call = self.peer.request(
                message,
                now,
                owner=wanted.person,
                token=waiting.id if wanted.progress else None,
                level=wanted.log_level,
                capabilities=wanted.capabilities,
                seconds=waiting.seconds,
                slot=waiting,
            )
            if self._timer is None or self._look_at > now + waiting.seconds:
                self._look_by(now + waiting.seconds)
        elif type(message) is Notification and message.method == wire.CANCELLED:
            call = self.peer.get(params_of(message).get("requestId"))
            if call is not None:
                self._cancel(call, now)

    def _cancel(self, call: PeerCall, now: float) -> None:
        if self.bridge.transparent and self.link.own_streams:
            # Whatever is said of a request comes on its own stream, which is closed.
            self.peer.forget(call)
        else:
            self.peer.cancel(call, now)
            self._see_cancelled()

    def _see_cancelled(self) -> None:
        if self.peer.too_many_cancelled:
            self.replace()

    def _take_up(self, waiting: PendingCall) -> None:
        """Have whoever comes back with what the server asked wait for the call it asked about."""
        call = self.peer.get(self.bridge.server_id(waiting.id))
        if call is None:
            return
        wanted, now = waiting.wanted, self._loop.time()
        self.peer.resume(
            call,
            now,
            level=wanted.log_level,
            capabilities=wanted.capabilities,
            seconds=waiting.seconds,
            slot=waiting,
        )
        waiting.call = call
        self._look_by(now + waiting.seconds)

    def _hear(self, message: ProtocolMessage, envelope: MessageEnvelope[Any] | None) -> None:
        """Hear what is for us, in the words of our era."""
        heard: PendingCall | Listen | None = None
        if isinstance(message, Response):
            heard = self._answered(message, envelope)
        elif isinstance(message, Notification):
            named = meta_of(message).get(wire.SUBSCRIPTION_KEY)
            heard = self.listens.get(named) if type(named) is int else None
            if heard is not None:
                heard.hear(message)
            elif message.method == wire.TASK_STATUS:
                own = params_of(message).get("taskId")
                if type(own) is str:
                    self.task_changed(own)
                    return
        if heard is None:
            self._unheard += 1

    def _answered(
        self, answer: Response, envelope: MessageEnvelope[Any] | None
    ) -> PendingCall | Listen | None:
        message_id = answer.id
        if type(message_id) is not int:
            return None
        waiting = self.waiting.get(message_id)
        if waiting is None:
            listen = self.listens.pop(message_id, None)
            if listen is not None:
                listen.refused(answer)
            return listen
        if waiting.answer.done():
            return None
        failure = None
        if answer.error is not UNSET:
            failure = self._failure_of(waiting, answer, envelope)
        if failure is None:
            waiting.answer.set_result(answer)
            if waiting.call is not None and waiting.call.state is CallState.OPEN:
                # The server asked for something, and is not done with it.
                self.peer.park(waiting.call)
            return waiting
        forgotten = isinstance(failure, e.SessionNotFound)
        begun = not (forgotten or getattr(failure, "unsent", False))
        gone = isinstance(failure, LINK_FAILED)
        waiting.fail(Unanswered(failure, begun=begun, gone=gone))
        if forgotten:
            self.end(failure)
        elif gone or failure.data.get("status") in NOT_AUTHORISED:
            self.mark_suspect()
        return waiting

    def _failure_of(
        self, waiting: PendingCall, answer: Response, envelope: MessageEnvelope[Any] | None
    ) -> e.FolkmootError | None:
        """Why an error is none of the server's, or only says that it was not asked rightly."""
        if self.opening:
            return self._trouble or waiting.failure or _refused(answer)
        if waiting.failure is not None:
            return waiting.failure
        if not self.bridge.transparent and session_is_gone(answer, envelope):
            return e.SessionNotFound("The server no longer knows this session.")
        return None

    def _failing(self, message_id: MessageId, error: e.FolkmootError) -> None:
        """The link will answer a request itself, since the server does not."""
        call = self.peer.get(message_id)
        if call is None:
            return
        sent = not (self.opening or getattr(error, "unsent", False))
        own = self.link.own_streams and not self.bridge.transparent
        self.peer.failed(call, error, lingers=sent and own and isinstance(error, NO_ANSWER))
        if isinstance(call.slot, PendingCall):
            call.slot.failure = error
        elif self.opening:
            self._trouble = error

    def _note_trouble(self, answer: Response) -> None:
        """The last that is said against us is what people are told."""
        if isinstance(answer.error, ErrorObject):
            self._trouble = self._trouble or _refused(answer)

    async def _asked(
        self, question: Request, call: PeerCall | None, envelope: MessageEnvelope[Any]
    ) -> None:
        """A question of the server's, put to the call that it belongs to."""
        if self.bridge.transparent:
            # A server of the stateless era asks nothing but in its answers.
            ping = question.method == wire.PING
            self.refused_question |= not ping
            answer = Response(id=question.id, result={})
            self.outbox.put(answer if ping else refusal(question.id, EraRefusal.NOT_ASKED.error()))
        elif call is not None:
            await self._translate(question, call.id, envelope)
        elif self._one_client or question.method not in wire.NEEDED:
            await self._translate(question, None, envelope)
        else:
            self.outbox.put(refusal(question.id, EraRefusal.NOT_TIED.error()))
            if self.peer.stale(self.heard_at):
                # Without another link nobody could be asked anything here any more.
                self.replace()

    def _look_by(self, due: float) -> None:
        """Look for late calls by then; to look once in vain is cheaper than a timer for each."""
        if self._timer is not None:
            if self._look_at <= due:
                return
            self._timer.cancel()
        self._look_at = due
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        late, soonest = self.peer.late(now)
        for call in late:
            call.slot.expire(now)
        if soonest is not None:
            self._look_by(soonest)


def _refused(answer: Response) -> e.FolkmootError:
    said = answer.error.message[:LONGEST_SAID] if isinstance(answer.error, ErrorObject) else ""
    return e.ServerAnswerInvalid(f"The server rejected the handshake: {said}")
