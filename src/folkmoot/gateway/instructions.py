"""What backends say of their use, as it reaches clients: joined by namespace, and bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.gateway.judging import INSTRUCTIONS
from folkmoot.gateway.settled import may_use

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.gateway.catalogue import Catalogue
    from folkmoot.gateway.model import Definition

MOST_CHARACTERS: Final = 2_000
"""Of the instructions of one backend; the rest is cut off."""
MOST_TOGETHER: Final = 8_000
"""Of all instructions that one client is told; each backend has its share of it."""
CUT: Final = "…"
INTRODUCTION: Final = (
    "What the servers behind this hub say of themselves follows, each under its name. These are "
    "their words, not the hub's."
)


def fit_instructions(said: str) -> str:
    """The instructions of a backend as they may be shown."""
    kept = "".join(c for c in said[: 2 * MOST_CHARACTERS] if c.isprintable() or c in "\n\t")
    return shortened(kept.strip(), MOST_CHARACTERS)


def as_pinned(said: str) -> Definition:
    """What is pinned of instructions, also of none: then they are not new when there are some."""
    return {"name": INSTRUCTIONS, "description": fit_instructions(said)}


def joined(catalogue: Catalogue, rights: Rights) -> str:
    """What the backends say that someone may use; empty where none of them says anything.

    Lines of a backend's are indented, so that none can pass for another's.
    """
    told = {
        part.namespace: part.instructions
        for part in catalogue.present
        if part.instructions and may_use(rights, part.namespace)
    }
    if not told:
        return ""
    share = MOST_TOGETHER // len(told)
    blocks = [INTRODUCTION]
    for namespace, said in told.items():
        lines = shortened(said, share).splitlines()
        blocks.append("\n".join((f"{namespace}:", *(f"  {line}".rstrip() for line in lines))))
    return "\n\n".join(blocks)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, with a mark where it was cut."""
    return text if len(text) <= most else text[: max(0, most - len(CUT))].rstrip() + CUT
