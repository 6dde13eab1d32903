"""The line each key of a TOML document stands on: `tomllib` keeps no positions."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Key = tuple[str, ...]

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
DEPTH = 4
"""How deep keys are told apart: `backends.NAME.env.VARIABLE` is the deepest a file may have."""
OPENING = frozenset("[{")
CLOSING = frozenset("]}")


def key_lines(document: str) -> dict[Key, int]:
    """The line of each key down to `DEPTH`, where it is first named.

    The document must be valid TOML: then each of its statements is valid alone, and tells its keys.
    """
    lines: dict[Key, int] = {}
    table: Key = ()
    for line, statement in statements(document):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = header(parsed)
            keys = [table[: depth + 1] for depth in range(len(table))]
        else:
            keys = [table + key for key in paths(parsed)]
        for key in keys:
            lines.setdefault(key[:DEPTH], line)
    return lines


def statements(document: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line it starts on: one ends at a newline outside every bracket."""
    document = document.replace("\r\n", "\n")
    depth, start, line, start_line = 0, 0, 1, 1
    for token in TOKEN.finditer(document + "\n"):
        found = token.group()
        line += found.count("\n")
        if found in OPENING:
            depth += 1
        elif found in CLOSING:
            depth -= 1
        elif found == "\n" and depth == 0:
            statement = document[start : token.start()]
            if statement.strip():
                yield start_line, statement
            start, start_line = token.end(), line


def header(parsed: dict[str, Any]) -> Key:
    """The first names of a table header, parsed alone: each level holds just the next."""
    names: list[str] = []
    level: Any = parsed
    while level and len(names) < DEPTH:
        name, level = next(iter(level.items()))
        names.append(name)
        if isinstance(level, list):
            level = level[0]
    return tuple(names)


def paths(parsed: dict[str, Any], depth: int = DEPTH) -> Iterator[Key]:
    """The keys one statement names, down to a depth, outer ones first."""
    for name, value in parsed.items():
        yield (name,)
        if isinstance(value, dict) and depth > 1:
            yield from ((name, *inner) for inner in paths(value, depth - 1))
