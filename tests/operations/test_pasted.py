"""What describes a server when it is pasted: JSON of a client, a command line, or a URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.operations.operator.pasted import described

HERE = Path("/srv/hub")
FILES = {"command": "uvx", "args": ["files", "/tmp"], "env": {"KEY": "${FILES_KEY}"}}


def told(text: str, name: str = "") -> tuple[str, dict[str, Any]]:
    found = described(text, name, {"FILES_KEY": "s3cret"})
    assert found.checked(HERE).namespace == found.name
    return found.name, found.table


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {"files": FILES}}),
        json.dumps({"servers": {"files": FILES}}),
        json.dumps({"files": FILES}),
        json.dumps({"files": FILES})[1:-1] + ",",
        '{ "mcpServers": { "files": ' + json.dumps(FILES) + " } // as the client has it\n}",
    ],
)
def test_json_of_a_client_is_taken_with_or_without_what_stands_around_it(text):
    name, table = told(text)
    assert name == "files"
    # A reference stays one: no secret is written where there was none.
    assert table == {"command": ["uvx", "files", "/tmp"], "env": {"KEY": {"env": "FILES_KEY"}}}
    assert told(text, "other") == ("other", table)


def test_one_server_alone_and_one_of_several_need_a_name():
    assert told(json.dumps(FILES), "files")[0] == "files"
    several = json.dumps({"mcpServers": {"files": FILES, "clock": {"url": "https://x.example"}}})
    assert told(several, "clock") == ("clock", {"url": "https://x.example"})
    with pytest.raises(e.CommandInvalid, match="Name one of them: files, clock"):
        described(several)
    for text in (json.dumps(FILES), "uvx files", "https://x.example/mcp"):
        with pytest.raises(e.CommandInvalid, match="Give the server a name"):
            described(text)


def test_a_command_line_is_read_as_a_shell_does_and_a_url_is_one():
    _, table = told("TOKEN='a b' npx -y 'some server' --dir \"/x y\"", "npm")
    assert table == {
        "command": ["npx", "-y", "some server", "--dir", "/x y"],
        "env": {"TOKEN": "a b"},
    }
    assert told("  HTTPS://x.example/mcp \n", "clock")[1] == {"url": "HTTPS://x.example/mcp"}


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("", "", "Paste mcpServers JSON"),
        ('{"mcpServers": {', "", "Line 1 is not valid JSON"),
        ('{\n"mcpServers": {"a": }}', "", "Line 2 is not valid JSON"),
        ("[1]", "", "Must hold an object with mcpServers"),
        ('{"mcpServers": {}}', "", "describes no server"),
        ('{"mcpServers": {"files": 7}}', "", "Files must be an object, not 7"),
        ('{"mcpServers": {"files": {}}}', "", "needs command or url"),
        ('{"mcpServers": {"files": {"command": "x", "args": 1}}}', "", "args must be a list"),
        ('{"mcpServers": {"files": {"command": "${NOPE}"}}}', "", "NOPE is not set"),
        ('{"mcpServers": {"files": {"command": "a", "url": "https://b"}}}', "", "both"),
        ("uvx 'files", "files", "command line cannot be read: No closing quotation"),
        ("A=1 B=2", "files", "names no program"),
        ("uvx files", "../../etc/passwd", r"Use etcpasswd, for example"),
        ("uvx files", "/etc/x", "cannot be the name of a server"),
        ("uvx files", "a\0b", "This cannot be the name"),
        ("uvx files", "msg", "is reserved"),
        ("uvx files", "x" * 60, "3 to 20"),
        ('{"mcpServers": {"My Server": {"command": "x"}}}', "", "Use myserver, for example"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, name, says):
    with pytest.raises(e.CommandInvalid, match=says) as caught:
        described(text, name, {}).checked(HERE)
    assert caught.value.message.endswith(".")
    assert "\0" not in caught.value.message


def test_a_null_character_reaches_no_command_and_no_variable():
    for text in ('{"files": {"command": "x\\u0000y"}}', "x\0y z", "A=x\0y z"):
        with pytest.raises(e.CommandInvalid):
            described(text, "files").checked(HERE)


def test_what_should_be_known_is_noted():
    text = json.dumps({"files": {"command": "x", "env": {"API_TOKEN": "t"}, "autoApprove": []}})
    found = described(text)
    found.checked(HERE)
    assert [note.partition(" ")[0] for note in found.notes] == ["autoApprove", "the"]
    assert "secret of files.env.API_TOKEN is in the file" in found.notes[1]
