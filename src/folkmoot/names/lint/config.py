"""The section `[tool.folkmoot.names]` of a `pyproject.toml`, and what stands beside it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from folkmoot.core.errors import InvalidName, SettingsError
from folkmoot.names.grammar import validate_namespace
from folkmoot.names.lint.model import Constant, Place, Span

FILE: Final = "pyproject.toml"
SECTION: Final = "tool.folkmoot.names"
MOST_BYTES: Final = 1_048_576
POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")

Value: TypeAlias = str | bool | list[str]


class Config(Struct, frozen=True, kw_only=True):
    """What a project says of its names."""

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


class Found(Struct, frozen=True, kw_only=True):
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


def find(start: Path) -> Found:
    """The project that a file or folder belongs to: that of the nearest `pyproject.toml`."""
    folder = start if start.is_dir() else start.parent
    for each in (folder, *folder.parents):
        file = each / FILE
        if file.is_file():
            return read(file)
    return Found(root=folder)


def read(file: Path) -> Found:
    """What one `pyproject.toml` says; raises `SettingsError` with a line for everything wrong."""
    text = _text(file)
    values = _parsed(file, text)
    section = _table(values, SECTION)
    problems = [problem for key, value in section.items() for problem in check(key, value)]
    if problems:
        told = [f"{file}: [{SECTION}]: {problem}" for problem in problems]
        raise SettingsError(told[0], problems=told)
    project = _table(values, "project")
    named: dict[str, Any] = {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for key, value in section.items()
    }
    version, name = project.get("version"), project.get("name")
    return Found(
        root=file.parent,
        config=Config(**named),
        name=name if isinstance(name, str) else "",
        version=version if isinstance(version, str) else None,
        constant=_constant(text, section.get("namespace")),
        file=file,
    )


def check(key: str, value: object) -> list[str]:
    """What is wrong with one key, a sentence each."""
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
    except InvalidName as error:
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
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) <= MOST_BYTES:
            return raw.decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SettingsError(f"{file}: cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: is not UTF-8 text") from None
    raise SettingsError(f"{file}: is larger than 1 MiB")


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{file}: lists and tables are nested too deeply") from None
    except ValueError as error:
        message = str(error)
        where = POSITION.search(message)
        at = f":{where[1]}:{where[2]}" if where else ""
        told = message[: where.start()] if where else message
        raise SettingsError(f"{file}{at}: {told[:1].lower()}{told[1:]}") from None


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
    place = Place(FILE, row, column, row, column + width)
    return Constant(
        name="namespace", value=namespace, place=place, span=Span(found.start(1), found.end(1))
    )
