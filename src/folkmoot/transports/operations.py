"""Where the hub's operations enter the pipeline that are not called as tools, and rooms' messages.

An operation that is asked for by REST, or on a WebSocket, is the call of a tool of its name: the
interceptors see that call, policy judges it, and the audit log has it under that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from folkmoot.audit import note_refusal
from folkmoot.core.errors import RewriteRefused
from folkmoot.core.message import Request
from folkmoot.core.transport import UNKNOWN
from folkmoot.gateway.operations import CALL, call_in_room
from folkmoot.pipeline import Pipeline, enveloped, error_of, judged_by_the_service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.errors import FolkmootError, PolicyError
    from folkmoot.core.mcpx import McpxMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Clock
    from folkmoot.core.transport import TransportContext
    from folkmoot.gateway.audit import Audit
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.proxy.chain import Chain, Ruling
    from folkmoot.rooms.model import Visitor

T = TypeVar("T")

VISITOR: Final = "folkmoot/visitor"
"""The extension of an envelope's context that holds who speaks in a room."""


class Operations:
    """Takes operations and rooms' messages through the pipeline; a refusal is raised."""

    def __init__(self, interceptors: Chain, policy: HubPolicy, audit: Audit, clock: Clock) -> None:
        self._interceptors = interceptors or None
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
        """Have an operation performed that someone asks for.

        With `judged` off, policy is asked by whoever performs it.
        """
        request = Request(id=0, method=CALL, params={"name": operation, "arguments": arguments})

        def stopped(_: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
            error = error_of(ruling)
            self._audit.stopped(principal, request, error.code, own=True)
            raise error

        policy = self._policy.decide if judged else None
        pipeline = Pipeline(perform, self._interceptors, policy, stopped, refused)
        envelope = enveloped(self._clock, request, principal, transport=transport)
        done: T = await pipeline.run(envelope, principal)
        return done

    async def said(
        self,
        room: str,
        message: McpxMessage,
        visitor: Visitor,
        transport: TransportContext,
        accept: Callable[[], Awaitable[T]],
        blocked: Callable[[FolkmootError], None],
    ) -> T:
        """Have a message in a room accepted, which is an operation as well."""
        call = call_in_room(room, message)
        if call is None:
            return await self.message(message, visitor, transport, accept, blocked)

        async def perform(admitted: Admitted) -> T:
            if admitted.ruling.changed:
                error = RewriteRefused("An interceptor tried to rewrite a room's message.")
                blocked(error)
                raise error
            return await self.message(message, visitor, transport, accept, blocked)

        who = visitor.principal
        return await self.ask(who, *call, perform, judged=False, transport=transport)

    async def message(
        self,
        message: McpxMessage,
        visitor: Visitor,
        transport: TransportContext,
        accept: Callable[[], Awaitable[T]],
        blocked: Callable[[FolkmootError], None],
    ) -> T:
        """Have a message accepted by its room; `blocked` is told what stops it before."""

        async def perform(_: Admitted) -> T:
            return await accept()

        def stopped(_: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
            error = error_of(ruling)
            blocked(error)
            raise error

        who = visitor.principal
        pipeline = Pipeline(perform, self._interceptors, judged_by_the_service, stopped)
        envelope = enveloped(
            self._clock, message, who, transport=transport, extensions={VISITOR: visitor}
        )
        done: T = await pipeline.run(envelope, who)
        return done


def refused(
    envelope: MessageEnvelope[Any], principal: Principal, error: PolicyError
) -> PolicyError:
    """Have in the audit log what policy refused."""
    room = envelope.message.params["arguments"].get("room", "")
    note_refusal(principal, str(error.data["attempted_kind"]), error, str(room))
    return error


def arguments_left(admitted: Admitted, operation: str) -> dict[str, Any]:
    """The arguments of an operation as the interceptors left them."""
    message = admitted.envelope.message
    params = message.params if type(message) is Request and message.method == CALL else None
    if isinstance(params, dict) and params.get("name") == operation:
        arguments = params.get("arguments")
        if isinstance(arguments, dict):
            return arguments
    raise RewriteRefused(f"An interceptor turned {operation} into something else.")
