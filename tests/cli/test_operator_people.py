"""`folkmoot people`, `rooms` and `audit`: what an operator sees and does, running hub or not."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from typing import Any

import pytest
from websockets.asyncio.client import connect

from folkmoot.cli.output import ExitCode
from folkmoot.core import errors as e
from tests.harness import ask
from tests.mcp_harness import INITIALIZE, both_eras, meeting
from tests.operator import ask_socket


def test_an_operator_is_made_and_unmade_while_no_hub_runs(cli, data):
    told = "@alice is an operator from the next time they sign in.\n"
    assert cli("people", "operator", "alice") == (0, told, "")
    assert cli("people", "operator", "@Alice").out == "@alice is already an operator.\n"
    assert re.search(r"^State +operator$", cli("people", "show", "alice").out, re.MULTILINE)
    rows = [line.split() for line in cli("people").out.splitlines()]
    assert ["operator" in row for row in rows] == [True, False]
    assert cli("people", "operator", "alice", "--no").out == "@alice is no longer an operator.\n"
    assert cli("people", "operator", "alice", "--no").out == "@alice is not an operator.\n"
    assert cli("people", "operator", "nobody").code == ExitCode.FAILED
    lines = cli.json("audit", "--by", "operator")["lines"]
    assert [it["action"] for it in lines] == ["account.operator_set", "account.operator_unset"]


def test_everything_works_while_no_hub_runs(cli, data):
    rows = [line.split() for line in cli("people").out.splitlines()]
    assert [row[:2] for row in rows] == [["@alice", "person"], ["@robot", "agent"]]
    shown = cli("people", "show", "alice").out
    assert re.search(r"^Handle +@alice$", shown, re.MULTILINE)
    assert re.search(r"^Mail +0 .* of 1\.0 GiB$", shown, re.MULTILINE)
    assert cli.json("people", "show", "@robot")["account_type"] == "agent"
    (token,) = cli.json("tokens", "list", "--for", "robot")
    assert cli("tokens", "list", "--for", "robot").out.startswith(token["id"][:10])
    ran = cli("tokens", "revoke", token["id"][:10], "--for", "@robot")
    assert ran.out == f"Revoked {token['id'][:10]} of @robot.\n"
    assert cli("tokens", "list", "--for", "robot").err == "@robot has no tokens.\n"
    told = "@robot is suspended. 'folkmoot people restore robot' undoes it.\n"
    assert cli("people", "suspend", "@Robot", "--reason", "It loops.") == (0, told, "")
    assert "has been suspended since" in cli("people", "suspend", "robot").out
    shown = cli.json("people", "list", "--suspended")["people"]
    assert [it["handle"] for it in shown] == ["robot"]
    assert cli("people", "restore", "robot").out == "@robot is restored.\n"
    assert cli("people", "restore", "robot").out == "@robot is not suspended.\n"
    ran = cli("people", "remove", "robot", "--yes")
    assert ran.out.startswith("Removed @robot.")
    assert [line.split()[0] for line in cli("people").out.splitlines()] == ["@alice"]
    (room,) = cli.json("room", "list", "--all")["rooms"]
    assert (room["name"], room["owner"], room["access"]) == ("square", "alice", "private")
    assert cli("room", "list", "--all").out.split()[:3] == ["square", "@alice", "private"]
    lines = cli.json("audit", "--by", "operator")["lines"]
    assert [(it["action"], it["about"], it.get("detail")) for it in lines] == [
        ("token.revoked", "(deleted)", {"detail": token["id"]}),
        # The lines from before its account was deleted name it no more.
        ("account.suspended", "(deleted)", {"detail": "It loops."}),
        ("account.restored", "(deleted)", None),
        ("account.removed", "robot", None),
    ]
    told = cli("audit", "--action", "account.s*").out
    assert told.split()[2:] == ["account.suspended", "operator", "(deleted)", "It", "loops."]
    ran = cli("audit", "--by", "operator", "--export", "lines.jsonl")
    assert (ran.code, ran.out) == (0, "Wrote 4 audit lines to lines.jsonl.\n")
    file = data.parent / "lines.jsonl"
    assert [json.loads(line) for line in file.read_text().splitlines()] == lines
    assert file.stat().st_mode & 0o777 == 0o600
    assert "already exists" in cli("audit", "--export", "lines.jsonl").err


def test_audit_lines_are_found_by_outcome_text_and_time_and_followed_as_they_come(start_hub, cli):
    start_hub()
    for handle in ("ann", "bob"):
        assert cli("people", "add", handle, "--no-keep").code == 0

    def found(*options: str) -> list[str]:
        lines = cli.json("audit", *options)["lines"]
        return [line["about"] for line in lines]

    assert found("--text", "nn") == ["ann"]
    assert found("--until", "1h") == found("--outcome", "error") == []
    following = cli.begin("audit", "--follow", "--text", "b")
    assert following.stdout.readline().split()[2:] == ["account.added", "operator", "bob"]
    assert cli("people", "suspend", "bob", "--reason", "Loops").code == 0
    told = following.stdout.readline().split()[2:]
    assert told == ["account.suspended", "operator", "bob", "Loops"]
    following.send_signal(signal.SIGINT)
    assert following.communicate(timeout=60) == ("", "")
    assert following.wait() == 0


def test_on_a_narrow_terminal_nothing_is_cut_and_numbers_are_named(cli, data):
    shown = re.sub(r"\x1b\[\d+m", "", cli.shown("people", columns=40))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines[0].startswith("@alice  person  20")
    assert (lines[1], lines[2]) == ("    rooms 1  mail 0 bytes", "    in rooms 0 bytes")
    assert all(len(line) <= 40 for line in lines)


def test_the_operator_makes_the_first_account_whatever_is_set(start_hub, cli, tmp_path):
    keys = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "keys.json")}
    closed = {"FOLKMOOT_REGISTRATION": "closed", "FOLKMOOT_RATES_REGISTER_PER_HOUR": "1"}
    hub = start_hub(FOLKMOOT_HOST="0.0.0.0", **closed)
    here = hub.url.replace("0.0.0.0", "127.0.0.1")
    assert "Set up this hub: " in hub.said
    for handle in ("admin", "bob"):
        ran = cli("people", "add", handle, **keys)
        assert (ran.code, ran.err) == (0, ""), handle
        assert f"You are @{handle} on {here}." in ran.out
    whoami = cli("account", "whoami", "--as", "bob", "--json", **keys)
    assert json.loads(whoami.out)["handle"] == "bob"
    ran = cli("people", "add", "robot", "--agent", "--no-keep", "--json", **keys)
    assert json.loads(ran.out)["token"].startswith("sk_")
    ran = cli("people", "add", "unkept", "--no-keep", **keys)
    assert ran.out.endswith("anyone who has one can act as you. They are not shown again.\n")
    kept = json.loads((tmp_path / "keys.json").read_text())["accounts"]
    assert [it["handle"] for it in kept] == ["admin", "bob"]
    actions = [it["action"] for it in cli.json("audit")["lines"]]
    assert actions == ["account.added"] * 4
    assert cli("people", "suspend", "bob").code == 0
    for command in (("inbox", "--as", "bob"), ("account", "recover", "bob", "--url", here)):
        told = "folkmoot: error: This account is suspended. Ask the operator of the hub.\n"
        cli.fails(*command, told=told, code=ExitCode.SIGNED_OUT, **keys)


@pytest.mark.requirement("credentials.operate")
def test_the_operator_creates_a_token_for_someone_and_the_audit_log_has_it(cli, data):
    wanted = ("tokens", "create", "--for", "@Alice", "--scope", "operate", "--label", "deploys")
    out = cli.says(*wanted)
    assert re.match(r"Token  sk_[0-9a-f]{64}\nID     c_[0-9a-f]{8}\nScope  operate\n", out)
    assert "can act as @alice within its scope. It is not shown again." in out
    (line,) = cli.json("audit", "--action", "token.*")["lines"]
    assert (line["by"], line["about"]) == ("operator", "alice")
    assert cli.json(*wanted)["scope"] == "operate"
    cli("people", "suspend", "robot")
    told = "@robot is suspended. Restore the account first."
    cli.fails("tokens", "create", "--for", "robot", told=told)


@both_eras
async def test_a_suspended_account_is_out_at_once_and_told_why(era, tmp_path):
    async def refused(person: Any) -> str:
        try:
            payload, is_error = await person.result("msg/inbox", {})
        except Exception as error:  # noqa: BLE001 - the stateless era answers 401
            return str(error)
        assert is_error
        return str(payload["error"])

    async with meeting(tmp_path, era) as there:
        alice, bob = await there.people("alice", "bob")
        socket = tmp_path / "control.sock"
        await alice.call("room/create", name="square")
        url = f"ws://127.0.0.1:{there.port}/ws?room=square&token={alice.token}"
        async with connect(url) as live:
            await live.recv()
            told = await asyncio.to_thread(
                ask_socket, socket, "folkmoot/suspend", {"handle": "alice"}
            )
            assert told["changed"]
            await live.wait_closed()
            assert live.close_code == 4401
        sentence = e.AccountSuspended.sentence
        assert await refused(alice) == sentence
        assert (await there.post(INITIALIZE, query=f"?token={alice.token}")).status == 200
        bearer = {"authorization": f"Bearer {alice.token}"}
        answer = await ask(there.port, "/v1/rooms", headers=bearer)
        assert (answer.status, answer.json()["error"]["code"]) == (401, "account_suspended")
        stranger = await there.stranger()
        recovering = {"handle": "alice", "recovery_code": alice.recovery_code}
        assert await stranger.refused("msg/recover", **recovering) == sentence
        assert (await bob.call("msg/send", to="alice", body="It waits."))["to"] == "alice"
        await asyncio.to_thread(ask_socket, socket, "folkmoot/restore", {"handle": "alice"})
        back = await there.returning(alice.token)
        (message,) = (await back.call("msg/inbox"))["messages"]
        assert message["body"] == "It waits."
        (room,) = (await back.call("room/list"))["rooms"]
        assert room["role"] == "owner"


async def test_removing_someone_takes_their_mail_and_their_place_in_rooms(tmp_path):
    async with meeting(tmp_path) as there:
        alice, bob = await there.people("alice", "bob")
        socket = tmp_path / "control.sock"
        await alice.call("msg/send", to="bob", body="Hello.")
        await alice.call("room/create", name="square")
        await asyncio.to_thread(ask_socket, socket, "folkmoot/remove_person", {"handle": "alice"})
        assert (await bob.call("msg/inbox"))["messages"] == []
        listed = await asyncio.to_thread(ask_socket, socket, "folkmoot/rooms", {})
        assert [(it["name"], it["owner"]) for it in listed["rooms"]] == [("square", None)]
        with pytest.raises(e.FolkmootError, match="Nobody has the handle @alice"):
            await asyncio.to_thread(ask_socket, socket, "folkmoot/restore", {"handle": "alice"})
