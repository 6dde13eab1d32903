"""The requirements manifest: every rule of the protocol and its seeds, and which tests prove it.

`Requirement` is one entry of `requirements/*.toml`; `load` reads and checks them all;
`unproved` compares them with what the tests name; `summary_table` counts them for the docs.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

FOLDER = Path(__file__).parent / "requirements"

PARTS = {
    "foundation": "core, store, bus, pipeline, settings and a hub that starts",
    "mail": "MMP over MCP of both eras",
    "rooms": "the MCPx gateway, proposals, history and chat",
    "proxy": "transports, recording, replay and the bridge",
    "names": "Chora names, linter, generator and gateway to backends",
    "later": "not planned yet, or not for a test to judge; the entry's note says why",
}
"""Each part of the work, and what it builds."""

BUILT = ("foundation", "mail", "rooms", "proxy", "names")
"""The parts whose every entry must have a test."""

ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+")
SOURCE = re.compile(r"protocol §(1[0-2]|[1-9])|seed 00[0-4] \S.*")


class ManifestError(Exception):
    """The manifest cannot be used; the message names file and entry."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One rule: where it comes from, what it says, and which part of the work proves it."""

    id: str
    source: str
    part: str
    text: str
    note: str = ""

    @property
    def sources(self) -> list[str]:
        """The sections it comes from."""
        return self.source.split("; ")


OPTIONAL = {"note"}
REQUIRED = {field.name for field in fields(Requirement)} - OPTIONAL


def load(folder: Path = FOLDER) -> dict[str, Requirement]:
    """Every entry by its id, in the order of the files; the first fault is a `ManifestError`."""
    entries: dict[str, Requirement] = {}
    for path in sorted(folder.glob("*.toml")):
        for position, raw in enumerate(_raw_entries(path), start=1):
            where = f"{path.parent.name}/{path.name}, entry {position}"
            entry = _checked(raw, where)
            if entry.id in entries:
                raise ManifestError(f"{where}: {entry.id!r} is there twice.")
            entries[entry.id] = entry
    if not entries:
        raise ManifestError(f"{folder} holds no requirements.")
    return entries


def _raw_entries(path: Path) -> list[Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path.parent.name}/{path.name}: {error}.") from error
    entries = document.pop("requirement", [])
    if document or not isinstance(entries, list):
        raise ManifestError(
            f"{path.parent.name}/{path.name} holds something other than [[requirement]] entries."
        )
    return entries


def _checked(raw: Any, where: str) -> Requirement:
    if not isinstance(raw, dict):
        raise ManifestError(f"{where} is not a table.")
    where = f"{where} ({raw.get('id', 'without an id')})"
    if missing := REQUIRED - raw.keys():
        raise ManifestError(f"{where} lacks {', '.join(sorted(missing))}.")
    if unknown := raw.keys() - REQUIRED - OPTIONAL:
        raise ManifestError(f"{where} has the unknown field {', '.join(sorted(unknown))}.")
    for field, value in raw.items():
        if not isinstance(value, str) or not value.strip():
            raise ManifestError(f"{where}: {field} must be a text that is not empty.")
    entry = Requirement(**raw)
    if not ID.fullmatch(entry.id):
        raise ManifestError(f"{where}: an id is lower-case words with hyphens, in dotted groups.")
    if entry.part not in PARTS:
        raise ManifestError(f"{where}: there is no part {entry.part!r}; use {', '.join(PARTS)}.")
    if bad := [source for source in entry.sources if not SOURCE.fullmatch(source)]:
        raise ManifestError(f"{where}: {bad[0]!r} is not a source, such as 'protocol §4'.")
    if entry.part == "later" and not entry.note:
        raise ManifestError(f"{where}: an entry for later has a note that says why.")
    return entry


def unproved(
    entries: Mapping[str, Requirement],
    proved: Collection[str],
    built: Iterable[str] = BUILT,
) -> list[Requirement]:
    """The entries of the built parts that no test names."""
    parts = frozenset(built)
    return [entry for entry in entries.values() if entry.part in parts and entry.id not in proved]


def report(missing: Iterable[Requirement]) -> str:
    """The entries without a test, one line each, with what a test would have to prove."""
    lines = [f"  {entry.id}  [{entry.source}]\n      {entry.text}" for entry in missing]
    return f"{len(lines)} requirements of the built parts have no test:\n" + "\n".join(lines)


def summary_table(entries: Mapping[str, Requirement] | None = None) -> str:
    """A Markdown table: how many entries each part has, and whether a test is due for each."""
    counts = Counter(entry.part for entry in (entries or load()).values())
    rows = [
        f"| {part} | {what} | {counts[part]} | {'yes' if part in BUILT else 'not yet'} |"
        for part, what in PARTS.items()
    ]
    total = f"| **all** | | {counts.total()} | |"
    head = ["| part | what it builds | entries | tests are due |", "|---|---|---:|---|"]
    return "\n".join([*head, *rows, total])
