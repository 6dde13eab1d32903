"""A request on its way: put into its envelope here, then taken the one way through.

What backends have not answered is an `OpenCall`: whose it is, and how it is ended early.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from folkmoot.accounts.events import read_change
from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityDenied,
    FolkmootError,
    TokenInvalid,
    TooManyInFlight,
)
from folkmoot.core.events import about
from folkmoot.core.message import Request, Response
from folkmoot.core.session import ProtocolVersion, SessionContext
from folkmoot.gateway.asking import GATEWAY_CALL
from folkmoot.mcp.server.service import Stopped
from folkmoot.mcp.wire import STATELESS_VERSION
from folkmoot.operations.dispatch import CALLER, METHOD, failure
from folkmoot.pipeline import enveloped
from folkmoot.taskgroups import Interruptible
from folkmoot.telemetry.records import AUDIT_TRAIL

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock, Event
    from folkmoot.gateway.asking import CallExtras
    from folkmoot.gateway.rights import HubRights
    from folkmoot.mcp.server.service import Asked
    from folkmoot.operations import Operation, ToolResult
    from folkmoot.pipeline import Pipeline
    from folkmoot.transports.mcp.exchange import Exchange

MOST_OF_SESSION: Final = 64
MOST_OF_ACCOUNT: Final = 256
"""Calls to backends that may be open at once, in one session and for one account."""
STATELESS: Final = SessionContext(protocol_version=ProtocolVersion(STATELESS_VERSION))


class OpenCall(Interruptible, eq=False):
    """One call, open while it is entered by the task that waits for the answer."""

    _calls: dict[str, set[OpenCall]]
    _asked: Asked
    _owner: str

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._asked.stop = None
        left = self._calls[self._owner]
        left.discard(self)
        if not left:
            del self._calls[self._owner]
        exchange: Exchange = self._asked.caller
        if exchange.session is not None:
            exchange.session.calls -= 1
        super().__exit__(kind, *rest)

    def uses(self, credential_id: str) -> bool:
        """Whether it was made with a credential, or with one that ends with it."""
        exchange: Exchange = self._asked.caller
        return exchange.uses(credential_id)

    def stop(self, why: Exception | None = None) -> None:
        """Have it end now, and be answered with why if there is anyone to hear that."""
        super().stop(why or Stopped())


class Calls:
    """Takes requests through the pipeline, and knows those that backends have not answered.

    A call costs the same however many others there are.
    """

    def __init__(self, pipeline: Pipeline, clock: Clock, rights: HubRights) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._rights = rights
        self._open: dict[str, set[OpenCall]] = {}
        """By account."""

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def call(self, asked: Asked, tool: Operation, arguments: Any) -> ToolResult:
        """The answer of a tool of the hub's own; whatever policy refuses is an answer too."""
        # The canonical name: no spelling slips past policy.
        params = {"name": tool.name, "arguments": arguments}
        request = Request(id=asked.request.id, method=METHOD, params=params)
        exchange: Exchange = asked.caller
        caller = exchange.caller
        try:
            answer: ToolResult = await self._run(request, exchange, {CALLER: caller})
            if tool.waits and tool.is_waiting(arguments):
                # It may have been denied meanwhile.
                self.judge(request, exchange)
        except CapabilityDenied as error:
            return failure(error if caller.account is not None else AuthenticationRequired())
        except FolkmootError as error:
            return failure(error)
        return answer

    async def ask(self, asked: Asked, request: Request, extras: CallExtras) -> Response:
        """The answer of a backend to a request whose names are canonical; refusals are raised."""
        exchange: Exchange = asked.caller
        extensions: dict[str, Any] = {CALLER: exchange.caller, GATEWAY_CALL: extras}
        if (trail := exchange.scope.get(AUDIT_TRAIL)) is not None:
            # Its audit line waits for what the interceptors did.
            extensions[AUDIT_TRAIL] = trail
        with self.opened(asked):
            try:
                answer: Response = await self._run(request, exchange, extensions)
            except CapabilityDenied:
                if exchange.caller.account is None:
                    raise AuthenticationRequired from None
                raise
        return answer

    def judge(self, request: Request, exchange: Exchange) -> Kind | None:
        """The effective kind of a request that policy allows; a refusal is noted and raised."""
        account = exchange.caller.account
        principal = exchange.caller.principal
        rights = self._rights.of_principal(principal)
        envelope = enveloped(self._clock, request, principal)
        try:
            return self._pipeline.judge(envelope, principal, rights)
        except CapabilityDenied:
            if account is None:
                raise AuthenticationRequired from None
            raise

    def opened(self, asked: Asked) -> OpenCall:
        """A call to a backend, to be entered at once; raises the refusal of one too many."""
        exchange: Exchange = asked.caller
        account, session = exchange.caller.account, exchange.session
        owner = account.id if account is not None else ""
        if len(self._open.get(owner, ())) >= MOST_OF_ACCOUNT:
            raise TooManyInFlight(
                f"You have {MOST_OF_ACCOUNT} calls to backends open at once; "
                "wait until one is answered."
            )
        if session is not None and session.calls >= MOST_OF_SESSION:
            raise TooManyInFlight(
                f"This session has {MOST_OF_SESSION} calls to backends open at once; "
                "wait until one is answered."
            )
        call = OpenCall(self._open, asked, owner)
        self._open.setdefault(owner, set()).add(call)
        if session is not None:
            session.calls += 1
        asked.stop = call.stop
        return call

    def account_changed(self, event: Event) -> None:
        """End the calls of an account whose tokens are good no more, or that is no more."""
        changed = read_change(event)
        if changed.ends_tokens:
            for call in tuple(self._open.get(changed.id, ())):
                call.stop(TokenInvalid())

    def credential_ended(self, event: Event) -> None:
        """End the calls that were made with a credential that is good no more."""
        for call in tuple(self._open.get(event.data["account"], ())):
            if call.uses(about(event)):
                call.stop(TokenInvalid())

    def give_up(self, why: FolkmootError) -> None:
        """End every call there is, and say why."""
        for call in tuple(chain.from_iterable(self._open.values())):
            call.stop(why)

    def _run(
        self, request: Request, exchange: Exchange, extensions: dict[str, Any]
    ) -> Awaitable[Any]:
        """Put a request into its envelope; awaited, it is taken through."""
        principal = exchange.caller.principal
        rights = self._rights.of_principal(principal)
        session = STATELESS if exchange.session is None else exchange.session.context
        envelope = enveloped(
            self._clock, request, principal, session=session, extensions=extensions
        )
        return self._pipeline.run(envelope, principal, rights)
