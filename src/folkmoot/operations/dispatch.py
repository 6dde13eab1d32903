"""One call from its name to its answer, for every transport.

The pipeline knows the table as a service: `ToolService` performs calls that policy has admitted.
"""

from __future__ import annotations

import logging
import secrets
from asyncio import sleep
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from folkmoot import audit
from folkmoot.core import errors as e
from folkmoot.core.message import Request
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.arguments import decode, truncated
from folkmoot.operations.call import Call, OperationResult
from folkmoot.operations.records import leave_line
from folkmoot.operations.table import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted
    from folkmoot.operations.call import Caller, Services
    from folkmoot.operations.row import AuditSpec, Operation, OperationLimit
    from folkmoot.operations.table import ToolCatalogue

logger = logging.getLogger("folkmoot.operations")

CALLER: Final = "folkmoot/caller"
"""The extension of an envelope's context that holds the `Caller`."""

ROOM_ERRORS = (
    e.RoomDoorError,
    e.RoomError,
    e.PolicyError,
    e.KindError,
    e.CapabilityError,
    e.MessageError,
)
"""What a room refuses is for the caller to read too, with a code and what a program may want."""

NOBODY: Any = None
"""In place of the account of a tool that works without one."""


class Dispatcher(Struct, eq=False):
    """Calls operations: authentication, arguments, rate limits, then the handler."""

    services: Services
    catalogue: ToolCatalogue = CATALOGUE
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many calls each tool has answered, by its name and whether that was an error."""

    async def call(self, tool: Operation, arguments: Any, caller: Caller) -> OperationResult:
        """The answer of one call of a tool, refusals included."""
        try:
            result = await self.perform(tool, arguments, caller)
            if tool.others_words:
                result = replace(result, payload=tool.with_notice(result.payload))
        except (e.ToolError, *ROOM_ERRORS) as error:
            result = failure(error)
        except e.FolkmootError as error:
            # Its own sentence may name files; what its kind means is enough for a stranger.
            logger.warning("a tool failed", extra={"tool": tool.name, "error": error.message})
            result = failure(e.InternalError((type(error).__doc__ or "").strip()))
        except Exception:
            mark = secrets.token_hex(8)
            logger.exception("a tool failed", extra={"tool": tool.name, "id": mark})
            sentence = f"The hub failed to answer. Its log has the details under the id {mark}."
            result = failure(e.InternalError(sentence))
        self.calls[tool.name, "error" if result.is_error else "ok"] += 1
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("tool called", extra={"tool": tool.name, "is_error": result.is_error})
        return result

    async def perform(self, row: Operation, arguments: Any, caller: Caller) -> OperationResult:
        """The answer of one operation, whether it has a tool or not; a refusal is raised."""
        check_caller(row, caller)
        if row.needs and not self.services.has(row):
            raise e.CommandInvalid("This hub was not started from settings.")
        call: Call = Call(
            services=self.services,
            caller=caller,
            account=caller.account or NOBODY,
            subject=caller.account,
            arguments=decode(row.takes, arguments),
        )
        taken: list[tuple[OperationLimit, str]] = []
        limits = () if self.services.offline else row.limits
        delay = await self._take(limits, call, taken) if limits else 0.0
        if delay:
            await sleep(delay)
        try:
            payload = await row.handler(call)
        except e.FolkmootError as error:
            await self._give_back(taken, error)
            raise
        if taken:
            await self._give_back(taken, None)
        if row.audit is not None and not row.audit.by_service:
            await leave_line(self.services, caller, row.audit.action, about_of(row.audit, call))
        return OperationResult(
            payload=payload,
            delivered=call.delivered,
            bind=call.bind,
            signs_out=call.signs_out,
        )

    async def _take(
        self,
        limits: tuple[OperationLimit, ...],
        call: Call,
        taken: list[tuple[OperationLimit, str]],
    ) -> float:
        """Count a call towards its limits, all of which must let it pass; how long it has to wait.

        Counted before, so that calls at the same moment cannot all pass below the limit.
        """
        delay, account = 0.0, call.caller.account
        for limit in limits:
            if limit.key is None:
                key: str | None = account.id if account is not None else ""
            else:
                key = limit.key(call.caller, call.arguments)
            if key is None:
                continue
            try:
                delay += await self.services.limits.take(limit.name, key)
            except e.RateLimited:
                for earlier, its_key in taken:
                    await self.services.limits.give_back(earlier.name, its_key)
                raise
            taken.append((limit, key))
        return delay

    async def _give_back(
        self, taken: list[tuple[OperationLimit, str]], outcome: e.FolkmootError | None
    ) -> None:
        """Take back what turned out not to count."""
        for limit, key in taken:
            if not isinstance(outcome, limit.counts):
                await self.services.limits.give_back(limit.name, key)


def about_of(wanted: AuditSpec, call: Call) -> str:
    """What an audit line names."""
    about = str(getattr(call.arguments, wanted.about)) if wanted.about else ""
    place = getattr(call.arguments, wanted.within) if wanted.within else None
    return about if place is None else f"{place}/{about}"


def check_caller(row: Operation, caller: Caller) -> None:
    """Refuse a caller whose kind of account may not use an operation."""
    if row.who == "anyone" or (row.who != "operator" and caller.account is not None):
        return
    if row.who == "operator" and (caller.operator or may_operate(caller)):
        return
    if row.events is not None and caller.operator:
        # Each event is judged by itself.
        return
    if caller.account is None and caller.visitor is None:
        raise e.AuthenticationRequired
    if row.who == "operator":
        raise e.CapabilityDenied(
            "Only an operator of this hub may do this.", attempted_kind=row.kind
        )
    if row.who == "account":
        sentence = "A guest has no account, and this needs one."
        if row.scope.startswith("rooms"):
            raise e.RoomForbidden(sentence)
        raise e.CapabilityDenied(sentence, attempted_kind=row.kind)


def may_operate(caller: Caller) -> bool:
    """Whether someone came with a token to run the hub."""
    return caller.account is not None and scope(caller.principal.scope).has(OPERATE)


def failure(error: e.FolkmootError) -> OperationResult:
    """An error in the shape of the specification; a limit also says when, for programs."""
    payload: dict[str, Any] = {"error": error.message}
    if isinstance(error, (*ROOM_ERRORS, e.QuotaExceeded)):
        payload |= {"code": error.code, **error.data}
    if isinstance(error, e.RateLimited):
        payload["retry_after"] = error.data["retry_after"]
    return OperationResult(payload=payload, is_error=True)


class ToolService:
    """Performs calls by the canonical names that policy has judged, and by no other spelling."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._named = dispatcher.catalogue.named

    def perform(self, admitted: Admitted) -> Awaitable[OperationResult]:
        """Call the tool; its `OperationResult` is the answer."""
        envelope = admitted.envelope
        request = envelope.message
        params = (
            request.params if type(request) is Request and request.method == TOOLS_CALL else None
        )
        if not isinstance(params, dict):
            raise e.RewriteRefused("An interceptor turned a tool call into something else.")
        tool = self._named(params["name"])
        if tool is None:
            raise e.UnknownTool(f"Unknown tool: {truncated(params['name'])}.")
        caller: Caller = envelope.context.extensions[CALLER]
        return self._dispatcher.call(tool, params.get("arguments"), caller)

    def refused(
        self,
        envelope: MessageEnvelope[Any],  # noqa: ARG002 - the error says what was attempted
        principal: Principal,
        error: e.PolicyError,
    ) -> e.PolicyError:
        """Have the refusal of a call in the audit log."""
        audit.record_refusal(principal, str(error.data["attempted_kind"]), error)
        return error
