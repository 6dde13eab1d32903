"""The master key: 32 bytes under which everything secret in the database is sealed.

It comes from the operator or from a file of its own, never from the database, and it has an id that
may be told. A database remembers the id of its key and is opened with no other.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import stat
from hashlib import sha256
from pathlib import Path

from folkmoot.core.errors import KeyMismatch, KeyUnusable

KEY_VARIABLE = "FOLKMOOT_MASTER_KEY"
KEY_BYTES = 32
ID_LABEL = b"folkmoot master key id v1\0"
ID_CHARACTERS = 16

HEX = re.compile(r"[0-9A-Fa-f]{64}")
BASE64URL = re.compile(r"[A-Za-z0-9_-]{43}=?")
MAX_FILE = 256


class MasterKey:
    """The key, and its id. Nothing that prints it shows more than the id."""

    __slots__ = ("_secret", "id")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise KeyUnusable(f"A master key has {KEY_BYTES} bytes.")
        self._secret = secret
        self.id = sha256(ID_LABEL + secret).hexdigest()[:ID_CHARACTERS]

    def secret(self) -> bytes:
        """The key itself, for those who seal and open."""
        return self._secret

    def __repr__(self) -> str:
        return f"<MasterKey {self.id}>"

    def __reduce__(self) -> str:
        raise TypeError("A master key is not to be pickled.")


def parse_key(text: str, source: str) -> MasterKey:
    """The key that is written as 64 hexadecimal digits or in base64url; `source` is for errors."""
    text = text.strip()
    if HEX.fullmatch(text):
        return MasterKey(bytes.fromhex(text))
    if BASE64URL.fullmatch(text):
        try:
            return MasterKey(base64.urlsafe_b64decode(text.rstrip("=") + "="))
        except (binascii.Error, KeyUnusable):
            pass
    raise KeyUnusable(
        f"{source}: is not a master key; it must be 32 bytes as base64url or hexadecimal digits."
    )


def format_key(key: MasterKey) -> str:
    """The key as `parse_key` reads it."""
    return base64.urlsafe_b64encode(key.secret()).decode().rstrip("=")


def load_master_key(file: Path, *, given: str | None, database_exists: bool) -> MasterKey:
    """The key that was given, else the one in the file, which is made with the first database."""
    return find_key(file, given=given, database_exists=database_exists) or make_key(file)


def find_key(file: Path, *, given: str | None, database_exists: bool) -> MasterKey | None:
    """The key that was given, else the one in the file; `None` when one is still to be made.

    A key is never made beside an existing database: it could not open what is sealed in it.
    """
    if given is not None:
        return parse_key(given, KEY_VARIABLE)
    if os.path.lexists(file):
        return read_key(file)
    if database_exists:
        raise KeyUnusable(
            f"{file}: is missing, and the database beside it cannot be read without its key. "
            f"Put the key back, or give it as {KEY_VARIABLE}."
        )
    return None


def read_key(file: Path) -> MasterKey:
    """The key in a file that nobody else can read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise KeyUnusable(f"{file}: is not a file.")
            if stat.S_IMODE(mode) & 0o077:
                raise KeyUnusable(f"{file}: can be read by others; run: chmod 600 {file}")
            content = opened.read(MAX_FILE)
    except OSError as error:
        raise KeyUnusable(f"{file}: cannot be read: {error.strerror}.") from error
    return parse_key(content.decode("ascii", errors="replace"), str(file))


def make_key(file: Path) -> MasterKey:
    """Make a key and put it into a new file, whole or not at all; a file that is there stays."""
    key = MasterKey(secrets.token_bytes(KEY_BYTES))
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(format_key(key).encode() + b"\n")
                opened.flush()
                os.fsync(opened.fileno())
            file.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        return read_key(file)
    except OSError as error:
        raise KeyUnusable(f"{file}: cannot be made: {error.strerror}.") from error
    return key


def check_key(key: MasterKey, recorded: str) -> None:
    """Refuse a key that is not the one the database was made with."""
    if key.id != recorded:
        raise KeyMismatch(
            f"The master key {key.id} is not the one this database was made with ({recorded}).",
            key_id=key.id,
            recorded=recorded,
        )
