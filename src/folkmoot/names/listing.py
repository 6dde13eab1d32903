"""Reads the names of a server: from its lists, from a file, or from its register.

What a project says of its names is in `[tool.folkmoot.names]` of its `pyproject.toml`.
"""

from __future__ import annotations

import difflib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, structs

from folkmoot.core import errors as e
from folkmoot.names import namespaces_md
from folkmoot.names.canonical import validate_namespace
from folkmoot.names.grammar import NAMESPACE, part_fault
from folkmoot.names.limits import MAX_PROJECT_FILE_BYTES
from folkmoot.names.lint import unknown_rule
from folkmoot.names.project import NAMED, Declared, DeclaredDeprecation, Kind, Project
from folkmoot.names.safe_names import NAME_KEY

FILE: Final = "pyproject.toml"
SECTION: Final = "tool.folkmoot.names"
POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")


class Config(Struct, frozen=True, kw_only=True):
    """What a project says of its names."""

    root: Path = Path()
    name: str = ""
    """That of `[project]`."""
    command: tuple[str, ...] = ()
    """What starts the server, in the root."""
    url: str = ""
    """Where the server is, if it runs already."""
    namespace: str | None = None
    """The namespace of all its names; found in the names where it is not given."""
    standalone: bool = False
    """Whether the server is only ever used alone, so that names need no namespace."""
    select: tuple[str, ...] = ()
    """The rules to follow; all where none is named."""
    ignore: tuple[str, ...] = ()
    client_prefix: str = "mcp__{namespace}__"
    """What a client puts before a tool's name when it offers it to a model."""
    version: str | None = None
    """The release of the project; that of `[project]` where it is not given."""
    namespaces_file: str = "NAMESPACES.md"
    """Where the register of names is, from the project's root."""


KEYS: Final[dict[str, type]] = {
    "command": list,
    "url": str,
    "namespace": str,
    "standalone": bool,
    "select": list,
    "ignore": list,
    "client-prefix": str,
    "version": str,
    "namespaces-file": str,
}
"""The keys of the section with what each holds; a list is one of strings."""
WORDS: Final = {str: "a string", bool: "true or false", list: "a list of strings"}


def find_config(start: Path) -> Config:
    """What is said where a file or folder is: by the nearest `pyproject.toml`."""
    whole = start.absolute()
    folder = whole if whole.is_dir() else whole.parent
    for each in (folder, *folder.parents):
        if (each / FILE).is_file():
            return read_config(each / FILE)
    return Config(root=folder)


def read_config(file: Path) -> Config:
    """What one `pyproject.toml` says; raises `SettingsError` with a line for everything wrong."""
    values = parsed(file)
    section, project = table(values, SECTION), table(values, "project")
    problems = [problem for key, value in section.items() for problem in check_key(key, value)]
    if "command" in section and "url" in section:
        problems.append("give either 'command' or 'url'")
    if problems:
        told = [f"{file}: [{SECTION}]: {problem}" for problem in problems]
        raise e.SettingsError(told[0], problems=told)
    given: dict[str, Any] = {
        key: value for key in ("name", "version") if isinstance(value := project.get(key), str)
    }
    for key, value in section.items():
        given[key.replace("-", "_")] = tuple(value) if isinstance(value, list) else value
    return Config(root=file.parent, **given)


