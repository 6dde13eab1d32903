"""The register of a project's names: what `NAMESPACES.md` says, as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from folkmoot.names.deprecation import stage
from folkmoot.names.generate.tables import cell, plain
from folkmoot.names.lint.model import Declared, Project

Row: TypeAlias = tuple[str, ...]


class Section(NamedTuple):
    """One table of the register; `key` is the column that names a row."""

    title: str
    columns: tuple[str, ...]
    key: int
    what: str
    """What a row is called in a sentence."""
    kept: tuple[int, ...] = ()
    """Columns whose text stays as it was written where the project says nothing of it."""


SECTIONS: dict[str, Section] = {
    "tools": Section(
        "Registered Tools",
        ("Tool Name", "Full Name", "Description", "Version"),
        key=1,
        what="tool",
        kept=(3,),
    ),
    "resources": Section(
        "Registered Resources",
        ("Resource URI", "Description", "Type"),
        key=0,
        what="resource",
        kept=(2,),
    ),
    "prompts": Section(
        "Registered Prompts",
        ("Prompt Name", "Full Name", "Description"),
        key=1,
        what="prompt",
    ),
    "deprecated": Section(
        "Deprecated",
        ("Name", "Deprecated Since", "Removed In", "Use Instead"),
        key=0,
        what="deprecated name",
        kept=(1, 2, 3),
    ),
}
"""The tables in the order of the page."""

ALWAYS = ("tools", "resources")
"""Those that are on the page even when they are empty."""


class Registry(Struct, kw_only=True):
    """Who has which namespace, and the names in it."""

    project: str = ""
    namespace: str = ""
    status: str = "Active"
    tables: dict[str, list[Row]]

    def row(self, table: str, key: str) -> Row | None:
        """The row of a name."""
        at = SECTIONS[table].key
        return next((row for row in self.tables.get(table, []) if row[at] == key), None)


def registry_of(project: Project, before: Registry | None = None) -> Registry:
    """The register as a project's names make it.

    A tool keeps the version under which it was first written down. What is hidden by now, a
    release after its deprecation, is left out.
    """
    namespace = project.namespace or ""
    shown = [it for it in project.declared if visible(it, project.version)]
    tables: dict[str, list[Row]] = {
        "tools": [
            (it.own, full_name(it, namespace), it.description, project.version or "")
            for it in shown
            if it.kind == "tool"
        ],
        "resources": [
            (it.name, it.description, it.mime_type)
            for it in shown
            if it.kind in {"resource", "template"}
        ],
        "prompts": [
            (it.own, full_name(it, namespace), it.description)
            for it in shown
            if it.kind == "prompt"
        ],
        "deprecated": [
            (
                full_name(it, namespace),
                it.deprecation.since or "",
                it.deprecation.removed_in or "",
                it.deprecation.use or "",
            )
            for it in shown
            if it.deprecation is not None
        ],
    }
    return Registry(
        project=project.name or namespace,
        namespace=namespace,
        status=before.status if before and before.status else "Active",
        tables={name: settled(name, rows, before) for name, rows in tables.items()},
    )


def visible(declared: Declared, version: str | None) -> bool:
    """Whether a name belongs in the documentation of a release."""
    gone = declared.deprecation
    return gone is None or not stage(gone, version).hidden


def full_name(declared: Declared, namespace: str) -> str:
    """The name with its namespace, also where the server leaves that to a gateway."""
    if declared.kind in {"resource", "template"} or declared.namespace is not None:
        return declared.name
    return f"{namespace}:{declared.name}"


def settled(name: str, rows: Iterable[Row], before: Registry | None) -> list[Row]:
    """The rows by name, each once, as their cells read, with what is kept of the former ones."""
    section = SECTIONS[name]
    found: dict[str, Row] = {}
    for row in rows:
        read = tuple(plain(cell(text)) for text in row)
        former = before.row(name, read[section.key]) if before else None
        found.setdefault(read[section.key], keep(section, read, former))
    return [found[key] for key in sorted(found)]


def keep(section: Section, row: Row, former: Row | None) -> Row:
    """The row, with the columns that stay as someone wrote them."""
    if former is None:
        return row
    stays = {at for at in section.kept if former[at] and (section.what == "tool" or not row[at])}
    return tuple(former[at] if at in stays else text for at, text in enumerate(row))
