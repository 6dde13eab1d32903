"""Lists for clients: encoded once for all callers with the same rights.

A cursor holds what came last, not how many did, so it outlives changes of the list.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct, field

from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, Rights, capability
from folkmoot.core.kinds import Kind
from folkmoot.gateway.catalogue import Catalogue
from folkmoot.gateway.configured_rights import some_tool
from folkmoot.gateway.definitions import is_object_schema
from folkmoot.gateway.limits import (
    LIST_ENTRY_BYTES,
    MAX_CACHED_LIST_BYTES,
    MAX_CACHED_LISTS,
    MAX_LIST_CURSOR,
    MAX_LIST_PAGE,
    MAX_LIST_PAGE_BYTES,
)
from folkmoot.gateway.model import (
    Definition,
    PromptEntry,
    ToolEntry,
    What,
)
from folkmoot.gateway.part import METHODS, BackendOffer, Entry, kind_of
from folkmoot.gateway.rights import SAME_AS_TOOL, Scoped
from folkmoot.mcp.wire import SERVER_KEY, UNCACHED
from folkmoot.names import NameStyle
from folkmoot.names.safe_names import without_combinators

ListPlace: TypeAlias = tuple[str, str]
"""A namespace and a name or URI: what lists are sorted by."""

_decoder = msgspec.json.Decoder(tuple[str, str, str])


def make_cursor(what: What, last: ListPlace) -> str:
    """The cursor of what comes after this place in a list."""
    return base64.urlsafe_b64encode(msgspec.json.encode((what, *last))).decode().rstrip("=")


def read_cursor(what: What, cursor: str) -> ListPlace:
    """The place a cursor stands for; an `ArgumentInvalid` for what is no cursor of this list."""
    try:
        if len(cursor) > MAX_LIST_CURSOR or not cursor.isascii():
            raise ValueError  # noqa: TRY301 - all that is no cursor gets the one answer
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        listed, namespace, key = _decoder.decode(text)
    except (ValueError, msgspec.MsgspecError):
        listed = namespace = key = ""
    if listed != what:
        raise e.ArgumentInvalid(
            "cursor must be the nextCursor of an earlier answer to the same question.",
            field="cursor",
        )
    return namespace, key


HubDefinitions: TypeAlias = Callable[[NameStyle, bool], list[Definition]]
"""What the hub itself adds to a list, in a style: tools with those only for apps or without, and
resources with the older type of apps or with today's."""

MEMBERS: Final[dict[What, str]] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resourceTemplates",
    "prompts": "prompts",
}
ABSENT_KEY: Final = "folkmoot/absent"


OURS: Final = ""
"""The namespace of the hub's own entries in the order of a list: they come first."""

_encode = msgspec.json.Encoder().encode
_Key: TypeAlias = tuple[What, Rights, NameStyle, bool, bool]


class _Book(Struct, eq=False):
    """One list for one set of rights: its entries in order, and its pages so far."""

    places: list[ListPlace]
    entries: list[Raw | Entry]
    """The hub's own are written already."""
    absent: dict[str, str]
    given: set[str | None] = field(default_factory=lambda: {None})
    """The cursors that were given out: pages at other places are made and not kept."""
    pages: dict[str | None, Raw] = field(default_factory=dict)
    size: int = 0


