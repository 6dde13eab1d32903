"""The one way through, and the only place where the order of its steps is written.

    envelope → interceptors → policy → service, which commits → bus → delivery

Policy comes after the interceptors, so no rewrite slips past it. Only what is committed is
published; what the bus loses then is repaired by cursors, so it never fails the sender.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.errors import BusError
from folkmoot.core.policy import Principal, decide
from folkmoot.core.ports import Bus, Clock, Interceptor, Outcome, Service

logger = logging.getLogger(__name__)


class Pipeline:
    """Takes a message from its transport to its service, and what came of it to the bus.

    The cost of a message is that of its own steps; nothing here grows with what is stored.
    """

    def __init__(
        self, service: Service, bus: Bus, clock: Clock, interceptors: Sequence[Interceptor] = ()
    ) -> None:
        self._service = service
        self._bus = bus
        self._clock = clock
        self._interceptors = tuple(interceptors)

    async def run(
        self, envelope: MessageEnvelope[Any], principal: Principal, rights: Rights
    ) -> Outcome:
        """Carry one message through; a refusal at any step is raised as its error."""
        timing = envelope.context.timing.start_processing(self._clock.monotonic())
        envelope = envelope.with_timing(timing)
        for interceptor in self._interceptors:
            envelope = await interceptor.intercept(envelope)
        verdict = decide(principal, rights, envelope.message)
        if verdict.error is not None:
            raise verdict.error
        outcome = await self._service.perform(envelope, principal)
        await self._publish(outcome)
        return outcome

    async def _publish(self, outcome: Outcome) -> None:
        for event in outcome.events:
            try:
                await self._bus.publish(event.subject, event.data)
            except BusError as error:
                logger.warning(
                    "an event was not published; readers will find it in the store",
                    extra={"subject": event.subject, "error": error.code},
                )
