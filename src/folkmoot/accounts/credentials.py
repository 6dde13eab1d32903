"""Tokens, codes, secrets of browser sessions and key pairs: how they are made, read and hashed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import NamedTuple

from nacl.bindings import crypto_box_beforenm
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey

from folkmoot.accounts.limits import MAX_RECOVERY_CODE, MAX_USER_CODE
from folkmoot.core import errors as e

TOKEN = re.compile(r"sk_[0-9a-f]{64}")
TOKEN_BYTES = 32

CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_GROUPS = 3
GROUP_LETTERS = 4
CODE = re.compile(f"[{CODE_ALPHABET}]{{{CODE_GROUPS * GROUP_LETTERS}}}")

INVITE_BYTES = 16
INVITE = re.compile(f"ic_[0-9a-f]{{{INVITE_BYTES * 2}}}")

BROWSER = re.compile(r"bs_[0-9a-f]{64}")
ONE_TIME = re.compile(r"oc_[0-9a-f]{64}")
"""Neither can be taken for a token: what is in a cookie opens nothing as a bearer token."""


BEARER = re.compile(r"(?:sk|at)_[0-9a-f]{64}")
"""A token of an account, or an access token of an app: nothing else opens an account by itself."""
USER_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters that nobody takes for another, and that make no words."""
USER_CODE = re.compile(f"[{USER_ALPHABET}]{{8}}")
OF_APPS = ("at_", "rt_")
"""How the tokens of apps begin."""
ACCESS_INVALID = (
    "Authentication required. The access token is not valid: it is wrong, has expired or was "
    "revoked. Get a new one, or sign in again."
)
"""What whoever comes with one is told: nobody has to recover their account for it."""


def new_secret(kind: str) -> str:
    """A fresh secret of 256 bits, which begins with its kind.

    `sk` is a token, `bs` of a browser session, `oc` a one-time code. What begins with `at`, `rt`,
    `ac` or `dc` is of an app: for access, to refresh, or a code.
    """
    return f"{kind}_{secrets.token_hex(TOKEN_BYTES)}"


def new_recovery_code() -> str:
    return grouped("".join(secrets.choice(CODE_ALPHABET) for _ in range(12)))


def new_invite_code() -> str:
    """A fresh invite code of 128 bits, in characters that survive any URL or command line.

    Its beginning lets redaction know it: 32 digits alone could also be the id of a trace.
    """
    return f"ic_{secrets.token_hex(INVITE_BYTES)}"


def new_user_code() -> str:
    """The short code by which its person finds what it asks for."""
    text = "".join(secrets.choice(USER_ALPHABET) for _ in range(8))
    return f"{text[:4]}-{text[4:]}"


def hash_user_code(text: str) -> str | None:
    """The hash of such a code, in any case, with or without a dash; nothing if it is none."""
    plain = re.sub(r"[\s-]", "", text[:MAX_USER_CODE]).upper()
    return hash_of(USER_CODE, plain)


def hash_secret(secret: str) -> str:
    """The SHA-256 of a token or code as 64 hexadecimal digits: all that is ever stored of it."""
    return sha256(secret.encode()).hexdigest()


def is_token(text: str) -> bool:
    """Whether a text has the form of a token."""
    return TOKEN.fullmatch(text) is not None


def hash_of(form: re.Pattern[str], text: str) -> str | None:
    """The hash of a secret; nothing where the text has not its form."""
    return hash_secret(text) if form.fullmatch(text) else None


@lru_cache(maxsize=4096)
def hash_grant(credential_id: str) -> str:
    """What stands for a grant where others have the hash of their secret: no text has it.

    Every request of an app needs it.
    """
    return blake2b(credential_id.encode(), digest_size=32).hexdigest()


def hash_recovery_code(text: str) -> str | None:
    """The hash of a recovery code, in any case, with or without dashes; nothing if it is none."""
    if len(text) > MAX_RECOVERY_CODE or not text.isascii():
        return None
    letters = text.strip().replace("-", "").upper()
    return hash_secret(grouped(letters)) if CODE.fullmatch(letters) else None


def grouped(letters: str) -> str:
    """The letters of a recovery code as `XXXX-XXXX-XXXX`."""
    starts = range(0, len(letters), GROUP_LETTERS)
    return "-".join(letters[start : start + GROUP_LETTERS] for start in starts)


KEY_BYTES = 32
KEY_CHARACTERS = 44

_PROBE = hashlib.sha256(b"folkmoot: is this a key?").digest()
"""Any private key shows whether a public one is of low order; this one is nobody's."""


class KeyPair(NamedTuple):
    """A public key as it is told, and its private key, which is only ever stored sealed."""

    public: str
    private: bytes

    def __repr__(self) -> str:
        return f"<KeyPair {self.public}>"


def new_key_pair() -> KeyPair:
    private = PrivateKey.generate()
    return KeyPair(base64.b64encode(bytes(private.public_key)).decode(), bytes(private))


def keeps_secrets(key: bytes) -> bool:
    """Whether a box for a public key is secret: not so for zeros and other points of low order."""
    try:
        crypto_box_beforenm(key, _PROBE)
    except CryptoError:
        return False
    return True


def check_public_key(field: str, text: str) -> str:
    """The key itself, if it is one: 32 bytes in base64; else an error that names the field."""
    try:
        key = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # Only one text stands for a key: its last character may hide no further bits.
    if len(key) != KEY_BYTES or base64.b64encode(key).decode() != text:
        raise e.ArgumentInvalid(
            f"{field} must be {KEY_BYTES} bytes in base64 ({KEY_CHARACTERS} characters).",
            field=field,
        )
    if not keeps_secrets(key):
        raise e.ArgumentInvalid(
            f"{field} must be a public key; with this value no box would be secret.", field=field
        )
    return text
