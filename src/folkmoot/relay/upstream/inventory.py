"""Everything a server lists, read within bounds, and what descriptions hold and should not.

The patterns that are looked for are those of the interceptor `scrub-descriptions`. Definitions that
were looked at before are known by their hash, so a list that is read again costs next to nothing.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import ErrorObject
from folkmoot.core.strict import encode
from folkmoot.gateway.limits import MAX_ENTRIES_IN_LOOP
from folkmoot.gateway.model import Definition, Inventory, UpstreamRequest, What
from folkmoot.gateway.pins import offload
from folkmoot.mcp import wire
from folkmoot.mcp.wire import members_of
from folkmoot.proxy.interceptors.descriptions import TOO_LONG, poisons_of
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.requests import Late, Unanswered
from folkmoot.settings.backends import BackendSpec

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

MOST_ENTRIES: Final = 100_000
MOST_PAGES: Final = 1_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""What all lists of a server together may have."""
LONGEST_NAME: Final = 2048
PAGE_SECONDS: Final = 30.0
MOST_INSTRUCTIONS: Final = 4_000
"""Characters of a server's instructions that are looked at; fewer are passed on."""
LONGEST_WHY: Final = 200
"""How much of a server's own words is passed on."""
MOST_NAMED: Final = 5
"""Entries of a list that cannot be used and are told of one by one."""


class ListKind(Struct, frozen=True):
    """One list: its capability, its method, and the required members of its entries."""

    what: What
    capability: str
    method: str
    member: str
    key: str


KINDS: Final = (
    ListKind("tools", "tools", wire.TOOLS_LIST, "tools", "name"),
    ListKind("resources", "resources", wire.RESOURCES_LIST, "resources", "uri"),
    ListKind(
        "templates",
        "resources",
        wire.TEMPLATES_LIST,
        "resourceTemplates",
        "uriTemplate",
    ),
    ListKind("prompts", "prompts", wire.PROMPTS_LIST, "prompts", "name"),
)


async def take_inventory(
    target: str | Sequence[str],
    *,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str = "",
    seconds: float = 30.0,
    clock: Clock | None = None,
) -> Inventory:
    """What the server at a URL, or the one that a command starts, lists.

    `env` is added to what every server may know of our environment; `cwd` is where the command
    runs. Raises a `FolkmootError` if
    the server cannot be reached or says nothing within `seconds`.
    """
    by_url = isinstance(target, str)
    spec = BackendSpec(
        name="server",
        namespace="server",
        url=target if isinstance(target, str) else "",
        command=() if by_url else tuple(target),
        headers=dict(headers or {}),
        env=dict(env or {}),
        cwd=cwd,
        connect_seconds=seconds,
    )
    connecting = Connecting(spec, clock or SystemClock(), os.environ)
    try:
        async with BackendConversation.opened(connecting.link, seconds=seconds) as conversation:
            return await drain(conversation, seconds=seconds)
    except Unanswered as error:
        raise e.BackendFailed(connecting.told(error.why.message)) from None
    except e.ServerUnreachable as error:
        raise e.ServerUnreachable(connecting.told(error.message)) from None


async def drain(
    conversation: BackendConversation,
    *,
    seconds: float = PAGE_SECONDS,
    looking: Looking | None = None,
) -> Inventory:
    """What the server of an open conversation lists; each page may take `seconds`.

    Lists that could not be had are `partial`. `looking` knows the descriptions that were looked at
    before. Raises `Unanswered` where the link breaks meanwhile.
    """
    draining = _Draining(conversation, seconds)
    for kind in KINDS:
        if kind.capability in conversation.capabilities:
            await draining.take(kind)
    looking = looking or Looking()
    findings, skipped = await looking.found_in(draining.lists, draining.size)
    if skipped:
        draining.faults.append(f"{skipped:,} descriptions were too much to look at for now.")
    told = conversation.discovered.get("instructions")
    if isinstance(told, str) and (found := in_instructions(told[:MOST_INSTRUCTIONS])):
        draining.faults.append(f"Its instructions hold what they should not: {', '.join(found)}.")
    return Inventory(
        **{str(what): tuple(entries) for what, entries in draining.lists.items()},
        capabilities=conversation.capabilities,
        server=conversation.server,
        instructions=told if isinstance(told, str) else "",
        stateless=conversation.stateless,
        faults=tuple(draining.faults),
        partial=frozenset(draining.missing),
        findings=findings,
    )


