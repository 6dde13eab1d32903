"""One call from its name to its answer, whichever way it came in.

The pipeline knows the table as a service: `ToolService` performs calls that policy has admitted,
and `HubService` sends everything else to the gateway.
"""

from __future__ import annotations

import logging
import secrets
from asyncio import sleep
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from folkmoot import audit
from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityDenied,
    CapabilityError,
    CommandInvalid,
    FolkmootError,
    InternalError,
    KindError,
    MessageError,
    PolicyError,
    QuotaExceeded,
    RateLimited,
    RewriteRefused,
    RoomDoorError,
    RoomError,
    RoomForbidden,
    ToolError,
    UnknownTool,
)
from folkmoot.core.message import Request
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.arguments import decode, shown
from folkmoot.operations.call import Call, ToolResult
from folkmoot.operations.lines import leave_line
from folkmoot.operations.table import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Service
    from folkmoot.operations.call import Caller, Services
    from folkmoot.operations.row import Audit, Limit, Operation, Payload
    from folkmoot.operations.table import Catalogue

logger = logging.getLogger("folkmoot.operations")

METHOD: Final = TOOLS_CALL
CALLER: Final = "folkmoot/caller"
"""The extension of an envelope's context that holds the `Caller`."""

OF_ROOMS = (RoomDoorError, RoomError, PolicyError, KindError, CapabilityError, MessageError)
"""What a room refuses is for the caller to read too, with a code and what a program may want."""

NOBODY: Any = None
"""In place of the account of a tool that works without one."""


class Dispatcher:
    """Calls tools: authentication, then arguments, then limits, then the handler."""

    def __init__(self, services: Services, catalogue: Catalogue = CATALOGUE) -> None:
        self.catalogue = catalogue
        self._services = services
        self.calls: Counter[tuple[str, str]] = Counter()
        """How many calls each tool has answered, by its name and whether that was an error."""

    async def call(self, name: str, arguments: Any, caller: Caller) -> ToolResult:
        """The answer of one call of a tool, refusals included.

        A name that is nobody's is raised, as `UnknownTool`.
        """
        tool = self.catalogue.find(name)
        if tool is None:
            raise UnknownTool(f"Unknown tool: {shown(name)}.")
        try:
            result = await self.perform(tool, arguments, caller)
            if tool.others_words:
                result = replace(result, payload=tool.with_notice(result.payload))
        except (ToolError, *OF_ROOMS) as error:
            result = failure(error)
        except FolkmootError as error:
            # Its own sentence may name files; what its kind means is enough for a stranger.
            logger.warning("a tool failed", extra={"tool": tool.name, "error": error.message})
            result = failure(InternalError((type(error).__doc__ or "").strip()))
        except Exception:
            mark = secrets.token_hex(8)
            logger.exception("a tool failed", extra={"tool": tool.name, "id": mark})
            sentence = f"The hub failed to answer. Its log has the details under the id {mark}."
            result = failure(InternalError(sentence))
        self.calls[tool.name, "error" if result.is_error else "ok"] += 1
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("tool called", extra={"tool": tool.name, "is_error": result.is_error})
        return result

    async def perform(self, row: Operation, arguments: Any, caller: Caller) -> ToolResult:
        """The answer of one operation, whether it has a tool or not; a refusal is raised."""
        check_caller(row, caller)
        if row.needs and not self._services.has(row):
            raise CommandInvalid("This hub was not started from settings.")
        call: Call[Any] = Call(
            services=self._services,
            caller=caller,
            account=caller.account or NOBODY,
            arguments=decode(row.takes, arguments),
        )
        payload = await self._within_limits(row, call)
        if row.audit is not None and not row.audit.by_service:
            await leave_line(self._services, caller, row.audit.action, about_of(row.audit, call))
        return ToolResult(
            payload=payload,
            delivered=call.delivered,
            bind=call.bind,
            signs_out=call.signs_out,
        )

    async def _within_limits(self, tool: Operation, call: Call[Any]) -> Payload:
        if not tool.limits:
            return await tool.handler(call)
        limits = self._services.limits
        keys = [
            (limit, key)
            for limit in tool.limits
            if (key := limit.key(call.caller, call.arguments)) is not None
        ]
        # Counted before, so that calls at the same moment cannot all pass below the limit.
        delay = 0.0
        for place, (limit, key) in enumerate(keys):
            try:
                delay += limits.take(limit.name, key)
            except RateLimited:
                for earlier, its_key in keys[:place]:
                    limits.give_back(earlier.name, its_key)
                raise
        if delay:
            await sleep(delay)
        try:
            payload = await tool.handler(call)
        except FolkmootError as error:
            self._give_back(keys, error)
            raise
        self._give_back(keys, None)
        return payload

    def _give_back(self, keys: list[tuple[Limit, str]], outcome: FolkmootError | None) -> None:
        """Take back what turned out not to count."""
        for limit, key in keys:
            if not limit.counts(outcome):
                self._services.limits.give_back(limit.name, key)


