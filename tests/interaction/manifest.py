"""The requirements manifest: every rule of the protocol and its seeds, and which tests prove it.

`Requirement` is one entry of `requirements/*.toml`; `load` reads and checks them all;
`unproved` compares them with what the tests name; `summary_table` counts them for the docs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

FOLDER = Path(__file__).parent / "requirements"

# Each part of the work, and what it builds.
PARTS = {
    "foundation": "core, store, bus, pipeline, settings and a hub that starts",
    "mail": "MMP over MCP of both eras",
    "rooms": "the MCPx gateway, proposals, history and chat",
    "proxy": "transports, recording, replay and the bridge",
    "names": "Chora names, linter, generator and gateway to backends",
    "later": "not planned yet, or not for a test to judge; the entry's note says why",
}

# The parts whose every entry must have a test.
BUILT = ("foundation", "mail", "rooms", "proxy", "names")

SOURCE = r"(protocol §(1[0-2]|[1-9])|seed 00[0-4] [^;]+|MCP authorization)"


class ManifestError(Exception):
    """The manifest cannot be used; the message names file and entry."""


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: where it comes from, what it says, and which part of the work proves it."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+\Z")]
    source: Annotated[str, Meta(pattern=rf"^{SOURCE}(; {SOURCE})*\Z")]
    part: Annotated[str, Meta(pattern=rf"^({'|'.join(PARTS)})\Z")]
    text: Annotated[str, Meta(pattern=r"\S")]
    note: Annotated[str, Meta(pattern=r"\S")] = ""

    @property
    def sources(self) -> list[str]:
        """The sections it comes from."""
        return self.source.split("; ")


class File(msgspec.Struct, forbid_unknown_fields=True):
    """One file of the manifest."""

    requirement: list[Requirement]


def load(folder: Path = FOLDER) -> dict[str, Requirement]:
    """Every entry by its id, in the order of the files; the first fault is a `ManifestError`."""
    entries: dict[str, Requirement] = {}
    for path in sorted(folder.glob("*.toml")):
        where = f"{path.parent.name}/{path.name}"
        try:
            found = msgspec.toml.decode(path.read_text(encoding="utf-8"), type=File).requirement
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ManifestError(f"{where}: {error}.") from error
        for entry in found:
            if entry.id in entries:
                raise ManifestError(f"{where}: {entry.id!r} is there twice.")
            if entry.part == "later" and not entry.note:
                raise ManifestError(f"{where}: {entry.id!r} is for later, so its note says why.")
            entries[entry.id] = entry
    if not entries:
        raise ManifestError(f"{folder} holds no requirements.")
    return entries


def unproved(entries: Mapping[str, Requirement], proved: Collection[str]) -> list[Requirement]:
    """The entries of the built parts that no test names."""
    return [entry for entry in entries.values() if entry.part in BUILT and entry.id not in proved]


def report(missing: Iterable[Requirement]) -> str:
    """The entries without a test, one line each, with what a test would have to prove."""
    lines = [f"  {entry.id}  [{entry.source}]\n      {entry.text}" for entry in missing]
    return f"{len(lines)} requirements of the built parts have no test:\n" + "\n".join(lines)


def summary_table() -> str:
    """A Markdown table: how many entries each part has, and whether a test is due for each."""
    counts = Counter(entry.part for entry in load().values())
    rows = [
        f"| {part} | {what} | {counts[part]} | {'yes' if part in BUILT else 'not yet'} |"
        for part, what in PARTS.items()
    ]
    total = f"| **all** | | {counts.total()} | |"
    head = ["| part | what it builds | entries | tests are due |", "|---|---|---:|---|"]
    return "\n".join([*head, *rows, total])
