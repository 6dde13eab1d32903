"""Where the hub's operations enter the pipeline that are not called as tools, and rooms' messages.

An operation that is asked for by REST, or on a WebSocket, is the call of a tool of its name: the
interceptors see that call, policy judges it, and the audit log has it under that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from msgspec.structs import replace

from folkmoot.audit import record_refusal
from folkmoot.core import errors as e
from folkmoot.core.message import Request
from folkmoot.core.session import ProtocolVersion, SessionContext
from folkmoot.core.transport import UNKNOWN
from folkmoot.gateway.operations import call_in_room
from folkmoot.gateway.requests import GATEWAY_CALL
from folkmoot.mcp.wire import HANDSHAKE_VERSION, STATELESS_VERSION, TOOLS_CALL
from folkmoot.operations.concealment import conceal_call
from folkmoot.pipeline import Pipeline, allow_all, enveloped, error_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import Response
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Clock
    from folkmoot.core.transport import TransportContext
    from folkmoot.gateway.audit import CallAudit
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.gateway.requests import CallExtras
    from folkmoot.proxy.chain import Chain, Ruling
    from folkmoot.rooms.ports import Said

T = TypeVar("T")

SPOKEN: Final = {
    "stateless": SessionContext(protocol_version=ProtocolVersion(STATELESS_VERSION)),
    "handshake": SessionContext(protocol_version=ProtocolVersion(HANDSHAKE_VERSION)),
}
"""What a call's client would speak, by the era."""

VISITOR: Final = "folkmoot/visitor"
"""The extension of an envelope's context that holds who speaks in a room."""


class Operations:
    """Takes operations and rooms' messages through the pipeline; a refusal is raised."""

    def __init__(
        self, interceptors: Chain, policy: HubPolicy, audit: CallAudit, clock: Clock
    ) -> None:
        self._interceptors = interceptors
        self._policy = policy
        self._audit = audit
        self._clock = clock

    async def ask(
        self,
        principal: Principal,
        operation: str,
        arguments: dict[str, Any],
        perform: Callable[[Admitted], Awaitable[T]],
        *,
        judged: bool = True,
        transport: TransportContext = UNKNOWN,
    ) -> T:
        """Perform an operation for a principal.

        With `judged` off, policy is asked by whoever performs it.
        """
        request = Request(
            id=0, method=TOOLS_CALL, params={"name": operation, "arguments": arguments}
        )

        def stopped(_: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
            error = error_of(ruling)
            self._audit.stopped(principal, conceal_call(request), error.code, own=True)
            raise error

        def refused(_: MessageEnvelope[Any], __: Principal, error: e.PolicyError) -> e.PolicyError:
            room = str(arguments.get("room", ""))
            record_refusal(principal, str(error.data["attempted_kind"]), error, room)
            return error

        policy = self._policy.decide if judged else None
        pipeline = Pipeline(perform, self._interceptors, policy, stopped, refused)
        envelope = enveloped(self._clock, request, principal, transport=transport)
        done: T = await pipeline.run(envelope, principal)
        return done

    def shown(self, backends: Pipeline) -> Pipeline:
        """The way to backends for calls that interceptors have not seen, as those at `/mcp` have.

        Policy judges by the rights of the moment, since an interceptor may have held a call.
        """
        return replace(
            backends,
            interceptors=self._interceptors,
            policy=self._policy.decide,
            stopped=self._call_stopped,
        )

    def _call_stopped(self, envelope: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
        error, caller = error_of(ruling), envelope.context.caller
        if caller is not None:
            self._audit.stopped(caller, envelope.message, error.code)
        raise error

    async def call_server(
        self,
        backends: Pipeline,
        principal: Principal,
        name: str,
        arguments: dict[str, Any],
        era: str,
        extras: CallExtras,
    ) -> Response:
        """The answer of a server's tool to someone who calls it by its canonical name over REST."""
        request = Request(id=0, method=TOOLS_CALL, params={"name": name, "arguments": arguments})
        envelope = enveloped(
            self._clock, request, principal, session=SPOKEN[era], extensions={GATEWAY_CALL: extras}
        )
        answer: Response = await backends.run(envelope, principal)
        return answer

    async def enter(self, said: Said) -> Any:
        """Have a room accept a message, also as an operation if it is one."""
        call = call_in_room(said.operation_in, said.message) if said.operation_in else None
        if call is None:
            return await self._enter(said)

        async def perform(admitted: Admitted) -> Any:
            if admitted.ruling.changed:
                error = e.RewriteRefused("An interceptor tried to rewrite a room's message.")
                said.blocked(error)
                raise error
            return await self._enter(said)

        who = said.visitor.principal
        return await self.ask(who, *call, perform, judged=False, transport=said.transport)

    async def _enter(self, said: Said) -> Any:
        async def perform(_: Admitted) -> Any:
            return await said.accept()

        def stopped(_: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
            error = error_of(ruling)
            said.blocked(error)
            raise error

        who, seen = said.visitor.principal, {VISITOR: said.visitor}
        pipeline = Pipeline(perform, self._interceptors, allow_all, stopped)
        envelope = enveloped(
            self._clock, said.message, who, transport=said.transport, extensions=seen
        )
        return await pipeline.run(envelope, who)


def arguments_left(admitted: Admitted, operation: str) -> dict[str, Any]:
    """The arguments of an operation as the interceptors left them."""
    message = admitted.envelope.message
    params = message.params if type(message) is Request and message.method == TOOLS_CALL else None
    if isinstance(params, dict) and params.get("name") == operation:
        arguments = params.get("arguments")
        if isinstance(arguments, dict):
            return arguments
    raise e.RewriteRefused(f"An interceptor turned {operation} into something else.")
