"""Reads the table of one backend: its values, its problems, and where each key stands.

A *problem* makes the settings useless; a *note* is something their writer should know.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.redaction import sounds_secret
from folkmoot.mcp.wire import EVENT_ID_HEADER
from folkmoot.names import RESERVED_NAMES, namespace_from_slug, validate_namespace
from folkmoot.settings import types
from folkmoot.settings.backends import (
    AskRule,
    BackendSpec,
    GatewaySpec,
    SecretReference,
    Value,
)
from folkmoot.settings.fields import (
    BACKEND_FIELDS,
    BadValue,
    Field,
    bare,
    check,
    has_open_secret,
    masked_arguments,
    nearest,
    quoted,
)
from folkmoot.settings.files import Problem
from folkmoot.settings.limits import MAX_BACKEND_NAME, MAX_VALUE


class GatewayTables(Struct, kw_only=True):
    """The gateway's tables, as far as they could be read."""

    backends: dict[str, BackendSpec] = msgspec.field(default_factory=dict)
    """By namespace."""
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    grants: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict)
    asks: list[AskRule] = msgspec.field(default_factory=list)
    origins: dict[str, str] = msgspec.field(default_factory=dict)
    """Where each path, such as `backends.github.url`, was written."""
    problems: list[Problem] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    def spec(self) -> GatewaySpec:
        """All of it, once nothing is wrong."""
        return GatewaySpec(
            backends=self.backends,
            groups=self.groups,
            grants=self.grants,
            asks=tuple(self.asks),
        )

    def add(self, spec: BackendSpec, place: TablePlace) -> None:
        """Take a backend in, unless its name or its namespace is another's."""
        for other in self.backends.values():
            same = "namespace" if other.namespace == spec.namespace else "name"
            if getattr(other, same) != getattr(spec, same):
                continue
            where = self.origins[f"backends.{other.name}"]
            word = quoted(getattr(spec, same))[1:-1]
            place.refuse((), f"the {same} {word} is already used by the backend at {where}")
            return
        self.backends[spec.namespace] = spec


class TablePlace(NamedTuple):
    """One table in one file: its name in error messages, and the lines of its keys."""

    gathering: GatewayTables
    label: str
    path: str
    """By which `origins` knows it, such as `backends.github`."""
    where: Callable[..., tuple[str, int]]
    """`file:line` of one of its keys, and the line."""
    source: int
    folder: Path
    """What relative paths in it are relative to."""

    def refuse(self, key: tuple[str, ...], sentence: str) -> None:
        """Note a problem with a key, or with the table itself."""
        where, line = self.where(*key)
        self.gathering.problems.append(Problem(self.source, line, f"{where}: {sentence}"))

    def note(self, key: tuple[str, ...], sentence: str) -> None:
        """Note what the writer should know."""
        self.gathering.notes.append(f"{self.where(*key)[0]}: {sentence}")

    def name(self, *key: str) -> str:
        """A key of the table as sentences call it."""
        return ".".join((self.label, *map(bare, key)))

    def found(self, *key: str) -> None:
        """Remember where a key was written first; a second one of its name is refused."""
        self.gathering.origins.setdefault(".".join((self.path, *key)), self.where(*key)[0])


VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
REFERENCE = {"env", "file", "prefix", "suffix"}

OWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        EVENT_ID_HEADER,
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the hub writes itself, besides all that begin with `mcp-`."""

MISTAKEN = {
    "args": "put them into command, after the program",
    "type": "its name here is transport",
    "disabled": "write enabled = false",
    "environment": "its name here is env",
    "timeout": "its name here is call_seconds",
}
"""What other programs call things, and what to do about it here."""

MISPLACED = {
    "headers": "url",
    "transport": "url",
    "auth": "url",
    "env": "command",
    "cwd": "command",
    "user": "command",
    "sandbox": "command",
}
"""Settings that mean something beside another one alone."""


def read_backend(name: str, table: object, place: TablePlace) -> BackendSpec | None:
    """The backend a table describes; None when something is wrong with it, which is noted."""
    if not isinstance(table, dict):
        place.refuse((), f"{place.label} must be a table, not {quoted(table)}")
        return None
    before = len(place.gathering.problems)
    place.found()
    values = {}
    for key, value in table.items():
        reader = READERS.get(key, read_plain)
        try:
            values[key] = reader(key, value, place)
            place.found(key)
        except BadValue as error:
            place.refuse((key,), str(error))
    check_together(table, place)
    namespace = namespace_of(name, table, place)
    note_secrets(values, place)
    if len(place.gathering.problems) > before or namespace is None:
        return None
    return BackendSpec(**{"name": name, **values, "namespace": namespace})


def check_table(
    name: str, table: dict[str, Any], folder: Path
) -> tuple[BackendSpec | None, list[str], list[str]]:
    """The backend of a table that is in no file yet; what is wrong with it, and what is to be said.

    Relative paths in it are relative to the folder.
    """
    gathering = GatewayTables()
    place = TablePlace(gathering, name, name, lambda *_: ("", 0), 0, folder)
    spec = read_backend(name, table, place)
    problems = [problem.text.removeprefix(": ") for problem in gathering.problems]
    return spec, problems, [note.removeprefix(": ") for note in gathering.notes]


def read_plain(
    key: str, value: object, place: TablePlace, fields: Mapping[str, Field] = BACKEND_FIELDS
) -> Any:
    """A value that is checked by its type and shape alone."""
    field = fields.get(key)
    if field is None:
        told = MISTAKEN.get(key) if fields is BACKEND_FIELDS else None
        hint = f"; {told}" if told else nearest(key, fields)
        raise BadValue(f"unknown setting '{quoted(key)[1:-1]}' in [{place.label}]{hint}")
    try:
        return check(field, value)
    except BadValue as error:
        raise BadValue(f"{place.name(key)} {error}") from None


def read_command(key: str, value: object, place: TablePlace) -> tuple[str, ...]:
    """A program and its arguments; text is refused with the list it would be."""
    if isinstance(value, str):
        raise BadValue(f"{place.name(key)} must be a list: write it as {as_list(value)}")
    command: tuple[str, ...] = read_plain(key, value, place)
    if not command or not command[0].strip():
        raise BadValue(f"{place.name(key)} must start with the program to run")
    return command


def as_list(text: str) -> str:
    """A command line as the list it should have been, without its secrets."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return f"[{', '.join(quoted(word) for word in masked_arguments(words))}]"


def read_folder(key: str, value: object, place: TablePlace) -> str:
    """The path of a folder, made absolute."""
    text: str = read_plain(key, value, place)
    return absolute(text, place.folder) if text else ""


def read_folders(key: str, value: object, place: TablePlace) -> tuple[str, ...]:
    """The paths of folders, made absolute."""
    texts: tuple[str, ...] = read_plain(key, value, place)
    return tuple(absolute(text, place.folder) for text in texts)


def absolute(text: str, folder: Path) -> str:
    """A path as it is from anywhere; a relative one is relative to the file it was written in."""
    return str((folder / Path(text).expanduser()).absolute())


def read_environment(key: str, value: object, place: TablePlace) -> dict[str, Value]:
    """Variables for a command."""
    return read_values(key, value, place, variable_fault)


def variable_fault(name: str, text: str | None) -> str | None:
    """What is wrong with a variable, if anything is."""
    if not VARIABLE.fullmatch(name):
        return "is not a valid variable name"
    return "must not hold a null character" if text is not None and "\0" in text else None


def read_headers(key: str, value: object, place: TablePlace) -> dict[str, Value]:
    """Headers for a server."""
    headers = read_values(key, value, place, header_fault)
    if len({name.lower() for name in headers}) < len(headers):
        raise BadValue(f"{place.name(key)} has one header twice (case is ignored)")
    return headers


def header_fault(name: str, text: str | None) -> str | None:
    """What is wrong with a header, if anything is."""
    if not HEADER.fullmatch(name):
        return "is not a valid header name"
    if name.lower() in OWN_HEADERS or name.lower().startswith("mcp-"):
        return "is a header that the hub sets itself"
    return "cannot be sent in a header" if text is not None and UNSENDABLE.search(text) else None


def read_values(
    key: str, value: object, place: TablePlace, fault: Callable[[str, str | None], str | None]
) -> dict[str, Value]:
    """A table of texts and references; each that is wrong is noted at its own line."""
    field = BACKEND_FIELDS[key]
    if not isinstance(value, dict) or len(value) > field.type.__metadata__[0].max_length:
        raise BadValue(f"{place.name(key)} must be {field.must_be}, not {quoted(value)}")
    values: dict[str, Value] = {}
    for name, each in value.items():
        label = place.name(key, name)
        wrong = fault(name, each if isinstance(each, str) else None)
        if wrong is not None:
            place.refuse((key, name), f"{label} {wrong}")
            continue
        try:
            values[name] = read_value(label, each, place.folder)
        except BadValue as error:
            place.refuse((key, name), str(error))
    return values


