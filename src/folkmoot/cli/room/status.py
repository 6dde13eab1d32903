"""The two things below the transcript: the status line, and the card of what is to be decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from folkmoot.cli.room.deciding import Deciding, Waiting

SEPARATOR: Final = " · "
KEYS: Final = {"a": "a approve", "r": "r reject", "n": "n next", "esc": "Esc back"}
SHORT_KEYS: Final = {"a": "a yes", "r": "r no", "n": "n next", "esc": "Esc"}
"""What the card offers, by key."""
ABOVE: Final = "… all of it is printed above"
LEAST_ROWS: Final = 4


class Situation(Struct):
    """What is so at the moment."""

    room: str
    me: str
    here: int = 0
    live: bool = True
    waiting: int = 0
    """Messages that were typed and are not yet in the room."""


def status_line(now: Situation, deciding: Deciding, width: int) -> StyleAndTextTuples:
    """The room, who one is, how many are here and how the connection is, as far as it fits.

    What must not be missed stands last on the left and at the right: it is kept longest.
    """
    state = "live" if now.live else "reconnecting…"
    sending = [f"{now.waiting} to be sent"] if now.waiting and not now.live else []
    right = "" if deciding.shown else to_decide(len(deciding))
    for parts in (
        [now.room, now.me, f"{now.here} here", *sending, state],
        [now.room, f"{now.here} here", *sending, state],
        [now.room, *sending, state],
        [*sending, state],
        [state],
    ):
        left = f" {SEPARATOR.join(parts)} "
        space = width - get_cwidth(left) - get_cwidth(right)
        if space >= 0:
            return [("", left), ("", " " * space), ("bold", right)]
    return [("", cut(right or state, width))]


def to_decide(count: int) -> str:
    """How many proposals wait, and what to press."""
    if not count:
        return ""
    return f"{count} proposal{'s' if count > 1 else ''}: Tab "


def card(deciding: Deciding, width: int, height: int) -> StyleAndTextTuples:
    """The proposal that is shown, with its arguments and the keys that decide on it."""
    shown = deciding.shown
    if shown is None:
        return []
    lines, whole = fitting(shown, width, height)
    if not whole:
        lines = [*lines, ABOVE]
    keys = key_line(deciding, shown, width)
    title = f"Proposal #{shown.look.seq}, {deciding.place()} of {len(deciding)}: {asked(shown)}"
    text: StyleAndTextTuples = [("bold", f"{title}\n")]
    text += [("", f"  {line}\n") for line in lines]
    return [*text, ("class:card.keys", keys)]


def key_line(deciding: Deciding, shown: Waiting, width: int) -> str:
    """The keys that do something with the proposal that is shown."""
    offered = offered_keys(deciding, shown)
    whole, short = (SEPARATOR.join(each[key] for key in offered) for each in (KEYS, SHORT_KEYS))
    return whole if get_cwidth(whole) <= width else short


def offered_keys(deciding: Deciding, shown: Waiting) -> list[str]:
    """The keys that one may use on a proposal."""
    usable = {
        "a": deciding.may_approve(shown),
        "r": deciding.may_reject(),
        "n": len(deciding) > 1,
        "esc": True,
    }
    return [key for key, may in usable.items() if may]


def asked(shown: Waiting) -> str:
    """Who asks whom for what."""
    look = shown.look
    whom = f" asks {', '.join(look.to)}" if look.to else " asks"
    return f"{look.who}{whom} for {look.what}"


def fitting(shown: Waiting, width: int, height: int) -> tuple[Sequence[str], bool]:
    """The lines of a proposal that the card has room for, and whether those are all."""
    room = max(height // 2, LEAST_ROWS)
    lines: list[str] = []
    for line in shown.look.text:
        room -= rows(f"  {line}", width)
        if room < 0:
            return lines, False
        lines.append(line)
    return lines, not shown.look.cut


def rows(line: str, width: int) -> int:
    """How many rows of the terminal a line takes."""
    return max(1, -(-get_cwidth(line) // max(width, 1)))


def cut(text: str, width: int) -> str:
    """As much of a text as fits."""
    while get_cwidth(text) > width:
        text = text[:-1]
    return text
