"""The master key: 32 bytes that encrypt all secrets in the database, kept out of core dumps."""

from __future__ import annotations

import base64
import binascii
import ctypes
import logging
import os
import re
import resource
import secrets
import stat
import sys
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from folkmoot.core import errors as e

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
            raise e.KeyUnusable(f"A master key has {KEY_BYTES} bytes.")
        self._secret = secret
        self.id = sha256(ID_LABEL + secret).hexdigest()[:ID_CHARACTERS]

    def secret(self) -> bytes:
        """The key itself, for those who seal and open."""
        return self._secret

    def __repr__(self) -> str:
        return f"<MasterKey {self.id}>"

    def __reduce__(self) -> str:
        raise TypeError("A master key cannot be pickled.")


def parse_key(text: str, source: str) -> MasterKey:
    """The key that is written as 64 hexadecimal digits or in base64url; `source` is for errors."""
    text = text.strip()
    if HEX.fullmatch(text):
        return MasterKey(bytes.fromhex(text))
    if BASE64URL.fullmatch(text):
        try:
            return MasterKey(base64.urlsafe_b64decode(text.rstrip("=") + "="))
        except (binascii.Error, e.KeyUnusable):
            pass
    raise e.KeyUnusable(
        f"{source}: is not a master key; it must be 32 bytes as base64url or hexadecimal digits."
    )


def format_key(key: MasterKey) -> str:
    """The key as `parse_key` reads it."""
    return base64.urlsafe_b64encode(key.secret()).decode().rstrip("=")


def spellings(key: MasterKey) -> tuple[str, ...]:
    """The ways a key is written, for whoever has to hide it."""
    text, digits = format_key(key), key.secret().hex()
    return text, f"{text}=", digits, digits.upper()


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
        raise e.KeyUnusable(
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
                raise e.KeyUnusable(f"{file}: is not a file.")
            if stat.S_IMODE(mode) & 0o077:
                raise e.KeyUnusable(f"{file}: other users can read it. Run: chmod 600 {file}")
            content = opened.read(MAX_FILE)
    except OSError as error:
        raise e.KeyUnusable(f"{file}: cannot be read: {error.strerror}.") from error
    return parse_key(content.decode("ascii", errors="replace"), str(file))


def fresh_key() -> MasterKey:
    """A key nobody has had before."""
    return MasterKey(secrets.token_bytes(KEY_BYTES))


def make_key(file: Path) -> MasterKey:
    """Make a key and put it into a new file, whole or not at all; a file that is there stays."""
    key = fresh_key()
    part = part_of(file)
    try:
        try:
            write_key(part, key)
            file.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(file.parent)
    except FileExistsError:
        return read_key(file)
    except OSError as error:
        raise e.KeyUnusable(f"{file}: cannot be created: {error.strerror}.") from error
    return key


def put_key(file: Path, key: MasterKey) -> None:
    """Put a key into a new file for its owner alone; what is there is never replaced."""
    try:
        write_key(file, key)
    except FileExistsError as error:
        raise e.KeyUnusable(f"{file}: already exists.") from error
    except OSError as error:
        raise e.KeyUnusable(f"{file}: cannot be created: {error.strerror}.") from error
    try:
        sync_folder(file.parent)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise e.KeyUnusable(f"{file}: cannot be created: {error.strerror}.") from error


class Replacement:
    """A new key that waits beside a key file, on the disk, to take its place in one step."""

    def __init__(self, file: Path, key: MasterKey) -> None:
        if file.is_symlink():
            raise e.KeyUnusable(
                f"{file}: is a link, so it is not replaced. Put the key file itself here."
            )
        self._file = file
        self._part = part_of(file)
        try:
            write_key(self._part, key)
        except OSError as error:
            raise self._failed(error) from error

    def publish(self) -> None:
        """Take the place of the key file; raises `KeyUnusable` when the old one is still there."""
        try:
            self._part.replace(self._file)
        except OSError as error:
            raise self._failed(error) from error

    def sync(self) -> None:
        """Have the new name on the disk: until then a power cut may bring the old key back."""
        try:
            sync_folder(self._file.parent)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Leave nothing behind that was not published."""
        self._part.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> e.KeyUnusable:
        return e.KeyUnusable(f"{self._file}: cannot be replaced: {error.strerror}.")


def part_of(file: Path) -> Path:
    """A name for what is not yet the file; the next start removes what a crash left there."""
    return file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")


def write_key(file: Path, key: MasterKey) -> None:
    """Write a key into a file that must be new, on the disk when done; else there is none."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(format_key(key).encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_key(key: MasterKey, known: Collection[str]) -> None:
    """Refuse a key that is none of those a database is known to open with, by their ids."""
    if key.id not in known:
        recorded = " or ".join(known)
        raise e.KeyMismatch(
            f"The master key {key.id} is not the one that opens this database ({recorded}).",
            key_id=key.id,
            recorded=recorded,
        )


logger = logging.getLogger("folkmoot")

PR_SET_DUMPABLE = 4
"""The option of Linux's `prctl`: whether a process may be dumped, or attached to."""


def forbid_dumps() -> None:
    """Have this process's memory not dumped, nor read by other processes of its user.

    What it starts is not concerned: a program that is executed begins as dumpable as any. Where
    the system has no such switch, at least no core file is written.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
            return
        logger.warning(
            "the memory of this process can be dumped", extra={"errno": ctypes.get_errno()}
        )
    try:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    except (OSError, ValueError):
        logger.warning("core files of this process cannot be switched off")