def about_of(wanted: Audit, call: Call[Any]) -> str:
    """What an audit line names."""
    about = str(getattr(call.arguments, wanted.about)) if wanted.about else ""
    place = getattr(call.arguments, wanted.within) if wanted.within else None
    return about if place is None else f"{place}/{about}"


def check_caller(row: Operation, caller: Caller) -> None:
    """Refuse someone whom an operation is not for."""
    if row.who == "anyone" or (row.who != "operator" and caller.account is not None):
        return
    if row.who == "operator" and (caller.operator or may_operate(caller)):
        return
    if row.events is not None and caller.operator:
        # Each event is judged by itself.
        return
    if caller.account is None and caller.visitor is None:
        raise AuthenticationRequired
    if row.who == "operator":
        raise CapabilityDenied("Only an operator of this hub may do this.", attempted_kind=row.kind)
    if row.who == "account":
        sentence = "A guest has no account, and this needs one."
        if row.scope.startswith("rooms"):
            raise RoomForbidden(sentence)
        raise CapabilityDenied(sentence, attempted_kind=row.kind)


def may_operate(caller: Caller) -> bool:
    """Whether someone came with a token to run the hub."""
    return caller.account is not None and scope(caller.principal.scope).has(OPERATE)


def failure(error: FolkmootError) -> ToolResult:
    """An error in the shape of the specification; a limit also says when, for programs."""
    payload: dict[str, Any] = {"error": error.message}
    if isinstance(error, (*OF_ROOMS, QuotaExceeded)):
        payload |= {"code": error.code, **error.data}
    if isinstance(error, RateLimited):
        payload["retry_after"] = error.data["retry_after"]
    return ToolResult(payload=payload, is_error=True)


class ToolService:
    """Performs calls by the canonical names that policy has judged, and by no other spelling."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def perform(self, admitted: Admitted) -> Awaitable[ToolResult]:
        """Call the tool; its `ToolResult` is the answer."""
        envelope = admitted.envelope
        request = envelope.message
        if type(request) is not Request or request.method != METHOD:
            raise RewriteRefused("An interceptor turned a tool call into something else.")
        params = request.params
        name = params["name"] if isinstance(params, dict) else ""
        if name not in self._dispatcher.catalogue:
            raise UnknownTool(f"Unknown tool: {shown(name)}.")
        caller: Caller = envelope.context.extensions[CALLER]
        arguments = params.get("arguments") if isinstance(params, dict) else None
        return self._dispatcher.call(name, arguments, caller)

    def refused(
        self,
        envelope: MessageEnvelope[Any],  # noqa: ARG002 - the error says what was attempted
        principal: Principal,
        error: PolicyError,
    ) -> PolicyError:
        """Have the refusal of a call in the audit log."""
        audit.note_refusal(principal, str(error.data["attempted_kind"]), error)
        return error


class HubService:
    """Two services as one, told apart by the canonical name that policy has judged."""

    def __init__(self, catalogue: Catalogue, tools: Service, gateway: Service) -> None:
        self._catalogue = catalogue
        self._tools = tools
        self._gateway = gateway

    def perform(self, admitted: Admitted) -> Awaitable[Any]:
        """Have it done by whoever's it is."""
        return self._of(admitted.envelope.message).perform(admitted)

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: PolicyError
    ) -> FolkmootError:
        """Have a refusal noted by whoever's it is."""
        return self._of(envelope.message).refused(envelope, principal, error)

    def _of(self, request: Any) -> Service:
        if type(request) is Request and request.method == METHOD:
            params = request.params
            if isinstance(params, dict) and params.get("name") in self._catalogue:
                return self._tools
        return self._gateway
