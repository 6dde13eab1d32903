"""The settings file: which one it is, and what it says, with a line for everything wrong."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from folkmoot.settings.fields import FIELDS
from folkmoot.settings.locate import Key, key_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_NAME = "config.toml"
MAX_FILE_BYTES = 1_048_576

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
        """`name:line` of a key, and the line."""
        line = self.lines.get(key[:2], 0)
        return f"{self.name}:{line}", line


class Unreadable(Exception):
    """The file as a whole cannot be used; the message is one clear line."""


def find_file(
    config: str | None, environ: Mapping[str, str], options: Mapping[str, Any]
) -> tuple[str, bool] | None:
    """The settings file, and whether it was found in the data folder rather than named."""
    if config is not None:
        return config, False
    if named := environ.get("FOLKMOOT_CONFIG"):
        return named, False
    folder = options.get("data") or environ.get("FOLKMOOT_DATA") or FIELDS["data"].default
    try:
        path = Path(folder).expanduser() / CONFIG_NAME
        path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    return str(path), True


def read_file(name: str, *, in_data_folder: bool = False) -> Document:
    """Read and parse one settings file, or say in one line why not."""
    raw = read_bytes(name)
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


def read_bytes(name: str) -> bytes:
    """At most the allowed number of bytes of a file."""
    if not name:
        raise Unreadable("the name of the settings file is empty")
    path, name = Path(name), printable(name)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
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


def printable(name: str) -> str:
    """A file name in one line, whatever it holds."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)


def syntax_problem(name: str, text: str, message: str) -> str:
    """The parser's words with its position in front, as compilers put it."""
    position = POSITION.search(message)
    if position is None:
        return f"{name}: a number has too many digits"
    words = message[: position.start()]
    words = words[0].lower() + words[1:]
    if position[1] is None:
        return f"{name}:{max(1, len(text.splitlines()))}: {words} (at the end of the file)"
    return f"{name}:{position[1]}:{position[2]}: {words}"
