"""Tools: functions that an agent offers to the room, with a schema made from their signature."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.client.limits import MAX_TOOL_NAME
from folkmoot.client.model import Message, ToolResult
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kinds import check_context

Function: TypeAlias = Callable[..., Any]

FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
"""How msgspec says that an argument is missing, or that there is no such argument."""
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class SendProgress(Protocol):
    """Tells a caller how far its call has come."""

    async def __call__(self, request: Message, params: dict[str, Any]) -> None: ...


class Context(Entity):
    """What a tool may know of the call it serves: a parameter of this type is filled in."""

    request: Message
    send_progress: SendProgress

    @property
    def caller(self) -> str:
        """The participant who called; the hub has made sure of it."""
        return self.request.sender

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the caller how far the call has come, if it asked to be told."""
        meta = self.request.payload.get("params", {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None:
            return
        told = {"progressToken": token, "progress": progress, "total": total, "message": message}
        params = {name: value for name, value in told.items() if value is not None}
        await self.send_progress(self.request, params)


class Tool(Struct, frozen=True):
    """One function as the room sees it."""

    name: str
    description: str
    schema: dict[str, Any]
    function: Function
    arguments: type[Struct]
    context: str | None
    """The parameter that takes the context, if one does."""
    idempotent: bool = False
    """Whether a call may be run again after it was interrupted."""
    annotations: dict[str, Any] = {}
    """What the tool says of itself, by the names that MCP has for it."""

    @property
    def listed(self) -> dict[str, Any]:
        """The tool as an entry of `tools/list`."""
        hints = {"idempotentHint": True} if self.idempotent else {}
        told = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": {**self.annotations, **hints},
        }
        return {name: value for name, value in told.items() if value}

    async def call(self, arguments: Any, context: Context) -> dict[str, Any]:
        """The result of a call. Arguments that do not fit are an `ArgumentInvalid`."""
        given = self._read(arguments)
        if self.context is not None:
            given[self.context] = context
        try:
            # A function that is not async may take its time: it must not hold up the room.
            if inspect.iscoroutinefunction(self.function):
                answer = await self.function(**given)
            else:
                answer = await asyncio.to_thread(self.function, **given)
            return result(answer)
        except e.ToolFailed as error:
            return {"content": [_text(error.message)], "isError": True}

    def _read(self, arguments: Any) -> dict[str, Any]:
        try:
            read = msgspec.convert({} if arguments is None else arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise self._misfit(str(error)) from None
        values = ((name, getattr(read, name)) for name in self.arguments.__struct_fields__)
        return {name: value for name, value in values if value is not UNSET}

    def _misfit(self, error: str) -> e.ArgumentInvalid:
        """What is wrong with arguments, in words."""
        what, _, where = error.partition(" - at `$.")
        field, match = where.rstrip("`"), FIELD.fullmatch(what)
        if match is None or field:
            return e.ArgumentInvalid(f"{field}: {what}." if field else f"{what}.", field=field)
        how, field = match.groups()
        if how == "missing required":
            return e.ArgumentInvalid(f"The argument {field} is missing.", field=field)
        takes = ", ".join(self.arguments.__struct_fields__) or "no arguments"
        wrong = f"{self.name} has no argument {field}; it takes {takes}."
        return e.ArgumentInvalid(wrong, field=field)


def make_tool(
    function: Function,
    name: str | None = None,
    description: str | None = None,
    *,
    idempotent: bool = False,
    **annotations: Any,
) -> Tool:
    """A tool from a function; a `TypeError` or `ValueError` says why it cannot be one."""
    called = getattr(function, "__name__", "tool") if name is None else name
    try:
        check_context(called)
    except e.FolkmootError as error:
        raise ValueError(f"{called!r} cannot be the name of a tool: {error}") from None
    if len(called) > MAX_TOOL_NAME:
        raise ValueError(f"The name of a tool has at most {MAX_TOOL_NAME} characters.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"The tool {called} has an annotation that its module does not know: {error}"
        ) from None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    defaults: dict[str, Any] = {}
    context = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if parameter.kind not in _NAMED:
            raise TypeError(
                f"The tool {called} takes {parameter}; only named parameters are supported."
            )
        if hint is Context:
            context = parameter.name
        elif parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint | UnsetType if hint is not Any else Any, UNSET))
            defaults[parameter.name] = parameter.default
    arguments = msgspec.defstruct(
        "Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=True
    )
    told = inspect.getdoc(function) if description is None else description
    schema = _schema(called, arguments, defaults)
    hints = {name: value for name, value in annotations.items() if value is not None}
    return Tool(called, told or "", schema, function, arguments, context, idempotent, hints)


def _schema(name: str, arguments: type[Struct], defaults: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the arguments: an object at its root, as MCP wants it."""
    try:
        _, parts = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    except TypeError as error:
        raise TypeError(
            f"The tool {name} takes a parameter that JSON cannot represent: {error}"
        ) from None
    schema = parts.pop("Arguments")
    del schema["title"]
    for parameter, default in defaults.items():
        try:
            schema["properties"][parameter] |= {"default": msgspec.to_builtins(default)}
        except (TypeError, ValueError):
            continue
    return {**schema, "$defs": parts} if parts else schema


def result(answer: Any) -> dict[str, Any]:
    """The return value of a function as an MCP tool result."""
    if isinstance(answer, ToolResult):
        told: dict[str, Any] = {"content": list(answer.content)}
        return (
            told if answer.structured is None else told | {"structuredContent": answer.structured}
        )
    if answer is None:
        return {"content": []}
    if isinstance(answer, str):
        return {"content": [_text(answer)]}
    plain = msgspec.to_builtins(answer)
    content = [_text(msgspec.json.encode(plain).decode())]
    if isinstance(plain, dict):
        return {"content": content, "structuredContent": plain}
    return {"content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
