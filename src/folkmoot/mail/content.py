"""What a message may hold: a body of text or a payload that was encrypted elsewhere, never both."""

from __future__ import annotations

import binascii
from typing import Protocol, TypeAlias

from folkmoot.accounts import check_public_key
from folkmoot.core.errors import ArgumentInvalid, ContentMissing, ContentTwice
from folkmoot.mail.model import EncryptedPayload

NONCE_BYTES = 24
TAG_BYTES = 16
LONGEST_CHARACTER = 4
"""Bytes that one character of a body takes at most."""
SETTING = "Setting: mail.max_body_characters."

Content: TypeAlias = str | EncryptedPayload


class GivenPayload(Protocol):
    """A payload as a caller hands it over."""

    @property
    def ciphertext(self) -> str:
        """The NaCl box in base64."""
        ...

    @property
    def nonce(self) -> str:
        """Its nonce in base64."""
        ...

    @property
    def sender_public_key(self) -> str:
        """The public key it was made with, in base64."""
        ...


def check_content(body: str | None, payload: GivenPayload | None, longest: int) -> Content:
    """The one of the two that was given, if it is fit to be sent."""
    if payload is None:
        if body is None:
            raise ContentMissing
        return check_body(body, longest)
    if body is not None:
        raise ContentTwice
    return check_payload(payload, longest)


def check_body(body: str, longest: int) -> str:
    """The body: any text that is not empty and not too long, NUL and every plane included."""
    if not body:
        raise ArgumentInvalid("body must not be empty.", field="body")
    if len(body) > longest:
        raise ArgumentInvalid(
            f"body has {len(body):,} characters; at most {longest:,} are allowed. {SETTING}",
            field="body",
        )
    try:
        body.encode()
    except UnicodeEncodeError:
        raise ArgumentInvalid(
            "body must be text; it holds half of a surrogate pair.", field="body"
        ) from None
    return body


def check_payload(payload: GivenPayload, longest: int) -> EncryptedPayload:
    """The payload, if its parts are what they claim to be; what it says is not ours to know."""
    ciphertext = decode("encrypted_payload.ciphertext", payload.ciphertext)
    most = longest * LONGEST_CHARACTER + TAG_BYTES
    if not TAG_BYTES <= len(ciphertext) <= most:
        raise ArgumentInvalid(
            f"encrypted_payload.ciphertext must have {TAG_BYTES} to {most:,} bytes: no box is "
            f"shorter. {SETTING}",
            field="encrypted_payload.ciphertext",
        )
    if len(decode("encrypted_payload.nonce", payload.nonce)) != NONCE_BYTES:
        raise ArgumentInvalid(
            f"encrypted_payload.nonce must be {NONCE_BYTES} bytes in base64.",
            field="encrypted_payload.nonce",
        )
    check_public_key("encrypted_payload.sender_public_key", payload.sender_public_key)
    return EncryptedPayload(payload.ciphertext, payload.nonce, payload.sender_public_key)


def decode(field: str, text: str) -> bytes:
    """The bytes that are written in base64; an error that names the field if they are not."""
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        raise ArgumentInvalid(f"{field} must be base64.", field=field) from None
