"""One backend's part of the catalogue, made once from its lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.kinds import Kind, check_context, parse
from folkmoot.gateway.definitions import (
    PROMPT,
    RESOURCE,
    TASK_SUPPORT,
    TOOL,
    Fit,
    as_pinned,
    fit,
    fit_instructions,
    is_too_large,
    prompts_as_pinned,
)
from folkmoot.gateway.limits import MAX_FAULTS
from folkmoot.gateway.mapping import exposed_names, exposed_uri, shown_uri
from folkmoot.gateway.model import (
    Definition,
    Inventory,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
    What,
)
from folkmoot.gateway.pin_comparison import (
    INSTRUCTIONS,
    Judged,
    Verdict,
    is_prompt,
    pinned_name,
)
from folkmoot.gateway.pin_comparison import PROMPT as PROMPT_PIN
from folkmoot.gateway.pins import Pins, offload
from folkmoot.gateway.results import map_meta
from folkmoot.mcp import wire
from folkmoot.mcp.client.headers import wrong_mark
from folkmoot.mcp.wire import members_of
from folkmoot.names import WireNames
from folkmoot.names.safe_names import NAME_KEY

TEMPLATE: Final = "uriTemplate"
MIRRORING: Final = b'"x-mcp-header"'
"""Marks a property whose value clients repeat in a header."""
QUARANTINE: Final[dict[Verdict, Literal["changed", "new"]]] = {"changed": "changed", "held": "new"}
"""Why a tool is held back, by what was made of it."""

Entry: TypeAlias = ToolEntry | PromptEntry | ResourceEntry
AN_OBJECT: Final = {"type": "object"}
TASK_CALLS: Final = ("requests", "tools", "call")
"""Where a handshake server's capability `tasks` says that calls of tools can be tasks."""

METHODS: Final[dict[What, str]] = {
    "tools": wire.TOOLS_CALL,
    "prompts": wire.PROMPTS_GET,
    "resources": wire.RESOURCES_READ,
    "templates": wire.RESOURCES_READ,
}
"""The request that one must be allowed to make for an entry to be listed."""

_BASES: Final = {what: parse(f"mcp.request.{method}") for what, method in METHODS.items()}


class Row(NamedTuple):
    """One entry of a list: its sort key, and the kind that decides who sees it."""

    key: str
    kind: Kind
    entry: Entry


