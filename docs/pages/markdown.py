"""The little Markdown the generated pages need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MARK = "<!-- Made by `make docs` from the code; change it there. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell's vertical bars are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text: str) -> str:
    """Text that stays in its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def document(*parts: str) -> str:
    """A page from its parts, with an empty line between them."""
    title, *rest = parts
    return "\n\n".join([title, MARK, *rest]) + "\n"


def code(text: str) -> str:
    """Text as code, whatever backticks it holds."""
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
