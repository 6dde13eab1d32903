"""All that the backends offer at one moment; another moment's is another object."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import chain, islice
from typing import Any, Final, get_args

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import Kind
from folkmoot.gateway.limits import MAX_NAMES_CLOSE, MAX_NAMES_COMPARED, MAX_UNKNOWN_NAME
from folkmoot.gateway.mapping import canonical_uri, has_other_spelling, hidden_deny, own_uri
from folkmoot.gateway.model import (
    PromptEntry,
    ResourceEntry,
    ToolEntry,
    What,
)
from folkmoot.gateway.part import BackendOffer, Row
from folkmoot.names import NameStyle, WireNames

LISTS: Final[tuple[What, ...]] = get_args(What)


class Spellings:
    """The name tables of all backends and of the hub as one.

    A spelling begins with the namespace of its name in either style, so no two tables meet.
    """

    def __init__(self, tables: Mapping[str, WireNames], own: Iterable[str] = ()) -> None:
        self._tables = tables
        self._own = WireNames(own)

    def spell(self, canonical: str, style: NameStyle) -> str:
        """A name of the catalogue as the style writes it."""
        table = self._tables.get(canonical.partition(":")[0], self._own)
        return table.spell(canonical, style)

    def canonical(self, wire: str) -> str | None:
        """The name a spelling stands for, in either style; None when it is nobody's."""
        separator = ":" if ":" in wire else "_"
        table = self._tables.get(wire.partition(separator)[0], self._own)
        return table.canonical(wire)


class Catalogue:
    """A snapshot. Entries of a backend that is away can be found but are not listed.

    Made anew when one backend changes: the parts of the others are taken as they are.
    """

    def __init__(
        self,
        parts: Mapping[str, BackendOffer] | None = None,
        absent: Mapping[str, str] | None = None,
        own: Iterable[str] = (),
    ) -> None:
        self.parts: Mapping[str, BackendOffer] = dict(sorted((parts or {}).items()))
        """By namespace, also of those that are away but were here before."""
        self.absent: Mapping[str, str] = dict(sorted((absent or {}).items()))
        """Why the entries of a backend are left out, by namespace."""
        all_parts = self.parts.values()
        self.tools: Mapping[str, ToolEntry] = _joined(part.tools for part in all_parts)
        self.prompts: Mapping[str, PromptEntry] = _joined(part.prompts for part in all_parts)
        self.resources: Mapping[str, ResourceEntry] = _joined(part.resources for part in all_parts)
        """By canonical URI."""
        self.templates: Mapping[str, ResourceEntry] = _joined(part.templates for part in all_parts)
        self.faults: Mapping[str, tuple[str, ...]] = {
            part.namespace: part.faults for part in all_parts if part.faults
        }
        self.names = Spellings({part.namespace: part.names for part in all_parts}, own)
        """Of tools, the hub's own included."""
        self.prompt_names = Spellings({part.namespace: part.prompt_names for part in all_parts})
        self._namespaces = self.parts.keys() | self.absent.keys()
        self._found: dict[str, ToolEntry] = {}
        """Tools by the spellings they were called by; a tool has two."""

    @property
    def present(self) -> list[BackendOffer]:
        """The parts of backends that are not away, by namespace."""
        return [part for part in self.parts.values() if part.namespace not in self.absent]

    def rows(self, what: What) -> tuple[Row, ...]:
        """A list, in order: by namespace, then by name."""
        return tuple(chain.from_iterable(part.rows[what] for part in self.present))

    def tool(self, wire: str) -> ToolEntry | None:
        """The tool with this name, in either spelling."""
        known = self._found.get(wire)
        if known is None and (canonical := self.names.canonical(wire)) is not None:
            known = self.tools.get(canonical)
            if known is not None:
                self._found[wire] = known
        return known

    def prompt(self, wire: str) -> PromptEntry | None:
        """The prompt with this name, in either spelling."""
        canonical = self.prompt_names.canonical(wire)
        return None if canonical is None else self.prompts.get(canonical)

    def namespace_of(self, wire: str) -> str | None:
        """The backend that a name or URI would belong to, in any spelling, if there is one."""
        begin = wire.partition(":" if ":" in wire else "_")[0]
        return begin if begin in self._namespaces else None

    def canonical_uri(self, wire: str) -> str | None:
        """The canonical form of a URI as a client has it: what rights are asked about."""
        return canonical_uri(wire, self._namespaces)

    def resource(self, uri: str) -> tuple[str, str] | None:
        """The backend of a canonical URI, and its own URI; any there is, listed or not.

        One that is not listed and that a server could take for another is nobody's: rights were
        asked about this spelling alone.
        """
        namespace = uri.partition("://")[0]
        if namespace not in self._namespaces:
            return None
        if not self.lists(uri) and has_other_spelling(uri):
            return None
        own = own_uri(namespace, uri)
        return None if own is None else (namespace, own)

    def lists(self, uri: str) -> bool:
        """Whether a backend itself lists a canonical URI, or a template that is spelled so."""
        return uri in self.resources or uri in self.templates

    def check_meaning(self, rights: Rights, kind: Kind | None) -> None:
        """Refuse a request for a URI that is not listed and may mean one that is denied.

        To be asked once policy has let it pass.
        """
        context = None if kind is None else kind.context
        if kind is None or context is None or "://" not in context or self.lists(context):
            return
        if not rights.has_denies and "%" not in context:
            return
        if (denied := hidden_deny(rights, kind)) is not None:
            raise denied

    def check_there(self, namespace: str) -> None:
        """Raise why a backend is away, if it is: to find nothing of it would not be true."""
        why = self.absent.get(namespace)
        if why is not None:
            raise e.BackendUnavailable(
                f"The backend {namespace} is not available: {why}", backend=namespace
            )

    def nearest(self, wire: str, rights: Rights) -> str | None:
        """The most similar name among the tools the caller may call."""
        namespace = self.namespace_of(wire)
        known = None if namespace is None else self.parts.get(namespace)
        rows = self.rows("tools") if known is None else known.rows["tools"]
        # What they have in common anyway would make everything alike.
        common = 0 if known is None else len(known.namespace) + 1
        allowed = (row.key for row in rows if rights.allows(row.kind))
        spelled = {_plain(key[common:]): key for key in islice(allowed, MAX_NAMES_COMPARED)}
        sought = _plain(wire[common:MAX_UNKNOWN_NAME])
        grams = _grams(sought)
        likely = nlargest(MAX_NAMES_CLOSE, spelled, key=lambda name: len(grams & _grams(name)))
        found = difflib.get_close_matches(sought, likely, n=1, cutoff=0.7)
        return spelled[found[0]] if found else None


def _plain(name: str) -> str:
    return name.lower().replace(":", "_", 1)


def _grams(name: str) -> set[str]:
    return {name[at : at + 3] for at in range(len(name) - 2)}


def _joined(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for table in tables:
        joined.update(table)
    return joined
