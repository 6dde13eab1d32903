"""A tool call on its way: put into its envelope here, then taken the one way through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.errors import AuthenticationRequired, CapabilityDenied, FolkmootError
from folkmoot.core.message import MessageId, Request
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import Headers, TransportContext
from folkmoot.tools.dispatch import failure
from folkmoot.tools.service import CALLER, METHOD, principal_of

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.core.ports import Clock
    from folkmoot.pipeline import Pipeline
    from folkmoot.tools import Tool, ToolResult
    from folkmoot.transports.mcp.exchange import Exchange


class Calls:
    """Calls tools, whichever way a request was read."""

    def __init__(self, pipeline: Pipeline, clock: Clock) -> None:
        self._pipeline = pipeline
        self._clock = clock

    async def call(
        self, tool: Tool, message_id: MessageId, arguments: Any, exchange: Exchange, version: str
    ) -> ToolResult:
        """The answer of one call; whatever policy refuses is an answer too."""
        caller = exchange.caller
        principal, rights = principal_of(caller.account)
        # The canonical name: no spelling slips past policy.
        params = {"name": tool.name, "arguments": arguments}
        context = MessageContext(
            TimingContext(self._clock.monotonic(), self._clock.now()),
            MessageDirection.CLIENT_TO_SERVER,
            session_of(exchange, version),
            transport_of(exchange.scope),
            {CALLER: caller},
        )
        request = Request(id=message_id, method=METHOD, params=params)
        try:
            outcome = await self._pipeline.run(MessageEnvelope(request, context), principal, rights)
        except CapabilityDenied as error:
            return failure(error if caller.account is not None else AuthenticationRequired())
        except FolkmootError as error:
            return failure(error)
        answer: ToolResult = outcome.answer
        return answer


def session_of(exchange: Exchange, version: str) -> SessionContext:
    """The session of a request; the stateless era has none."""
    spoken = ProtocolVersion(version)
    if exchange.session is None:
        return SessionContext(protocol_version=spoken)
    session_id = SessionId(exchange.session.id)
    return SessionContext(session_id, spoken, state=SessionState.ACTIVE)


def transport_of(scope: Scope) -> TransportContext:
    """What HTTP says of a request."""
    headers = Headers(
        tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    )
    query = scope["query_string"].decode("latin-1")
    uri = f"{scope['path']}?{query}" if query else scope["path"]
    return TransportContext.http(headers, scope["method"], uri)
