"""The gateway as the pipeline knows it: a service that has admitted requests answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Request, Response
from folkmoot.gateway.consent import ConsentFlow
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.gateway.requests import ASKS, GATEWAY_CALL, HELD, CallExtras
from folkmoot.gateway.results import (
    check_questions,
    fault_of,
    map_result,
    outcome_of,
    valid_outcome,
)
from folkmoot.gateway.task_calls import NO_TASK, TaskCalls
from folkmoot.mcp.wire import AS_TASK, INPUT_REQUIRED, REQUEST_STATE, RESULT_TYPE, TOOLS_CALL
from folkmoot.telemetry.logs import AUDIT_TRAIL

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Clock
    from folkmoot.gateway.consent import SignIns
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.requests import Inputs
    from folkmoot.telemetry.logs import AuditTrail

NO_EXTRAS: Final = CallExtras()
OF_THE_PROTOCOL: Final = (e.InputStateInvalid, e.ParamsInvalid, e.TaskUnsupported)
"""What is no tool's fault, and not for a model to read."""


class PeopleAsked(Protocol):
    """Has people asked before calls."""

    async def answer(
        self, admitted: Admitted, tool: ToolEntry, arguments: dict[str, Any], extras: CallExtras
    ) -> dict[str, Any] | None:
        """What a call is answered that a rule asks about; None for one that can be made."""


