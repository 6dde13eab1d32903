"""The settings file: its location, its owner, its values and the line of each key."""

from __future__ import annotations

import errno
import os
import re
import select
import shlex
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from folkmoot.settings.fields import FIELDS
from folkmoot.settings.limits import MAX_FILE_BYTES, PIPE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Key = tuple[str, ...]

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
DEPTH = 4
"""How deep keys are told apart: `backends.NAME.env.VARIABLE` is the deepest a file may have."""
OPENING = frozenset("[{")
CLOSING = frozenset("]}")


def key_lines(document: str) -> dict[Key, int]:
    """The line of each key down to `DEPTH`, where it is first named.

    The document must be valid TOML: then each of its statements is valid alone, and tells its keys.
    """
    lines: dict[Key, int] = {}
    table: Key = ()
    for line, statement in statements(document):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = header(parsed)
            keys = [table[: depth + 1] for depth in range(len(table))]
        else:
            keys = [table + key for key in paths(parsed)]
        for key in keys:
            lines.setdefault(key[:DEPTH], line)
    return lines


def statements(document: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line it starts on: one ends at a newline outside every bracket."""
    document = document.replace("\r\n", "\n")
    depth, start, line, start_line = 0, 0, 1, 1
    for token in TOKEN.finditer(document + "\n"):
        found = token.group()
        line += found.count("\n")
        if found in OPENING:
            depth += 1
        elif found in CLOSING:
            depth -= 1
        elif found == "\n" and depth == 0:
            statement = document[start : token.start()]
            if statement.strip():
                yield start_line, statement
            start, start_line = token.end(), line


def header(parsed: dict[str, Any]) -> Key:
    """The first names of a table header, parsed alone: each level holds just the next."""
    names: list[str] = []
    level: Any = parsed
    while level and len(names) < DEPTH:
        name, level = next(iter(level.items()))
        names.append(name)
        if isinstance(level, list):
            level = level[0]
    return tuple(names)


def paths(parsed: dict[str, Any], depth: int = DEPTH) -> Iterator[Key]:
    """The keys one statement names, down to a depth, outer ones first."""
    for name, value in parsed.items():
        yield (name,)
        if isinstance(value, dict) and depth > 1:
            yield from ((name, *inner) for inner in paths(value, depth - 1))


ROOT = 0


def refusal(path: Path, found: os.stat_result, *, owned: bool = True) -> str | None:
    """Why a file is not to be trusted, and what to do about it, in one line; None if it is.

    `found` is what was opened. Without `owned`, anyone may own it: then whoever names the file
    answers for that. What is no regular file, such as a pipe of the shell's, is not judged.
    """
    if not stat.S_ISREG(found.st_mode):
        return None
    if owned and found.st_uid not in (ROOT, os.geteuid()):
        return (
            f"belongs to {user(found.st_uid)}, who could make the hub run any program; run: "
            f"chown {os.geteuid()} {shlex.quote(str(path))}, or run the hub as that user"
        )
    if written_by_others(found) and not read_only(path):
        return f"can be written by others; run: chmod go-w {shlex.quote(str(path))}"
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        if (wrong := folder_refusal(folder, owned=owned)) is not None:
            return wrong
    return None


def folder_refusal(folder: Path, *, owned: bool) -> str | None:
    """Why someone else could put another file in the place of one in a folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    named = shlex.quote(str(folder))
    if owned and found.st_uid not in (ROOT, os.geteuid()):
        return (
            f"could be replaced by {user(found.st_uid)}, who owns its folder; "
            f"run: chown {os.geteuid()} {named}, or run the hub as that user"
        )
    # With the sticky bit, as in /tmp, nobody replaces what is another's.
    if written_by_others(found) and not found.st_mode & stat.S_ISVTX and not read_only(folder):
        return f"could be replaced by others, who may write in its folder; run: chmod go-w {named}"
    return None


def written_by_others(found: os.stat_result) -> bool:
    """Whether anyone but the owner, or a group that is the owner's alone, may write it."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not is_private(found.st_gid, found.st_uid)


def is_private(group_id: int, user_id: int) -> bool:
    """Whether a group is the private one of a user: of the same name, and with nobody else in it.

    Many systems give everyone such a group, and let it write what they make.
    """
    import grp
    import pwd

    try:
        owner = pwd.getpwuid(user_id)
    except KeyError:
        # Users of containers often have no name; their group has the same number then.
        return group_id == user_id
    try:
        group = grp.getgrgid(group_id)
    except KeyError:
        return group_id == owner.pw_gid == user_id
    alone = set(group.gr_mem) <= {owner.pw_name}
    return group_id == owner.pw_gid and group.gr_name == owner.pw_name and alone


def read_only(path: Path) -> bool:
    """Whether the file cannot be written, as when a container mounts it read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def user(user_id: int) -> str:
    """A user's name, or the number if there is no name."""
    import pwd

    try:
        return f"user {pwd.getpwuid(user_id).pw_name}"
    except KeyError:
        return f"user {user_id}"


CONFIG_NAME = "config.toml"
FROM_FILE, FROM_IMPORT, FROM_ENVIRONMENT, FROM_OPTION = range(4)
"""Where a problem lies, in the order they are told."""

TWICE = re.compile(r"Cannot declare \((.+)\) twice")
NAMED = re.compile(r"'((?:[^'\\]|\\.)*)'")
POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Problem(Struct, frozen=True, order=True):
    """One problem; problems sort by source, then by line."""

    source: int
    line: int
    text: str


class SettingsDocument(Struct, frozen=True, kw_only=True):
    """A parsed settings file: its displayed name, its values, the line of each key."""

    name: str
    values: dict[str, Any]
    lines: dict[Key, int]
    in_data_folder: bool = False

    def where(self, *key: str) -> tuple[str, int]:
        """`name:line` of a key, or of what it is in, and the line."""
        known = (key[:length] for length in range(len(key), 0, -1))
        line = next((self.lines[each] for each in known if each in self.lines), 0)
        return f"{self.name}:{line}", line


class FileUnreadable(Exception):
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
) -> SettingsDocument:
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
        raise FileUnreadable(f"{name}:{line}: is not UTF-8 text") from None
    try:
        return SettingsDocument(
            name=name,
            values=tomllib.loads(text),
            lines=key_lines(text),
            in_data_folder=in_data_folder,
        )
    except RecursionError:
        raise FileUnreadable(f"{name}: lists and tables are nested too deeply") from None
    except ValueError as error:
        # A TOMLDecodeError, or a number of more digits than Python reads.
        raise FileUnreadable(syntax_problem(name, text, str(error))) from None


