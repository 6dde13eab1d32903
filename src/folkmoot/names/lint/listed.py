"""The names of a live server, as it lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from folkmoot.names.lint.declaring import first_line
from folkmoot.names.lint.deprecations import said
from folkmoot.names.lint.model import Declared, Deprecation, Kind, Project
from folkmoot.names.lint.source import only, safe_namespace

KEYS: Final[dict[Kind, str]] = {
    "tool": "name",
    "resource": "uri",
    "template": "uriTemplate",
    "prompt": "name",
}
NAMED: Final[tuple[Kind, ...]] = ("tool", "prompt")
"""What is called by a name and not by a URI."""
CANONICAL: Final = "folkmoot/name"
"""Where a hub says what a name is that it spells for clients."""

Definitions = Sequence[Mapping[str, Any]]


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
    entries = [each for definitions in lists.values() for each in definitions]
    project.hub = any(canonical_of(each) for each in entries)
    if namespace is None and not project.hub:
        named = [text(each, "name") for kind in NAMED for each in lists.get(kind, ())]
        namespace = safe_namespace(named, project.name)
    project.version = version or text(server, "version") or None
    if client_prefix is not None:
        project.client_prefix = client_prefix
    for kind, definitions in lists.items():
        project.declared += [declared(kind, each, namespace) for each in definitions]
    if project.namespace is None and not project.hub:
        used = (each.namespace for each in project.declared if each.kind in NAMED)
        project.namespace = only(each for each in used if each is not None)
    return project


def declared(kind: Kind, definition: Mapping[str, Any], namespace: str | None) -> Declared:
    """One entry of a list."""
    name = text(definition, KEYS[kind])
    canonical = canonical_of(definition)
    safe = f"{namespace}_"
    if kind in NAMED:
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


def canonical_of(definition: Mapping[str, Any]) -> str:
    """The canonical name that a hub tells; empty for whatever no hub lists."""
    meta = definition.get("_meta")
    return text(meta, CANONICAL) if isinstance(meta, Mapping) else ""


def text(values: Mapping[str, Any], key: str) -> str:
    """A string; empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""
