"""Searches long texts for forms of secrets in time that grows with what is suspicious in them.

A form is slow to search for, and its hints are quick to find: so in a long text it is looked for
near its hints only. Strings that are known are looked for all at once (`Pieces`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from folkmoot.core.redaction import Form, engine

LONG: Final = 4096
"""From how many characters on a text is searched near its hints only."""
BEFORE: Final = 256
"""How far in front of its hint a secret's name may begin."""
BEHIND: Final = 512
"""How far behind its hint a secret must have begun."""

_NEAR: Final = {
    "-": re.compile("-[a-hj-np-z2-9]{4}-"),
    "%": re.compile("%(?:25)*[2-7]"),
    "?": re.compile(r"\?[a-z_-]{3,16}="),
    "&": re.compile("&[a-z_-]{3,16}="),
}
"""What is found of hints that are no rarity by themselves."""

_ENCODED: Final = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + b"+/=_-"
_DATA_URL: Final = re.compile(r"data:[^,]{0,128},")


def folded(text: str) -> str:
    """A text in small letters, each at the place where it was."""
    return text.replace("\u0130", "i").lower()


def matches(form: Form, text: str, small: str) -> Iterator[re.Match[str]]:
    """Where a form is in a text; `small` is the text in small letters."""
    if not any(hint in small for hint in form.hints):
        return
    if len(text) < LONG:
        yield from form.pattern.finditer(text)
        return
    for start, end in _windows(form.hints, small):
        for match in form.pattern.finditer(text, start, end):
            if match.end() < end:
                yield match
            else:
                yield form.pattern.match(text, match.start()) or match


def is_encoded(text: str) -> bool:
    """Whether a long text is binary data in letters, which no secret can be told from."""
    if len(text) < LONG or not text.isascii():
        return False
    begin = _DATA_URL.match(text)
    return not text[begin.end() if begin else 0 :].encode().translate(None, _ENCODED)


def _windows(hints: tuple[str, ...], small: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that are near a hint, none overlapping another."""
    places = sorted(place for hint in hints for place in _places(hint, small))
    start = end = 0
    for place in places:
        if place - BEFORE > end:
            if end:
                yield start, end
            start = place - BEFORE
        end = place + BEHIND
    if end:
        yield start, min(end, len(small))


def _places(hint: str, small: str) -> Iterator[int]:
    if hint in _NEAR:
        yield from (match.start() for match in _NEAR[hint].finditer(small))
        return
    at = small.find(hint)
    while at >= 0:
        yield at
        at = small.find(hint, at + 1)


MOST_SLOWLY: Final = 256
"""How many texts are searched for known pieces before it is worth to compile a pattern of them."""


class Pieces:
    """Strings to look for, however many they are: a pattern of all of them, once it pays.

    To compile one takes as long as some hundred searches without it.
    """

    def __init__(self, pieces: Iterable[str] = ()) -> None:
        self._pieces = tuple(pieces)
        self._searched = 0
        self.any_in: Callable[[str], bool] = self._any_in
        """Whether one of the pieces is in a text."""

    def _any_in(self, text: str) -> bool:
        self._searched += 1
        if self._searched == MOST_SLOWLY and self._pieces:
            with suppress(ValueError, ImportError):
                self.any_in = engine("|".join(map(_literal, self._pieces)))
        return any(piece in text for piece in self._pieces)


def _literal(piece: str) -> str:
    """A pattern of ASCII for a piece of ASCII."""
    return "".join(each if each.isalnum() else f"\\x{ord(each):02x}" for each in piece)


NO_PIECES: Final = Pieces()
