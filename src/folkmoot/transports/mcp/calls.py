"""A request as an envelope, on its way through the pipeline.

What backends have not answered is an `OpenCall`: whose it is, and how it is ended early.
`BackendCalls` finds what a client asks of the servers behind the hub, by whichever spelling it
knows that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins

from folkmoot.accounts.model import read_change
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import about
from folkmoot.core.message import Notification, Request, Response
from folkmoot.core.session import ProtocolVersion, SessionContext
from folkmoot.gateway.requests import GATEWAY_CALL, CallExtras
from folkmoot.mcp.client.headers import marked_in
from folkmoot.mcp.server.heads import check_marked
from folkmoot.mcp.server.service import McpAnswer, Stopped
from folkmoot.mcp.wire import (
    AS_TASK,
    COMPLETION,
    HANDSHAKE_VERSION,
    PROGRESS,
    PROMPTS_GET,
    RESOURCES_READ,
    STATELESS_VERSION,
    TOOLS_CALL,
)
from folkmoot.operations.arguments import truncated
from folkmoot.operations.dispatch import CALLER, failure
from folkmoot.pipeline import enveloped
from folkmoot.taskgroups import Interruptible
from folkmoot.telemetry.logs import AUDIT_TRAIL
from folkmoot.transports.limits import MAX_CALLS_OF_ACCOUNT, MAX_CALLS_OF_SESSION
from folkmoot.transports.mcp.lists import may_call

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock, Event
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.rights import HubRights
    from folkmoot.mcp.server.service import McpRequest
    from folkmoot.operations import Operation, OperationResult
    from folkmoot.pipeline import Pipeline
    from folkmoot.transports.mcp.arrivals import Exchange

STATELESS: Final = SessionContext(protocol_version=ProtocolVersion(STATELESS_VERSION))


class OpenCall(Interruptible, eq=False):
    """One call, open while it is entered by the task that waits for the answer."""

    _calls: dict[str, set[OpenCall]]
    _asked: McpRequest
    _owner: str

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._asked.stop = None
        left = self._calls[self._owner]
        left.discard(self)
        if not left:
            del self._calls[self._owner]
        if (session := self.exchange.session) is not None:
            session.calls -= 1
        super().__exit__(kind, *rest)

    @property
    def exchange(self) -> Exchange:
        """The request that it is a part of."""
        exchange: Exchange = self._asked.caller
        return exchange

    def stop(self, why: Exception | None = None) -> None:
        """Have it end now, and be answered with why if there is anyone to hear that."""
        super().stop(why or Stopped())


def tell_progress(asked: McpRequest, so_far: Struct) -> None:
    """Tell the client of a tool of the hub's own how far it is, as MCP has it."""
    params = {name: it for name, it in to_builtins(so_far).items() if it not in (None, "")}
    if "progress" in params:
        asked.tell(Notification(method=PROGRESS, params=params))


