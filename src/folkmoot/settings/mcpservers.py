"""Servers as MCP clients keep them: `mcpServers` in a JSON file with comments."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from folkmoot.core import errors as e
from folkmoot.names import RESERVED_NAMES, namespace_from_slug
from folkmoot.settings.backend_tables import GatewayTables, TablePlace, read_backend
from folkmoot.settings.fields import BadValue, bare, quoted
from folkmoot.settings.files import (
    FileUnreadable,
    Problem,
    printable,
    read_bytes,
)
from folkmoot.settings.jsonc import JsonReader, NotJson

TABLES = ("mcpServers", "servers")
REFERENCE = re.compile(r"\$\{([^{}]*)\}")
VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
CLIENTS_OWN = frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"})
"""References that look like variables and stand for something in a client."""

TYPES = {
    "stdio": "",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
ADDRESSES = {"url": "", "serverUrl": "", "httpUrl": "http"}
"""What clients call a server's address, and the transport that this says."""
KNOWN = {"command", "args", "env", "cwd", "headers", "type", "transport", "disabled", "enabled"}


class LeftOut(Exception):
    """A server that a client may use and a hub cannot; the message completes "NAME …"."""


class ClientServer(NamedTuple):
    """One server of a file: what its table in the settings would be."""

    name: str
    line: int
    table: dict[str, Any]
    ignored: tuple[str, ...] = ()
    """Members that mean nothing here."""
    expanded: tuple[str, ...] = ()
    """References that stand in the table as what they stood for."""
    left_out: str = ""
    """Why a hub cannot use it; the table is empty then."""
    wrong: str = ""
    """Why nobody can; the table is empty then too."""


def take_servers(
    gathering: GatewayTables,
    file: str,
    environ: Mapping[str, str],
    source: int,
    described: Container[str] = (),
    *,
    runs: bool = False,
) -> None:
    """Put every server of a file among the backends; those of the settings take their places."""
    label = printable(file)
    try:
        servers = list(read_servers(file, environ, owned=True if runs else None))
    except FileUnreadable as error:
        gathering.problems.append(Problem(source, 0, str(error)))
        return
    for server in servers:
        place = TablePlace(
            gathering,
            f"mcpServers.{bare(server.name)}",
            f"backends.{server.name}",
            partial(_where, label, server.line),
            source,
            Path(file).absolute().parent,
        )
        if server.name in described:
            place.note((), f"{place.label} was skipped: the settings have a backend of that name")
            continue
        if server.left_out or server.wrong:
            if server.wrong:
                place.refuse((), f"{place.label}{server.wrong}")
            else:
                place.note((), f"{place.label} was skipped: {server.left_out}")
            continue
        if server.ignored:
            verb = "means" if len(server.ignored) == 1 else "mean"
            place.note((), f"{place.label}: {', '.join(server.ignored)} {verb} nothing here")
        spec = read_backend(server.name, server.table, place)
        if spec is not None:
            gathering.add(spec, place)


def _where(label: str, line: int, *_: str) -> tuple[str, int]:
    return f"{label}:{line}", line


def read_servers(
    file: str, environ: Mapping[str, str], *, owned: bool | None = None
) -> Iterator[ClientServer]:
    """The servers of a file; raises `Unreadable` for one that has none to read.

    With `owned`, a file that others may write is refused; see `read_bytes`.
    """
    label = printable(file)
    try:
        text = read_bytes(file, owned=owned).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileUnreadable(f"{label}: is not UTF-8 text") from None
    yield from servers_in(text, label, environ)


def servers_in(text: str, label: str, environ: Mapping[str, str]) -> Iterator[ClientServer]:
    """The servers of a text in that format; `label` is what it is called where it is wrong."""
    reader = JsonReader(text)
    try:
        value, start = reader.document()
    except NotJson as error:
        raise FileUnreadable(f"{label}:{error.line}: is not JSON") from None
    except RecursionError:
        raise FileUnreadable(f"{label}: is nested too deeply") from None
    if not isinstance(value, dict):
        raise FileUnreadable(f"{label}: must hold an object with mcpServers or servers in it")
    found = {member.name: member for member in reader.objects[start].members}
    name = next((table for table in TABLES if table in found), None)
    if name is None or not isinstance(value[name], dict):
        raise FileUnreadable(f"{label}: must hold an object with mcpServers or servers in it")
    table = reader.objects[found[name].start]
    seen: set[str] = set()
    for member in table.members:
        line = reader.line(member.at)
        if member.name in seen:
            # JSON itself would keep the last one and say nothing.
            yield ClientServer(member.name, line, {}, wrong=" is there twice")
        else:
            yield read_server(member.name, value[name][member.name], line, environ)
        seen.add(member.name)


