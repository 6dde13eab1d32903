"""The well-known MCP clients: what each must be told to reach this hub.

The first page shows it and `folkmoot connect` writes it, so that both always say the same.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

NAME = "folkmoot"
"""What the hub is called in a client's settings."""

Entry: TypeAlias = Callable[[str, str, str], dict[str, Any]]
"""Makes a client's entry from its name, the address of `/mcp` and a token, which may be empty."""


def _headers(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}} if token else {}


def _plain(_: str, endpoint: str, token: str) -> dict[str, Any]:
    return {"url": endpoint, **_headers(token)}


def _typed(_: str, endpoint: str, token: str) -> dict[str, Any]:
    return {"type": "http", "url": endpoint, **_headers(token)}


def _bridged(_: str, endpoint: str, token: str) -> dict[str, Any]:
    """Claude Desktop's file takes programs only: `mcp-remote` carries it over HTTP."""
    arguments = ["-y", "mcp-remote", endpoint]
    parts = urlsplit(endpoint)
    if parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1"}:
        arguments.append("--allow-http")
    if not token:
        return {"command": "npx", "args": arguments}
    # Not one argument with a space in it: npx on Windows would tear it apart.
    arguments += ["--header", "Authorization:${AUTH_HEADER}"]
    return {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": f"Bearer {token}"}}


def _extension(name: str, endpoint: str, token: str) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "streamable_http",
        "name": name,
        "description": "Mail between people, through their assistants",
        "uri": endpoint,
        **_headers(token),
        "timeout": 300,
    }


class Client(Struct, frozen=True, kw_only=True):
    """One client: its settings file holds `entry` under its name, in the table `member`."""

    id: str
    name: str
    member: str = "mcpServers"
    entry: Entry = _plain
    yaml: bool = False

    def settings(self, endpoint: str, token: str = "", name: str = NAME) -> dict[str, Any]:
        """What the client's settings file must hold."""
        return {self.member: {name: self.entry(name, endpoint, token)}}

    def snippet(self, endpoint: str) -> str:
        """The same as text to paste."""
        settings = self.settings(endpoint)
        return yaml_text(settings) if self.yaml else json.dumps(settings, indent=2)


CLIENTS: dict[str, Client] = {
    client.id: client
    for client in (
        Client(id="claude-desktop", name="Claude Desktop", entry=_bridged),
        Client(id="claude-code", name="Claude Code", entry=_typed),
        Client(id="vscode", name="VS Code", member="servers", entry=_typed),
        Client(id="cursor", name="Cursor"),
        Client(id="goose", name="Goose", member="extensions", entry=_extension, yaml=True),
        Client(id="mcpservers", name="Any other client"),
    )
}
"""Every client we know, by the name it has on the command line, in the order they are shown."""


def claude_code_command(endpoint: str) -> str:
    """The command that tells Claude Code of the hub, in every project."""
    return shlex.join(
        ["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, endpoint]
    )


def vscode_command(endpoint: str) -> str:
    """The command that tells VS Code of the hub."""
    server = {"name": NAME, "type": "http", "url": endpoint}
    return shlex.join(["code", "--add-mcp", json.dumps(server, separators=(",", ":"))])


def yaml_text(value: dict[str, Any], indent: int = 0) -> str:
    """Nested mappings as YAML; every text is quoted as JSON, which YAML reads the same."""
    lines = []
    for name, item in value.items():
        if isinstance(item, dict):
            lines += [f"{' ' * indent}{name}:", yaml_text(item, indent + 2)]
        else:
            lines.append(f"{' ' * indent}{name}: {json.dumps(item, ensure_ascii=False)}")
    return "\n".join(lines)