class BackendOffer(Struct, frozen=True, kw_only=True, eq=False):
    """One backend's offer, under its names here."""

    namespace: str
    tools: dict[str, ToolEntry]
    """By canonical name; those that are held back are among them."""
    prompts: dict[str, PromptEntry]
    resources: dict[str, ResourceEntry]
    templates: dict[str, ResourceEntry]
    rows: dict[What, tuple[Row, ...]]
    """What is listed, in order."""
    names: WireNames
    prompt_names: WireNames
    faults: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    """The tools that are held back until they are accepted, by canonical name."""
    findings: dict[What, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """What descriptions hold that they should not, by canonical name or URI."""
    instructions: str = ""
    """What the backend says of its use, as far as it was accepted."""


async def make_part(
    namespace: str,
    inventory: Inventory,
    pins: Pins,
    *,
    patterns: Sequence[str] = (),
    trusted: bool = False,
    hold_new: bool = True,
) -> BackendOffer:
    """A backend's offer, with its tools compared to their pins.

    `patterns` speak of the tools that are shown; none for all. With `hold_new`, tools that come
    after the first inventory are held back.
    """
    size = sum(len(getattr(inventory, what)) for what in METHODS)
    named = await offload(size, _named, namespace, inventory, tuple(patterns))
    judged = await pins.judge(
        namespace,
        [
            *named.tools.values(),
            *prompts_as_pinned(named.prompts.values(), whole="prompts" not in inventory.partial),
            as_pinned(inventory.instructions),
        ],
        trusted=trusted,
        hold_new=hold_new,
        whole="tools" not in inventory.partial,
    )
    return await offload(size, _assembled, namespace, inventory, named, judged)


class _Named(NamedTuple):
    tools: dict[str, Definition]
    prompts: dict[str, Definition]
    faults: list[str]


def _named(namespace: str, inventory: Inventory, patterns: Sequence[str]) -> _Named:
    """Tools and prompts that have a name here, are not too large and can be used."""
    tools = exposed_names(namespace, inventory.tools, what="tool", patterns=patterns)
    prompts = exposed_names(namespace, inventory.prompts, what="prompt")
    faults = [*inventory.faults, *tools.faults, *prompts.faults]
    tasks = offers_tasks(inventory)
    return _Named(
        {
            name: each
            for name, each in tools.by_name.items()
            if not _excess(name, each, faults)
            and not _is_named_as_prompt(name, each, faults)
            and (tasks or not _needs_task(name, each, faults))
            and not (inventory.stateless and _is_mismarked(name, each, faults))
        },
        {name: each for name, each in prompts.by_name.items() if not _excess(name, each, faults)},
        faults,
    )


def _assembled(
    namespace: str, inventory: Inventory, named: _Named, judged: Mapping[str, Judged]
) -> BackendOffer:
    faults = list(named.faults)
    entries: dict[What, dict[str, Any]] = {
        "tools": dict(
            _tools(namespace, named.tools, judged, faults, tasks=offers_tasks(inventory))
        ),
        "prompts": dict(_prompts(namespace, named.prompts, judged, faults)),
        "resources": dict(_located(namespace, "uri", inventory.resources, faults)),
        "templates": dict(_located(namespace, TEMPLATE, inventory.templates, faults)),
    }
    findings = _findings(inventory, entries)
    faults += (
        f"The description of {_brief(name)} has suspicious content: {', '.join(found)}."
        for table in findings.values()
        for name, found in table.items()
    )
    rows = {what: _rows(what, table, faults) for what, table in entries.items()}
    instructions, changed = _instructions(inventory, judged)
    held = [name for name, each in entries["tools"].items() if each.quarantined]
    held += [
        pinned_name(namespace, f"{PROMPT_PIN}{each.own}")
        for each in entries["prompts"].values()
        if each.quarantined
    ]
    if changed:
        held.append(pinned_name(namespace, INSTRUCTIONS))
        faults.append("Its instructions have changed and are held back until they are accepted.")
    if len(faults) > MAX_FAULTS:
        faults[MAX_FAULTS:] = [f"And {len(faults) - MAX_FAULTS:,} more problems."]
    return BackendOffer(
        namespace=namespace,
        rows=rows,
        names=WireNames(entries["tools"]),
        prompt_names=WireNames(entries["prompts"]),
        faults=tuple(faults),
        held=tuple(sorted(held)),
        findings=findings,
        instructions=instructions,
        **entries,
    )


def _findings(
    inventory: Inventory, entries: Mapping[What, Mapping[str, Any]]
) -> dict[What, dict[str, tuple[str, ...]]]:
    """The findings in descriptions, by the names here."""
    return {
        what: {
            name: found[entry.own]
            for name, entry in sorted(entries[what].items())
            if entry.own in found
        }
        for what, found in inventory.findings.items()
    }


def _instructions(inventory: Inventory, judged: Mapping[str, Judged]) -> tuple[str, bool]:
    """The accepted instructions of a backend, and whether it has others by now."""
    verdict, pinned = judged[INSTRUCTIONS].verdict, judged[INSTRUCTIONS].pinned
    if verdict == "changed":
        return (pinned or {}).get("description", ""), True
    return fit_instructions(inventory.instructions) if verdict in ("new", "same") else "", False


def kind_of(what: What, context: str) -> Kind:
    """The kind of the request for an entry; a `KindError` for what no kind can hold."""
    check_context(context)
    base = _BASES[what]
    return Kind(
        base.protocol,
        base.operation,
        base.method,
        context,
        base.root,
        base.base,
        f"{base.base}:{context}",
    )


def tool_entry(namespace: str, canonical: str, definition: Definition, **more: Any) -> ToolEntry:
    """A tool from a definition that is fit to be shown; one without a title has its name there."""
    hints = definition.get("annotations", {})
    shown = {
        **definition,
        "title": definition.get("title") or hints.get("title") or canonical,
        "_meta": {
            **map_meta(definition.get("_meta", {}), partial(shown_uri, namespace)),
            NAME_KEY: canonical,
        },
    }
    return ToolEntry(
        canonical=canonical,
        namespace=namespace,
        definition=shown,
        schema=shown["inputSchema"],
        mirrored=MIRRORING in msgspec.json.encode(shown["inputSchema"]),
        repeatable=hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True,
        **more,
    )


def _tools(
    namespace: str,
    named: Mapping[str, Definition],
    judged: Mapping[str, Judged],
    faults: list[str],
    *,
    tasks: bool,
) -> Iterable[tuple[str, ToolEntry]]:
    for canonical, definition, found in _judged(named, judged, "tool", faults):
        shown = _fitted(canonical, found.pinned or definition, TOOL, faults)
        shown.setdefault("inputSchema", AN_OBJECT)
        support = task_support(shown) if tasks else ""
        if not support:
            shown.pop("execution", None)
        yield (
            canonical,
            tool_entry(
                namespace,
                canonical,
                shown,
                own=definition["name"],
                quarantined=QUARANTINE.get(found.verdict, ""),
                task_support=support,
            ),
        )


def _judged(
    named: Mapping[str, Definition],
    judged: Mapping[str, Judged],
    what: Literal["tool", "prompt"],
    faults: list[str],
) -> Iterable[tuple[str, Definition, Judged]]:
    """The tools or prompts that have a pin, with what was made of each."""
    unread = False
    for canonical, definition in named.items():
        own = definition["name"] if what == "tool" else f"{PROMPT_PIN}{definition['name']}"
        found = judged[own]
        if found.verdict == "refused":
            faults.append(f"{canonical} is not shown: the backend has had too many {what}s.")
            continue
        if found.verdict == "unread":
            unread = True
            continue
        if found.verdict == "changed":
            faults.append(f"{canonical} has changed and is held back until it is accepted.")
        if found.verdict == "held":
            faults.append(f"{canonical} is new and is held back until it is accepted.")
        yield canonical, definition, found
    if unread:
        faults.append(f"No {what} is shown until the whole list has been read once.")


def _prompts(
    namespace: str,
    named: Mapping[str, Definition],
    judged: Mapping[str, Judged],
    faults: list[str],
) -> Iterable[tuple[str, PromptEntry]]:
    for canonical, definition, found in _judged(named, judged, "prompt", faults):
        shown = _fitted(canonical, definition, PROMPT, faults)
        shown["_meta"] = {**shown.get("_meta", {}), NAME_KEY: canonical}
        yield (
            canonical,
            PromptEntry(
                canonical=canonical,
                namespace=namespace,
                own=definition["name"],
                definition=shown,
                quarantined=QUARANTINE.get(found.verdict, ""),
            ),
        )


def _located(
    namespace: str, member: str, definitions: Iterable[Any], faults: list[str]
) -> Iterable[tuple[str, ResourceEntry]]:
    seen: set[str] = set()
    for definition in definitions:
        own = definition.get(member) if isinstance(definition, dict) else None
        if not isinstance(own, str) or not own:
            faults.append(f"A resource of {namespace} has no {member} and is not shown.")
            continue
        uri = exposed_uri(namespace, own)
        if uri in seen or _excess(uri, definition, faults):
            continue
        seen.add(uri)
        shown = _fitted(uri, definition, RESOURCE, faults)
        spelled = shown_uri(namespace, own, template=member == TEMPLATE)
        shown = {"name": own, **shown, member: spelled}
        yield uri, ResourceEntry(uri=uri, namespace=namespace, own=own, definition=shown)


def _rows(what: What, named: dict[str, Any], faults: list[str]) -> tuple[Row, ...]:
    """The rows of a list; what no right can speak of is taken out of the table too."""
    rows: list[Row] = []
    for key in sorted(named):
        entry = named[key]
        try:
            kind = kind_of(what, key)
        except e.KindError as error:
            faults.append(f"{_brief(key)} is not shown: {error}")
            del named[key]
            continue
        if not getattr(entry, "quarantined", ""):
            rows.append(Row(key, kind, entry))
    return tuple(rows)


def _fitted(
    key: str, definition: Definition, members: Mapping[str, Fit], faults: list[str]
) -> Definition:
    shown, dropped = fit(definition, members)
    if dropped:
        faults.append(f"{_brief(key)} is shown without its invalid parts: {', '.join(dropped)}.")
    return shown


def _excess(key: str, definition: Definition, faults: list[str]) -> bool:
    excess = is_too_large(definition)
    if excess:
        faults.append(f"{_brief(key)} is too large and is not shown.")
    return excess


def offers_tasks(inventory: Inventory) -> bool:
    """Whether a server declares tasks for tool calls, in the words of its era."""
    told: Any = inventory.capabilities
    path = ("extensions", wire.TASKS_EXTENSION) if inventory.stateless else ("tasks", *TASK_CALLS)
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    return isinstance(told, dict)


def task_support(definition: Definition) -> Literal["", "optional", "required"]:
    """Whether a tool may, or must, be called as a task."""
    told = members_of(definition.get("execution")).get("taskSupport")
    return next((each for each in TASK_SUPPORT if each == told), "")


def _is_named_as_prompt(key: str, definition: Definition, faults: list[str]) -> bool:
    if not is_prompt(definition["name"]):
        return False
    faults.append(f"{_brief(key)} is named as pins of prompts are, and is not shown.")
    return True


def _needs_task(key: str, definition: Definition, faults: list[str]) -> bool:
    needed = task_support(definition) == "required"
    if needed:
        faults.append(
            f"{_brief(key)} can only be run as a task, which its server does not offer, "
            "and is not shown."
        )
    return needed


def _is_mismarked(key: str, definition: Definition, faults: list[str]) -> bool:
    wrong = wrong_mark(definition.get("inputSchema"))
    if wrong:
        faults.append(f"{_brief(key)} is not shown: in its schema, {wrong}.")
    return bool(wrong)


def _brief(key: str) -> str:
    cut = key if len(key) <= 120 else key[:120] + "…"
    return cut if cut.isprintable() else repr(cut)[1:-1]
