"""The project that is linted: `[tool.folkmoot.names]`, its Python files and their texts."""

from __future__ import annotations

import difflib
import io
import os
import re
import tokenize
import tomllib
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.names.canonical import validate_namespace
from folkmoot.names.limits import MAX_PYPROJECT_BYTES, MAX_SOURCE_BYTES, MAX_SOURCE_FILES
from folkmoot.names.lint.model import Constant, SourcePlace, TextSpan

if TYPE_CHECKING:
    import ast


LINE: Final = re.compile(r"\r\n?|\n")


class SourceUnreadable(Exception):
    """The file cannot be used; the message is one clear sentence."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class FileText(Struct, kw_only=True):
    """The text of one file, with the offset of each line."""

    path: str
    """As in `Place`."""
    text: str
    encoding: str = "utf-8"
    marked: bool = False
    """Whether the file begins with the byte order mark of UTF-8."""
    starts: list[int]

    def offset(self, line: int, column: int) -> int:
        """Where a syntax tree's position is in the text; its columns are bytes of UTF-8."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        text = self.text[start:end]
        if text.isascii():
            return start + column
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.expr | ast.stmt) -> TextSpan:
        """The text of a node."""
        start = self.offset(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return TextSpan(start, start)
        return TextSpan(start, self.offset(node.end_lineno, node.end_col_offset))

    def place(self, span: TextSpan) -> SourcePlace:
        """Where a span is, as people count."""
        line, column = self.position(span.start)
        end_line, end_column = self.position(span.end)
        return SourcePlace(self.path, line, column, end_line, end_column)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, from 1 on."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def slice(self, span: TextSpan) -> str:
        """What stands there."""
        return self.text[span.start : span.end]


def make_text(path: str, text: str) -> FileText:
    """A text as that of a file in UTF-8."""
    starts = [0, *(found.end() for found in LINE.finditer(text))]
    return FileText(path=path, text=text, starts=starts)


def decode(path: str, raw: bytes, *, declared: bool = True) -> FileText:
    """The text of a file, in the encoding that it declares as Python sources do, if they may."""
    encoding = "utf-8"
    if declared and b"\0" in raw:
        # Later Pythons say so while they look for the encoding, earlier ones while they parse.
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise SourceUnreadable("It is not Python: source code cannot contain null bytes.", line)
    try:
        if declared:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    except (SyntaxError, LookupError):
        raise SourceUnreadable("It is neither UTF-8 nor in an encoding that it declares.") from None
    marked = raw.startswith(BOM_UTF8)
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    try:
        text = raw.removeprefix(BOM_UTF8).decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise SourceUnreadable(f"It is not {name} text.", line) from None
    except LookupError:
        raise SourceUnreadable(f"It declares an encoding of bytes, {encoding}.") from None
    made = make_text(path, text)
    made.encoding, made.marked = encoding, marked
    return made


def read_source(file: Path, path: str) -> FileText:
    """The text of a file, if it is of a size that people write."""
    return decode(path, read_bytes(file), declared=path.endswith((".py", ".pyw")))


def read_bytes(file: Path) -> bytes:
    """The bytes of a file; raises `Unreadable`."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SourceUnreadable(f"It cannot be read: {reason.lower()}.") from None
    if len(raw) > MAX_SOURCE_BYTES:
        raise SourceUnreadable("It is larger than 2 MiB, and was not read.")
    return raw


FILE: Final = "pyproject.toml"
SECTION: Final = "tool.folkmoot.names"
POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")


class Config(Struct, frozen=True, kw_only=True):
    """A project's configuration of its names."""

    namespace: str | None = None
    """The namespace of all its names; found in the sources where it is not given."""
    standalone: bool = False
    """Whether the server is only ever used alone, so that names need no namespace."""
    exclude: tuple[str, ...] = ("tests", "/test", "/docs", "/examples", "/benchmarks")
    """Files and folders to leave out: `tests` wherever it is, `/docs` in the root alone."""
    select: tuple[str, ...] = ()
    """The rules to follow; all where none is named."""
    ignore: tuple[str, ...] = ()
    """Rules not to follow."""
    client_prefix: str = "mcp__{namespace}__"
    """What a client puts before a tool's name when it offers it to a model."""
    version: str | None = None
    """The release of the project; that of `[project]` where it is not given."""
    namespaces_file: str = "NAMESPACES.md"
    """Where the register of names is, from the project's root."""


class FoundProject(Struct, frozen=True, kw_only=True):
    """A project's folder and what its `pyproject.toml` says."""

    root: Path
    config: Config = Config()
    name: str = ""
    version: str | None = None
    """That of `[project]`."""
    constant: Constant | None = None
    """The namespace as the file says it."""
    file: Path | None = None


KEYS: Final[dict[str, type]] = {
    "namespace": str,
    "standalone": bool,
    "exclude": list,
    "select": list,
    "ignore": list,
    "client-prefix": str,
    "version": str,
    "namespaces-file": str,
}
"""The keys of the section with what each holds; a list is one of strings."""
WORDS: Final = {str: "a string", bool: "true or false", list: "a list of strings"}


def find_config(start: Path) -> FoundProject:
    """The project that a file or folder belongs to: that of the nearest `pyproject.toml`."""
    folder = start if start.is_dir() else start.parent
    for each in (folder, *folder.parents):
        file = each / FILE
        if file.is_file():
            return read_config(file)
    return FoundProject(root=folder)


def read_config(file: Path) -> FoundProject:
    """What one `pyproject.toml` says; raises `SettingsError` with a line for everything wrong."""
    text = _text(file)
    values = _parsed(file, text)
    section = _table(values, SECTION)
    problems = [problem for key, value in section.items() for problem in check_key(key, value)]
    if problems:
        told = [f"{file}: [{SECTION}]: {problem}" for problem in problems]
        raise e.SettingsError(told[0], problems=told)
    project = _table(values, "project")
    named: dict[str, Any] = {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for key, value in section.items()
    }
    version, name = project.get("version"), project.get("name")
    return FoundProject(
        root=file.parent,
        config=Config(**named),
        name=name if isinstance(name, str) else "",
        version=version if isinstance(version, str) else None,
        constant=_constant(text, section.get("namespace")),
        file=file,
    )


def check_key(key: str, value: object) -> list[str]:
    """The problems of one key, a sentence each."""
    kind = KEYS.get(key)
    if kind is None:
        near = difflib.get_close_matches(key, KEYS, 1)
        return [f"there is no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")]
    strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not isinstance(value, kind) or (kind is list and not strings):
        return [f"{key!r} must be {WORDS[kind]}"]
    if key == "namespace" and isinstance(value, str):
        return namespace_problems(value)
    if key == "client-prefix" and isinstance(value, str):
        return prefix_problems(value)
    if key == "namespaces-file" and isinstance(value, str):
        path = Path(value)
        if not value or path.is_absolute() or ".." in path.parts:
            return [f"{key!r} must be a file inside the project"]
    return []


