"""`folkmoot connect`: the client's own file, extended and never harmed."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from folkmoot.cli.connect import default_file
from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Cli, Ran, Run

HUB = "https://moot.example"
TOKEN = f"sk_{'ab' * 32}"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def connect(tmp_path: Path, cli: Cli) -> Run:
    """Run `folkmoot connect` for someone who has an account and an empty home."""
    home = tmp_path / "home"
    keys = home / ".config/folkmoot/credentials.json"
    keys.parent.mkdir(parents=True)
    login = {"hub": HUB, "handle": "ada", "token": TOKEN}
    keys.touch(0o600)
    keys.write_text(json.dumps({"accounts": [login]}))
    for client in (
        ".cursor", ".config/Claude", ".config/Code/User", ".config/goose", ".config/zed", ".codex",
        ".gemini", ".codeium/windsurf",
    ):  # fmt: skip
        (home / client).mkdir(parents=True)

    def run(*arguments: str, **variables: str) -> Ran:
        given = {"HOME": str(home), "XDG_CONFIG_HOME": "", "CLAUDE_CONFIG_DIR": "", **variables}
        return cli("connect", *arguments, **given)

    return run


WRITTEN: list[tuple[str, str, dict[str, Any]]] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", {"mcpServers": {"folkmoot": {
        "command": "npx",
        "args": ["-y", "mcp-remote", f"{HUB}/mcp", "--header", "Authorization:${AUTH_HEADER}"],
        "env": {"AUTH_HEADER": f"Bearer {TOKEN}"}}}}),
    ("claude-code", ".claude.json", {"mcpServers": {"folkmoot": {
        "type": "http", "url": f"{HUB}/mcp", "headers": HEADERS}}}),
    ("vscode", ".config/Code/User/mcp.json", {"servers": {"folkmoot": {
        "type": "http", "url": f"{HUB}/mcp", "headers": HEADERS}}}),
    ("cursor", ".cursor/mcp.json", {"mcpServers": {"folkmoot": {
        "url": f"{HUB}/mcp", "headers": HEADERS}}}),
    ("codex", ".codex/config.toml", {"mcp_servers": {"folkmoot": {
        "url": f"{HUB}/mcp", "http_headers": HEADERS}}}),
    ("gemini", ".gemini/settings.json", {"mcpServers": {"folkmoot": {
        "httpUrl": f"{HUB}/mcp", "headers": HEADERS}}}),
    ("windsurf", ".codeium/windsurf/mcp_config.json", {"mcpServers": {"folkmoot": {
        "serverUrl": f"{HUB}/mcp", "headers": HEADERS}}}),
    ("zed", ".config/zed/settings.json", {"context_servers": {"folkmoot": {
        "url": f"{HUB}/mcp", "headers": HEADERS}}}),
]  # fmt: skip


def read(path: Path) -> Any:
    """What a settings file says."""
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())
    return json.loads(path.read_text())


@pytest.mark.parametrize(("client", "file", "wanted"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_each_client_is_told_in_its_own_file(connect, tmp_path, client, file, wanted):
    path = tmp_path / "home" / file
    ran = connect(client)
    assert (ran.code, ran.err) == (0, "")
    assert read(path) == wanted
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in ran.out
    assert TOKEN not in ran.out


def test_the_lines_for_goose_are_printed_and_its_file_is_left_alone(connect, tmp_path):
    path = tmp_path / "home/.config/goose/config.yaml"
    path.write_text("GOOSE_MODEL: x  # mine\n")
    ran = connect("goose", "--name", "moot")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "extensions:",
        "  moot:",
        "    enabled: true",
        '    type: "streamable_http"',
        '    name: "moot"',
        '    description: "Mail between people, through their assistants"',
        f'    uri: "{HUB}/mcp"',
        "    headers:",
        f'      Authorization: "Bearer {TOKEN}"',
        "    timeout: 300",
    ]
    assert ran.err.startswith(f"Add these lines to {path}:\n")
    assert "the lines contain your token" in ran.err
    assert path.read_text() == "GOOSE_MODEL: x  # mine\n"
    dry = connect("goose", "--dry-run")
    assert TOKEN not in dry.out + dry.err
    assert "your token" not in dry.err
    assert TOKEN not in connect("goose", "--no-token").out


CODEX = """model = "o9"  # mine

