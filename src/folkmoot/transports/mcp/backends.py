"""What `/mcp` asks of the servers behind the hub, by whichever spelling a client knows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from folkmoot.core.errors import (
    AuthenticationRequired,
    PolicyError,
    PromptUnknown,
    UnknownTool,
)
from folkmoot.core.message import Request
from folkmoot.gateway.asking import CALL, COMPLETE, GET, READ, CallExtras
from folkmoot.mcp.client.headers import marked_in
from folkmoot.mcp.server.heads import check_marked
from folkmoot.mcp.server.service import Answer
from folkmoot.mcp.wire import AS_TASK, HANDSHAKE_VERSION
from folkmoot.operations.arguments import shown
from folkmoot.transports.mcp.lists import may_call

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.rights import HubRights
    from folkmoot.mcp.server.service import Asked
    from folkmoot.transports.mcp.calls import Calls
    from folkmoot.transports.mcp.exchange import Exchange


class Backends:
    """Resolves names before policy sees them, and has requests answered."""

    def __init__(self, gateway: Gateway, rights: HubRights, calls: Calls) -> None:
        self.gateway = gateway
        self._rights = rights
        self._calls = calls
        self._settle: Mapping[str, Callable[[dict[str, Any], Exchange], dict[str, Any] | None]] = {
            GET: self._prompt,
            READ: self._resource,
            COMPLETE: self._completion,
        }
        """Canonical names in the params; None where they name nothing of a backend's."""

    def rights_of(self, exchange: Exchange) -> Rights:
        """What whoever asks may do."""
        return self._rights.of_principal(exchange.caller.principal)

    async def carry(self, asked: Asked, params: dict[str, Any]) -> Answer | None:
        """What a backend answers to a request; None if it is about nothing of a backend's."""
        settled = self._settle[asked.request.method](params, asked.caller)
        return None if settled is None else await self._ask(asked, settled)

    def call(self, asked: Asked, params: dict[str, Any]) -> Awaitable[Answer]:
        """What a tool of a backend's answers; raises the refusal of a name that no tool has."""
        exchange: Exchange = asked.caller
        name = params["name"]
        entry = self.gateway.catalogue.tool(name)
        if entry is None:
            raise self._unknown(name, exchange)
        settled = {**params, "name": entry.canonical}
        if asked.head is not None and entry.mirrored:
            self._check_repeated(asked, settled, entry)
        return self._ask(asked, settled)

    async def _ask(self, asked: Asked, settled: dict[str, Any]) -> Answer:
        if asked.meta:
            settled["_meta"] = asked.meta
        if asked.version != HANDSHAKE_VERSION:
            # Older versions know no tasks, and in the newer era a call does not wish for one.
            settled.pop(AS_TASK, None)
        extras = CallExtras(
            capabilities=asked.capabilities,
            log_level=asked.level,
            tell=asked.tell,
            progress=asked.token is not None,
        )
        request = Request(id=asked.request.id, method=asked.request.method, params=settled)
        response = await self._calls.ask(asked, request, extras)
        return Answer(response.result, response.error)

    def _check_repeated(self, asked: Asked, params: dict[str, Any], entry: ToolEntry) -> None:
        """Hold the headers of a call against the arguments that its tool marks.

        What is wrong with them tells of the schema, so only whoever may call the tool hears it. A
        request that was rewritten on its way, or a call inside another, has the headers of what its
        client sent.
        """
        exchange: Exchange = asked.caller
        if params.get("arguments") is not asked.params.get("arguments"):
            return
        if not exchange.rewritten and may_call(self.rights_of(exchange), entry):
            marked = dict(marked_in(entry.schema))
            check_marked(marked, params.get("arguments"), asked.repeated or ())

    def check(self, method: str, params: dict[str, Any], exchange: Exchange) -> None:
        """Raise what policy says against a request, if it says anything."""
        request = Request(id=0, method=method, params=params)
        kind = self._calls.judge(request, exchange)
        try:
            self.gateway.catalogue.check_meaning(self.rights_of(exchange), kind)
        except PolicyError as error:
            self.gateway.audit.refused(exchange.caller.principal, request, error)
            if exchange.caller.account is None:
                raise AuthenticationRequired from None
            raise

    def _unknown(self, name: str, exchange: Exchange) -> UnknownTool:
        """The refusal of a name that no tool has; what is like it is told if one may call it."""
        catalogue = self.gateway.catalogue
        namespace = catalogue.namespace_of(name)
        if namespace is not None:
            # Whoever may not call a tool is not told whether there is one.
            self.check(CALL, {"name": canonical_of(name, namespace)}, exchange)
            catalogue.check_there(namespace)
        nearest = catalogue.nearest(name, self.rights_of(exchange))
        if nearest is None:
            return UnknownTool(f"Unknown tool: {shown(name)}.")
        spelled = catalogue.names.spell(nearest, exchange.names)
        return UnknownTool(f"Unknown tool: {shown(name)}. Did you mean {spelled}?", nearest=spelled)

    def _prompt(self, params: dict[str, Any], exchange: Exchange) -> dict[str, Any] | None:
        return {**params, "name": self._prompt_name(params["name"], exchange)}

    def _prompt_name(self, name: str, exchange: Exchange) -> str:
        entry = self.gateway.catalogue.prompt(name)
        if entry is not None:
            return entry.canonical
        namespace = self.gateway.catalogue.namespace_of(name)
        if namespace is not None:
            self.check(GET, {"name": canonical_of(name, namespace)}, exchange)
            self.gateway.catalogue.check_there(namespace)
        raise PromptUnknown(f"Unknown prompt: {shown(name)}.")

    def _resource(self, params: dict[str, Any], _: Exchange) -> dict[str, Any] | None:
        uri = self.gateway.catalogue.canonical_uri(params["uri"])
        return None if uri is None else {**params, "uri": uri}

    def _completion(self, params: dict[str, Any], exchange: Exchange) -> dict[str, Any] | None:
        ref = params["ref"]
        if "uri" not in ref:
            return {**params, "ref": {**ref, "name": self._prompt_name(ref["name"], exchange)}}
        uri = self.gateway.catalogue.canonical_uri(ref["uri"])
        return None if uri is None else {**params, "ref": {**ref, "uri": uri}}


def canonical_of(name: str, namespace: str) -> str:
    """The canonical form of a name in either spelling that nobody has."""
    return f"{namespace}:{name[len(namespace) + 1 :] or '-'}"