class _Draining(Entity):
    """The lists read so far."""

    conversation: BackendConversation
    seconds: float
    _entries: int = 0
    _pages: int = 0
    size: int = 0
    lists: dict[What, list[Definition]] = {}
    faults: list[str] = []
    missing: set[What] = set()

    async def take(self, kind: ListKind) -> None:
        """Read one list to its end."""
        found = self.lists.setdefault(kind.what, [])
        seen: set[str] = set()
        cursor: str | None = None
        unusable = _Unusable(kind)
        while (why := self._too_much()) is None:
            page = await self._page(kind, cursor)
            if page is None:
                break
            self._keep(kind, page, found, unusable)
            following = page.get("nextCursor")
            if not isinstance(following, str) or not following:
                break
            if following in seen:
                why = "the server names a page again that was read already"
                break
            seen.add(following)
            cursor = following
        if why is not None:
            self.faults.append(f"{kind.method} was not read to its end: {why}.")
        self.faults += unusable.faults()

    async def _page(self, kind: ListKind, cursor: str | None) -> dict[str, Any] | None:
        params = {} if cursor is None else {"cursor": cursor}
        self._pages += 1
        try:
            answer = await self.conversation.request(
                UpstreamRequest(method=kind.method, params=params), self.seconds
            )
        except Late:
            self._give_up(kind, f"no answer within {self.seconds:g} seconds", cursor)
            return None
        except Unanswered as error:
            if error.gone:
                raise
            self._give_up(kind, error.why.message, cursor)
            return None
        if isinstance(answer.error, ErrorObject):
            # Many servers with resources know no templates, and say so in this way.
            if answer.error.code != wire.METHOD_NOT_FOUND or kind.what != "templates":
                self._give_up(kind, answer.error.message, cursor)
            return None
        page = members_of(answer.result)
        if not isinstance(page.get(kind.member), list):
            self._give_up(kind, "the answer is no list", cursor)
            return None
        self.size += len(encode(page))
        return page

    def _give_up(self, kind: ListKind, why: str, cursor: str | None) -> None:
        self.missing.add(kind.what)
        how = "cannot be had" if cursor is None else "was not read to its end"
        self.faults.append(f"{kind.method} {how}: {why[:LONGEST_WHY].rstrip('.')}.")

    def _keep(
        self, kind: ListKind, page: dict[str, Any], found: list[Definition], unusable: _Unusable
    ) -> None:
        for entry in page[kind.member]:
            if self._entries >= MOST_ENTRIES:
                return
            self._entries += 1
            if _usable(entry, kind.key):
                found.append(entry)
            else:
                unusable.note(entry)

    def _too_much(self) -> str | None:
        if self._entries >= MOST_ENTRIES:
            return f"more than {MOST_ENTRIES:,} entries are not accepted"
        if self._pages >= MOST_PAGES:
            return f"more than {MOST_PAGES:,} pages are not accepted"
        if self.size >= MOST_BYTES:
            return f"more than {MOST_BYTES // 2**20} MiB are not accepted"
        return None


class _Unusable(Entity):
    """Entries that are left out, told of in a bounded number of sentences."""

    kind: ListKind
    _count: int = 0
    _shown: list[str] = []

    def note(self, entry: Any) -> None:
        self._count += 1
        if len(self._shown) < MOST_NAMED:
            named = entry.get("name") if isinstance(entry, dict) else None
            self._shown.append(repr(named)[:80] if isinstance(named, str) else "one without a name")

    def faults(self) -> list[str]:
        if not self._count:
            return []
        kind = self.kind
        more = "" if self._count <= MOST_NAMED else f" and {self._count - MOST_NAMED} more"
        left_out = f"{', '.join(self._shown)}{more}"
        return [f"Entries of {kind.method} have no usable {kind.key} and were skipped: {left_out}."]


def _usable(entry: Any, key: str) -> bool:
    name = entry.get(key) if isinstance(entry, dict) else None
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME


def kept(new: Inventory, last: Inventory | None) -> Inventory:
    """A new inventory; a list that could not be had now is as it was."""
    if last is None or not new.partial:
        return new
    findings = dict(new.findings)
    for what in new.partial:
        findings.pop(what, None)
        if what in last.findings:
            findings[what] = last.findings[what]
    return replace(
        new,
        **{what: getattr(last, what) for what in new.partial},
        partial=new.partial & last.partial,
        findings=findings,
    )


Findings: TypeAlias = dict[What, dict[str, tuple[str, ...]]]
"""By list, and by the server's own name or URI; entries with nothing to tell are not in it."""

SEARCHED_BYTES: Final = 32 * 1024
"""Of one definition; a longer one is not looked at, and is told to be too long."""
MOST_NEW_BYTES: Final = 4 * 1024 * 1024
"""Of all definitions that were not looked at before; the rest has its turn the next time."""
FEW_BYTES: Final = 4 * 1024
"""What is looked at in the loop, in some milliseconds; more is left to a thread."""
MOST_KNOWN: Final = 20_000

KEYS: Final[dict[What, str]] = {kind.what: kind.key for kind in KINDS}


@lru_cache(maxsize=256)
def in_instructions(said: str) -> tuple[str, ...]:
    """The findings in a server's instructions."""
    return poisons_of({"instructions": said})


class Looking(Entity):
    """Looks at what one server lists, and remembers what was found in which definition."""

    _known: OrderedDict[bytes, tuple[str, ...]] = field(default_factory=OrderedDict)

    async def found_in(
        self, lists: Mapping[What, Sequence[Definition]], size: int
    ) -> tuple[Findings, int]:
        """What was found, and how many definitions were not looked at; `size` is in bytes."""
        return await offload(size * MAX_ENTRIES_IN_LOOP // FEW_BYTES, self._look, lists)

    def _look(self, lists: Mapping[What, Sequence[Definition]]) -> tuple[Findings, int]:
        findings: Findings = {}
        skipped, left = 0, MOST_NEW_BYTES
        for what, entries in lists.items():
            for entry in entries:
                text = msgspec.json.encode(entry)
                digest = blake2b(text, digest_size=16).digest()
                found = self._known.pop(digest, None)
                if found is None:
                    if len(text) > SEARCHED_BYTES:
                        found = (TOO_LONG,)
                    elif len(text) > left:
                        skipped += 1
                        continue
                    else:
                        left -= len(text)
                        found = poisons_of(entry)
                self._known[digest] = found
                if found:
                    findings.setdefault(what, {})[entry[KEYS[what]]] = found
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return findings, skipped