class Listings:
    """Answers `tools/list` and its like. A page that is kept costs a look into a table.

    Rights are told apart by identity, so equal ones should be one object.
    """

    def __init__(
        self,
        own: Mapping[What, HubDefinitions] | None = None,
        *,
        server_info: dict[str, Any],
        page_size: int = MAX_LIST_PAGE,
    ) -> None:
        self._own = own or {}
        self._server_info = server_info
        self._page_size = page_size
        self._catalogue = Catalogue()
        self._books: OrderedDict[_Key, _Book] = OrderedDict()
        self._size = 0
        self._written: dict[BackendOffer, dict[tuple[Entry, NameStyle, bool], Raw]] = {}

    def renew(self, catalogue: Catalogue) -> None:
        """List what another catalogue holds; what its unchanged parts look like is kept."""
        self._catalogue = catalogue
        self._books.clear()
        self._size = 0
        written = self._written
        self._written = {part: written.get(part, {}) for part in catalogue.parts.values()}

    def tools(
        self,
        rights: Rights,
        style: NameStyle,
        *,
        apps: bool = False,
        stateless: bool = True,
        cursor: str | None = None,
    ) -> Raw:
        return self.page("tools", rights, style, apps=apps, stateless=stateless, cursor=cursor)

    def resources(
        self, rights: Rights, *, stateless: bool = True, cursor: str | None = None
    ) -> Raw:
        return self.page("resources", rights, stateless=stateless, cursor=cursor)

    def templates(
        self, rights: Rights, *, stateless: bool = True, cursor: str | None = None
    ) -> Raw:
        """The result of `resources/templates/list`."""
        return self.page("templates", rights, stateless=stateless, cursor=cursor)

    def prompts(
        self,
        rights: Rights,
        style: NameStyle,
        *,
        stateless: bool = True,
        cursor: str | None = None,
    ) -> Raw:
        return self.page("prompts", rights, style, stateless=stateless, cursor=cursor)

    def page(
        self,
        what: What,
        rights: Rights,
        style: NameStyle = "canonical",
        *,
        apps: bool = False,
        stateless: bool = True,
        cursor: str | None = None,
    ) -> Raw:
        """A page of a list: its first, or the one a cursor of an earlier page leads to."""
        key = (what, rights, style, apps, stateless)
        book = self._books.get(key)
        if book is None:
            book = self._opened(key)
        else:
            self._books.move_to_end(key)
        page = book.pages.get(cursor)
        return self._made(key, book, cursor) if page is None else page

    def _opened(self, key: _Key) -> _Book:
        what, rights, style, apps, _ = key
        ours = self._own[what](style, apps) if what in self._own else []
        if isinstance(rights, Scoped):
            ours = [each for each in ours if shows_own(rights, own_kind(what, each))]
        places: list[ListPlace] = [(OURS, f"{at:09d}") for at in range(len(ours))]
        entries: list[Raw | Entry] = [Raw(_encode(each)) for each in ours]
        for part in self._catalogue.present:
            rows = part.rows[what]
            # One look for all of it, where that is enough: there may be many thousands.
            if not rights.covers(whole_of(what, part.namespace)):
                rows = tuple(row for row in rows if rights.allows(row.kind))
            if what == "tools" and not apps:
                rows = tuple(row for row in rows if not is_app_only(row.entry))
            places += [(part.namespace, row.key) for row in rows]
            entries += [row.entry for row in rows]
        book = _Book(places, entries, self.absent(what, rights))
        book.size = LIST_ENTRY_BYTES * max(0, len(entries) - self._page_size)
        self._books[key] = book
        self._size += book.size
        while len(self._books) > MAX_CACHED_LISTS or (
            self._size > MAX_CACHED_LIST_BYTES and len(self._books) > 1
        ):
            self._close_oldest()
        return book

    def _made(self, key: _Key, book: _Book, cursor: str | None) -> Raw:
        what, _, style, _, stateless = key
        start = 0 if cursor is None else bisect_right(book.places, read_cursor(what, cursor))
        size = 0
        entries: list[Raw] = []
        for entry in islice(book.entries, start, start + self._page_size):
            written = entry if type(entry) is Raw else self._entry(entry, style, stateless)
            size += len(memoryview(written))
            if size > MAX_LIST_PAGE_BYTES and entries:
                break
            entries.append(written)
        end = start + len(entries)
        listed: dict[str, Any] = {MEMBERS[what]: entries}
        following = make_cursor(what, book.places[end - 1]) if end < len(book.entries) else None
        if following is not None:
            listed["nextCursor"] = following
        meta: dict[str, Any] = {}
        if stateless:
            listed |= UNCACHED
            meta[SERVER_KEY] = self._server_info
        if book.absent:
            meta[ABSENT_KEY] = book.absent
        if meta:
            listed["_meta"] = meta
        page = Raw(_encode(listed))
        # Made-up cursors would otherwise fill the memory that ready-made answers have.
        if cursor in book.given:
            self._keep(book, cursor, page, following)
        return page

    def _keep(self, book: _Book, cursor: str | None, page: Raw, following: str | None) -> None:
        size = len(memoryview(page))
        if size > MAX_CACHED_LIST_BYTES:
            return
        if following is not None:
            book.given.add(following)
        book.pages[cursor] = page
        book.size += size
        self._size += size
        while self._size > MAX_CACHED_LIST_BYTES:
            self._close_oldest()

    def _close_oldest(self) -> None:
        _, book = self._books.popitem(last=False)
        self._size -= book.size

    def _entry(self, entry: Entry, style: NameStyle, stateless: bool) -> Raw:  # noqa: FBT001
        """An entry encoded for a list, shared by everyone who sees it."""
        kept = self._written[self._catalogue.parts[entry.namespace]]
        written = kept.get((entry, style, stateless))
        if written is None:
            written = Raw(_encode(self._shown(entry, style, stateless=stateless)))
            kept[entry, style, stateless] = written
        return written

    def _shown(self, entry: Entry, style: NameStyle, *, stateless: bool) -> Definition:
        if isinstance(entry, ToolEntry):
            name = self._catalogue.names.spell(entry.canonical, style)
            return tool_shown(entry, name, style, stateless=stateless)
        if isinstance(entry, PromptEntry):
            name = self._catalogue.prompt_names.spell(entry.canonical, style)
            return {**entry.definition, "name": name}
        return entry.definition

    def absent(self, what: What, rights: Rights) -> dict[str, str]:
        """Why entries are missing that this caller could have."""
        found: dict[str, str] = {}
        for namespace, why in self._catalogue.absent.items():
            if rights.missing(some_tool(namespace)):
                continue
            whole = whole_of(what, namespace)
            held = rights.capabilities
            if any(not each.denies and each.intersects(whole) for each in held) and not any(
                each.denies and each.covers(whole) for each in held
            ):
                found[namespace] = why
        return found