class RunningCalls(Entity):
    """Takes requests through the pipeline, and knows those that backends have not answered.

    A call costs the same however many others there are.
    """

    tools: Pipeline
    backends: Pipeline
    clock: Clock
    rights: HubRights
    _open: dict[str, set[OpenCall]] = {}
    """By account."""

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def call(self, asked: McpRequest, tool: Operation, arguments: Any) -> OperationResult:
        """The answer of a tool of the hub's own; whatever policy refuses is an answer too."""
        # The canonical name: no spelling slips past policy.
        params = {"name": tool.name, "arguments": arguments}
        request = Request(id=asked.request.id, method=TOOLS_CALL, params=params)
        exchange: Exchange = asked.caller
        caller = exchange.caller
        if tool.progress is not None and asked.token is not None:
            caller.progress = partial(tell_progress, asked)
        try:
            answer: OperationResult = await self._run(
                self.tools, request, exchange, {CALLER: caller}
            )
            if tool.waits and tool.is_waiting(arguments):
                # It may have been denied meanwhile.
                self._judge(self.tools, request, exchange)
        except e.CapabilityDenied as error:
            return failure(error if caller.account is not None else e.AuthenticationRequired())
        except e.FolkmootError as error:
            return failure(error)
        return answer

    async def ask(self, asked: McpRequest, request: Request, extras: CallExtras) -> Response:
        """The answer of a backend to a request whose names are canonical; refusals are raised."""
        exchange: Exchange = asked.caller
        extensions: dict[str, Any] = {CALLER: exchange.caller, GATEWAY_CALL: extras}
        if (trail := exchange.scope.get(AUDIT_TRAIL)) is not None:
            # Its audit line waits for what the interceptors did.
            extensions[AUDIT_TRAIL] = trail
        with self.opened(asked):
            try:
                answer: Response = await self._run(self.backends, request, exchange, extensions)
            except e.CapabilityDenied:
                if exchange.caller.account is None:
                    raise e.AuthenticationRequired from None
                raise
        return answer

    def judge(self, request: Request, exchange: Exchange) -> Kind | None:
        """The effective kind of a request to a backend that policy allows; a refusal is noted and
        raised.
        """
        return self._judge(self.backends, request, exchange)

    def _judge(self, pipeline: Pipeline, request: Request, exchange: Exchange) -> Kind | None:
        account = exchange.caller.account
        principal = exchange.caller.principal
        rights = self.rights.of_principal(principal)
        envelope = enveloped(self.clock, request, principal)
        try:
            return pipeline.judge(envelope, principal, rights)
        except e.CapabilityDenied:
            if account is None:
                raise e.AuthenticationRequired from None
            raise

    def opened(self, asked: McpRequest) -> OpenCall:
        """A call to a backend, to be entered at once; raises the refusal of one too many."""
        exchange: Exchange = asked.caller
        account, session = exchange.caller.account, exchange.session
        owner = account.id if account is not None else ""
        if len(self._open.get(owner, ())) >= MAX_CALLS_OF_ACCOUNT:
            raise e.TooManyInFlight(
                f"You have {MAX_CALLS_OF_ACCOUNT} calls to backends open at once; "
                "wait until one is answered."
            )
        if session is not None and session.calls >= MAX_CALLS_OF_SESSION:
            raise e.TooManyInFlight(
                f"This session has {MAX_CALLS_OF_SESSION} calls to backends open at once; "
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
                call.stop(call.exchange.refusal)

    def credential_ended(self, event: Event) -> None:
        """End the calls that were made with a credential that is good no more."""
        for call in tuple(self._open.get(event.data["account"], ())):
            if call.exchange.credential_id == about(event):
                call.stop(call.exchange.refusal)

    def give_up(self, why: e.FolkmootError) -> None:
        """End every call there is, and say why."""
        for call in tuple(chain.from_iterable(self._open.values())):
            call.stop(why)

    def _run(
        self,
        pipeline: Pipeline,
        request: Request,
        exchange: Exchange,
        extensions: dict[str, Any],
    ) -> Awaitable[Any]:
        """Put a request into its envelope; awaited, it is taken through."""
        principal = exchange.caller.principal
        rights = self.rights.of_principal(principal)
        session = STATELESS if exchange.session is None else exchange.session.context
        envelope = enveloped(self.clock, request, principal, session=session, extensions=extensions)
        return pipeline.run(envelope, principal, rights)


class BackendCalls:
    """Resolves names before policy sees them, and has requests answered."""

    def __init__(self, gateway: Gateway, rights: HubRights, calls: RunningCalls) -> None:
        self.gateway = gateway
        self._rights = rights
        self._calls = calls
        self._settle: Mapping[str, Callable[[dict[str, Any], Exchange], dict[str, Any] | None]] = {
            PROMPTS_GET: self._prompt,
            RESOURCES_READ: self._resource,
            COMPLETION: self._completion,
        }
        """Canonical names in the params; None where they name nothing of a backend's."""

    def rights_of(self, exchange: Exchange) -> Rights:
        """The rights of the caller."""
        return self._rights.of_principal(exchange.caller.principal)

    async def carry(self, asked: McpRequest, params: dict[str, Any]) -> McpAnswer | None:
        """What a backend answers to a request; None if it is about nothing of a backend's."""
        settled = self._settle[asked.request.method](params, asked.caller)
        return None if settled is None else await self._ask(asked, settled)

    def call(self, asked: McpRequest, params: dict[str, Any]) -> Awaitable[McpAnswer]:
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

    async def _ask(self, asked: McpRequest, settled: dict[str, Any]) -> McpAnswer:
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
            era=asked.era,
            credential_id=asked.caller.credential_id,
        )
        request = Request(id=asked.request.id, method=asked.request.method, params=settled)
        response = await self._calls.ask(asked, request, extras)
        return McpAnswer(response.result, response.error)

    def _check_repeated(self, asked: McpRequest, params: dict[str, Any], entry: ToolEntry) -> None:
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
        except e.PolicyError as error:
            self.gateway.audit.refused(exchange.caller.principal, request, error)
            if exchange.caller.account is None:
                raise e.AuthenticationRequired from None
            raise

    def _unknown(self, name: str, exchange: Exchange) -> e.UnknownTool:
        """The refusal of an unknown tool, with similar names the caller may call."""
        catalogue = self.gateway.catalogue
        namespace = catalogue.namespace_of(name)
        if namespace is not None:
            # Whoever may not call a tool is not told whether there is one.
            self.check(TOOLS_CALL, {"name": canonical_of(name, namespace)}, exchange)
            catalogue.check_there(namespace)
        nearest = catalogue.nearest(name, self.rights_of(exchange))
        if nearest is None:
            return e.UnknownTool(f"Unknown tool: {truncated(name)}.")
        spelled = catalogue.names.spell(nearest, exchange.names)
        return e.UnknownTool(
            f"Unknown tool: {truncated(name)}. Did you mean {spelled}?", nearest=spelled
        )

    def _prompt(self, params: dict[str, Any], exchange: Exchange) -> dict[str, Any] | None:
        return {**params, "name": self._prompt_name(params["name"], exchange)}

    def _prompt_name(self, name: str, exchange: Exchange) -> str:
        entry = self.gateway.catalogue.prompt(name)
        if entry is not None:
            return entry.canonical
        namespace = self.gateway.catalogue.namespace_of(name)
        if namespace is not None:
            self.check(PROMPTS_GET, {"name": canonical_of(name, namespace)}, exchange)
            self.gateway.catalogue.check_there(namespace)
        raise e.PromptUnknown(f"Unknown prompt: {truncated(name)}.")

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
