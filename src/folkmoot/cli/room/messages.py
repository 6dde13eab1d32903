"""How a message of a room looks: its parts, its colours, and as a line in a pipe."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from folkmoot.cli.limits import MAX_REMEMBERED, MAX_SHOWN_TEXT
from folkmoot.cli.output import escape_json, lines, one_line
from folkmoot.cli.room import sentences
from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import Kind, parse

PALETTE: Final = (28, 30, 31, 27, 98, 164, 162, 130, 64, 131)
"""Numbers of the 256-colour palette, each at least 4:1 against black and against white."""

RED: Final = 161
CHIPS: Final[dict[str, int]] = {
    "mcp.request": 27,
    "mcp.response": 28,
    "mcp.proposal": 130,
    "mcp.notification": 65,
    "mcpx": 130,
    "capability": 98,
    "room": 98,
    "system.error": RED,
    "system.proposal": 130,
}
"""The colour of a kind's chip, by protocol and operation or by protocol alone."""

OTHER_CHIP: Final = 97


def colour_of(name: str) -> int:
    """The colour of a participant, the same today and tomorrow, here and elsewhere."""
    return PALETTE[sha256(name.encode("utf-8", "replace")).digest()[0] % len(PALETTE)]


def chip_colour(protocol: str, operation: str) -> int:
    """The colour of a kind's chip."""
    near = CHIPS.get(f"{protocol}.{operation}")
    return near if near is not None else CHIPS.get(protocol, OTHER_CHIP)


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
        correlated = words(envelope.get("correlation_id")) or replaced(envelope)
        known = [self._seqs[id_] for id_ in correlated if id_ in self._seqs]
        about, origin = [seq for seq, _ in known], [seq for _, seq in known]
        seq, id_ = envelope.get("seq"), envelope.get("id")
        if type(seq) is int and type(id_) is str:
            asked = str(envelope.get("kind")).startswith("mcp.request.")
            self._seqs[id_] = (seq, origin[0] if asked and origin else seq)
            if len(self._seqs) > MAX_REMEMBERED:
                del self._seqs[next(iter(self._seqs))]
        return look(envelope, about, origin)


def replaced(envelope: Mapping[str, Any]) -> list[str]:
    """The id of the message that chat takes the place of, if it does."""
    with suppress(e.FolkmootError):
        id_ = chat.replaced_by(parse(str(envelope.get("kind"))), envelope.get("payload"))
        return [] if id_ is None else [id_]
    return []


def look(
    envelope: Mapping[str, Any], about: Iterable[int] = (), origin: Iterable[int] = ()
) -> Look:
    """How an envelope is shown."""
    payload = envelope.get("payload")
    payload = payload if type(payload) is dict else {}
    kind = kind_of(envelope.get("kind"), payload)
    told = sentences.sentence_for(kind, payload)
    if kind is not None and kind.root == "mcp.request" and envelope.get("correlation_id"):
        told = told._replace(words="approved {about}", brief="")
    text = told.text if len(told.text) <= MAX_SHOWN_TEXT else told.text[:MAX_SHOWN_TEXT]
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
        cut=len(told.text) > MAX_SHOWN_TEXT,
        mentions=tuple(words(told.mentions)),
        words=told.words,
        what=one_line(told.what),
        brief=shown_lines(text if told.brief is None else told.brief[:MAX_SHOWN_TEXT]),
        origin=tuple(origin),
        nameless=told.nameless,
        repeats=told.repeats and bool(envelope.get("correlation_id")),
    )


def shown_lines(text: str) -> tuple[str, ...]:
    """A text in lines that are safe to show."""
    return tuple(line.expandtabs(4) for line in lines(text)) if text else ()


def note(text: str, ts: str) -> Look:
    """A line of the program itself, which nobody in the room said."""
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
    except e.FolkmootError:
        return None
    try:
        return effective(kind, payload) if kind.protocol == "mcp" else kind
    except e.FolkmootError:
        return kind


def words(value: Any) -> list[str]:
    """The strings of a list, or of one that was left out of its list."""
    if type(value) is str:
        return [value]
    return [each for each in value if type(each) is str] if type(value) is list else []


NONE: Final = "-"
LINE_END: Final = "\\x0a"
SPACE: Final = "\\x20"


def plain(look: Look) -> str:
    """A message as `seq time from kind text`; only the text has spaces in it."""
    number = NONE if look.seq is None else str(look.seq)
    fields = (number, look.ts or NONE, look.who or NONE, look.kind or NONE)
    head = [field.replace(" ", SPACE) for field in fields]
    return " ".join([*head, LINE_END.join(look.text)]).rstrip()


def verbatim(data: bytes) -> str:
    """An envelope in the bytes it came in, in one line that does nothing to a terminal.

    A line end in JSON stands between its parts only, never inside a string.
    """
    text = data.decode("utf-8", "replace").replace("\r", " ").replace("\n", " ")
    return escape_json(text)


NAMED: Final = re.compile(r"(?<![\w@])@([\w-]+)")


def mentioned(text: str, present: Container[str]) -> list[str] | None:
    """The participants a text mentions, each once; None without a mention."""
    names = (name.lower() for name in NAMED.findall(text))
    return [name for name in dict.fromkeys(names) if name in present] or None
