"""A tape for other programs and other people: as one JSON document, HAR-like, or as Markdown.

All of them are made in one pass, piece by piece, in the memory of the calls that are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from folkmoot.proxy.tape.har import as_har
from folkmoot.proxy.tape.lines import CorrelationLine, EndLine, Header, Line, MessageLine
from folkmoot.proxy.tape.transcript import as_markdown


def as_json(lines: Iterable[Line]) -> Iterator[str]:
    """One document: the header, the messages, what ties them, and the end."""
    end: EndLine | None = None
    ties: list[CorrelationLine] = []
    between = ""
    for line in lines:
        if isinstance(line, Header):
            yield f'{{"header":{_encoded(line)},\n"messages":['
        elif isinstance(line, MessageLine):
            yield f"{between}\n{_encoded(line)}"
            between = ","
        elif isinstance(line, CorrelationLine):
            ties.append(line)
        else:
            end = line
    told = ",".join(f"\n{_encoded(tie)}" for tie in ties)
    yield f'],\n"correlations":[{told}],\n"end":{_encoded(end)}}}\n'


def _encoded(line: Line | None) -> str:
    return msgspec.json.encode(line).decode()


FORMATS: Final[dict[str, Callable[[Iterable[Line]], Iterator[str]]]] = {
    "json": as_json,
    "har": as_har,
    "markdown": as_markdown,
}
"""The forms a tape can be given, by name."""
