"""What a server says of its tools and of itself, made fit to be shown: clients get valid MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.gateway.configured_rights import may_use
from folkmoot.gateway.limits import (
    MAX_ALL_INSTRUCTIONS,
    MAX_DEFINITION_BYTES,
    MAX_DEFINITION_TEXT,
    MAX_INSTRUCTIONS,
)
from folkmoot.gateway.model import Definition
from folkmoot.gateway.pin_comparison import INSTRUCTIONS
from folkmoot.gateway.pin_comparison import PROMPT as PROMPT_PIN

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.gateway.catalogue import Catalogue
    from folkmoot.gateway.model import Definition


Fit: TypeAlias = Callable[[Any], Any]
"""A member's value as it may be shown; None if it may not."""

TASK_SUPPORT: Final[tuple[Literal["optional", "required"], ...]] = ("optional", "required")
"""How a tool says that it can be run as a task; one that says nothing cannot."""
_ROLES: Final = frozenset({"user", "assistant"})


def fit(definition: Definition, members: Mapping[str, Fit]) -> tuple[Definition, list[str]]:
    """The definition as it may be shown, and the members that were left out.

    A member that is null counts as absent; one that is not known passes.
    """
    shown: Definition = {}
    dropped: list[str] = []
    for member, value in definition.items():
        rule = members.get(member)
        if rule is None:
            shown[member] = value
        elif value is not None:
            fitting = rule(value)
            if fitting is None:
                dropped.append(member)
            else:
                shown[member] = fitting
    return shown, dropped


def is_too_large(definition: Definition) -> bool:
    """Whether a definition is larger than any that is shown."""
    return len(msgspec.json.encode(definition)) > MAX_DEFINITION_BYTES


def fit_schema(value: Any) -> dict[str, Any] | None:
    """A tool's `inputSchema`: that of an object, which it may have left unsaid."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return None
    if kind == "object" and "type" in value and _is_plain(value):
        return value
    kept = {name: each for name, each in value.items() if _ROOT.get(name, _any)(each)}
    return {**kept, "type": "object"}


def is_object_schema(schema: Any) -> bool:
    """Whether the handshake era takes it as an `outputSchema`."""
    return isinstance(schema, dict) and schema.get("type") == "object" and _is_plain(schema)


def _is_plain(schema: dict[str, Any]) -> bool:
    return all(_ROOT[name](schema[name]) for name in _ROOT if name in schema)


def _any(_value: Any) -> bool:
    return True


_ROOT: Final[dict[str, Callable[[Any], bool]]] = {
    "$schema": lambda value: isinstance(value, str),
    "properties": lambda value: (
        isinstance(value, dict) and all(isinstance(each, dict | bool) for each in value.values())
    ),
    "required": lambda value: (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    ),
}
"""What clients read of a schema themselves."""


def _text(value: Any) -> str | None:
    return value[:MAX_DEFINITION_TEXT] if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _size(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _bool(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _priority(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and 0 <= value <= 1 else None


def _audience(value: Any) -> list[str] | None:
    known = isinstance(value, list) and all(each in _ROLES for each in value if _text(each))
    return value if known and all(isinstance(each, str) for each in value) else None


def _members(rules: Mapping[str, Fit]) -> Fit:
    def fitting(value: Any) -> dict[str, Any] | None:
        return fit(value, rules)[0] if isinstance(value, dict) else None

    return fitting


def _listed(rules: Mapping[str, Fit], needed: str) -> Fit:
    """A list of objects, of which those without the member that is needed are left out."""

    def fitting(value: Any) -> list[dict[str, Any]] | None:
        if not isinstance(value, list):
            return None
        kept = [fit(each, rules)[0] for each in value if isinstance(each, dict)]
        return [each for each in kept if needed in each]

    return fitting


_ICONS: Final = _listed(
    {
        "src": _text,
        "mimeType": _text,
        "sizes": lambda value: (
            value
            if isinstance(value, list) and all(isinstance(each, str) for each in value)
            else None
        ),
        "theme": lambda value: value if value in ("light", "dark") else None,
    },
    "src",
)
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_COMMON: Final[dict[str, Fit]] = {
    "name": _text,
    "title": _text,
    "description": _text,
    "icons": _ICONS,
    "_meta": _object,
}

TOOL: Final[dict[str, Fit]] = {
    **_COMMON,
    "inputSchema": fit_schema,
    "outputSchema": _object,
    "annotations": _members({"title": _text, **dict.fromkeys(_HINTS, _bool)}),
    "execution": _members(
        {"taskSupport": lambda value: value if value in (*TASK_SUPPORT, "forbidden") else None}
    ),
}
PROMPT: Final[dict[str, Fit]] = {
    **_COMMON,
    "arguments": _listed(
        {"name": _text, "title": _text, "description": _text, "required": _bool}, "name"
    ),
}
RESOURCE: Final[dict[str, Fit]] = {
    **_COMMON,
    "mimeType": _text,
    "size": _size,
    "annotations": _members({"audience": _audience, "priority": _priority, "lastModified": _text}),
}


CUT: Final = "…"
INTRODUCTION: Final = (
    "What the servers behind this hub say of themselves follows, each under its name. These are "
    "their words, not the hub's."
)


def fit_instructions(said: str) -> str:
    """The instructions of a backend as they may be shown."""
    kept = "".join(c for c in said[: 2 * MAX_INSTRUCTIONS] if c.isprintable() or c in "\n\t")
    return shortened(kept.strip(), MAX_INSTRUCTIONS)


def as_pinned(said: str) -> Definition:
    """What is pinned of instructions, also of none: then they are not new when there are some."""
    return {"name": INSTRUCTIONS, "description": fit_instructions(said)}


def prompts_as_pinned(prompts: Iterable[Definition], *, whole: bool) -> list[Definition]:
    """What is pinned of prompts, and that their list was read to its end if it was."""
    pinned = [{**each, "name": f"{PROMPT_PIN}{each['name']}"} for each in prompts]
    return [*pinned, {"name": PROMPT_PIN}] if whole else pinned


def joined(catalogue: Catalogue, rights: Rights) -> str:
    """The instructions of the backends the caller may use; empty without any.

    Lines of a backend's are indented, so that none can pass for another's.
    """
    told = {
        part.namespace: part.instructions
        for part in catalogue.present
        if part.instructions and may_use(rights, part.namespace)
    }
    if not told:
        return ""
    share = MAX_ALL_INSTRUCTIONS // len(told)
    blocks = [INTRODUCTION]
    for namespace, said in told.items():
        lines = shortened(said, share).splitlines()
        blocks.append("\n".join((f"{namespace}:", *(f"  {line}".rstrip() for line in lines))))
    return "\n\n".join(blocks)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, with a mark where it was cut."""
    return text if len(text) <= most else text[: max(0, most - len(CUT))].rstrip() + CUT
