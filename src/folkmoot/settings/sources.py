"""The settings file: which one it is, and what it says, with a line for everything wrong."""

from __future__ import annotations

import errno
import os
import re
import select
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from folkmoot.settings.fields import FIELDS
from folkmoot.settings.locate import Key, key_lines
from folkmoot.settings.ownership import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_NAME = "config.toml"
MAX_FILE_BYTES = 1_048_576
PIPE_SECONDS = 5.0
"""How long a pipe that is given as a file may be silent."""
FROM_FILE, FROM_IMPORT, FROM_ENVIRONMENT, FROM_OPTION = range(4)
"""Where a problem lies, in the order they are told."""

TWICE = re.compile(r"Cannot declare \((.+)\) twice")
NAMED = re.compile(r"'((?:[^'\\]|\\.)*)'")
POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Problem(Struct, frozen=True, order=True):
    """One thing wrong; problems sort by their source, then by line."""

    source: int
    line: int
    text: str


class Document(Struct, frozen=True, kw_only=True):
    """A parsed settings file: its name as the user knows it, its values, the line of each key."""

    name: str
    values: dict[str, Any]
    lines: dict[Key, int]
    in_data_folder: bool = False

    def where(self, *key: str) -> tuple[str, int]:
        """`name:line` of a key, or of what it is in, and the line."""
        known = (key[:length] for length in range(len(key), 0, -1))
        line = next((self.lines[each] for each in known if each in self.lines), 0)
        return f"{self.name}:{line}", line


class Unreadable(Exception):
    """The file as a whole cannot be used; the message is one clear line."""


class FilePlace(NamedTuple):
    """Where the settings file is, or would be."""

    name: str
    in_data_folder: bool = False
    """Whether that is its place in the data folder, rather than one that was named."""
    there: bool = True


def find_file(
    config: str | None, environ: Mapping[str, str], options: Mapping[str, Any]
) -> FilePlace | None:
    """The settings file; None where not even its place can be told."""
    if config is not None:
        return FilePlace(config)
    if named := environ.get("FOLKMOOT_CONFIG"):
        return FilePlace(named)
    folder = options.get("data") or environ.get("FOLKMOOT_DATA") or FIELDS["data"].default
    try:
        path = Path(folder).expanduser() / CONFIG_NAME
    except (RuntimeError, ValueError):
        return None
    return FilePlace(str(path), in_data_folder=True, there=is_there(path))


def is_there(path: Path) -> bool:
    """Whether anything stands at a path; what may not be looked at counts as absent."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def read_file(
    name: str, *, in_data_folder: bool = False, raw: bytes | None = None, runs: bool = False
) -> Document:
    """Read and parse one settings file, or say in one line why not.

    `raw` is what the file would hold, to see whether it may be written. `runs` refuses a file that
    others may write.
    """
    raw = read_bytes(name, owned=True if runs else None) if raw is None else raw
    name = printable(name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{name}:{line}: is not UTF-8 text") from None
    try:
        return Document(
            name=name,
            values=tomllib.loads(text),
            lines=key_lines(text),
            in_data_folder=in_data_folder,
        )
    except RecursionError:
        raise Unreadable(f"{name}: lists and tables are nested too deeply") from None
    except ValueError as error:
        # A TOMLDecodeError, or a number of more digits than Python reads.
        raise Unreadable(syntax_problem(name, text, str(error))) from None


def read_bytes(name: str, *, owned: bool | None = None) -> bytes:
    """At most the allowed number of bytes of a file.

    With `owned`, one that others may write is refused, and where it is true, one of another user's.
    """
    if not name:
        raise Unreadable("the name of the settings file is empty")
    path, name = Path(name), printable(name)
    try:
        raw = read_pipe(path) if path.is_fifo() else read_start(path, owned=owned)
    except FileNotFoundError:
        raise Unreadable(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise Unreadable(f"{name}: is a folder, not a settings file") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Unreadable(f"{name}: cannot be read: {reason}") from None
    except ValueError:
        raise Unreadable(f"{name}: is not a file name") from None
    if len(raw) > MAX_FILE_BYTES:
        raise Unreadable(f"{name}: is larger than 1 MiB, too large for a settings file")
    return raw


def read_start(path: Path, *, owned: bool | None) -> bytes:
    """As much of a file as tells whether it is too large."""
    with path.open("rb") as file:
        if owned is not None:
            wrong = refusal(path, os.fstat(file.fileno()), owned=owned)
            if wrong is not None:
                raise Unreadable(f"{printable(str(path))}: {wrong}")
        return file.read(MAX_FILE_BYTES + 1)


def read_pipe(path: Path) -> bytes:
    """The same of a pipe, such as the shell makes of a command; nobody may ever write to it."""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    raw, there = b"", select.poll()
    there.register(pipe, select.POLLIN)
    try:
        while len(raw) <= MAX_FILE_BYTES:
            if not there.poll(PIPE_SECONDS * 1000):
                raise TimeoutError(errno.ETIMEDOUT, "nobody writes to the pipe")
            part = os.read(pipe, MAX_FILE_BYTES)
            if not part:
                break
            raw += part
    finally:
        os.close(pipe)
    return raw


def printable(name: str) -> str:
    """A file name in one line, whatever it holds."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)


def syntax_problem(name: str, text: str, message: str) -> str:
    """The parser's words with its position in front, as compilers put it."""
    position = POSITION.search(message)
    if position is None:
        return f"{name}: a number has too many digits"
    words = message[: position.start()]
    if twice := TWICE.fullmatch(words):
        words = f"the table [{'.'.join(NAMED.findall(twice[1]))}] already exists"
    words = words[0].lower() + words[1:]
    if position[1] is None:
        return f"{name}:{max(1, len(text.splitlines()))}: {words} (at the end of the file)"
    return f"{name}:{position[1]}:{position[2]}: {words}"
