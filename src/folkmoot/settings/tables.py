"""The gateway's tables while they are read: their values, their problems, where each key stands.

A *problem* makes the settings useless; a *note* is something their writer should know.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from folkmoot.settings.backends import BackendSpec, GatewaySpec
from folkmoot.settings.fields import shown
from folkmoot.settings.files import Problem

BARE = re.compile(r"[A-Za-z0-9_-]{1,64}")


class GatewayTables(Struct, kw_only=True):
    """The gateway as far as it was read."""

    backends: dict[str, BackendSpec] = msgspec.field(default_factory=dict)
    """By namespace."""
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    grants: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict)
    origins: dict[str, str] = msgspec.field(default_factory=dict)
    """Where each path, such as `backends.github.url`, was written."""
    problems: list[Problem] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    def spec(self) -> GatewaySpec:
        """All of it, once nothing is wrong."""
        return GatewaySpec(backends=self.backends, groups=self.groups, grants=self.grants)

    def add(self, spec: BackendSpec, place: TablePlace) -> None:
        """Take a backend in, unless its name or its namespace is another's."""
        for other in self.backends.values():
            same = "namespace" if other.namespace == spec.namespace else "name"
            if getattr(other, same) != getattr(spec, same):
                continue
            where = self.origins[f"backends.{other.name}"]
            word = shown(getattr(spec, same))[1:-1]
            place.refuse((), f"the {same} {word} is already used by the backend at {where}")
            return
        self.backends[spec.namespace] = spec


class TablePlace(NamedTuple):
    """One table in one file: what it is called in sentences, and where its keys stand."""

    gathering: GatewayTables
    label: str
    path: str
    """By which `origins` knows it, such as `backends.github`."""
    where: Callable[..., tuple[str, int]]
    """`file:line` of one of its keys, and the line."""
    source: int
    folder: Path
    """What relative paths in it are relative to."""

    def refuse(self, key: tuple[str, ...], sentence: str) -> None:
        """Note a problem with a key, or with the table itself."""
        where, line = self.where(*key)
        self.gathering.problems.append(Problem(self.source, line, f"{where}: {sentence}"))

    def note(self, key: tuple[str, ...], sentence: str) -> None:
        """Note what the writer should know."""
        self.gathering.notes.append(f"{self.where(*key)[0]}: {sentence}")

    def name(self, *key: str) -> str:
        """A key of the table as sentences call it."""
        return ".".join((self.label, *map(bare, key)))

    def found(self, *key: str) -> None:
        """Remember where a key was written first; a second one of its name is refused."""
        self.gathering.origins.setdefault(".".join((self.path, *key)), self.where(*key)[0])


def bare(name: str) -> str:
    """A key as TOML spells it, quoted where it must be."""
    return name if BARE.fullmatch(name) else shown(name)


def nearest(name: str, known: Iterable[str], spelled: str = "'{}'") -> str:
    """The hint for a name that is nearly right."""
    matches = difflib.get_close_matches(name[:100], list(known), 1, 0.7)
    return f"; did you mean {spelled.format(matches[0])}?" if matches else ""
