"""What is done with every message that is carried on: it has its conversation, and is on the tape.

Whatever carries messages, between two carriers or exchange by exchange, has them take the pipeline
with these: the service of a message is the other end, and what is answered is what is to be sent.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.core.policy import NOBODY
from folkmoot.core.ports import Admitted, Carried, Clock, Recorder
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import HttpMetadata, TransportContext
from folkmoot.core.verdict import Block, Mock, Modify
from folkmoot.mcp.client.headers import stateless_version
from folkmoot.mcp.wire import COMPLETE, RESULT_TYPE, cancelled_id, refusal
from folkmoot.pipeline import Defer, Pipeline
from folkmoot.proxy.chain import Chain, Ruling
from folkmoot.relay.conversation import ProxyConversation

PROXY: Final = "proxy"
"""Who answers on a tape where the proxy itself does, since the server cannot."""
TO_SERVER: Final = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT: Final = MessageDirection.SERVER_TO_CLIENT

Envelope: TypeAlias = MessageEnvelope[Any]


class Passed(msgspec.Struct, frozen=True):
    """What became of a message: what is to go on, and what is to go back to where it came from."""

    onward: Envelope | None = None
    back: Envelope | None = None
    stopped: Block | Mock | None = None
    """What an interceptor said that stopped it."""


WAITS: Final = Passed()


class Steps(msgspec.Struct, frozen=True):
    """The steps of one proxy, or of a hub's `/mcp`. Nothing may be sent before `commit`."""

    chain: Chain
    recorder: Recorder | None
    clock: Clock

    async def carry(
        self, envelope: Envelope, conversation: ProxyConversation, defer: Defer | None = None
    ) -> Passed:
        """Take a message through the pipeline, however long an interceptor has it wait.

        Of one that waits and is left to `defer`, nothing goes on yet.
        """
        envelope = conversation.enter(envelope)
        if not self.chain.interceptors:
            # A pipeline with neither interceptors nor policy is its service.
            return self.pass_on(envelope, conversation)

        async def perform(admitted: Admitted) -> Passed:
            return self.pass_on(envelope, conversation, admitted.ruling)

        def stopped(_: Envelope, ruling: Ruling) -> Passed:
            return self.stop(envelope, ruling, conversation)

        pipeline = Pipeline(perform, self.chain, None, stopped)
        return await pipeline.run(envelope, envelope.context.caller or NOBODY, defer=defer) or WAITS

    def pass_on(
        self, envelope: Envelope, conversation: ProxyConversation, ruling: Ruling | None = None
    ) -> Passed:
        """Let a message go on, as it came or as it was changed."""
        context, now = envelope.context, self.clock.monotonic()
        came = context.timing
        timing = TimingContext(came.created_at, came.system_time, came.created_at, now, now)
        context = MessageContext(
            timing,
            context.direction,
            context.session,
            context.transport,
            context.extensions,
            context.caller,
            context.notes,
        )
        sent = envelope.message if ruling is None else ruling.envelope.message
        passed = MessageEnvelope(sent, context)
        if self.recorder is not None:
            carried = (
                Carried(passed) if ruling is None else seen_by_client(envelope, passed, ruling)
            )
            self.recorder.note(carried)
        if type(sent) is Response:
            conversation.answered(context.direction, sent)
        elif type(sent) is Notification and (given_up := cancelled_id(sent)) is not None:
            conversation.cancel(context.direction, given_up)
        return Passed(passed)

    def stop(self, envelope: Envelope, ruling: Ruling, conversation: ProxyConversation) -> Passed:
        """Stop a message; whoever waits for it, or for an answer to it, is told."""
        verdict: Any = ruling.verdict
        by = ruling.by
        if self.recorder is not None:
            self.recorder.note(Carried(envelope, verdict=verdict, by=by))
        message, direction = envelope.message, envelope.context.direction
        if isinstance(message, Request):
            conversation.close(direction, message.id)
            back = self._made(envelope, verdict, by, direction.reverse())
            return Passed(back=back, stopped=verdict)
        if isinstance(message, Response) and message.id is not None:
            conversation.answered(direction, message)
            return Passed(self._made(envelope, verdict, by, direction), stopped=verdict)
        return Passed(stopped=verdict)

    def answer(
        self, message: Response, error: e.FolkmootError, conversation: ProxyConversation
    ) -> Envelope:
        """An answer of our own to a request that the server got and does not answer."""
        now = self.clock.monotonic()
        timing = TimingContext(now, self.clock.now(), now, now, now)
        context = MessageContext(timing, TO_CLIENT, conversation.session.context)
        made = conversation.enter(MessageEnvelope(message, context))
        if self.recorder is not None:
            self.recorder.note(Carried(made, verdict=Block(error), by=PROXY))
        conversation.answered(TO_CLIENT, message)
        return made

    def note_own(self, message: ProtocolMessage, metadata: HttpMetadata) -> None:
        """Have on the tape what the proxy itself asks the server, or is answered: for nobody."""
        if self.recorder is not None:
            timing = TimingContext(self.clock.monotonic(), self.clock.now())
            transport = TransportContext(metadata)
            context = MessageContext(timing, MessageDirection.INTERNAL, transport=transport)
            self.recorder.note(Carried(MessageEnvelope(message, context)))
            self.recorder.commit()

    def commit(self) -> None:
        """Have everything noted so far on the tape."""
        if self.recorder is not None:
            self.recorder.commit()

    def _made(
        self, about: Envelope, verdict: Block | Mock, by: str, direction: MessageDirection
    ) -> Envelope:
        """An answer made here: internal, until it is given its direction."""
        now = self.clock.monotonic()
        context = MessageContext(
            TimingContext(now, self.clock.now(), now, now, now),
            MessageDirection.INTERNAL,
            about.context.session,
        )
        answer = answer_of(in_era_of(about.message, verdict), about.message.id)
        made = MessageEnvelope(answer, context).with_direction(direction)
        if self.recorder is not None:
            self.recorder.note(Carried(made, verdict=verdict, by=by))
        return made


def in_era_of(request: Any, verdict: Block | Mock) -> Block | Mock:
    """The answer to a request as its era has it: the stateless one names the type of a result."""
    if not isinstance(verdict, Mock) or not isinstance(verdict.result, dict):
        return verdict
    if RESULT_TYPE in verdict.result or stateless_version(request) is None:
        return verdict
    return Mock({RESULT_TYPE: COMPLETE, **verdict.result})


def answer_of(verdict: Block | Mock, message_id: MessageId | None) -> Response:
    """What a request is answered with that is not passed on."""
    if isinstance(verdict, Mock):
        return Response(id=message_id, result=verdict.result, error=verdict.error)
    return refusal(message_id, verdict.error)


def seen_by_client(came: Envelope, passed: Envelope, ruling: Ruling) -> Carried:
    """A message that passed, as its client saw it and, where it differs, as its server did."""
    if not ruling.changed:
        waited = ruling.waited
        return (
            Carried(passed) if waited is None else Carried(passed, None, waited.verdict, waited.by)
        )
    verdict = Modify(passed.message)
    if passed.context.direction is TO_CLIENT:
        return Carried(passed, came.message, verdict, ruling.by)
    return Carried(passed.with_message(came.message), passed.message, verdict, ruling.by)
