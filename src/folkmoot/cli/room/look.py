"""An envelope as people see it: who, to whom, what it is and what it says.

It may have been written by anyone, so every text in a `Look` is safe to show, and an envelope that
is not what it should be is shown as what it is. How it is drawn is `lines` and `draw`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from folkmoot.cli.room import tellers
from folkmoot.cli.room.colours import chip_colour
from folkmoot.cli.text import lines, one_line
from folkmoot.core.errors import FolkmootError
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import Kind, parse

MAX_TEXT: Final = 65_536
REMEMBERED: Final = 4_096


class Tone(Enum):
    """How loud a message is."""

    SAID = auto()
    ASIDE = auto()
    FAILED = auto()


class Look(Struct, frozen=True):
    """One envelope, ready to be shown."""

    seq: int | None
    ts: str
    who: str
    to: tuple[str, ...]
    kind: str
    chip: str
    colour: int
    tone: Tone
    text: tuple[str, ...]
    about: tuple[int, ...] = ()
    """The numbers of the messages it answers or decides on, as far as they were seen."""
    cut: bool = False
    """Whether there is more text than is shown."""
    mentions: tuple[str, ...] = ()


class Looks:
    """Turns envelopes into looks, and remembers the numbers of the latest by their ids."""

    def __init__(self) -> None:
        self._seqs: dict[str, int] = {}

    def look(self, envelope: Mapping[str, Any]) -> Look:
        """The look of the next envelope."""
        about = [self._seqs[id_] for id_ in words(envelope.get("correlation_id"))
                 if id_ in self._seqs]  # fmt: skip
        seq, id_ = envelope.get("seq"), envelope.get("id")
        if type(seq) is int and type(id_) is str:
            self._seqs[id_] = seq
            if len(self._seqs) > REMEMBERED:
                del self._seqs[next(iter(self._seqs))]
        return look(envelope, about)


def look(envelope: Mapping[str, Any], about: Iterable[int] = ()) -> Look:
    """How an envelope is shown."""
    payload = envelope.get("payload")
    payload = payload if type(payload) is dict else {}
    kind = kind_of(envelope.get("kind"), payload)
    told = tellers.tell(kind, payload)
    text = told.text if len(told.text) <= MAX_TEXT else told.text[:MAX_TEXT]
    seq = envelope.get("seq")
    return Look(
        seq=seq if type(seq) is int else None,
        ts=one_line(str(envelope.get("ts", ""))),
        who=one_line(str(envelope.get("from", ""))),
        to=tuple(map(one_line, words(envelope.get("to")))),
        kind=one_line(str(kind or envelope.get("kind", ""))),
        chip=one_line(told.chip),
        colour=chip_colour(kind.protocol, kind.operation) if kind else chip_colour("", ""),
        tone=Tone.FAILED if told.failed else Tone.ASIDE if told.aside else Tone.SAID,
        text=tuple(line.expandtabs(4) for line in lines(text)) if text else (),
        about=tuple(about),
        cut=len(told.text) > MAX_TEXT,
        mentions=tuple(words(told.mentions)),
    )


def note(text: str, ts: str) -> Look:
    """Something the reader should know that nobody said."""
    return Look(
        seq=None,
        ts=ts,
        who="",
        to=(),
        kind="",
        chip="",
        colour=0,
        tone=Tone.ASIDE,
        text=tuple(lines(text)),
    )


def kind_of(text: Any, payload: dict[str, Any]) -> Kind | None:
    """The kind with the context of its payload; None for what is no kind."""
    try:
        kind = parse(str(text))
    except FolkmootError:
        return None
    try:
        return effective(kind, payload) if kind.protocol == "mcp" else kind
    except FolkmootError:
        return kind


def words(value: Any) -> list[str]:
    """The strings of a list, or of one that was left out of its list."""
    if type(value) is str:
        return [value]
    return [each for each in value if type(each) is str] if type(value) is list else []
