"""A request on its way: put into its envelope here, then taken the one way through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityDenied,
    FolkmootError,
)
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.core.timing import TimingContext
from folkmoot.gateway.asking import GATEWAY_CALL
from folkmoot.telemetry.records import AUDIT_TRAIL
from folkmoot.tools.dispatch import failure
from folkmoot.tools.service import CALLER, METHOD

if TYPE_CHECKING:
    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock
    from folkmoot.gateway.asking import CallExtras
    from folkmoot.gateway.rights import HubRights
    from folkmoot.pipeline import Pipeline
    from folkmoot.tools import Tool, ToolResult
    from folkmoot.transports.mcp.exchange import Exchange


class Calls:
    """Takes requests through the pipeline, whichever way they were read."""

    def __init__(self, pipeline: Pipeline, clock: Clock, rights: HubRights) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._rights = rights

    async def call(
        self, tool: Tool, message_id: MessageId, arguments: Any, exchange: Exchange, version: str
    ) -> ToolResult:
        """The answer of a tool of the hub's own; whatever policy refuses is an answer too."""
        # The canonical name: no spelling slips past policy.
        params = {"name": tool.name, "arguments": arguments}
        request = Request(id=message_id, method=METHOD, params=params)
        try:
            answer: ToolResult = await self._run(request, exchange, version)
            if tool.is_waiting(arguments):
                # It may have been denied meanwhile.
                self.judge(request, exchange)
        except FolkmootError as error:
            return failure(error)
        return answer

    def judge(self, request: Request, exchange: Exchange) -> Kind | None:
        """The effective kind of a request that policy allows; a refusal is noted and raised."""
        account = exchange.caller.account
        timing = TimingContext(self._clock.monotonic(), self._clock.now())
        try:
            return self._pipeline.judge(
                MessageEnvelope.new(request, timing), *self._rights.of(account)
            )
        except CapabilityDenied:
            if account is None:
                raise AuthenticationRequired from None
            raise

    async def ask(
        self, request: Request, exchange: Exchange, version: str, extras: CallExtras
    ) -> Response:
        """The answer of a backend to a request whose names are canonical; refusals are raised."""
        answer: Response = await self._run(request, exchange, version, extras)
        return answer

    async def _run(
        self, request: Request, exchange: Exchange, version: str, extras: CallExtras | None = None
    ) -> Any:
        caller = exchange.caller
        principal, rights = self._rights.of(caller.account)
        context = MessageContext(
            TimingContext(self._clock.monotonic(), self._clock.now()),
            MessageDirection.CLIENT_TO_SERVER,
            session_of(exchange, version),
            extensions={CALLER: caller} if extras is None else extensions_of(exchange, extras),
            caller=principal,
        )
        try:
            return await self._pipeline.run(MessageEnvelope(request, context), principal, rights)
        except CapabilityDenied:
            if caller.account is None:
                raise AuthenticationRequired from None
            raise


def extensions_of(exchange: Exchange, extras: CallExtras) -> dict[str, Any]:
    """What goes with a request to a backend: who calls, and what its audit line waits for."""
    extensions: dict[str, Any] = {CALLER: exchange.caller, GATEWAY_CALL: extras}
    trail = exchange.scope.get(AUDIT_TRAIL)
    return extensions if trail is None else {**extensions, AUDIT_TRAIL: trail}


def session_of(exchange: Exchange, version: str) -> SessionContext:
    """The session of a request; the stateless era has none."""
    spoken = ProtocolVersion(version)
    if exchange.session is None:
        return SessionContext(protocol_version=spoken)
    session_id = SessionId(exchange.session.shown)
    return SessionContext(session_id, spoken, state=SessionState.ACTIVE)