def read_server(name: str, entry: object, line: int, environ: Mapping[str, str]) -> ClientServer:
    """One server as the table of a backend."""
    if not isinstance(entry, dict):
        return ClientServer(name, line, {}, wrong=f" must be an object, not {quoted(entry)}")
    try:
        table = {**reached(entry, environ), **flags(entry)}
        namespace = namespace_for(name)
    except LeftOut as error:
        return ClientServer(name, line, {}, left_out=str(error))
    except BadValue as error:
        return ClientServer(name, line, {}, wrong=f".{error}")
    if namespace != name:
        table["namespace"] = namespace
    meant = KNOWN | ADDRESSES.keys() | ({"auth"} if "auth" in table else set())
    extra = {"env", "cwd"} if "url" in table else {"headers"}
    ignored = [key for key in entry if key not in meant or (key in extra and entry[key])]
    return ClientServer(
        name,
        line,
        table,
        ignored=tuple(quoted(key)[1:-1] for key in ignored),
        expanded=tuple(references(entry)),
    )


def references(entry: Mapping[str, Any]) -> Iterator[str]:
    """Those references of a server that have no place to stay references."""
    arguments = entry.get("args")
    own = entry["env"] if isinstance(entry.get("env"), dict) else {}
    texts = [entry.get(key) for key in ("command", "cwd", *ADDRESSES)]
    for text in (*texts, *(arguments if isinstance(arguments, list) else ())):
        if isinstance(text, str):
            yield from (found[0] for found in REFERENCE.finditer(text) if found[1] not in own)


def reached(entry: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """How a server is reached, with what the environment holds where it is referred to."""
    kind = entry.get("type", entry.get("transport"))
    if kind is not None and (not isinstance(kind, str) or kind not in TYPES):
        raise BadValue(f"type must be stdio, http or sse, not {quoted(kind)}")
    table: dict[str, Any] = {}
    if entry.get("command"):
        # What its own environment holds, the program may well put in itself.
        own = entry["env"] if isinstance(entry.get("env"), dict) else {}
        table["command"] = [expanded(each, environ, own) for each in command(entry)]
        if entry.get("cwd"):
            table["cwd"] = expanded(entry["cwd"], environ)
        if entry.get("env"):
            table["env"] = referring(entry["env"], environ)
    for address, transport in ADDRESSES.items():
        if entry.get(address):
            table["url"] = expanded(entry[address], environ)
            spoken = TYPES.get(kind or "", "") or transport
            table |= {"transport": spoken} if spoken else {}
            table |= {"headers": referring(entry["headers"], environ)} if "headers" in entry else {}
            table |= {"auth": "oauth"} if entry.get("auth") == "oauth" else {}
            break
    return table


def command(entry: Mapping[str, Any]) -> Iterator[str]:
    """The program and its arguments, which clients keep apart."""
    program, arguments = entry["command"], entry.get("args") or []
    if not isinstance(program, str):
        raise BadValue(f"command must be text, not {quoted(program)}")
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise BadValue("args must be a list of texts")
    yield program
    yield from arguments


def flags(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the server is used."""
    return {"enabled": False} if entry.get("disabled") or entry.get("enabled") is False else {}


def namespace_for(name: str) -> str:
    """The namespace of a server; its own name is no place to write another one."""
    try:
        namespace = namespace_from_slug(name)
    except e.InvalidName as error:
        if error.nearest is None:
            raise LeftOut(f"{quoted(name)} cannot be turned into a namespace") from None
        namespace = error.nearest
    if namespace in RESERVED_NAMES:
        raise LeftOut(f"the namespace {namespace} is reserved")
    return namespace


def expanded(text: Any, environ: Mapping[str, str], own: Container[str] = ()) -> Any:
    """Text with the values of the variables it refers to, but for some that are left alone.

    What is no text is left to be refused.
    """
    if not isinstance(text, str):
        return text

    def value(found: re.Match[str]) -> str:
        if found[1] in own:
            return found[0]
        name, default = variable(found[1])
        told = environ.get(name, default)
        if told is None:
            raise LeftOut(f"the environment variable {name} is not set")
        return told

    return REFERENCE.sub(value, text)


def referring(values: Any, environ: Mapping[str, str]) -> Any:
    """A table of values in which references stay references, so that no secret is kept."""
    if not isinstance(values, dict):
        return values
    made = {name: reference(value, environ) for name, value in values.items()}
    return {name: value for name, value in made.items() if value is not None}


def reference(value: Any, environ: Mapping[str, str]) -> Any:
    """One value: text, or `{env, prefix, suffix}`; a number is its text, and null is nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    found = list(REFERENCE.finditer(value)) if isinstance(value, str) else []
    if not found:
        return value
    if len(found) > 1:
        raise LeftOut("one of its values refers to more than one variable")
    name, default = variable(found[0][1])
    before, after = value[: found[0].start()], value[found[0].end() :]
    if name not in environ and default is not None:
        return f"{before}{default}{after}"
    told = {"env": name, "prefix": before, "suffix": after}
    return {key: each for key, each in told.items() if each}


def variable(inside: str) -> tuple[str, str | None]:
    """The variable a reference names, and what stands for it where it is not set."""
    found = VARIABLE.fullmatch(inside)
    if found is None or found[1] in CLIENTS_OWN:
        raise LeftOut(f"a hub does not support {quoted('${' + inside + '}')[1:-1]}")
    return found[1], found[2]
