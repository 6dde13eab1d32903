"""A request on its way: put into its envelope here, then taken the one way through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityDenied,
    FolkmootError,
)
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.gateway.asking import GATEWAY_CALL
from folkmoot.mcp.wire import STATELESS_VERSION
from folkmoot.operations.dispatch import CALLER, METHOD, failure
from folkmoot.pipeline import enveloped
from folkmoot.telemetry.records import AUDIT_TRAIL

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock
    from folkmoot.gateway.asking import CallExtras
    from folkmoot.gateway.rights import HubRights
    from folkmoot.operations import Operation, ToolResult
    from folkmoot.pipeline import Pipeline
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.sessions import Session

STATELESS: Final = SessionContext(protocol_version=ProtocolVersion(STATELESS_VERSION))


class Calls:
    """Takes requests through the pipeline, whichever way they were read."""

    def __init__(self, pipeline: Pipeline, clock: Clock, rights: HubRights) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._rights = rights

    async def call(
        self,
        tool: Operation,
        message_id: MessageId,
        arguments: Any,
        exchange: Exchange,
        version: str,
    ) -> ToolResult:
        """The answer of a tool of the hub's own; whatever policy refuses is an answer too."""
        # The canonical name: no spelling slips past policy.
        params = {"name": tool.name, "arguments": arguments}
        request = Request(id=message_id, method=METHOD, params=params)
        caller = exchange.caller
        try:
            answer: ToolResult = await self._begin(request, exchange, version, {CALLER: caller})
            if tool.waits and tool.is_waiting(arguments):
                # It may have been denied meanwhile.
                self.judge(request, exchange)
        except CapabilityDenied as error:
            return failure(error if caller.account is not None else AuthenticationRequired())
        except FolkmootError as error:
            return failure(error)
        return answer

    def judge(self, request: Request, exchange: Exchange) -> Kind | None:
        """The effective kind of a request that policy allows; a refusal is noted and raised."""
        account = exchange.caller.account
        principal, rights = self._rights.of(account)
        try:
            return self._pipeline.judge(
                enveloped(self._clock, request, principal), principal, rights
            )
        except CapabilityDenied:
            if account is None:
                raise AuthenticationRequired from None
            raise

    async def ask(
        self, request: Request, exchange: Exchange, version: str, extras: CallExtras
    ) -> Response:
        """The answer of a backend to a request whose names are canonical; refusals are raised."""
        extensions: dict[str, Any] = {CALLER: exchange.caller, GATEWAY_CALL: extras}
        if (trail := exchange.scope.get(AUDIT_TRAIL)) is not None:
            # Its audit line waits for what the interceptors did.
            extensions[AUDIT_TRAIL] = trail
        try:
            answer: Response = await self._begin(request, exchange, version, extensions)
        except CapabilityDenied:
            if exchange.caller.account is None:
                raise AuthenticationRequired from None
            raise
        return answer

    def _begin(
        self, request: Request, exchange: Exchange, version: str, extensions: dict[str, Any]
    ) -> Awaitable[Any]:
        """Put a request into its envelope; awaited, it is taken through."""
        principal, rights = self._rights.of(exchange.caller.account)
        envelope = enveloped(
            self._clock,
            request,
            principal,
            session=STATELESS
            if exchange.session is None
            else session_of(exchange.session, version),
            extensions=extensions,
        )
        return self._pipeline.run(envelope, principal, rights)


def session_of(session: Session, version: str) -> SessionContext:
    """The session of a request of the handshake era."""
    session_id = SessionId(session.shown)
    return SessionContext(session_id, ProtocolVersion(version), state=SessionState.ACTIVE)