def shows_own(rights: Scoped, kind: Kind) -> bool:
    """Whether someone is shown an entry of the hub's own: it is in scope, and not denied."""
    same = SAME_AS_TOOL.get(kind.context or "")
    denied = rights.denies(kind) or (same is not None and rights.denies(kind_of("tools", same)))
    return not denied and rights.in_scope(kind)


def own_kind(what: What, definition: Definition) -> Kind:
    """The kind of the request for an entry of the hub's own."""
    return kind_of(what, definition["title" if what == "tools" else "uri"])


@lru_cache(maxsize=1024)
def whole_of(what: What, namespace: str) -> Capability:
    """The right to all that a backend could have of a list."""
    separator = ":" if what in ("tools", "prompts") else "://"
    return capability(f"mcp.request.{METHODS[what]}:{namespace}{separator}*")


def tool_shown(entry: ToolEntry, name: str, style: NameStyle, *, stateless: bool) -> Definition:
    """A tool as a style and an era show it."""
    shown = {**entry.definition, "name": name}
    if style == "safe":
        shown["inputSchema"] = without_combinators(entry.schema)
    # The handshake era knows results that are objects, and its clients refuse a list over others.
    if not stateless and "outputSchema" in shown and not is_object_schema(shown["outputSchema"]):
        del shown["outputSchema"]
    return shown


def is_app_only(entry: Entry) -> bool:
    """Whether a tool is for its app and not for models."""
    ui = entry.definition.get("_meta", {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return isinstance(visibility, list) and "model" not in visibility and "app" in visibility
