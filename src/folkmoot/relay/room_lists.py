"""What one backend lists in a room: as much of it as the one who asks may use at the hub."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core.errors import ArgumentInvalid
from folkmoot.gateway.cursors import make_cursor, read_cursor
from folkmoot.gateway.listing import MEMBERS, is_app_only, tool_shown
from folkmoot.gateway.model import PromptEntry, ToolEntry
from folkmoot.gateway.part import TEMPLATE
from folkmoot.mcp.wire import PROMPTS_LIST, RESOURCES_LIST, TEMPLATES_LIST, TOOLS_LIST

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.gateway.catalogue import Catalogue
    from folkmoot.gateway.model import Definition, What
    from folkmoot.gateway.part import Entry

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
        raise ArgumentInvalid("cursor must be a string.", field="cursor")
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
