"""The well-known MCP clients: what each must be told to reach this hub.

The first page shows it and `folkmoot connect` writes it, so that both always say the same.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from folkmoot.settings.editing import toml_key, toml_value

NAME = "folkmoot"
"""What the hub is called in a client's settings."""

Entry: TypeAlias = Callable[[str, str, str], dict[str, Any]]
"""Makes a client's entry from its name, the address of `/mcp` and a token, which may be empty."""
Started: TypeAlias = Callable[[str, str, list[str]], dict[str, Any]]
"""Makes a client's entry from its name, and the command and arguments of a server to start."""


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


def _http_url(_: str, endpoint: str, token: str) -> dict[str, Any]:
    """Gemini CLI: there `url` means the older HTTP+SSE."""
    return {"httpUrl": endpoint, **_headers(token)}


def _server_url(_: str, endpoint: str, token: str) -> dict[str, Any]:
    return {"serverUrl": endpoint, **_headers(token)}


def _codex(_: str, endpoint: str, token: str) -> dict[str, Any]:
    """Codex takes no token of its own in the file, and reads `http_headers`, not `headers`."""
    return {"url": endpoint, **({"http_headers": _headers(token)["headers"]} if token else {})}


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


def _goose_command(name: str, command: str, arguments: list[str]) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "Mail between people, through their assistants",
        "cmd": command,
        "args": arguments,
        "timeout": 300,
    }


def _typed_command(_: str, command: str, arguments: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **_command("", command, arguments)}


def _command(_: str, command: str, arguments: list[str]) -> dict[str, Any]:
    return {"command": command, "args": arguments}


class Client(Struct, frozen=True, kw_only=True):
    """One client: its settings file holds `entry` under its name, in the table `member`.

    `started` is the entry of a server that the client starts itself.
    """

    id: str
    name: str
    member: str = "mcpServers"
    entry: Entry = _plain
    started: Started = _command
    format: Literal["json", "yaml", "toml"] = "json"
    where: str = ""
    """Where its settings file is, for people."""
    called: str = ""
    """What it is in a list of clients, if not its name."""

    def settings(self, endpoint: str, token: str = "", name: str = NAME) -> dict[str, Any]:
        """What the client's settings file must hold."""
        return {self.member: {name: self.entry(name, endpoint, token)}}

    def snippet(self, endpoint: str, token: str = "") -> str:
        """The client's configuration as text to paste."""
        return self.text(self.settings(endpoint, token))

    def text(self, settings: dict[str, Any]) -> str:
        """Settings in the format of the client's file."""
        if self.format == "yaml":
            return yaml_text(settings)
        if self.format == "toml":
            return toml_text(settings)
        return json.dumps(settings, indent=2, ensure_ascii=False)


CLIENTS: dict[str, Client] = {
    client.id: client
    for client in (
        Client(
            id="claude-desktop",
            name="Claude Desktop",
            entry=_bridged,
            where="Open Settings → Developer → Edit Config, add this to the file, and restart "
            "Claude. This needs Node.js on your computer.",
        ),
        Client(id="claude-code", name="Claude Code", entry=_typed, started=_typed_command),
        Client(
            id="vscode",
            name="VS Code",
            member="servers",
            entry=_typed,
            started=_typed_command,
            where="Or choose MCP: Open User Configuration in the Command Palette, and add this:",
        ),
        Client(id="cursor", name="Cursor", where="Add this to ~/.cursor/mcp.json:"),
        Client(
            id="codex",
            name="Codex",
            member="mcp_servers",
            entry=_codex,
            format="toml",
            where="Add this to ~/.codex/config.toml:",
        ),
        Client(
            id="gemini",
            name="Gemini CLI",
            entry=_http_url,
            where="Add this to ~/.gemini/settings.json:",
        ),
        Client(
            id="windsurf",
            name="Windsurf",
            entry=_server_url,
            where="Add this to ~/.codeium/windsurf/mcp_config.json:",
        ),
        Client(
            id="zed",
            name="Zed",
            member="context_servers",
            where="Add this to ~/.config/zed/settings.json:",
        ),
        Client(
            id="goose",
            name="Goose",
            member="extensions",
            entry=_extension,
            started=_goose_command,
            format="yaml",
            where="Add this to ~/.config/goose/config.yaml, or choose Remote Extension "
            "(Streamable HTTP) in goose configure:",
        ),
        Client(
            id="mcpservers",
            name="Any other client",
            called="Other",
            where="Paste this into the settings of your MCP client:",
        ),
    )
}
"""Every client we know, by the name it has on the command line, in the order they are shown."""


def claude_code_command(endpoint: str, token: str = "") -> str:
    """The commands that tell Claude Code of the hub, in every project, and sign in if need be."""
    # `--header` takes all that follows it, so it comes last.
    header = ["--header", f"Authorization: Bearer {token}"] if token else []
    adding = shlex.join(
        ["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, endpoint, *header]
    )
    return adding if token else f"{adding}\nclaude mcp login {NAME}"


def codex_command(endpoint: str) -> str:
    """The command that tells Codex of the hub, and signs in."""
    return shlex.join(["codex", "mcp", "add", NAME, "--url", endpoint])


def vscode_command(endpoint: str, token: str = "") -> str:
    """The command that tells VS Code of the hub."""
    server = {"name": NAME, **_typed(NAME, endpoint, token)}
    return shlex.join(["code", "--add-mcp", json.dumps(server, separators=(",", ":"))])


class Way(Struct, frozen=True):
    """One way to tell a client of the hub: what to do, and what to copy."""

    how: str
    text: str
    what: Literal["Command", "Settings", "URL"]


def ways(client: Client, endpoint: str, token: str = "") -> list[Way]:
    """The ways to tell a client of the hub, the best one first; with a token it is signed in."""
    url = f"{endpoint}?token={token}" if token else endpoint
    found = [Way(client.where, client.snippet(endpoint, token), "Settings")]
    match client.id:
        case "claude-desktop" if endpoint.startswith("https:"):
            how = "Choose Settings → Connectors → Add custom connector, and enter this URL:"
            found.insert(0, Way(how, url, "URL"))
        case "claude-code":
            command = claude_code_command(endpoint, token)
            found = [Way("Run this in a terminal:", command, "Command")]
        case "vscode":
            command = vscode_command(endpoint, token)
            found.insert(0, Way("Run this in a terminal:", command, "Command"))
        case "codex" if not token:
            how = "Run this in a terminal. It opens the page where you sign in:"
            found.insert(0, Way(how, codex_command(endpoint), "Command"))
        case "mcpservers":
            found.append(Way("If it only asks for a URL, enter this one:", url, "URL"))
    return found


def yaml_text(value: dict[str, Any], indent: int = 0) -> str:
    """Nested mappings as YAML; every text is quoted as JSON, which YAML reads the same."""
    lines = []
    for name, item in value.items():
        if isinstance(item, dict):
            lines += [f"{' ' * indent}{name}:", yaml_text(item, indent + 2)]
        else:
            lines.append(f"{' ' * indent}{name}: {json.dumps(item, ensure_ascii=False)}")
    return "\n".join(lines)


def toml_text(value: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Tables of entries as TOML; a mapping inside an entry is written on one line."""
    lines = []
    for member, entries in value.items():
        for name, entry in entries.items():
            lines.append(f"[{toml_key(member)}.{toml_key(name)}]")
            lines += [f"{toml_key(key)} = {toml_value(item)}" for key, item in entry.items()]
    return "\n".join(lines)
