"""A thread's subject: the beginning of its first message, and sealed like it.

Its plaintext names that message, because the subject is part of it: whoever no longer has the
message does not see the subject either, and it goes when the message goes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from folkmoot.accounts import Sealer
from folkmoot.core.errors import SealBroken
from folkmoot.mail.model import Content

PURPOSE = "thread_subject"
CHARACTERS = 50
MOST_OPENED = 8_192


class Subject(NamedTuple):
    """The sequence of the thread's first message, and the words it begins with."""

    first_seq: int
    text: str


DECODER = msgspec.json.Decoder(Subject)


class Subjects:
    """Seals and opens the subjects of threads."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        # A subject is short and never changes; what was changed at rest is not found under it.
        self._kept = lru_cache(maxsize=MOST_OPENED)(self._open)

    def seal(self, thread_id: str, subject: Subject) -> str:
        """The subject as it is stored."""
        return self._sealer.seal(PURPOSE, thread_id, msgspec.json.encode(subject))

    def open(self, thread_id: str, sealed: str) -> Subject:
        """The subject; one that was changed at rest is empty, and its thread stays usable."""
        try:
            return self._kept(thread_id, sealed)
        except (SealBroken, msgspec.DecodeError):
            return Subject(1, "")

    def _open(self, thread_id: str, sealed: str) -> Subject:
        return DECODER.decode(self._sealer.open(PURPOSE, thread_id, sealed))


def subject_of(content: Content) -> str:
    """The subject of a thread that begins with this: nothing of what we cannot read."""
    return content[:CHARACTERS] if isinstance(content, str) else ""
