"""Tokens, codes and the secrets of browser sessions: how they are made, read and hashed."""

from __future__ import annotations

import re
import secrets
from hashlib import sha256

TOKEN = re.compile(r"sk_[0-9a-f]{64}")
TOKEN_BYTES = 32

CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_GROUPS = 3
GROUP_LETTERS = 4
CODE = re.compile(f"[{CODE_ALPHABET}]{{{CODE_GROUPS * GROUP_LETTERS}}}")
LONGEST_CODE = 64

INVITE_BYTES = 16
INVITE = re.compile(f"[0-9a-f]{{{INVITE_BYTES * 2}}}")

BROWSER = re.compile(r"bs_[0-9a-f]{64}")
ONE_TIME = re.compile(r"oc_[0-9a-f]{64}")
"""Neither can be taken for a token: what is in a cookie opens nothing as a bearer token."""


def new_token() -> str:
    """A fresh token."""
    return f"sk_{secrets.token_hex(TOKEN_BYTES)}"


def new_recovery_code() -> str:
    """A fresh recovery code."""
    return grouped("".join(secrets.choice(CODE_ALPHABET) for _ in range(12)))


def new_invite_code() -> str:
    """A fresh invite code of 128 bits, in characters that survive any URL or command line."""
    return secrets.token_hex(INVITE_BYTES)


def new_browser_secret() -> str:
    """The secret of a new browser session, which its cookie holds."""
    return f"bs_{secrets.token_hex(TOKEN_BYTES)}"


def new_one_time_code() -> str:
    """A code that opens one browser session."""
    return f"oc_{secrets.token_hex(TOKEN_BYTES)}"


def hash_secret(secret: str) -> str:
    """The SHA-256 of a token or code as 64 hexadecimal digits: all that is ever stored of it."""
    return sha256(secret.encode()).hexdigest()


def is_token(text: str) -> bool:
    """Whether a text has the form of a token."""
    return TOKEN.fullmatch(text) is not None


def hash_token(token: str) -> str | None:
    """The hash of a token; nothing where the text is not one."""
    return hash_secret(token) if is_token(token) else None


def hash_browser_secret(text: str) -> str | None:
    """The hash of a browser session's secret; nothing where the text is not one."""
    return hash_secret(text) if BROWSER.fullmatch(text) else None


def hash_one_time_code(text: str) -> str | None:
    """The hash of a one-time code; nothing where the text is not one."""
    return hash_secret(text) if ONE_TIME.fullmatch(text) else None


def hash_invite_code(code: str) -> str | None:
    """The hash of an invite code; nothing where the text is not one."""
    return hash_secret(code) if INVITE.fullmatch(code) else None


def hash_recovery_code(text: str) -> str | None:
    """The hash of a recovery code, in any case, with or without dashes; nothing if it is none."""
    if len(text) > LONGEST_CODE or not text.isascii():
        return None
    letters = text.strip().replace("-", "").upper()
    return hash_secret(grouped(letters)) if CODE.fullmatch(letters) else None


def grouped(letters: str) -> str:
    """The letters of a recovery code as `XXXX-XXXX-XXXX`."""
    starts = range(0, len(letters), GROUP_LETTERS)
    return "-".join(letters[start : start + GROUP_LETTERS] for start in starts)
