"""Idempotency keys: a message that is sent again under its key is not sent twice.

What the first attempt was answered is kept for a day, sealed, beside the message: it is still known
when the message itself was deleted.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Tx
from folkmoot.mail import queries
from folkmoot.mail.limits import IDEMPOTENCY_SECONDS, MAX_IDEMPOTENCY_KEY
from folkmoot.mail.model import Sent
from folkmoot.mail.sending import OutgoingMessage

FIELD = "idempotency_key"
PURPOSE = "sent_key"
"""What an answer is sealed for; its row is the hash of the key."""


class Attempt(Struct, frozen=True, gc=False):
    """A send with an idempotency key: its sender, and a digest of the message."""

    user_id: str
    key_hash: str
    fingerprint: str
    now: int


class RememberedAnswer(Struct, frozen=True, gc=False):
    """What is sealed: the first attempt's answer, and its fingerprint."""

    fingerprint: str
    sent: Sent


class SentMeanwhile(Exception):
    """The message of the same key was sent by another attempt at the same moment."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RememberedAnswer).decode


def check_attempt(
    sender: Account, key: str | None, target: str, letter: OutgoingMessage
) -> Attempt | None:
    """The attempt to send a letter to `target` under a key, if there is one.

    A box differs each time a client makes it, so of content that is encrypted by the client only
    the target is compared.
    """
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_IDEMPOTENCY_KEY:
        raise e.ArgumentInvalid(
            f"{FIELD} must have 1 to {MAX_IDEMPOTENCY_KEY} characters.", field=FIELD
        )
    body = letter.content if isinstance(letter.content, str) else None
    return Attempt(sender.id, digest([sender.id, key]), digest([target, body]), letter.now)


def digest(parts: list[str | None]) -> str:
    """A hash that no other list of texts has."""
    return sha256(_encode(parts)).hexdigest()


class SentKeys(Struct, eq=False):
    """What was answered under which key; everything here runs within a unit."""

    sealer: Sealer

    async def find(self, tx: Tx, attempt: Attempt) -> Sent | None:
        """The answer of the first attempt, if there was one in the last 24 hours.

        Raises if it was an attempt to send something else.
        """
        since = attempt.now - IDEMPOTENCY_SECONDS
        sealed = await queries.find_sent_key(tx, attempt.user_id, attempt.key_hash, since)
        if sealed is None:
            return None
        answered = _decode(self.sealer.open(PURPOSE, attempt.key_hash, sealed))
        if answered.fingerprint != attempt.fingerprint:
            raise e.ArgumentInvalid(
                f"This {FIELD} was used for another message in the last 24 hours. "
                "Give each message a key of its own.",
                field=FIELD,
            )
        return answered.sent

    async def put(self, tx: Tx, attempt: Attempt, sent: Sent) -> None:
        """Keep what an attempt is answered, and forget some of what is too old."""
        answer = self.sealer.seal(
            PURPOSE, attempt.key_hash, _encode(RememberedAnswer(attempt.fingerprint, sent))
        )
        since = attempt.now - IDEMPOTENCY_SECONDS
        await queries.forget_sent_keys(tx, since)
        kept = await queries.put_sent_key(
            tx, attempt.user_id, attempt.key_hash, answer, attempt.now, since
        )
        if not kept:
            raise SentMeanwhile