[mcp_servers.other]
command = "other"
"""


def test_codex_is_told_in_toml_and_the_rest_of_its_file_stays(connect, tmp_path):
    path = tmp_path / "home/.codex/config.toml"
    path.write_text(CODEX)
    assert connect("codex", "--name", "my hub").code == 0
    written = path.read_text()
    assert written == (
        f'{CODEX}\n[mcp_servers."my hub"]\nurl = "{HUB}/mcp"\n'
        f'http_headers = {{ Authorization = "Bearer {TOKEN}" }}\n'
    )
    assert "already; --force replaces it." in connect("codex", "--name", "my hub").err
    assert connect("codex", "--name", "my hub", "--force", "--no-token").code == 0
    assert path.read_text() == f'{CODEX}\n[mcp_servers."my hub"]\nurl = "{HUB}/mcp"\n'
    path.write_text("model = ")
    assert "it is not valid TOML" in connect("codex").err
    assert path.read_text() == "model = "


@pytest.mark.parametrize(("client", "file", "wanted"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_with_bridge_a_client_starts_it_and_has_no_token(connect, tmp_path, client, file, wanted):
    path = tmp_path / "home" / file
    ran = connect(client, "--bridge", PATH="/nowhere")
    assert (ran.code, ran.err) == (0, "")
    assert f"Added the bridge for {HUB} to " in ran.out
    arguments = ["-m", "folkmoot", "bridge", "--url", HUB, "--as", "ada"]
    entry = {"command": sys.executable, "args": arguments}
    if client in ("claude-code", "vscode"):
        entry["type"] = "stdio"
    assert read(path) == {member: {"folkmoot": entry} for member in wanted}
    assert TOKEN not in path.read_text()


def test_the_bridge_needs_an_account_and_goose_is_told_in_its_own_words(connect):
    written = connect("goose", "--bridge").out
    assert '    type: "stdio"\n' in written
    assert '    args: ["bridge", "--url"' in written or '"-m", "folkmoot", "bridge"' in written
    assert "not signed in as @nobody" in connect("cursor", "--bridge", "--as", "nobody").err


def test_any_other_client_is_told_in_the_file_that_is_named(connect, tmp_path):
    ran = connect("mcpservers", "--file", "mcp.json", "--no-token", "--url", "http://127.0.0.1:1")
    assert ran.code == 0
    assert ran.out.startswith("Added http://127.0.0.1:1 to the client, in ")
    assert "No token was written" in ran.out
    assert json.loads((tmp_path / "mcp.json").read_text()) == {
        "mcpServers": {"folkmoot": {"url": "http://127.0.0.1:1/mcp"}}
    }


def test_what_was_there_stays_and_a_copy_of_it_is_kept(connect, tmp_path):
    path = tmp_path / "home/.cursor/mcp.json"
    before = '{\n  // mine\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n'
    path.write_text(before)
    path.chmod(0o640)
    ran = connect("cursor")
    assert ran.code == 0
    assert "others can read" in ran.err
    assert "Run 'chmod 600' on it" in ran.err
    assert "// mine" in path.read_text()
    assert '"other": {"command": "x"},' in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    copies = list(path.parent.glob("mcp.json.*.bak"))
    assert [copy.read_text() for copy in copies] == [before]
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600
    assert str(copies[0]) in ran.out
    assert {it.name for it in path.parent.iterdir()} == {"mcp.json", copies[0].name}


def test_an_entry_of_the_same_name_is_replaced_only_by_force(connect, tmp_path):
    path = tmp_path / "home/.cursor/mcp.json"
    assert connect("cursor").code == 0
    before = path.read_text()
    again = connect("cursor", "--url", "http://127.0.0.1:1")
    assert again.code == ExitCode.FAILED
    assert again.err == (
        f'folkmoot: error: {path}: it already has an entry "folkmoot". --force replaces it.\n'
    )
    assert path.read_text() == before
    assert connect("cursor", "--url", "http://127.0.0.1:1", "--force").code == 0
    entry = json.loads(path.read_text())["mcpServers"]["folkmoot"]
    assert entry == {"url": "http://127.0.0.1:1/mcp"}
    assert connect("cursor", "--name", "second").code == 0
    assert list(json.loads(path.read_text())["mcpServers"]) == ["folkmoot", "second"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe{", b'{"mcpServers": 1}'])
def test_a_file_that_cannot_be_read_for_certain_is_left_alone(connect, tmp_path, content):
    path = tmp_path / "home/.cursor/mcp.json"
    path.write_bytes(content)
    for options in ([], ["--force"], ["--dry-run"]):
        ran = connect("cursor", *options)
        assert ran.code == ExitCode.FAILED
        assert ran.err.startswith(f"folkmoot: error: {path}: ")
        assert "not changed" in ran.err
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_dry_run_shows_everything_but_the_token_and_writes_nothing(connect, tmp_path):
    assert '/mcp?tools=search"' in connect("cursor", "--dry-run", "--search").out
    ran = connect("cursor", "--dry-run")
    path = tmp_path / "home/.cursor/mcp.json"
    assert (ran.code, ran.err) == (0, f"In {path}:\n")
    assert json.loads(ran.out) == {"mcpServers": {"folkmoot": {
        "url": f"{HUB}/mcp", "headers": {"Authorization": "Bearer sk_…"}}}}  # fmt: skip
    assert not path.exists()


def test_a_link_to_the_file_stays_a_link(connect, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = tmp_path / "home/.cursor/mcp.json"
    link.symlink_to(real)
    assert connect("cursor").code == 0
    assert link.is_symlink()
    assert "folkmoot" in json.loads(real.read_text())["mcpServers"]


def test_a_client_that_is_not_installed_is_named(connect, tmp_path):
    (tmp_path / "home/.cursor").rmdir()
    ran = connect("cursor")
    assert ran.code == ExitCode.FAILED
    assert "Is Cursor installed?" in ran.err
    assert not (tmp_path / "home/.cursor").exists()


@pytest.mark.parametrize(
    ("client", "platform", "wanted"),
    [
        ("claude-desktop", "darwin",
         "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "/a/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", "/h/.config/Claude/claude_desktop_config.json"),
        ("claude-code", "darwin", "/h/.claude.json"),
        ("vscode", "darwin", "/h/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "/a/Code/User/mcp.json"),
        ("vscode", "linux", "/h/.config/Code/User/mcp.json"),
        ("cursor", "win32", "/h/.cursor/mcp.json"),
        ("goose", "darwin", "/h/.config/goose/config.yaml"),
        ("goose", "win32", "/a/Block/goose/config/config.yaml"),
        ("goose", "freebsd14", "/h/.config/goose/config.yaml"),
    ],
)  # fmt: skip
def test_the_files_are_where_the_clients_document_them(client, platform, wanted, monkeypatch):
    monkeypatch.setenv("HOME", "/h")
    assert str(default_file(client, platform, {"APPDATA": "/a"})) == wanted
