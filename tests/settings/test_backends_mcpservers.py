"""`mcpServers` files of MCP clients, imported as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.settings import (
    BackendSpec,
    Loaded,
    SecretReference,
    load,
)
from tests.settings.conftest import refused

ENVIRON = {"HOME": "/home/gina", "TOKEN": "sesame"}


def write_file(text: str, toml: str = "") -> str:
    Path("etc").mkdir(exist_ok=True)
    Path("etc/mcp.json").write_text(text, encoding="utf-8")
    Path("etc/hub.toml").write_text(f'gateway.mcp_servers = ["mcp.json"]\n{toml}')
    return "etc/hub.toml"


def load_file(text: str, toml: str = "") -> Loaded:
    return load(write_file(text, toml), environ=ENVIRON)


def load_servers(servers: dict[str, Any], key: str = "mcpServers", toml: str = "") -> Loaded:
    return load_file(json.dumps({key: servers}, indent=1), toml)


def problems(text: str, toml: str = "") -> list[str]:
    return refused(write_file(text, toml), environ=ENVIRON)


CLAUDE = """\
{
  // where Claude Desktop keeps it
  "theme": "dark",
  "mcpServers": {
    "My_Files": {
      "command": "npx",
      "args": ["-y", "server-filesystem", "${HOME}/notes", "${NOPE:-/tmp}"],
      "env": {"API_TOKEN": "${TOKEN}", "LEVEL": "3", "PORT": 80, "QUIET": true, "GONE": null},
    },
    /* and one elsewhere */
    "docs": {"type": "http", "url": "https://docs.example.org/mcp",
             "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
  },
}
"""


def test_a_clients_file_is_taken_as_it_is_with_comments():
    loaded = load_file(CLAUDE)
    plain = {"LEVEL": "3", "PORT": "80", "QUIET": "true"}
    assert loaded.gateway.backends == {
        "myfiles": BackendSpec(
            name="My_Files",
            namespace="myfiles",
            command=("npx", "-y", "server-filesystem", "/home/gina/notes", "/tmp"),
            env={"API_TOKEN": SecretReference(env="TOKEN"), **plain},
        ),
        "docs": BackendSpec(
            name="docs",
            namespace="docs",
            url="https://docs.example.org/mcp",
            transport="http",
            headers={"Authorization": SecretReference(env="TOKEN", prefix="Bearer ")},
        ),
    }
    assert loaded.notes == ()
    assert "sesame" not in repr(loaded)
    assert loaded.gateway_origins["backends.docs"] == "etc/mcp.json:11"
    assert loaded.files == ("etc/hub.toml", "etc/mcp.json")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"url": "http://h/"}, {"url": "http://h/"}),
        ({"serverUrl": "http://h/"}, {"url": "http://h/"}),
        ({"httpUrl": "http://h/"}, {"url": "http://h/", "transport": "http"}),
        ({"type": "sse", "url": "http://h/"}, {"url": "http://h/", "transport": "sse"}),
        ({"type": "streamable-http", "url": "http://h"}, {"url": "http://h", "transport": "http"}),
        ({"type": "stdio", "command": "x"}, {"command": ("x",)}),
        ({"command": "x", "disabled": True}, {"command": ("x",), "enabled": False}),
        ({"url": "http://h/?k=${TOKEN}"}, {"url": "http://h/?k=sesame"}),
        ({"url": "http://h/", "auth": "oauth"}, {"url": "http://h/", "auth": "oauth"}),
        (
            {"url": "http://h", "headers": {"X": "${N:-no}"}},
            {"url": "http://h", "headers": {"X": "no"}},
        ),
    ],
)
def test_every_clients_way_to_write_it_is_understood(entry, wanted):
    loaded = load_servers({"abc": entry}, key="servers")
    assert loaded.gateway.backends["abc"] == BackendSpec(name="abc", namespace="abc", **wanted)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "x", "args": ["${workspaceFolder}"]}, "does not support ${workspaceFolder}"),
        ({"url": "http://h/", "headers": {"A": "${input:key}"}}, "does not support ${input:key}"),
        ({"command": "${NOPE}/x"}, "the environment variable NOPE is not set"),
        ({"url": "http://h/", "headers": {"A": "${TOKEN}${HOME}"}}, "more than one variable"),
    ],
)
def test_what_only_a_client_can_use_is_left_out_with_a_note(entry, why):
    loaded = load_servers({"abc": entry, "other": {"command": "x"}})
    assert list(loaded.gateway.backends) == ["other"]
    (note,) = loaded.notes
    assert note.startswith("etc/mcp.json:3: mcpServers.abc was skipped: ")
    assert why in note


def test_what_a_servers_own_environment_holds_is_left_to_the_server():
    entry = {
        "command": "npx",
        "args": ["mcp-remote", "https://h/mcp", "--header", "Authorization:${AUTH}"],
        "env": {"AUTH": "${TOKEN}"},
    }
    loaded = load_servers({"abc": entry})
    assert loaded.gateway.backends["abc"].command[-1] == "Authorization:${AUTH}"
    assert loaded.gateway.backends["abc"].env == {"AUTH": SecretReference(env="TOKEN")}
    assert not loaded.notes


def test_the_entry_of_this_hub_in_a_clients_file_makes_no_circle():
    loaded = load_servers({"folkmoot": {"url": "http://127.0.0.1:8420/mcp"}})
    assert not loaded.gateway.backends
    assert "the namespace folkmoot is reserved" in loaded.notes[0]


def test_a_name_that_is_too_long_for_a_namespace_is_shortened():
    loaded = load_servers({"the-very-long-name-of-a-server": {"command": "x"}})
    (namespace,) = loaded.gateway.backends
    assert len(namespace) <= 20


def test_members_that_mean_nothing_here_are_noted():
    loaded = load_servers({"abc": {"command": "x", "autoApprove": [], "headers": {"a": "b"}}})
    assert loaded.notes == (
        "etc/mcp.json:3: mcpServers.abc: autoApprove, headers mean nothing here",
    )


def test_a_table_of_the_settings_takes_the_place_of_what_is_imported_by_its_name():
    toml = '[backends.files]\nurl = "http://h/"\neveryone = true\n'
    loaded = load_file('{"mcpServers": {"files": {"command": "x"}}}', toml)
    assert loaded.gateway.backends["files"].everyone
    assert loaded.notes == (
        "etc/mcp.json:1: mcpServers.files was skipped: the settings have a backend of that name",
    )


def test_no_two_servers_can_have_one_namespace():
    toml = '[backends.files]\nurl = "http://h/"\n'
    assert problems('{"mcpServers": {"Files": {"command": "x"}}}', toml) == [
        "etc/mcp.json:1: the namespace files is already used by the backend at etc/hub.toml:2"
    ]
    assert problems('{"mcpServers": {"a-bc": {"command": "x"},\n"ab_c": {"command": "x"}}}') == [
        "etc/mcp.json:2: the namespace abc is already used by the backend at etc/mcp.json:1"
    ]


NO_TYPE = "must be stdio, http or sse, not"


def one(server: str) -> str:
    return f'{{"servers": {{"abc": {server}}}}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", ":1: is not JSON"),
        ('{"a":\n\n oops}', ":3: is not JSON"),
        ("[]", ": must hold an object with mcpServers or servers in it"),
        ('{"servers": 1}', ": must hold an object with mcpServers or servers in it"),
        (one("7"), ":1: mcpServers.abc must be an object, not 7"),
        (one("{}"), ":1: mcpServers.abc needs command or url"),
        (one('{"command": ["x"]}'), ":1: mcpServers.abc.command must be text, not a list"),
        (one('{"command": "x", "args": "y"}'), ":1: mcpServers.abc.args must be a list of texts"),
        (one('{"type": "ws", "url": "ws://h"}'), f':1: mcpServers.abc.type {NO_TYPE} "ws"'),
        (one('{"command": "x"},\n "abc": {"command": "y"}'), ":2: mcpServers.abc is there twice"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text, said):
    assert problems(text) == [f"etc/mcp.json{said}"]


def test_a_file_that_is_not_there_is_a_problem():
    Path("hub.toml").write_text('gateway.mcp_servers = ["~/no.json", "nor.json"]\n')
    _, told = refused("hub.toml")
    assert told == "nor.json: there is no such file"


MEMBERS = st.sampled_from(["command", "args", "url", "env", "headers", "type", "abc", "-"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "http://h", "${A}", "$"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_file_gives_backends_or_a_settings_error(value):
    try:
        loaded = load_file(json.dumps({"mcpServers": value}))
    except e.SettingsError:
        return
    assert all(spec.command or spec.url for spec in loaded.gateway.backends.values())
