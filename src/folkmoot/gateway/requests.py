"""The request that each method sends to a backend, and the input a backend may ask for first."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.session import Era
from folkmoot.gateway.limits import MAX_CACHED_SCHEMAS, MAX_NAME_SHOWN, MAX_REQUEST_STATE
from folkmoot.gateway.model import Tell
from folkmoot.jsonschemas import Fault, Schema, Schemas
from folkmoot.mcp.wire import (
    AS_TASK,
    COMPLETION,
    INPUT_REQUIRED,
    PROMPTS_GET,
    REQUEST_STATE,
    RESOURCES_READ,
    RESULT_TYPE,
    TOOLS_CALL,
)

if TYPE_CHECKING:
    from folkmoot.gateway.catalogue import Catalogue
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.tasks import Task


MARK_BYTES: Final = 16


class Inputs(Entity):
    """Marks the states of wishes, and knows the marks again."""

    key: bytes

    def mark(self, result: dict[str, Any], person: str, what: str) -> dict[str, Any]:
        """A result with its `requestState` signed for the caller; without one, unchanged."""
        state = result.get(REQUEST_STATE)
        if result.get(RESULT_TYPE) != INPUT_REQUIRED or type(state) is not str:
            return result
        return {**result, REQUEST_STATE: f"{self._mark(state, person, what)}.{state}"}

    def taken(self, params: dict[str, Any], person: str, what: str) -> dict[str, Any]:
        """The params of a repeated call with its `requestState` checked; any others unchanged."""
        if REQUEST_STATE not in params:
            return params
        given = params[REQUEST_STATE]
        mark, dot, state = given.partition(".") if type(given) is str else ("", "", "")
        known = len(state) <= MAX_REQUEST_STATE and hmac.compare_digest(
            mark.encode("utf-8", "replace"), self._mark(state, person, what).encode()
        )
        if not dot or not known:
            raise e.InputStateInvalid("This requestState is not valid for this call.")
        return {**params, REQUEST_STATE: state}

    def _mark(self, state: str, person: str, what: str) -> str:
        said = "\0".join((person, what, state)).encode("utf-8", "surrogatepass")
        return blake2b(said, key=self.key, digest_size=MARK_BYTES).hexdigest()


GATEWAY_CALL: Final = "folkmoot/gateway-call"
"""The extension of an envelope's context that holds the `CallExtras`."""


HELD: Final = {
    "changed": "has changed since it was first seen, and the operator has not accepted the change "
    "yet.",
    "new": "was added by its server later, and the operator has not accepted it yet.",
}
"""Why a tool or prompt that is held back cannot be used."""


class TaskAction(Struct, frozen=True):
    """What is asked about a task, in place of the call that made it."""

    method: str
    task: Task
    params: dict[str, Any]


class CallExtras(Struct, frozen=True, kw_only=True):
    """The context of a call: its client's capabilities, and how to notify it."""

    capabilities: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    tell: Tell | None = None
    progress: bool = False
    era: Era | None = None
    """The era that its client speaks; None where no client asks, as in a room."""
    room: str = ""
    """The room in which it was made, if it was made in one."""
    credential_id: str = ""
    """What its caller came with, and still comes with when it is renewed."""
    approved: bool = False
    """Whether a person has approved this very call."""
    task: TaskAction | None = None
    """What is asked about the task that the call has made before, if it is not made now.

    The request is that call again, so that policy asks for the same rights.
    """


class RoutedRequest(Struct, frozen=True, kw_only=True):
    """A request as sent to its backend."""

    namespace: str
    what: str
    """The canonical name or the shown URI."""
    params: dict[str, Any]
    repeatable: bool = True
    tool: ToolEntry | None = None


def of_tool(catalogue: Catalogue, params: dict[str, Any]) -> RoutedRequest:
    """A call of a tool."""
    name = params.get("name")
    entry = catalogue.tools.get(name) if isinstance(name, str) else None
    if entry is None:
        raise e.UnknownTool(f"Unknown tool: {truncated(name)}.")
    given = {**params, "name": entry.own}
    given.pop(AS_TASK, None)
    return RoutedRequest(
        namespace=entry.namespace,
        what=entry.canonical,
        params=given,
        repeatable=entry.repeatable,
        tool=entry,
    )


