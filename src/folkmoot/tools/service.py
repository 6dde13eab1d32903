"""The tools as the pipeline knows them: a service that performs admitted calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.audit import note_refusal
from folkmoot.core.errors import PolicyError, RewriteRefused, UnknownTool
from folkmoot.core.message import Request
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.tools.decode import shown

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted
    from folkmoot.tools.dispatch import Dispatcher
    from folkmoot.tools.model import Caller, ToolResult

METHOD = TOOLS_CALL
CALLER = "folkmoot/caller"
"""The extension of an envelope's context that holds the `Caller`."""


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
        note_refusal(principal, str(error.data["attempted_kind"]), error)
        return error
