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
    words: str | None = None
    """The sentence that says what it is, with `{…}` for what is filled in; None for none."""
    what: str = ""
    brief: tuple[str, ...] = ()
    """What comes after the sentence."""
    origin: tuple[int, ...] = ()
    """As `about`; for what an approved proposal came to, the proposal's number."""
    nameless: bool = False
    repeats: bool = False


class Looks:
    """Turns envelopes into looks, and remembers the numbers of the latest by their ids."""

    def __init__(self) -> None:
        self._seqs: dict[str, tuple[int, int]] = {}
        """The number of each message, and that of the proposal it approves or else its own."""

    def look(self, envelope: Mapping[str, Any]) -> Look:
        """The look of the next envelope."""
        known = [self._seqs[id_] for id_ in words(envelope.get("correlation_id"))
                 if id_ in self._seqs]  # fmt: skip
        about, origin = [seq for seq, _ in known], [seq for _, seq in known]
        seq, id_ = envelope.get("seq"), envelope.get("id")
        if type(seq) is int and type(id_) is str:
            asked = str(envelope.get("kind")).startswith("mcp.request.")
            self._seqs[id_] = (seq, origin[0] if asked and origin else seq)
            if len(self._seqs) > REMEMBERED:
                del self._seqs[next(iter(self._seqs))]
        return look(envelope, about, origin)


def look(
    envelope: Mapping[str, Any], about: Iterable[int] = (), origin: Iterable[int] = ()
) -> Look:
    """How an envelope is shown."""
    payload = envelope.get("payload")
    payload = payload if type(payload) is dict else {}
    kind = kind_of(envelope.get("kind"), payload)
    told = tellers.tell(kind, payload)
    if kind is not None and kind.root == "mcp.request" and envelope.get("correlation_id"):
        told = told._replace(words="approved {about}", brief="")
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
        text=shown_lines(text),
        about=tuple(about),
        cut=len(told.text) > MAX_TEXT,
        mentions=tuple(words(told.mentions)),
        words=told.words,
        what=one_line(told.what),
        brief=shown_lines(text if told.brief is None else told.brief[:MAX_TEXT]),
        origin=tuple(origin),
        nameless=told.nameless,
        repeats=told.repeats and bool(envelope.get("correlation_id")),
    )


def shown_lines(text: str) -> tuple[str, ...]:
    """A text in lines that are safe to show."""
    return tuple(line.expandtabs(4) for line in lines(text)) if text else ()


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
        words="",
        brief=tuple(lines(text)),
        nameless=True,
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
