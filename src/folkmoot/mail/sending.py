"""How a message comes to both sides: into the thread of the two, in the order of all messages.

What it holds is checked before: a body of text or a payload that was encrypted elsewhere, never
both.
"""

from __future__ import annotations

from binascii import a2b_base64
from secrets import token_hex
from typing import Final, Protocol

from msgspec import Struct

from folkmoot.accounts import check_public_key
from folkmoot.core import errors as e
from folkmoot.core.events import SENT
from folkmoot.core.ports import Tx
from folkmoot.mail.model import (
    NONCE_BYTES,
    PRIORITIES,
    Content,
    EncryptedPayload,
    Priority,
)
from folkmoot.mail.queries import StoredMessage

TAG_BYTES = 16
LONGEST_CHARACTER = 4
"""Bytes that one character of a body takes at most."""
SETTING = "mail.max_body_characters"
MAILBOX: Final = "mail."
"""Begins the subject of a mailbox; see `waiting.subject_of_mailbox`."""
SENT_BY: Final = SENT.removesuffix("*")


class OutgoingMessage(Struct, frozen=True, gc=False):
    """A message that is ready to be stored, but for its place in the order."""

    id: str
    content: Content
    priority: Priority
    reply_to: str | None
    now: int


class DeliveredMessage(Struct, frozen=True, gc=False):
    """A message that was stored, and whether its recipient has muted the thread."""

    message: StoredMessage
    muted: bool
    size: int
    """What it counts for."""
    used: int
    """What all that the sender sent takes now, in bytes."""


def new_letter(content: Content, priority: str, reply_to: str | None, now: int) -> OutgoingMessage:
    """A letter with an id of its own; raises if there is no such priority."""
    for known in PRIORITIES:
        if priority == known:
            return OutgoingMessage(new_id(), content, known, reply_to, now)
    raise e.ArgumentInvalid(f"priority must be one of {', '.join(PRIORITIES)}.", field="priority")


def new_id() -> str:
    """A fresh UUID of version 4: all but version and variant is random.

    The standard library makes a number of it first, which takes longer.
    """
    digits = token_hex(16)
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def publish_message(tx: Tx, stored: DeliveredMessage) -> None:
    """Within a unit: have a message announced. Whoever misses the event finds it in the store."""
    message = stored.message
    event = {
        "seq": message.seq,
        "id": message.id,
        "thread_id": message.thread_id,
        "muted": stored.muted,
        "urgent": message.priority == "urgent",
    }
    tx.publish(MAILBOX + message.to_id, event)
    sent = {"id": message.id, "thread_id": message.thread_id}
    tx.publish(SENT_BY + message.from_id, sent)


class GivenPayload(Protocol):
    """A payload as the caller gives it."""

    @property
    def ciphertext(self) -> str:
        """The NaCl box in base64."""

    @property
    def nonce(self) -> str:
        """The nonce in base64."""

    @property
    def sender_public_key(self) -> str:
        """The public key it was made with, in base64."""


def check_content(body: str | None, payload: GivenPayload | None, longest: int) -> Content:
    """The one of the two that was given, if it is fit to be sent."""
    if payload is None:
        if body is None:
            raise e.ContentMissing
        return check_body(body, longest)
    if body is not None:
        raise e.ContentTwice
    return check_payload(payload, longest)


def check_body(body: str, longest: int) -> str:
    """The body: any text that is not empty and not too long, NUL and every plane included."""
    if not body:
        raise e.ArgumentInvalid("body must not be empty.", field="body")
    if len(body) > longest:
        raise e.ArgumentInvalid(
            f"body has {len(body):,} characters; at most {longest:,} are allowed.",
            field="body",
            setting=SETTING,
        )
    try:
        body.encode()
    except UnicodeEncodeError:
        raise e.ArgumentInvalid(
            "body must be text; it holds half of a surrogate pair.", field="body"
        ) from None
    return body


def check_payload(payload: GivenPayload, longest: int) -> EncryptedPayload:
    """The payload if its parts are valid; its content stays encrypted."""
    ciphertext = decode("encrypted_payload.ciphertext", payload.ciphertext)
    most = longest * LONGEST_CHARACTER + TAG_BYTES
    if not TAG_BYTES <= len(ciphertext) <= most:
        raise e.ArgumentInvalid(
            f"encrypted_payload.ciphertext must have {TAG_BYTES} to {most:,} bytes: no box is "
            "shorter.",
            field="encrypted_payload.ciphertext",
            **({"setting": SETTING} if len(ciphertext) > most else {}),
        )
    if len(decode("encrypted_payload.nonce", payload.nonce)) != NONCE_BYTES:
        raise e.ArgumentInvalid(
            f"encrypted_payload.nonce must be {NONCE_BYTES} bytes in base64.",
            field="encrypted_payload.nonce",
        )
    check_public_key("encrypted_payload.sender_public_key", payload.sender_public_key)
    return EncryptedPayload(payload.ciphertext, payload.nonce, payload.sender_public_key)


def decode(field: str, text: str) -> bytes:
    """The bytes that are written in base64; an error that names the field if they are not."""
    try:
        return a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        raise e.ArgumentInvalid(f"{field} must be base64.", field=field) from None