def read_value(label: str, value: object, folder: Path) -> Value:
    """A text, or a reference to one: `{ env = "NAME" }` or `{ file = "PATH" }`."""
    if isinstance(value, str):
        if len(value) > MAX_VALUE:
            raise BadValue(f"{label} must be at most {MAX_VALUE:,} characters long")
        return value
    if not isinstance(value, dict):
        # What is there instead may well be a secret.
        raise BadValue(f'{label} must be text, {{ env = "NAME" }} or {{ file = "PATH" }}')
    for each in value:
        if each not in REFERENCE:
            hint = nearest(each, REFERENCE)
            raise BadValue(f"unknown setting '{quoted(each)[1:-1]}' in {label}{hint}")
    if not all(isinstance(each, str) and types.text(each) for each in value.values()):
        raise BadValue(f"{label} must refer to a variable or a file by its name")
    variable, file = value.get("env"), value.get("file")
    if (variable is None) is (file is None):
        raise BadValue(f"{label} must have either env or file")
    if variable is not None and not VARIABLE.fullmatch(variable):
        raise BadValue(f"{label}.env must be the name of a variable, not {quoted(variable)}")
    if file is not None:
        if not types.path(file):
            raise BadValue(f"{label}.file must be the path of a file")
        return SecretReference(**{**value, "file": absolute(file, folder)})
    return SecretReference(**value)


def read_secret(key: str, value: object, place: TablePlace) -> Value:
    """A text, or a reference to one."""
    return read_value(place.name(key), value, place.folder)


READERS: Mapping[str, Callable[[str, object, TablePlace], Any]] = {
    "command": read_command,
    "cwd": read_folder,
    "folders": read_folders,
    "writable_folders": read_folders,
    "env": read_environment,
    "headers": read_headers,
    "client_secret": read_secret,
}
OF_OAUTH = ("client_id", "client_secret", "scopes", "trusted_issuers", "shared")
NOT_OF_OAUTH = ("single", "per_user", "connections")
"""What is decided by `auth = "oauth"`: each person has connections of their own, on every node."""


def check_together(table: Mapping[str, Any], place: TablePlace) -> None:
    """Refuse what says two things, nothing, or something that would not be heeded."""
    given = table.keys() & {"command", "url"}
    if not given:
        place.refuse((), f"{place.label} needs command or url")
    elif len(given) == 2:
        place.refuse((), f"{place.label} has both command and url; give only one")
    for name, needed in MISPLACED.items():
        if name in table and given and needed not in given:
            place.refuse((name,), f"{place.name(name)} can only be used with {needed}")
    for name in ("folders", "writable_folders", "network"):
        if name in table and table.get("sandbox", "none") == "none":
            place.refuse((name,), f"{place.name(name)} can only be used with sandbox")
    signs_in = table.get("auth") == "oauth"
    for name in NOT_OF_OAUTH if signs_in else OF_OAUTH:
        if name in table:
            fits = "cannot be used" if signs_in else "can only be used"
            place.refuse((name,), f'{place.name(name)} {fits} with auth = "oauth"')
    if "client_secret" in table and "client_id" not in table:
        place.refuse(("client_secret",), f"{place.name('client_secret')} needs client_id")
    headers = table.get("headers")
    if signs_in and isinstance(headers, dict) and "authorization" in map(str.lower, headers):
        place.refuse(("headers",), f"{place.label} has both auth and the header Authorization")


def namespace_of(name: str, table: Mapping[str, Any], place: TablePlace) -> str | None:
    """The namespace: what is given, or the key of the table."""
    given = table.get("namespace", name)
    if not isinstance(given, str):
        return None
    if len(name) > MAX_BACKEND_NAME or not types.text(name) or not name:
        place.refuse((), f"{place.label}: a name has 1 to {MAX_BACKEND_NAME} printable characters")
        return None
    try:
        validate_namespace(given)
    except e.InvalidName as error:
        if "namespace" not in table:
            hint = proposed(given) or error.nearest
            told = f'namespace = "{hint}"' if hint else "a namespace"
            place.refuse((), f"{place.label}: {quoted(name)} is not a valid namespace; add {told}")
        return None
    if given in RESERVED_NAMES:
        key = ("namespace",) if "namespace" in table else ()
        place.refuse(key, f"{place.label}: the namespace {given} is reserved; choose another")
        return None
    return given


def proposed(slug: str) -> str | None:
    """A namespace for a name that is none."""
    try:
        return namespace_from_slug(slug)
    except e.InvalidName as error:
        return error.nearest


def note_secrets(values: Mapping[str, Any], place: TablePlace) -> None:
    """Say where a secret stands in the file itself."""
    given = [
        ((key, name), value)
        for key in ("env", "headers")
        for name, value in values.get(key, {}).items()
    ]
    for key, value in (*given, (("client_secret",), values.get("client_secret", ""))):
        if isinstance(value, str) and value and sounds_secret(key[-1]):
            place.note(
                key,
                # Not "NAME: …", which a log would take for a secret itself.
                f"the secret of {place.name(*key)} is in the file; refer to it "
                'instead, with { env = "VARIABLE" } or { file = "PATH" }',
            )
    if has_open_secret(values.get("command", ())):
        place.note(
            ("command",),
            f"a secret of {place.name('command')} is in the file, and everyone on the "
            "machine can see a program's arguments; pass it in env",
        )
