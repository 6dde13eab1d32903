"""Reads everything of the gateway: the open tables of the settings file, and imported servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from folkmoot.settings.backends_load import read_backend
from folkmoot.settings.fields import OPEN_TABLES, shown
from folkmoot.settings.gathering import Gathering, Place, bare
from folkmoot.settings.grants_load import check_names, read_grants, read_groups
from folkmoot.settings.mcpservers import take_servers
from folkmoot.settings.sources import FROM_FILE, FROM_IMPORT, Document


def take_gateway(
    document: Document | None,
    file: str,
    imports: Sequence[str],
    environ: Mapping[str, str],
    *,
    runs: bool = False,
) -> Gathering:
    """The gateway as a settings file and the files that it imports describe it.

    `runs` refuses imported files that others may write.
    """
    gathering = Gathering()
    folder = Path(file).absolute().parent
    places: dict[str, Place] = {}
    if document is not None:
        for table in OPEN_TABLES:
            where = partial(document.where, table)
            places[table] = Place(gathering, table, table, where, FROM_FILE, folder)
        take_backends(document, places["backends"])
    # A table of the same name stands in the place of what is imported, and can say more.
    tables = {} if document is None else document.values.get("backends", {})
    described = tables if isinstance(tables, dict) else {}
    for each in imports:
        take_servers(gathering, each, environ, FROM_IMPORT, described, runs=runs)
    if document is not None:
        read_groups(document.values.get("groups", {}), places["groups"])
        read_grants(document.values.get("grants", {}), places["grants"])
        check_names(gathering, {name: places[name] for name in ("groups", "grants")})
    return gathering


def take_backends(document: Document, outer: Place) -> None:
    """Every table of `[backends]`."""
    tables = document.values.get("backends", {})
    if not isinstance(tables, dict):
        outer.refuse((), f"backends must be a table of tables, not {shown(tables)}")
        return
    for name, table in tables.items():
        place = outer._replace(
            label=f"backends.{bare(name)}",
            path=f"backends.{name}",
            where=partial(document.where, "backends", name),
        )
        spec = read_backend(name, table, place)
        if spec is not None:
            outer.gathering.add(spec, place)
