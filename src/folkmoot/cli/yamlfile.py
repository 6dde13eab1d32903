"""Puts one entry into a plain YAML settings file, and leaves every other line as it was.

It reads no more YAML than it must: keys at the margin, and the keys one level below the table.
Whatever could mean something else there is refused.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from folkmoot.core.errors import ClientFileUnusable
from folkmoot.web.clients import yaml_text

KEY = re.compile(
    r"""\ *
    (?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s"'\#&*!|>%@`{\[\]},?:-][^:\#]*?))
    \s*:(?:\s+(?P<value>.*?))?\s*$""",
    re.VERBOSE,
)
EMPTY = re.compile(r"(?:\{\s*\}|null|~)?\s*(?:#.*)?")
OPEN = re.compile(
    r"""[\[{&*!]|"(?!(?:[^"\\]|\\.)*"\s*(?:\#.*)?$)|'(?!(?:[^']|'')*'\s*(?:\#.*)?$)"""
)
CLOSED = re.compile(r"[\[{][^\[{\]}]*[\]}]\s*(?:#.*)?")
BOM = "\ufeff"


def put_entry(text: str, member: str, name: str, entry: dict[str, Any], *, force: bool) -> str:
    """The text with `member: {name: entry}` in it; an entry that is there needs `force`."""
    mark = BOM if text.startswith(BOM) else ""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix(BOM).splitlines()
    place = find_table(lines, member)
    if place is None:
        changed = [*lines, *yaml_text({member: {name: entry}}).split("\n")]
    else:
        changed = put_in_table(lines, place, member, name, entry, force=force)
    return mark + end.join(changed) + end


def find_table(lines: list[str], member: str) -> int | None:
    """The line of a key at the margin."""
    found = []
    for number, line in enumerate(lines):
        if passable(line) or line[0] == " " or (line.rstrip() == "---" and number == first(lines)):
            continue
        match = KEY.fullmatch(line)
        listed = line.startswith("- ") or line == "-"
        if match is None and not (listed and number):
            refuse(number)
        if match is not None and opens(match["value"] or ""):
            refuse(number)
        if match is not None and key(match) == member:
            found.append(number)
    if len(found) > 1:
        raise ClientFileUnusable(f'it has "{member}" twice, so it was not changed.')
    return found[0] if found else None


def first(lines: list[str]) -> int:
    """The number of the first line that says anything."""
    return next((n for n, line in enumerate(lines) if not passable(line)), 0)


def passable(line: str) -> bool:
    """Whether a line says nothing: empty, or a comment."""
    return not line.strip() or line.lstrip(" ").startswith("#")


def opens(value: str) -> bool:
    """Whether a value may go on at the margin of the next line, or means something elsewhere."""
    return bool(OPEN.match(value)) and not CLOSED.fullmatch(value)


def key(match: re.Match[str]) -> str:
    """The name a key line gives."""
    return match["double"] or match["single"] or match["plain"] or ""


def put_in_table(
    lines: list[str], place: int, member: str, name: str, entry: dict[str, Any], *, force: bool
) -> list[str]:
    """The lines with the entry among those of the table that begins at `place`."""
    head = KEY.fullmatch(lines[place])
    if head is None or not EMPTY.fullmatch(head["value"] or ""):
        raise ClientFileUnusable(f'"{member}" in it is not a plain table, so it was not changed.')
    block = range(place + 1, table_end(lines, place))
    children, indent = read_children(lines, block)
    shown = yaml_text({name: entry}, indent).split("\n")
    if name in children:
        if not force:
            raise ClientFileUnusable(f'it already has an entry "{name}". --force replaces it.')
        start, stop = children[name]
        return [*lines[:start], *shown, *lines[stop:]]
    title = lines[place]
    if not children and (head["value"] or "").startswith(("{", "null", "~")):
        title = f"{member}:"
    stop = max((stop for _, stop in children.values()), default=place + 1)
    return [*lines[:place], title, *lines[place + 1 : stop], *shown, *lines[stop:]]


def table_end(lines: list[str], place: int) -> int:
    """The first line at the margin below the table, or the end."""
    for number in range(place + 1, len(lines)):
        if not passable(lines[number]) and lines[number][0] != " ":
            if lines[number].startswith("-"):
                raise ClientFileUnusable("its table is a list, so it was not changed.")
            return number
    return len(lines)


def read_children(lines: list[str], block: range) -> tuple[dict[str, tuple[int, int]], int]:
    """The entries of a table with their first line and the one after their last; the indent."""
    said = [number for number in block if not passable(lines[number])]
    if not said:
        return {}, 2
    indent = depth(lines[said[0]])
    starts: list[tuple[str, int]] = []
    for number in said:
        if depth(lines[number]) > indent:
            continue
        match = KEY.fullmatch(lines[number])
        if match is None or depth(lines[number]) < indent or opens(match["value"] or ""):
            refuse(number)
        starts.append((key(match), number))
    if len({name for name, _ in starts}) < len(starts):
        raise ClientFileUnusable("it has an entry twice, so it was not changed.")
    ends = [*(number for _, number in starts[1:]), block.stop]
    return {
        name: (start, max(n for n in said if start <= n < end) + 1)
        for (name, start), end in zip(starts, ends, strict=True)
    }, indent


def depth(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip(" "))


def refuse(number: int) -> NoReturn:
    """Leave alone what cannot be read for certain."""
    raise ClientFileUnusable(f"line {number + 1} cannot be parsed, so it was not changed.")
