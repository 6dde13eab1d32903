"""Which scope each operation needs, and the scopes that someone asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core import errors as e
from folkmoot.core.scopes import ABOUT, ALL, NAMES, Need, scope
from folkmoot.operations.limits import MAX_SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.operations.row import Operation


def needs_of(operations: Iterable[Operation]) -> dict[str, Need]:
    """The scope of each operation, and the argument that a scope may name; none for anyone's."""
    needs: dict[str, Need] = {}
    for row in operations:
        name = "" if row.public else row.scope
        needs[row.name] = Need(name, row.about if name else "", row.lesser)
    return needs


def check_scope(text: str) -> str:
    """A scope that someone asks for, with each word once; refused where a word is none."""
    if len(text) > MAX_SCOPE:
        raise refused(f"scope must be at most {MAX_SCOPE:,} characters.")
    words = text.split()
    if not words:
        raise refused(f"scope must name at least one of {', '.join(NAMES)}, or be {ALL}.")
    for word in words:
        name, colon, about = word.partition(":")
        if word == ALL:
            continue
        if name not in NAMES:
            raise refused(f"There is no scope {quoted(name)}. Scopes: {', '.join(NAMES)}, {ALL}.")
        if colon and not NAMES[name].about:
            raise refused(f"The scope {name} takes no name: leave out {quoted(':' + about)}.")
        if colon and ABOUT.fullmatch(about) is None:
            raise refused(f"{quoted(word)} must name a {NAMES[name].about} after the colon.")
    return scope(text).text


def quoted(word: str) -> str:
    """A word as a refusal repeats it: short and printable."""
    return repr(word if len(word) <= 64 else f"{word[:64]}…")


def refused(sentence: str) -> e.ArgumentInvalid:
    """The refusal of a scope."""
    return e.ArgumentInvalid(sentence, field="scope")
