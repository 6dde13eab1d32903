"""What the output can take: how wide it is, whether it has colours, arrows and bars."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from folkmoot.cli.output import coloured, on_terminal

NARROW: Final = 60
"""Columns below which things stand below each other."""


class Glyphs(NamedTuple):
    """The few signs beyond letters."""

    to_server: str
    to_client: str
    neither: str
    between: str
    bar: str
    cut: str


UNICODE: Final = Glyphs("→", "←", "·", "↔", "█", "…")
ASCII: Final = Glyphs("->", "<-", "--", "<->", "#", "...")

STYLES: Final = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35",
    "cyan": "36", "bold red": "1;31",
}  # fmt: skip


class Paper:
    """Stdout, as it is now."""

    def __init__(self) -> None:
        self.on_terminal = on_terminal()
        self.width = shutil.get_terminal_size().columns if self.on_terminal else None
        self.glyphs = UNICODE if can_show("".join(UNICODE)) else ASCII
        self._coloured = coloured(sys.stdout)

    @property
    def narrow(self) -> bool:
        """Whether a line has no room for everything about a message."""
        return self.width is not None and self.width < NARROW

    def styled(self, text: str, style: str) -> str:
        """A text in a style, where there are styles."""
        if not style or not text or not self._coloured:
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def put(self, line: str) -> None:
        """A line that was made safe; it is seen once there is enough, or by `flush`."""
        sys.stdout.write(line + "\n")

    def flush(self) -> None:
        """Show what was put."""
        sys.stdout.flush()

    def fitted(self, parts: Iterable[tuple[str, str]]) -> str:
        """Safe texts with their styles as one line, cut where the paper ends."""
        left = self.width
        line: list[str] = []
        for text, style in parts:
            if left is None:
                line.append(self.styled(text, style))
                continue
            room = cells(text)
            if room > left:
                line.append(self.styled(cut(text, left, self.glyphs.cut), style))
                break
            line.append(self.styled(text, style))
            left -= room
        return "".join(line)


def can_show(text: str) -> bool:
    """Whether stdout has these signs."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def cells(text: str) -> int:
    """How many columns a text takes; some signs take two, and some none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, mark: str) -> str:
    """A text that takes at most so many columns, with a mark where something is missing."""
    if cells(text) <= width:
        return text
    if width <= len(mark):
        return mark[:width]
    if text.isascii():
        return text[: width - len(mark)] + mark
    from rich.cells import set_cell_size

    return set_cell_size(text, width - len(mark)).rstrip() + mark
