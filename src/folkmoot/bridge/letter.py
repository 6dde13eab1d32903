"""Letter: what lies in a box for another bridge, so that the box cannot be passed off as another.

A box is symmetric, and says neither who closed it nor for which message: a hub could hand me my own
words as an answer. So a body travels with who wrote it, to whom, when and as an answer to what. For
everyone else a box holds the body alone, as MMP v0.1 has it; profiles say who reads letters.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

import msgspec

VERSION: Final = "folkmoot-mail-1"
FAMILY: Final = "folkmoot-mail-"
FORMATS: Final = "payload_formats"
"""The member of a profile that says what its device reads in a box beside plain text."""


class Letter(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A body, bound to its message. `re` is the message it answers; `id` makes each one new."""

    v: str
    from_: str = msgspec.field(name="from")
    to: str
    id: str
    ts: int
    body: str
    re: str | None = None


class Unreadable(ValueError):
    """What lies in the box is no letter and no text; the message says why."""


class _Versioned(msgspec.Struct, gc=False):
    v: str


_read = msgspec.json.Decoder(Letter)
_version = msgspec.json.Decoder(_Versioned)


def new_letter(sender: str, recipient: str, body: str, now: float, re: str | None = None) -> Letter:
    """A letter that was never written before."""
    return Letter(VERSION, sender, recipient, str(uuid.uuid4()), int(now), body, re)


def reads_letters(profile: dict[str, Any]) -> bool:
    """Whether a profile says that its device reads letters."""
    named = profile.get(FORMATS)
    return isinstance(named, list) and VERSION in named


def write_letter(letter: Letter) -> bytes:
    """The letter as it goes into the box."""
    return msgspec.json.encode(letter)


def read_letter(content: bytes) -> Letter | str:
    """The letter in a box, or the plain text that other programs put there: it is bound to nothing.

    Raises `Unreadable` for what a newer bridge wrote, and for what is not text.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Unreadable("what is in it is not text") from None
    try:
        version = _version.decode(content).v
    except (msgspec.DecodeError, RecursionError):
        return text
    if not version.startswith(FAMILY):
        return text
    if version != VERSION:
        raise Unreadable("it was written by a newer bridge; update this one")
    try:
        return _read.decode(content)
    except msgspec.DecodeError:
        raise Unreadable("it is not a whole letter") from None