def namespace_problems(namespace: str) -> list[str]:
    """What is wrong with the namespace of a project."""
    try:
        validate_namespace(namespace)
    except e.InvalidName as error:
        return [f"'namespace': {error.message}"]
    return []


def prefix_problems(prefix: str) -> list[str]:
    """What is wrong with a client's prefix: only `{namespace}` may be in braces."""
    if re.search(r"[{}]", prefix.replace("{namespace}", "")):
        return ["'client-prefix' may hold {namespace}, and no other braces"]
    return []


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_PYPROJECT_BYTES + 1)
        if len(raw) <= MAX_PYPROJECT_BYTES:
            return raw.decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise e.SettingsError(f"{file}: cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise e.SettingsError(f"{file}: is not UTF-8 text") from None
    raise e.SettingsError(f"{file}: is larger than 1 MiB")


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise e.SettingsError(f"{file}: lists and tables are nested too deeply") from None
    except ValueError as error:
        message = str(error)
        where = POSITION.search(message)
        at = f":{where[1]}:{where[2]}" if where else ""
        told = message[: where.start()] if where else message
        raise e.SettingsError(f"{file}{at}: {told[:1].lower()}{told[1:]}") from None


def _table(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A table by its dotted name; an empty one where there is none."""
    found: Any = values
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _constant(text: str, namespace: object) -> Constant | None:
    """Where the namespace stands in the file, so that it can be renamed."""
    if not isinstance(namespace, str):
        return None
    header = re.search(rf"^\[{re.escape(SECTION)}\][^\n]*\n", text, re.MULTILINE)
    quoted = rf"""(?:"{re.escape(namespace)}"|'{re.escape(namespace)}')"""
    line = re.compile(rf"^[ \t]*namespace[ \t]*=[ \t]*({quoted})", re.MULTILINE)
    found = line.search(text, header.end()) if header else None
    if found is None or "\n[" in text[header.end() if header else 0 : found.start()]:
        return None
    row = text.count("\n", 0, found.start(1)) + 1
    column = found.start(1) - (text.rfind("\n", 0, found.start(1)) + 1) + 1
    width = found.end(1) - found.start(1)
    place = SourcePlace(FILE, row, column, row, column + width)
    return Constant(
        name="namespace", value=namespace, place=place, span=TextSpan(found.start(1), found.end(1))
    )


LEFT_OUT: Final = frozenset({
    "__pycache__", "__pypackages__", "build", "dist", "env", "node_modules", "site-packages",
    "venv",
})  # fmt: skip
"""Folders that hold what others wrote, or what was made; folders with a dot before them do too."""


def sources(
    root: Path, paths: Sequence[Path], exclude: Sequence[str], trouble: Callable[[OSError], None]
) -> list[Path]:
    """Python files under the paths, each once and in order; a file that is named is always one.

    `trouble` is told of folders that cannot be read.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise e.ProjectUnusable(f"{path}: there is no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise e.ProjectUnusable(f"{path}: is neither a file nor a folder")
        for file in walk(root, path, exclude, trouble) if path.is_dir() else [path]:
            found.setdefault(file)
            if len(found) > MAX_SOURCE_FILES:
                raise e.ProjectUnusable(
                    f"There are more than {MAX_SOURCE_FILES} Python files; name the folders "
                    "to look at."
                )
    return list(found)


def walk(
    root: Path, folder: Path, exclude: Sequence[str], trouble: Callable[[OSError], None]
) -> Iterator[Path]:
    """The Python files below a folder; links to folders are not followed, so no loop catches us."""
    for where, folders, files in os.walk(folder, onerror=trouble, followlinks=False):
        here = Path(where)
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT
            and not name.startswith(".")
            and not (here / name / "pyvenv.cfg").exists()
            and not excluded(shown(root, here / name), exclude)
        )
        for name in sorted(files):
            file = here / name
            # A pipe that is named like a source would never end.
            if (
                name.endswith((".py", ".pyw"))
                and not excluded(shown(root, file), exclude)
                and file.is_file()
            ):
                yield file


def shown(root: Path, file: Path) -> str:
    """A file as a place names it: from the root, with `/`; whole if it is elsewhere."""
    try:
        return file.relative_to(root).as_posix()
    except ValueError:
        return file.as_posix()


def excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern has the path: one with a slash from the root on, others wherever it is."""
    last = path.rpartition("/")[2]
    return any(
        fnmatchcase(path if "/" in pattern.rstrip("/") else last, pattern.strip("/"))
        for pattern in patterns
    )
