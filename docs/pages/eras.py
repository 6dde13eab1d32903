"""The tables of `eras.md`, from the bridge between the eras."""

from __future__ import annotations

from docs.pages.markdown import code, table
from folkmoot.mcp.eras.table import UNBRIDGED, EraRefusal


def _refusals() -> str:
    return table(("who is told", "the error"), ((r.told.value, r.sentence) for r in EraRefusal))


def _unbridged() -> str:
    return "Refused: " + ", ".join(code(method) for method in sorted(UNBRIDGED)) + "."


BLOCKS = {
    "eras-refusals": _refusals,
    "eras-unbridged": _unbridged,
}
