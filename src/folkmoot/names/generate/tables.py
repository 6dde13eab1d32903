"""Tables of Markdown: text into cells, and cells back into text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ESCAPED = re.compile(r"[\\|<]")
UNESCAPED = re.compile(r"\\([\\|<])")
BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+\s*(?::?-+:?)?\s*")
CELL = re.compile(r"(?:[^\\|]|\\.)*", re.DOTALL)
MAX_CELL = 300


def cell(text: str) -> str:
    """A text as one cell: one line of bounded length that neither ends the cell nor begins HTML."""
    flat = BLANK.sub(" ", text).strip()
    if len(flat) > MAX_CELL:
        flat = flat[: MAX_CELL - 1].rstrip() + "…"
    return ESCAPED.sub(r"\\\g<0>", flat)


def plain(text: str) -> str:
    """The text of a cell; code marks around the whole of it are not part of it."""
    bare = UNESCAPED.sub(r"\1", text.strip())
    code = len(bare) > 2 and bare[0] == bare[-1] == "`" and "`" not in bare[1:-1]
    return bare[1:-1] if code else bare


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    rule = "|".join("-" * (len(title) + 2) for title in titles)
    shown = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return [f"| {' | '.join(titles)} |", f"|{rule}|", *shown]


def read_table(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of the first table among the lines; nothing where there is none."""
    for number in range(len(lines) - 1):
        if "|" in lines[number] and RULE.fullmatch(lines[number + 1].strip()):
            titles = cells(lines[number])
            rows = []
            for line in lines[number + 2 :]:
                if "|" not in line:
                    break
                row = cells(line)
                rows.append([*row, *[""] * (len(titles) - len(row))][: len(titles)])
            return titles, rows
    return [], []


def cells(line: str) -> list[str]:
    """The cells of one line of a table."""
    inner = line.strip().removeprefix("|")
    found: list[str] = []
    at = 0
    while at <= len(inner):
        match = CELL.match(inner, at)
        end = match.end() if match else len(inner)
        # A backslash that nothing follows belongs to the last cell.
        if end < len(inner) and inner[end] == "\\":
            end = len(inner)
        found.append(plain(inner[at:end]))
        at = end + 1
    return found[:-1] if inner.rstrip().endswith("|") and found and not found[-1] else found
