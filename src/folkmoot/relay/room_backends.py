"""Backends in rooms: whoever asks one there needs the room's right, and their own at the hub.

The room has judged its own right before anything comes here. The hub's is judged as everywhere, in
the pipeline, by the effective kind and the account of whoever asked; owning a room opens nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.accounts.model import principal_of
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kindcheck import kind_of
from folkmoot.core.kinds import parse
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    members,
)
from folkmoot.core.policy import NOBODY
from folkmoot.gateway.configured_rights import may_use
from folkmoot.gateway.listing import MEMBERS, is_app_only, make_cursor, read_cursor, tool_shown
from folkmoot.gateway.model import PromptEntry, ToolEntry
from folkmoot.gateway.part import TEMPLATE
from folkmoot.gateway.requests import ASKS, GATEWAY_CALL, CallExtras, truncated
from folkmoot.mcp.wire import (
    COMPLETION,
    INPUT_REQUIRED,
    PING,
    PROGRESS,
    PROMPTS_GET,
    PROMPTS_LIST,
    PROTOCOL_KEYS,
    RESOURCES_LIST,
    RESOURCES_READ,
    RESULT_TYPE,
    TEMPLATES_LIST,
    TOKEN_KEY,
    TOOLS_CALL,
    TOOLS_LIST,
)
from folkmoot.pipeline import Pipeline, enveloped
from folkmoot.telemetry.logs import AUDIT_TRAIL

if TYPE_CHECKING:
    from collections.abc import Collection

    from folkmoot.accounts import Accounts
    from folkmoot.core.capability import Rights
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.kinds import Kind
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Clock
    from folkmoot.gateway.catalogue import Catalogue
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import Definition, What
    from folkmoot.gateway.part import Entry
    from folkmoot.gateway.rights import HubRights
    from folkmoot.gateway.service import GatewayService
    from folkmoot.rooms.ports import Asked, TellProgress

LISTS: Final[dict[str, What]] = {
    TOOLS_LIST: "tools",
    RESOURCES_LIST: "resources",
    TEMPLATES_LIST: "templates",
    PROMPTS_LIST: "prompts",
}
"""The lists of a backend, by the method that asks for them."""

PAGE_SIZE: Final = 200
PAGE_BYTES: Final = 256 * 1024
"""What a page may have, unless it is one entry: everyone in the room gets it."""


def listed(
    catalogue: Catalogue, what: What, namespace: str, rights: Rights, cursor: Any
) -> dict[str, Any]:
    """A page of a list: its first, or the one a cursor of an earlier page leads to."""
    if cursor is not None and not isinstance(cursor, str):
        raise e.ArgumentInvalid("cursor must be a string.", field="cursor")
    catalogue.check_there(namespace)
    part = catalogue.parts.get(namespace)
    rows = () if part is None else part.rows[what]
    start = 0
    if cursor is not None:
        start = bisect_right(rows, read_cursor(what, cursor)[1], key=lambda row: row.key)
    size = 0
    entries: list[Definition] = []
    more, last = False, ""
    for row in islice(rows, start, None):
        if not rights.allows(row.kind) or is_app_only(row.entry):
            continue
        shown = shown_here(row.entry)
        size += len(msgspec.json.encode(shown))
        if len(entries) == PAGE_SIZE or (size > PAGE_BYTES and entries):
            more = True
            break
        entries.append(shown)
        last = row.key
    page: dict[str, Any] = {MEMBERS[what]: entries}
    return {**page, "nextCursor": make_cursor(what, (namespace, last))} if more else page


def shown_here(entry: Entry) -> Definition:
    """An entry as rooms have it: by its canonical name."""
    if isinstance(entry, ToolEntry):
        return tool_shown(entry, entry.canonical, "canonical", stateless=True)
    if isinstance(entry, PromptEntry):
        return {**entry.definition, "name": entry.canonical}
    member = "uri" if "uri" in entry.definition else TEMPLATE
    return {**entry.definition, member: entry.uri}


MOST_MESSAGE: Final = 1_000
"""Characters of a progress message that everyone in the room is told."""
MOST_QUESTIONS: Final = 3
FIELDS: Final = {TOOLS_CALL: "name", PROMPTS_GET: "name", RESOURCES_READ: "uri", COMPLETION: "ref"}
"""Where the name of what is asked for stands."""
NEEDS: Final = "needs your own right at the hub; rights in a room do not open a backend."
"""The end of every refusal. Everyone in the room reads it, so it tells nothing of what one has."""


class RoomBackends(Entity):
    """The servers behind the hub, as rooms use them."""

    gateway: Gateway
    rights: HubRights
    service: GatewayService
    accounts: Accounts
    clock: Clock

    def __post_init__(self) -> None:
        # The interceptors saw it already, as a message of the room.
        self._pipeline = Pipeline.to(self)

    def known(self) -> Collection[str]:
        """The namespaces that the settings have, reachable or not."""
        return self.rights.settled.namespaces

    def may_bring(self, principal: Principal, namespace: str) -> bool:
        """Whether there is such a backend and someone may use any of it."""
        return namespace in self.known() and may_use(self.rights.of_principal(principal), namespace)

    async def answer(self, asked: Asked, tell: TellProgress | None) -> Response:
        """What a backend answers, or the error that keeps it from answering."""
        # As it is stored at this moment: a guest has none, and whoever was deleted has none left.
        account = await self.accounts.account(asked.person)
        principal = NOBODY if account is None else principal_of(account, asked.scope)
        rights = self.rights.of_principal(principal)
        if account is None or not may_use(rights, asked.namespace):
            raise e.CapabilityDenied(f"Asking {asked.namespace} {NEEDS}")
        request, catalogue = asked.request, self.gateway.catalogue
        params = request.params if isinstance(request.params, dict) else {}
        if request.method == PING:
            catalogue.check_there(asked.namespace)
            return Response(id=request.id, result={})
        if request.method in LISTS:
            what = LISTS[request.method]
            page = listed(catalogue, what, asked.namespace, rights, params.get("cursor"))
            return Response(id=request.id, result=page)
        if request.method not in ASKS:
            raise e.MethodUnknown(f"A backend has no {truncated(request.method)} in a room.")
        kind = self._named(asked, rights)
        plain = Request(id=request.id, method=request.method, params=without_protocol(params))
        extensions = {GATEWAY_CALL: extras_of(asked, tell), AUDIT_TRAIL: asked.trail}
        envelope = enveloped(self.clock, plain, principal, extensions=extensions)
        response: Response = await self._pipeline.run(envelope, principal, rights)
        check_complete(response, truncated(kind.context))
        return response

    async def perform(self, admitted: Admitted) -> Response:
        """Have a request answered that the hub allows; where nothing has its name, say why."""
        kind = admitted.kind
        method, name = admitted.envelope.message.method, str(kind.context if kind else "")
        if canonical(self.gateway.catalogue, method, name) is None:
            self.gateway.catalogue.check_there(name.partition(":")[0])
        return await self.service.perform(admitted)

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.CapabilityDenied:
        """Have a refusal in the audit log; everyone in the room is told less than one alone is."""
        self.service.refused(envelope, principal, error)
        attempted = str(error.data["attempted_kind"])
        named = truncated(attempted.partition(":")[2])
        return e.CapabilityDenied(f"{named} {NEEDS}", attempted_kind=attempted)

    def _named(self, asked: Asked, rights: Rights) -> Kind:
        """The effective kind of a request, if it has its canonical name."""
        request, namespace, catalogue = asked.request, asked.namespace, self.gateway.catalogue
        method, kind = request.method, kind_of(request)
        if kind is None or kind.context is None:
            raise e.MethodUnknown("A backend is asked for something by its name.")
        named = canonical(catalogue, method, kind.context)
        if (
            named != kind.context
            and is_of(named, namespace)
            # Only whoever may use it learns how it is called.
            and rights.allows(parse(f"{kind.base}:{named}"), members(request))
        ):
            raise e.ArgumentInvalid(f"In a room it is called {named}.", field=FIELDS[method])
        if not is_of(kind.context, namespace):
            raise e.ArgumentInvalid(
                f"In rooms, names from {namespace} start with {namespace}: or {namespace}://.",
                field=FIELDS[method],
            )
        return kind


def extras_of(asked: Asked, tell: TellProgress | None) -> CallExtras:
    """What goes with a request to a backend: where its progress is told, and in which room."""

    def told(notification: Notification) -> None:
        params = notification.params
        if tell is not None and notification.method == PROGRESS and isinstance(params, dict):
            tell(progress_of(params))

    return CallExtras(tell=told, progress=tell is not None, room=asked.room)


def canonical(catalogue: Catalogue, method: str, name: str) -> str | None:
    """What a name stands for, in whichever spelling; None where nothing has it."""
    if method == RESOURCES_READ or (method == COMPLETION and "://" in name):
        return catalogue.canonical_uri(name)
    entry = catalogue.tool(name) if method == TOOLS_CALL else catalogue.prompt(name)
    return None if entry is None else entry.canonical


def is_of(name: str | None, namespace: str) -> bool:
    """Whether a canonical name or URI is of a backend."""
    return name is not None and name.startswith(f"{namespace}:")


def without_protocol(params: dict[str, Any]) -> dict[str, Any]:
    """Params as they are meant for a backend: `_meta` without what is the hub's affair."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params
    rest = {
        name: value
        for name, value in meta.items()
        if name != TOKEN_KEY and not name.startswith(PROTOCOL_KEYS)
    }
    plain = {name: value for name, value in params.items() if name != "_meta"}
    return {**plain, "_meta": rest} if rest else plain


def progress_of(params: dict[str, Any]) -> dict[str, Any]:
    """What is told of progress, whatever a server wrote there."""
    told = {
        name: value
        for name, value in params.items()
        if name in ("progress", "total") and type(value) in (int, float)
    }
    message = params.get("message")
    return {**told, "message": message[:MOST_MESSAGE]} if isinstance(message, str) else told


def check_complete(response: Response, what: str) -> None:
    """Refuse an answer that asks back: in a room there is nobody whom it could be put to."""
    result = response.result
    if not isinstance(result, dict) or result.get(RESULT_TYPE) != INPUT_REQUIRED:
        return
    questions = result.get("inputRequests")
    asks = list(questions.values()) if isinstance(questions, dict) else []
    told = ", ".join(truncated(question_of(each)) for each in asks[:MOST_QUESTIONS])
    raise e.BackendFailed(
        f"{what} needs more input, and cannot ask for it in a room{(': ' if told else '')}{told}."
    )


def question_of(question: Any) -> str:
    """What a server asks for, in a few words."""
    asked = question if isinstance(question, dict) else {}
    params = asked.get("params")
    message = params.get("message") if isinstance(params, dict) else None
    return message if isinstance(message, str) else str(asked.get("method"))