def parsed(file: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads((read_text(file) or "").removeprefix("\ufeff"))
    except e.ProjectUnusable as error:
        raise e.SettingsError(error.message) from None
    except RecursionError:
        raise e.SettingsError(f"{file}: lists and tables are nested too deeply") from None
    except ValueError as error:
        message = str(error)
        where = POSITION.search(message)
        at = f":{where[1]}:{where[2]}" if where else ""
        told = message[: where.start()] if where else message
        raise e.SettingsError(f"{file}{at}: {told[:1].lower()}{told[1:]}") from None


def table(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A table by its dotted name; an empty one where there is none."""
    found: Any = values
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def check_key(key: str, value: Any) -> list[str]:
    """The problems of one key, a sentence each."""
    kind = KEYS.get(key)
    if kind is None:
        near = difflib.get_close_matches(key, KEYS, 1)
        return [f"there is no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")]
    right = type(value) is kind
    if not right or (kind is list and not all(isinstance(each, str) for each in value)):
        return [f"{key!r} must be {WORDS[kind]}"]
    match key:
        case "namespace":
            try:
                validate_namespace(value)
            except e.InvalidName as error:
                return [f"'namespace': {error.message}"]
        case "client-prefix" if re.search(r"[{}]", value.replace("{namespace}", "")):
            return ["'client-prefix' may hold {namespace}, and no other braces"]
        case "namespaces-file" if not value or Path(value).is_absolute() or ".." in value:
            return [f"{key!r} must be a file inside the project"]
        case "select" | "ignore":
            return [problem for each in value if (problem := unknown_rule(each))]
    return []


def read_text(path: Path) -> str | None:
    """The text of a file with its line ends as they are; None where there is no file."""
    try:
        with path.open("rb") as file:
            return bounded_text(str(path), file.read(MAX_PROJECT_FILE_BYTES + 1))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise e.ProjectUnusable(f"{path}: {(error.strerror or 'unreadable').lower()}.") from error


def bounded_text(path: str, raw: bytes) -> str:
    """The text of a file of a size that people write."""
    if len(raw) > MAX_PROJECT_FILE_BYTES:
        raise e.ProjectUnusable(f"{path}: it is larger than 4 MiB.")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise e.ProjectUnusable(f"{path}: it is not UTF-8 text.") from None


class ListEntry(NamedTuple):
    """One entry of a list, as MCP has it."""

    kind: Kind
    definition: Mapping[str, Any]
    line: int | None = None
    deprecation: DeclaredDeprecation | None = None


MEMBERS: Final[dict[str, Kind]] = {
    "tools": "tool",
    "resources": "resource",
    "resourceTemplates": "template",
    "templates": "template",
    "prompts": "prompt",
}
"""The lists of a server; `templates` is what `folkmoot call --json` calls them."""
KEY: Final[dict[Kind, str]] = {
    "tool": "name",
    "resource": "uri",
    "template": "uriTemplate",
    "prompt": "name",
}
STDIN: Final = "-"


def read_lists(
    lists: Mapping[str, Any], server: Mapping[str, Any], config: Config | None = None
) -> Project:
    """The names that a running server lists, by the members of the answers."""
    return make_project(entries_in(lists), server, config or Config())


def read_file(path: str, config: Config) -> Project:
    """The names in a file, or on standard input: as JSON, as a register, or one on each line.

    Raises `ProjectUnusable` for a file that cannot be read, or holds no names.
    """
    if path == STDIN:
        text: str | None = bounded_text(path, sys.stdin.buffer.read(MAX_PROJECT_FILE_BYTES + 1))
    else:
        text = read_text(Path(path))
    if text is None:
        raise e.ProjectUnusable(f"{path}: there is no such file.")
    if path.endswith(".py"):
        raise e.ProjectUnusable(f"{path}: sources are not read; give the server's command after --")
    server: Mapping[str, Any] = {}
    if text.lstrip()[:1] in ("{", "["):
        entries, server = parse_json(text, path)
    elif path.endswith(".md"):
        if not any(section.title in text for section in namespaces_md.SECTIONS.values()):
            raise e.ProjectUnusable(
                f"{path}: it has no tables of names, as 'names doc' writes them."
            )
        registry = namespaces_md.read(text)
        config = structs.replace(config, namespace=config.namespace or registry.namespace or None)
        entries = list(entries_of(registry, text))
    else:
        entries = list(entries_on_lines(text))
    project = make_project(entries, server, config)
    project.path = path if path != STDIN else "<stdin>"
    return project


def parse_json(text: str, path: str) -> tuple[list[ListEntry], Mapping[str, Any]]:
    """The names in the answer to `tools/list` or the like, in several, or in a list of names."""
    try:
        answers = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise e.ProjectUnusable(f"{path}: it is not valid JSON: {why}.") from None
    entries: list[ListEntry] = []
    server: Mapping[str, Any] = {}
    for answer in answers if isinstance(answers, list) else [answers]:
        if isinstance(answer, str):
            entries.append(named(answer))
            continue
        result = members(members(answer).get("result")) or members(answer)
        if result.keys().isdisjoint(MEMBERS):
            listed = "tools, resources, resourceTemplates or prompts"
            raise e.ProjectUnusable(f"{path}: it is JSON, but not a list of {listed}.")
        entries += entries_in(result)
        server = members(result.get("server")) or server
    return entries, server


def entries_in(lists: Mapping[str, Any]) -> list[ListEntry]:
    """The entries of a server's lists; an entry that is no object has no name."""
    return [
        ListEntry(kind, members(each))
        for member, kind in MEMBERS.items()
        if isinstance(found := lists.get(member), Sequence)
        for each in found
    ]


def entries_on_lines(text: str) -> Iterator[ListEntry]:
    """A name on each line; what stands behind `#` is its description."""
    for number, line in enumerate(text.splitlines(), 1):
        name, _, description = f" {line}".partition(" #")
        if name.strip():
            yield named(name.strip(), number, description.strip())


def named(name: str, line: int | None = None, description: str = "") -> ListEntry:
    """What a name alone says: with `://` it is a resource, and with braces a template."""
    kind: Kind = "tool" if "://" not in name else "template" if "{" in name else "resource"
    return ListEntry(kind, {KEY[kind]: name, "description": description}, line)


def entries_of(registry: namespaces_md.Registry, text: str) -> Iterator[ListEntry]:
    """The names of a register, each with its line."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for cell in namespaces_md.cells(line):
            lines.setdefault(cell, number)
    going = {
        name: DeclaredDeprecation(*(cell or None for cell in dates))
        for name, *dates in registry.tables["deprecated"]
    }

    def entry(kind: Kind, name: str, description: str, mime_type: str = "") -> ListEntry:
        said = {KEY[kind]: name, "description": description, "mimeType": mime_type}
        return ListEntry(kind, said, lines.get(name), going.get(name))

    for own, name, description, _ in registry.tables["tools"]:
        yield entry("tool", name or own, description)
    for uri, description, mime_type in registry.tables["resources"]:
        yield entry("template" if "{" in uri else "resource", uri, description, mime_type)
    for own, name, description in registry.tables["prompts"]:
        yield entry("prompt", name or own, description)


def make_project(
    entries: Sequence[ListEntry], server: Mapping[str, Any], config: Config
) -> Project:
    """A project of entries; the namespace is the one its names agree on, unless it is said."""
    title = config.name or text_of(server, "name")
    namespace = config.namespace
    hub = any(canonical_of(each.definition) for each in entries)
    if namespace is None and not hub:
        names = [text_of(each.definition, "name") for each in entries if each.kind in NAMED]
        namespace = safe_namespace(names, title)
    declared = [declare(each, namespace) for each in entries]
    if namespace is None and not hub:
        used = (each.namespace for each in declared if each.kind in NAMED)
        namespace = only(each for each in used if each is not None)
    return Project(
        root=config.root,
        name=title,
        namespace=namespace,
        version=config.version or text_of(server, "version") or None,
        declared=declared,
        namespaces_file=config.namespaces_file,
        client_prefix=config.client_prefix,
        hub=hub,
    )


def safe_namespace(names: Sequence[str], title: str) -> str | None:
    """The namespace that all names begin with in the safe spelling, if the title names it too.

    `git_log` and `git_diff` of `mcp-server-git` are in the namespace `git`; `get_time` and
    `get_date` of `clock` are in none.
    """
    begins = only(name.partition("_")[0] if "_" in name else "" for name in names)
    if not begins or len(names) < 2 or part_fault(NAMESPACE, begins):
        return None
    return begins if begins in re.sub("[^a-z0-9]", "", title.lower()) else None


def only(values: Iterable[str]) -> str | None:
    """The one value that all are; None for none, and for several."""
    distinct = set(values)
    return next(iter(distinct)) if len(distinct) == 1 else None


def declare(entry: ListEntry, namespace: str | None) -> Declared:
    kind, definition, line, deprecation = entry
    name = text_of(definition, KEY[kind])
    if kind in NAMED:
        safe = f"{namespace}_"
        # On the wire a name may be in the safe spelling.
        bare = f"{namespace}:{name.removeprefix(safe)}" if name.startswith(safe) else name
        name = canonical_of(definition) or bare
    description = text_of(definition, "description")
    return Declared(
        kind=kind,
        name=name,
        description=next((line.strip() for line in description.splitlines() if line.strip()), ""),
        mime_type=text_of(definition, "mimeType"),
        deprecation=deprecation or said_deprecation(description),
        line=line,
    )


SAID: Final = re.compile(
    r"\A\W*deprecated\b|\(deprecated\)|\bis deprecated\b|^\s*\.\. deprecated::",
    re.IGNORECASE | re.MULTILINE,
)
"""A description that says it of the thing itself; a tool may well be about deprecated things."""
RELEASE: Final = r"v?([0-9](?:\S*[0-9A-Za-z])?)"
SINCE: Final = re.compile(rf"\bdeprecated since {RELEASE}", re.IGNORECASE)
REMOVED: Final = re.compile(rf"\b(?:removed|gone) in {RELEASE}", re.IGNORECASE)
INSTEAD: Final = re.compile(r"\buse `?([a-z][a-z0-9]*[_:][a-z0-9_:]*[a-z0-9])", re.IGNORECASE)


def said_deprecation(description: str) -> DeclaredDeprecation | None:
    """What a description says: `Deprecated since 1.4.0, removed in 1.6.0: use create_task`."""
    if SAID.search(description) is None:
        return None
    found = (each.search(description) for each in (SINCE, REMOVED, INSTEAD))
    return DeclaredDeprecation(*(each and each[1] for each in found))


def canonical_of(definition: Mapping[str, Any]) -> str:
    """The canonical name that a hub tells; empty for whatever no hub lists."""
    return text_of(members(definition.get("_meta")), NAME_KEY)


def members(value: object) -> dict[str, Any]:
    """An object's members; none for anything else."""
    return value if isinstance(value, dict) else {}


def text_of(values: Mapping[str, Any], key: str) -> str:
    """A string; empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""
