"""The path of every message, and the only place where something is admitted to a service.

    authenticate → envelope → interceptors → policy → service, which commits, then publishes

Each way in makes out who asks first and puts it into the envelope, so that rules can name them.
Policy comes after the interceptors and judges what will be passed on, so no rewrite slips past it.
Messages at `/mcp` pass the interceptors in both directions as they enter and leave (`relay.tap`),
those of rooms as they enter (`show_to`); what comes from either is judged and performed here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.errors import BlockedByInterceptor
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal, decide
from folkmoot.core.ports import Admitted, Clock, Holding, Interceptor, Service
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import TransportContext
from folkmoot.core.verdict import Block, Mock
from folkmoot.proxy.chain import Chain, settled
from folkmoot.rooms.model import Visitor

VISITOR = "folkmoot/visitor"
"""The extension of an envelope's context that holds who speaks in a room."""


class Pipeline:
    """Takes a message from its transport to its service.

    The cost of a message is that of its own steps; nothing here grows with what is stored.
    """

    def __init__(
        self,
        service: Service,
        clock: Clock,
        interceptors: Sequence[Interceptor] = (),
        holding: Holding | None = None,
    ) -> None:
        self._service = service
        self._clock = clock
        self._chain = Chain(interceptors, holding)

    async def run(
        self, envelope: MessageEnvelope[Any], principal: Principal, rights: Rights
    ) -> Any:
        """Carry one message through; a refusal at any step is raised as its error."""
        if self._chain:
            timing = envelope.context.timing.start_processing(self._clock.monotonic())
            envelope = await intercept(self._chain, envelope.with_timing(timing))
        kind = self.judge(envelope, principal, rights)
        return await self._service.perform(Admitted(envelope, principal, rights, kind))

    def judge(
        self, envelope: MessageEnvelope[Any], principal: Principal, rights: Rights
    ) -> Kind | None:
        """The effective kind of a message that policy allows; a refusal is noted and raised."""
        verdict = decide(principal, rights, envelope.message)
        if verdict.error is not None:
            raise self._service.refused(envelope, principal, verdict.error)
        return verdict.kind


async def intercept(chain: Chain, envelope: MessageEnvelope[Any]) -> MessageEnvelope[Any]:
    """What the interceptors leave of a message; one that is stopped raises its error."""
    if not chain:
        return envelope
    ruling = await chain.run(envelope)
    if isinstance(ruling.verdict, Block):
        raise ruling.verdict.error
    if isinstance(ruling.verdict, Mock):
        raise BlockedByInterceptor(f"{ruling.by} answers in the hub's place, which it may not.")
    return envelope.with_message(settled(envelope.message, ruling.envelope.message))


def show_to(
    interceptors: Sequence[Interceptor], clock: Clock, holding: Holding | None = None
) -> Callable[[McpxMessage, Visitor, TransportContext], Awaitable[None]]:
    """The first step alone, for rooms: they judge a message when its turn comes in their order.

    Who sent it is in the envelope's extensions, under `VISITOR`.
    """
    chain = Chain(interceptors, holding)

    async def show(message: McpxMessage, visitor: Visitor, transport: TransportContext) -> None:
        context = MessageContext(
            TimingContext(clock.monotonic(), clock.now()),
            MessageDirection.CLIENT_TO_SERVER,
            transport=transport,
            extensions={VISITOR: visitor},
            caller=visitor.principal,
        )
        await intercept(chain, MessageEnvelope(message, context))

    return show
