"""`folkmoot bridge` and its commands, against a real hub."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from folkmoot.cli.bridge_keys import asked_passphrase
from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Cli, Person, Ran
from tests.mcp_harness import META, rpc

WORDS = "five words picked at random"


@pytest.fixture
def people(person: Person, tmp_path: Path) -> Person:
    def make(name: str) -> Cli:
        (tmp_path / name).mkdir()
        made = person(name)
        state = {"XDG_STATE_HOME": str(tmp_path / name)}
        # Each on a computer of their own: keys lie beside the credentials.
        file = tmp_path / name / "credentials.json"
        (tmp_path / f"{name}.json").rename(file)
        return made._replace(environ={**made.environ, "FOLKMOOT_CREDENTIALS": str(file), **state})

    return make


def calling(someone: Cli, tool: str, *options: str, **arguments: Any) -> Any:
    """What a tool answers through a bridge that is started for it."""
    request = rpc("tools/call", {"name": tool, "arguments": arguments, "_meta": META})
    ran = someone("bridge", *options, given=f"{json.dumps(request)}\n")
    assert ran.code == 0, ran
    [line] = ran.out.splitlines()
    answer = json.loads(line)
    return json.loads(answer["result"]["content"][0]["text"])


@pytest.mark.long
def test_a_key_is_made_shown_taken_elsewhere_and_changed(people, tmp_path):
    ada, bob = people("ada"), people("bob")
    assert "no device key" in ada("bridge", "key", "show").err
    first = ada("bridge", given="")
    assert (first.code, first.out) == (0, "")
    assert "made a device key for @ada" in first.err
    assert ada("bridge", given="") == Ran(0, "", "")
    shown = ada.json("bridge", "key", "show")
    assert shown["published"] == "this"
    assert shown["fingerprint"] in first.err
    assert ada("bridge", "key", "show").out.startswith("Account        @ada on http")

    export = tmp_path / "ada.key"
    assert "no terminal" in ada("bridge", "key", "export", str(export), given="").err
    weak = ada("bridge", "key", "export", str(export), FOLKMOOT_PASSPHRASE="12345")
    assert (weak.code, export.exists()) == (ExitCode.FAILED, False)
    assert "too easy to guess" in weak.err
    with ada.at_terminal("bridge", "key", "export", str(export)) as terminal:
        for prompt in ("Passphrase", "Repeat"):
            # What is typed before the terminal hides it is thrown away.
            terminal.wait_for(prompt).wait_for(lambda screen: not screen.echoes)
            terminal.type(f"{WORDS}\n")
        assert terminal.end() == 0
        assert WORDS not in terminal.text
    assert stat.S_IMODE(export.stat().st_mode) == 0o600
    again = ada("bridge", "key", "export", str(export), FOLKMOOT_PASSPHRASE=WORDS)
    assert "already exists" in again.err

    assert calling(bob, "msg_send", to="ada", body="Sealed.")["bridge"]["mode"] == "e2e"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    credentials = elsewhere / "credentials.json"
    credentials.touch(0o600)
    credentials.write_bytes(Path(ada.environ["FOLKMOOT_CREDENTIALS"]).read_bytes())
    home = {"FOLKMOOT_CREDENTIALS": str(credentials), "XDG_STATE_HOME": str(elsewhere)}
    second = ada._replace(environ={**ada.environ, **home})
    brought = second("bridge", "key", "import", str(export), FOLKMOOT_PASSPHRASE=WORDS)
    assert shown["fingerprint"] in brought.out
    assert second.json("bridge", "key", "show")["published"] == "this"
    assert calling(second, "msg_inbox")["messages"][0]["body"] == "Sealed."
    second.fails("bridge", "key", "rotate", told="--yes", code=ExitCode.USAGE, given="")
    assert second("bridge", "key", "rotate", "--yes").code == 0
    assert second.json("bridge", "key", "show")["earlier_keys"] == 1
    assert calling(second, "msg_inbox")["messages"][0]["body"] == "Sealed."

    assert ada.json("bridge", "key", "show")["published"] == "other"
    ada.fails("bridge", "key", "publish", told="--replace")
    assert "another key for @ada" in ada("bridge", given="").err
    assert ada("bridge", "key", "publish", "--replace").code == 0
    assert "already" in ada("bridge", "key", "publish").out


def test_a_changed_key_is_refused_until_its_fingerprint_is_accepted(people):
    ada, bob = people("ada"), people("bob")
    for someone in (ada, bob):
        someone("bridge", given="")
    assert calling(ada, "msg_send", to="bob", body="One.")["bridge"]["mode"] == "e2e"
    old = bob.json("bridge", "key", "show")["fingerprint"]
    [peer] = ada.json("bridge", "peers", "list")["peers"]
    assert (peer["handle"], peer["fingerprint"], peer["until"]) == ("bob", old, None)
    assert peer["verified"] is False
    ada.fails("bridge", "peers", "verify", "bob", "--fingerprint", "0123", told="is another than")
    assert "no terminal" in ada("bridge", "peers", "verify", "bob", given="").err
    assert "No key of @eve" in ada("bridge", "peers", "verify", "eve", "--yes").err
    verified = ada("bridge", "peers", "verify", "@bob", "--fingerprint", old)
    assert verified.out == "The key of @bob is verified.\n"
    assert bob("bridge", "key", "rotate", "--yes").code == 0
    new = bob.json("bridge", "key", "show")["fingerprint"]
    error = calling(ada, "msg_send", to="bob", body="Two.")
    assert (error["code"], error["pinned"], error["offered"]) == ("peer_key_changed", old, new)
    assert "folkmoot bridge peers accept @bob" in error["error"]

    ada.fails("bridge", "peers", "accept", "@bob", "--fingerprint", old, told="another key")
    assert "no terminal" in ada("bridge", "peers", "accept", "bob", given="").err
    accepted = ada("bridge", "peers", "accept", "@bob", "--fingerprint", new.replace(" ", ""))
    assert accepted.out == f"@bob is trusted with {new}.\n"
    assert ada("bridge", "peers", "accept", "@bob", "--fingerprint", old).code == ExitCode.FAILED
    sent = calling(ada, "msg_send", to="bob", body="Three.")
    assert sent["bridge"] == {"mode": "e2e", "verified": True, "key": "verified"}
    bodies = [it["body"] for it in calling(bob, "msg_inbox")["messages"]]
    assert bodies == ["Three.", "One."]
    shown = ada("bridge", "peers", "list").out.splitlines()
    assert [line.split("  ")[1] for line in shown] == [new, old]
    assert [line.split("  ")[2] for line in shown] == ["verified", "verified"]
    assert ada("bridge", "peers", "forget", "bob", "--yes").out == "@bob is forgotten.\n"
    assert "Nobody" in ada("bridge", "peers", "list").err
    file = Path(ada.environ["FOLKMOOT_CREDENTIALS"])
    file.write_text(re.sub(r"sk_[0-9a-f]{64}", "sk_" + "0" * 64, file.read_text()))
    ended = ada("bridge", given="")
    assert (ended.code, ended.out) == (ExitCode.SIGNED_OUT, "")


def test_a_passphrase_is_read_from_a_descriptor():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(f"{WORDS}\n")
    assert asked_passphrase(reading, twice=True) == WORDS
    os.close(reading)
    with pytest.raises(typer.BadParameter, match="cannot be read"):
        asked_passphrase(reading, twice=True)


def test_the_bridge_says_in_one_line_why_it_does_not_start(cli, tmp_path):
    credentials = tmp_path / "credentials.json"
    given = {"FOLKMOOT_CREDENTIALS": str(credentials), "XDG_STATE_HOME": str(tmp_path)}
    ran = cli("bridge", **given)
    assert (ran.code, ran.out) == (ExitCode.SIGNED_OUT, "")
    login = {"hub": "http://127.0.0.1:9", "handle": "ada", "token": "sk_" + "0" * 64}
    credentials.touch(0o600)
    credentials.write_bytes(msgspec.json.encode({"accounts": [login]}))
    (tmp_path / "folkmoot").mkdir()
    ledger = tmp_path / "folkmoot" / "bridge.db"
    ledger.touch()
    ledger.chmod(0o666)
    cli.fails("bridge", told="chmod 600", **given)
    for group in ("key", "peers"):
        assert cli("bridge", group, **given).code == ExitCode.USAGE
    assert os.listdir(tmp_path / "folkmoot") == ["bridge.db"]  # noqa: PTH208