class GatewayService:
    """Routes by namespace, under the backend's own names; every request is audited.

    The cost of a request is that of its own params and result, however many backends there are.
    """

    def __init__(self, gateway: Gateway, clock: Clock, inputs: Inputs, sign_ins: SignIns) -> None:
        self._gateway = gateway
        self._clock = clock
        self._inputs = inputs
        self._consent = ConsentFlow(inputs, sign_ins)
        self.people: PeopleAsked | None = None
        """None while no rule asks anyone."""
        self.tasks = TaskCalls(gateway, inputs)

    async def perform(self, admitted: Admitted) -> Response:
        """Have a request answered; its `Response` is the answer, whatever the backend did.

        What keeps a tool from being called is told as the tool's result, so that a model reads it.
        """
        request = admitted.envelope.message
        if type(request) is not Request or request.method not in ASKS:
            raise e.RewriteRefused(
                "An interceptor turned a request to a backend into something else."
            )
        params = request.params if isinstance(request.params, dict) else {}
        extras: CallExtras = admitted.envelope.context.extensions.get(GATEWAY_CALL, NO_EXTRAS)
        method = request.method if extras.task is None else extras.task.method
        begun = self._clock.monotonic()
        outcome = "cancelled"
        try:
            self._gateway.catalogue.check_meaning(admitted.rights, admitted.kind)
            if extras.task is None:
                person = admitted.principal.account_id
                asked = await self._asked(admitted, params, extras)
                if asked is None:
                    response = await self._answer(request, params, person, extras)
                    outcome = valid_outcome(method, response)
                else:
                    response, outcome = Response(id=request.id, result=asked), "asked"
            else:
                response = await self.tasks.perform(request.id, extras.task, extras)
                outcome = outcome_of(method, response)
        except e.FolkmootError as error:
            outcome = error.code
            if method != TOOLS_CALL or isinstance(error, OF_THE_PROTOCOL):
                raise
            response = Response(id=request.id, result=failed(error))
        except Exception:
            outcome = "failed"
            raise
        finally:
            self._note(admitted, params, outcome, self._clock.monotonic() - begun)
        return response

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.PolicyError:
        """Have the refusal of a request in the audit log."""
        extras: CallExtras = envelope.context.extensions.get(GATEWAY_CALL, NO_EXTRAS)
        self._gateway.audit.refused(principal, envelope.message, error, extras.room)
        return error

    def _note(
        self, admitted: Admitted, params: dict[str, Any], outcome: str, seconds: float
    ) -> None:
        """Write the audit line, once it is known whether the answer passes the rules."""
        extensions, kind = admitted.envelope.context.extensions, admitted.kind
        trail: AuditTrail | None = extensions.get(AUDIT_TRAIL)
        extras: CallExtras = extensions.get(GATEWAY_CALL, NO_EXTRAS)
        what = "" if kind is None else kind.text
        arguments = params.get("arguments", params)
        if extras.task is not None:
            what = f"mcp.request.{extras.task.method}:{extras.task.task.ticket.tool}"
            arguments = {"taskId": extras.task.task.id}
        note, who = self._gateway.audit.note, admitted.principal
        if trail is None:
            note(who, what, arguments, outcome, seconds, extras.room)
        else:
            trail.add(
                lambda other: note(who, what, arguments, other or outcome, seconds, extras.room)
            )

    async def _asked(
        self, admitted: Admitted, params: dict[str, Any], extras: CallExtras
    ) -> dict[str, Any] | None:
        """What a call is answered about which a person is asked; nobody is about a wrong one."""
        name = params.get("name")
        if self.people is None or extras.approved or not isinstance(name, str):
            return None
        tool = self._gateway.catalogue.tools.get(name)
        arguments = params.get("arguments")
        arguments = {} if arguments is None else arguments
        if tool is None or tool.quarantined or not isinstance(arguments, dict):
            return None
        return await self.people.answer(admitted, tool, arguments, extras)

    async def fault(self, tool: ToolEntry, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The fault of a call found before it is sent, as a tool result."""
        backend = self._gateway.backends.get(tool.namespace)
        if backend is None or self._gateway.checks.surely_fits(tool, {"arguments": arguments}):
            return None
        return await self._fault(tool, arguments, lenient=backend.spec.lenient)

    async def _answer(
        self,
        request: Request,
        params: dict[str, Any],
        person: str,
        extras: CallExtras,
    ) -> Response:
        gateway, method = self._gateway, request.method
        asked = ASKS[method](gateway.catalogue, params)
        backend = gateway.backends.get(asked.namespace)
        if backend is None:
            raise e.BackendUnavailable(f"The backend {asked.namespace} was removed.")
        tool = asked.tool
        if tool is not None and not gateway.checks.surely_fits(tool, asked.params):
            lenient = backend.spec.lenient
            fault = await self._fault(tool, asked.params.get("arguments"), lenient=lenient)
            if fault is not None:
                return Response(id=request.id, result=fault)
        plan, given, capabilities = NO_TASK, asked.params, extras.capabilities
        if tool is not None and (
            tool.task_support or AS_TASK in params or "extensions" in capabilities
        ):
            plan = await self.tasks.plan(tool, params, person, extras)
            given, capabilities = {**given, **plan.params}, plan.offered(capabilities)
        may_ask = True
        if REQUEST_STATE in given:
            given, may_ask = await self._consent.taken(given, person, asked)
        try:
            response = await backend.request(
                UpstreamRequest(
                    method=method,
                    params=given,
                    person=person,
                    capabilities=capabilities,
                    log_level=extras.log_level,
                    tell=extras.tell,
                    progress=extras.progress,
                    repeatable=asked.repeatable,
                    era=extras.era,
                    tasks=plan.wished,
                )
            )
        except e.ConsentNeeded as needed:
            wish = await self._consent.wish(
                needed, asked, person, request, extras.capabilities, may_ask=may_ask
            )
            return Response(id=request.id, result=wish)
        if isinstance(response.error, ErrorObject):
            plan.check(response.error)
            return msgspec.structs.replace(response, id=request.id, raw=None)
        if (invalid := fault_of(method, response.result)) is not None:
            raise e.BackendFailed(
                f"The backend {asked.namespace} answered {asked.what} with no valid result: "
                f"{invalid}. It may have done what was asked."
            )
        if tool is not None and (plan.wished or "content" not in response.result):
            made = self.tasks.made(tool, plan, params, person, response.result)
            if made is not None:
                return Response(id=request.id, result=made)
        in_room = bool(extras.room)
        if response.result.get(RESULT_TYPE) == INPUT_REQUIRED and not in_room:
            check_questions(response.result.get("inputRequests"), asked.namespace, capabilities)
        told = map_result(method, response.result, asked.namespace, canonical=in_room)
        if REQUEST_STATE in told:
            told = self._inputs.mark(told, person, asked.what)
        return Response(id=request.id, result=told)

    async def _fault(
        self, tool: ToolEntry, arguments: Any, *, lenient: bool
    ) -> dict[str, Any] | None:
        """The fault of a call found before it is sent, as a tool result."""
        if tool.quarantined:
            raise e.ToolQuarantined(f"{tool.canonical} {HELD[tool.quarantined]}")
        arguments = {} if arguments is None else arguments
        if lenient and isinstance(arguments, dict):
            return None
        faults = await self._gateway.checks.faults(tool, arguments)
        if not faults:
            return None
        told = f"The arguments do not match the schema of {tool.canonical}: {'; '.join(faults)}."
        return tool_error({"error": told, "code": "argument_invalid"})


def failed(error: e.FolkmootError) -> dict[str, Any]:
    """An error as the result of a tool."""
    return tool_error({**error.data, "error": error.message, "code": error.code})


def tool_error(payload: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool that could not be called."""
    text = msgspec.json.encode(payload).decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}
