"""The names of a live server, as it lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from folkmoot.names.lint.declaring import first_line
from folkmoot.names.lint.deprecations import said
from folkmoot.names.lint.model import Declared, Deprecation, Kind, Project
from folkmoot.names.lint.source import only

KEYS: Final[dict[Kind, str]] = {
    "tool": "name",
    "resource": "uri",
    "template": "uriTemplate",
    "prompt": "name",
}
CANONICAL: Final = "folkmoot/name"
"""Where a hub says what a name is that it spells for clients."""

Definitions = Iterable[Mapping[str, Any]]


def read_lists(
    lists: Mapping[Kind, Definitions],
    server: Mapping[str, Any],
    *,
    namespace: str | None = None,
    version: str | None = None,
    client_prefix: str | None = None,
) -> Project:
    """A project of what a server lists; the namespace is the one its names agree on, if any."""
    project = Project(root=Path(), live=True, namespace=namespace)
    project.name = text(server, "name")
    project.version = version or text(server, "version") or None
    if client_prefix is not None:
        project.client_prefix = client_prefix
    for kind, definitions in lists.items():
        project.declared += [declared(kind, each, namespace) for each in definitions]
    if project.namespace is None:
        used = (each.namespace for each in project.declared if each.kind in {"tool", "prompt"})
        project.namespace = only(each for each in used if each is not None)
    return project


def declared(kind: Kind, definition: Mapping[str, Any], namespace: str | None) -> Declared:
    """One entry of a list."""
    meta = definition.get("_meta")
    name = text(definition, KEYS[kind])
    canonical = text(meta, CANONICAL) if isinstance(meta, Mapping) else ""
    safe = f"{namespace}_"
    if kind in {"tool", "prompt"}:
        if canonical:
            name = canonical
        elif namespace is not None and name.startswith(safe):
            # On the wire a name may be in the safe spelling.
            name = f"{namespace}:{name.removeprefix(safe)}"
    description = text(definition, "description")
    return Declared(
        kind=kind,
        name=name,
        description=first_line(description),
        mime_type=text(definition, "mimeType"),
        deprecation=Deprecation() if said(description) else None,
    )


def text(values: Mapping[str, Any], key: str) -> str:
    """A string; empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""
