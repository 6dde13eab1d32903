"""What stands for a secret: equal for equal secrets, and of no use to whoever has not the key.

The key of redaction is 32 random bytes in a file of its own, made where it is first needed. Tapes
that were redacted under one key agree on what stands for a secret. The key lets nobody read a
secret back; it only lets its owner try whether a guess is right.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from folkmoot.core import errors as e


class RedactedPlace(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A place in a line of a tape where something was left out."""

    path: str
    """Leads to it, `$` being the part; `::` stands where it goes on inside JSON in a string."""
    kind: str
    """How it was known: by its form, its name, as mail, or by a path that was configured."""
    part: str = "message"
    """Which member of the line the path leads into."""


KEY_BYTES: Final = 32
MOST_KEY_BYTES: Final = 64
DIGITS: Final = 12

PLACEHOLDER: Final = re.compile(rf"\[redacted:[a-z]+:[0-9a-f]{{{DIGITS}}}\]")
_ID_LABEL: Final = b"folkmoot tape"


class Placeholders:
    """Makes placeholders under a key. `id` names the key and tells nothing of it."""

    def __init__(self, key: bytes) -> None:
        if not KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
            raise ValueError("A key of redaction has 32 to 64 bytes.")
        self._key = key
        self.id = blake2b(_ID_LABEL, key=key, digest_size=8, person=b"key id").hexdigest()

    def of(self, secret: str, kind: str) -> str:
        """The placeholder of a secret; a placeholder stays unchanged."""
        if PLACEHOLDER.fullmatch(secret):
            return secret
        data = secret.encode("utf-8", "surrogatepass")
        digest = blake2b(data, key=self._key, digest_size=DIGITS // 2).hexdigest()
        return f"[redacted:{kind}:{digest}]"


FOLDER_KEY: Final = ".redaction-key"
MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MOST: Final = 256


def folder_key(folder: Path) -> bytes:
    """The key that all tapes of a folder share."""
    return redaction_key(folder / FOLDER_KEY)


def own_key_file(environ: Mapping[str, str], home: Path) -> Path:
    """Where the key of someone's single tapes is."""
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else home / ".local" / "state"
    return base / "folkmoot" / "redaction.key"


def redaction_key(file: Path) -> bytes:
    """The key in a file, which is made if there is none. Raises `KeyUnusable`."""
    try:
        key = _read(file)
        return _make(file) if key is None else key
    except OSError as error:
        raise e.KeyUnusable(f"{file}: cannot be used: {error.strerror}.") from error


def _read(file: Path) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise e.KeyUnusable(f"{file}: is not a file.")
        if stat.S_IMODE(mode) & 0o077:
            raise e.KeyUnusable(f"{file}: other users can read it. Run: chmod 600 {file}")
        content = opened.read(_MOST)
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise e.KeyUnusable(
            f"{file}: is not a key of redaction; it must hold 64 hexadecimal digits."
        )
    return key


def _make(file: Path) -> bytes:
    """Write a new key file atomically, or use the one another process wrote meanwhile."""
    file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, _NEW, MODE)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(f"{secrets.token_hex(KEY_BYTES)}\n".encode())
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(part, file)
    finally:
        part.unlink(missing_ok=True)
    key = _read(file)
    if key is None:
        raise e.KeyUnusable(f"{file}: has disappeared.")
    return key