def of_prompt(catalogue: Catalogue, params: dict[str, Any]) -> RoutedRequest:
    """A wish for a prompt."""
    name = params.get("name")
    entry = catalogue.prompts.get(name) if isinstance(name, str) else None
    if entry is None:
        raise e.PromptUnknown(f"Unknown prompt: {truncated(name)}.")
    if entry.quarantined:
        raise e.ToolQuarantined(f"{entry.canonical} {HELD[entry.quarantined]}")
    return RoutedRequest(
        namespace=entry.namespace, what=entry.canonical, params={**params, "name": entry.own}
    )


def of_resource(catalogue: Catalogue, params: dict[str, Any]) -> RoutedRequest:
    """A wish to read a resource."""
    namespace, own = place_of(catalogue, params.get("uri"))
    return RoutedRequest(namespace=namespace, what=params["uri"], params={**params, "uri": own})


def of_completion(catalogue: Catalogue, params: dict[str, Any]) -> RoutedRequest:
    """A wish for what an argument could be."""
    ref = params.get("ref")
    ref = ref if isinstance(ref, dict) else {}
    if "uri" in ref:
        namespace, own = place_of(catalogue, ref["uri"])
        return RoutedRequest(
            namespace=namespace, what=ref["uri"], params={**params, "ref": {**ref, "uri": own}}
        )
    asked = of_prompt(catalogue, {"name": ref.get("name")})
    own_ref = {**ref, "name": asked.params["name"]}
    return RoutedRequest(
        namespace=asked.namespace, what=asked.what, params={**params, "ref": own_ref}
    )


def place_of(catalogue: Catalogue, uri: Any) -> tuple[str, str]:
    """The backend that has a resource, and the backend's own URI of it."""
    found = catalogue.resource(uri) if isinstance(uri, str) else None
    if found is None:
        raise e.ResourceUnknown(f"Unknown resource: {truncated(uri)}.", uri=truncated(uri))
    return found


def truncated(name: Any) -> str:
    """A stranger's name in one short line."""
    text = name if isinstance(name, str) else repr(name)
    cut = text if len(text) <= MAX_NAME_SHOWN else text[:MAX_NAME_SHOWN] + "…"
    return cut if cut.isprintable() else repr(cut)[1:-1]


ASKS: Final[Mapping[str, Callable[[Catalogue, dict[str, Any]], RoutedRequest]]] = {
    TOOLS_CALL: of_tool,
    PROMPTS_GET: of_prompt,
    RESOURCES_READ: of_resource,
    COMPLETION: of_completion,
}


class Checks(Entity):
    """The compiled schemas of the tools that were called, by the entry they belong to."""

    _schemas: Schemas = field(default_factory=Schemas)
    _of_tool: dict[str, tuple[ToolEntry, Schema | None]] = {}
    _reading: dict[str, asyncio.Lock] = {}
    """By namespace: one schema of a backend is read at a time."""

    def surely_fits(self, tool: ToolEntry, params: dict[str, Any]) -> bool:
        """Whether a call may be made without a further look; what is not sure is looked at."""
        if tool.quarantined:
            return False
        entry, schema = self._of_tool.get(tool.canonical, (None, None))
        arguments = params.get("arguments")
        return (
            entry is tool
            and (arguments is None or isinstance(arguments, dict))
            and (schema is None or (schema.prepared and schema.fits(arguments or {})))
        )

    async def faults(self, tool: ToolEntry, arguments: Any) -> list[Fault]:
        """What is wrong with the arguments of a call, as much as can be told in time.

        A schema is read when it is first needed, where that holds nobody up but those who call
        tools of the same backend.
        """
        if not isinstance(arguments, dict):
            return ["the arguments must be an object"]
        schema = self._schema(tool)
        if schema is None:
            return []
        if not schema.prepared:
            async with self._reading.setdefault(tool.namespace, asyncio.Lock()):
                await asyncio.to_thread(schema.prepare)
        faults = schema.faults(arguments)
        if faults and None in arguments.values():
            # Many clients send null for what they leave out.
            required = tool.schema.get("required")
            needed = required if isinstance(required, list) else ()
            given = {k: v for k, v in arguments.items() if v is not None or k in needed}
            faults = schema.faults(given)
        return faults

    def _schema(self, tool: ToolEntry) -> Schema | None:
        entry, schema = self._of_tool.get(tool.canonical, (None, None))
        if entry is not tool:
            schema = self._schemas.of(tool.schema, tool.canonical)
            if len(self._of_tool) >= MAX_CACHED_SCHEMAS:
                self._of_tool.clear()
            self._of_tool[tool.canonical] = tool, schema
        return schema
