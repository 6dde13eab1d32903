"""What someone pastes to describe a server: `mcpServers` JSON, a command line, or a URL."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.names import RESERVED_NAMES, namespace_from_slug
from folkmoot.settings.backend_tables import check_table
from folkmoot.settings.files import FileUnreadable
from folkmoot.settings.mcpservers import TABLES, servers_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from folkmoot.settings.backends import BackendSpec
    from folkmoot.settings.mcpservers import ClientServer

LABEL: Final = "line"
URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
ENTRY: Final = frozenset({"command", "url", "serverUrl", "httpUrl"})
"""Members by which one server is told from a table of them."""


class Described(Struct, eq=False):
    """One server: its name, its settings table, and notes about it."""

    name: str
    table: dict[str, Any]
    notes: list[str]

    def checked(self, folder: Path, **flags: bool) -> BackendSpec:
        """The backend from the table and the other arguments; problems are raised."""
        self.table |= {key: True for key, wanted in flags.items() if wanted}
        spec, problems, notes = check_table(self.name, self.table, folder)
        if spec is None:
            raise e.CommandInvalid(sentence("; ".join(problems)))
        self.notes += notes
        return spec


def described(text: str, name: str = "", environ: Mapping[str, str] = os.environ) -> Described:
    """The server that a text describes; a command line and a URL need a name."""
    text, name = text.strip(), name.strip()
    if not text:
        raise e.CommandInvalid("Paste mcpServers JSON, a command line or a URL.")
    if text[0] in '{"[':
        return from_json(text, name, environ)
    if URL.fullmatch(text):
        table: dict[str, Any] = {"url": text}
    else:
        table = from_command(text)
    if not name:
        raise e.CommandInvalid("Give the server a name.")
    return Described(checked_name(name), table, [])


def from_command(text: str) -> dict[str, Any]:
    """A command line as a shell reads it; variables may be set before the program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise e.CommandInvalid(f"The command line cannot be read: {error}.") from None
    env: dict[str, str] = {}
    while words and (found := ASSIGNMENT.fullmatch(words[0])):
        env[found[1]] = found[2]
        words = words[1:]
    if not words:
        raise e.CommandInvalid("The command line names no program.")
    return {"command": words, **({"env": env} if env else {})}


def from_json(text: str, name: str, environ: Mapping[str, str]) -> Described:
    """One server from JSON: from `mcpServers`, from a bare table of servers, or a single entry."""
    servers = {server.name: server for server in read(wrapped(text, name), environ)}
    if not servers:
        raise e.CommandInvalid("The JSON describes no server.")
    if len(servers) > 1 and name not in servers:
        told = ", ".join(list(servers)[:10])
        raise e.CommandInvalid(f"The JSON describes several servers. Name one of them: {told}.")
    server = servers.get(name) or next(iter(servers.values()))
    if server.wrong or server.left_out:
        raise e.CommandInvalid(sentence(f"{server.name}{server.wrong or f': {server.left_out}'}"))
    notes = []
    if server.ignored:
        notes.append(f"{', '.join(server.ignored)} means nothing here")
    if server.expanded:
        notes.append(f"the present value of {', '.join(server.expanded)} is written")
    table = {key: value for key, value in server.table.items() if key != "namespace"}
    return Described(checked_name(name or server.name), table, notes)


def read(text: str, environ: Mapping[str, str]) -> list[ClientServer]:
    """The servers of a text; what is wrong with it is told by its line."""
    try:
        return list(servers_in(text, LABEL, environ))
    except FileUnreadable as error:
        told = re.sub(rf"^{LABEL}:(\d+): is not JSON$", r"Line \1 is not valid JSON", str(error))
        raise e.CommandInvalid(sentence(told.removeprefix(f"{LABEL}: "))) from None


def wrapped(text: str, name: str) -> str:
    """A text with `mcpServers` around it, where only what stands in it was pasted."""
    whole = text if text.startswith(("{", "[")) else f"{{{text.rstrip(',')}}}"
    try:
        value = json.loads(whole)
    except (ValueError, RecursionError):
        # It may have comments, or be wrong: whoever reads it says where.
        return whole
    if not isinstance(value, dict) or any(table in value for table in TABLES):
        return whole
    if value.keys() & ENTRY:
        if not name:
            raise e.CommandInvalid("Give the server a name.")
        return json.dumps({TABLES[0]: {name: value}})
    return f'{{"{TABLES[0]}": {whole}}}'


def checked_name(name: str) -> str:
    """A name that a server can have: its tools are called by it."""
    try:
        namespace = namespace_from_slug(name)
    except e.InvalidName as error:
        hint = f" Use {error.nearest}, for example." if error.nearest else ""
        told = name if name.isprintable() and len(name) <= 64 else "This"
        raise e.CommandInvalid(
            f"{told} cannot be the name of a server: it has 3 to 20 lower-case letters and "
            f"digits, and begins with a letter.{hint}"
        ) from None
    if namespace in RESERVED_NAMES:
        raise e.CommandInvalid(f"The name {namespace} is reserved. Choose another.")
    return namespace


def sentence(text: str) -> str:
    """A text that begins and ends as a sentence does."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
