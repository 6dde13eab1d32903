"""The tables of `eras.md`, from the bridge between the eras."""

from __future__ import annotations

from docs.pages.markdown import code, table
from folkmoot.mcp.eras.table import SUBJECTS, UNBRIDGED, EraRefusal


def _subjects() -> str:
    head = (
        "",
        "handshake client, stateless server",
        "stateless client, handshake server",
    )
    return table(head, ((s.name, s.to_stateless, s.to_handshake) for s in SUBJECTS))


def _refusals() -> str:
    return table(("who is told", "the error"), ((r.told.value, r.sentence) for r in EraRefusal))


def _unbridged() -> str:
    return "Refused: " + ", ".join(code(method) for method in sorted(UNBRIDGED)) + "."


BLOCKS = {
    "eras-subjects": _subjects,
    "eras-refusals": _refusals,
    "eras-unbridged": _unbridged,
}