def read_bytes(name: str, *, owned: bool | None = None) -> bytes:
    """At most the allowed number of bytes of a file.

    With `owned`, one that others may write is refused, and where it is true, one of another user's.
    """
    if not name:
        raise FileUnreadable("the name of the settings file is empty")
    path, name = Path(name), printable(name)
    try:
        raw = read_pipe(path) if path.is_fifo() else read_start(path, owned=owned)
    except FileNotFoundError:
        raise FileUnreadable(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise FileUnreadable(f"{name}: is a folder, not a settings file") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise FileUnreadable(f"{name}: cannot be read: {reason}") from None
    except ValueError:
        raise FileUnreadable(f"{name}: is not a file name") from None
    if len(raw) > MAX_FILE_BYTES:
        raise FileUnreadable(f"{name}: is larger than 1 MiB, too large for a settings file")
    return raw


def read_start(path: Path, *, owned: bool | None) -> bytes:
    """As much of a file as shows whether it is too large."""
    with path.open("rb") as file:
        if owned is not None:
            wrong = refusal(path, os.fstat(file.fileno()), owned=owned)
            if wrong is not None:
                raise FileUnreadable(f"{printable(str(path))}: {wrong}")
        return file.read(MAX_FILE_BYTES + 1)


def read_pipe(path: Path) -> bytes:
    """The content of a pipe, such as a shell's process substitution, read with a time limit."""
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
    """A file name in one printable line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)


def syntax_problem(name: str, text: str, message: str) -> str:
    """The parser's message with its position in front, as compilers write it."""
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
