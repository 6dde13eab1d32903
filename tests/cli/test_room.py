"""The room commands that ask once: rooms, rights, proposals, history and guests."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.cli.room import COMMANDS, options
from folkmoot.rooms import model, spec
from folkmoot.rooms.machine import ProposalStatus
from tests.cli.conftest import Ran
from tests.cli.roomers import post, propose
from tests.cli.scripted import answering

INVITATION = re.compile(r"gi_[0-9a-f]{64}\n")


def refused(ran: Ran, *sentences: str, code: ExitCode = ExitCode.FAILED) -> None:
    lines = [f"folkmoot: error: {sentence}\n" for sentence in sentences]
    assert ran == (code, "", "".join(lines))


def test_a_room_is_made_listed_shown_changed_and_deleted(ada, bob):
    assert ada("room") == (0, "", "No rooms yet. 'folkmoot room create NAME' makes one.\n")
    made = ada(
        "room", "create", "planning", "--access", "invite", "--capability", "chat.*",
        "--grant", "@Bob=mcp.request.ping", "--grant", 'bob={"kind": "mcp.request.tools/call"}',
        "--quorum", "2", "--proposal-seconds", "60", "--keep-days", "7",
    )  # fmt: skip
    assert made.out == (
        "Created the room planning, for invited people only.\nTo enter it: folkmoot "
        "room join planning\n"
    )
    assert ada("room", "list").out == "planning  invite  owner  0    @ada\n"
    assert bob("room").out == "planning  invite  -  0  invited  @ada\n"
    room = ada.json("room", "show", "planning")
    assert room["capabilities"] == ["chat.*"]
    assert room["grants"] == {"bob": ["mcp.request.ping", {"kind": "mcp.request.tools/call"}]}
    assert room["policy"] == {
        "quorum": 2, "proposal_seconds": 60, "request_seconds": 300, "keep_messages": 100_000,
        "keep_days": 7, "progress_seconds": 3600, "loop_guard": 30,
    }  # fmt: skip
    shown = re.sub(" +", " ", ada("room", "show", "planning").out).splitlines()
    assert {
        "Proposals wait 1 min 0 s", "Keeps them 7 days", "Members can chat.*",
        "Loop guard after 30 answers between agents",
    } <= set(shown)  # fmt: skip
    assert any(line.startswith('@bob mcp.request.ping, {"kind"') for line in shown)

    more = ("--grant", "ada=chat.*", "--loop-guard", "0", "--progress-seconds", "60")
    assert ada("room", "change", "planning", *more).out == "Changed the room planning.\n"
    room = ada.json("room", "show", "planning")
    assert sorted(room["grants"]) == ["ada", "bob"]
    assert (room["policy"]["loop_guard"], room["policy"]["progress_seconds"]) == (0, 60)
    changed = ada("room", "change", "planning", "--access", "private", "--ungrant", "bob")
    assert changed.out == "Changed the room planning.\n"
    assert ada.json("room", "show", "planning")["grants"] == {"ada": ["chat.*"]}
    stranger = "owners: bob is not a member of the room; they must join it first."
    refused(ada("room", "change", "planning", "--owner", "bob"), stranger)
    assert ada("room", "delete", "planning", "--yes").out == "Deleted the room planning.\n"
    refused(ada("room", "show", "planning"), "There is no such room.")


def test_a_room_in_memory_says_so(ada):
    assert ada.json("room", "create", "passing", "--memory")["durable"] is False
    assert "in memory only" in ada("room", "show", "passing").out


def test_something_is_said_and_read_again_page_by_page(room, ada, bob):
    assert ada("room", "say", "planning", "one").out == "Sent to planning, as message 1.\n"
    assert bob("room", "say", "planning", "-", given="two\n\x1b[2Jlines\n").code == 0
    said = ada.json("room", "say", "planning", "**three**", "--markdown", "--to", "bob")
    assert (said["seq"], said["to"], said["payload"]["format"]) == (3, ["bob"], "markdown")

    lines = ada("room", "history", "planning").out.splitlines()
    assert [line.split(" ", 4)[0::2] for line in lines] == [
        ["1", "ada", "one"], ["2", "bob", "two\\x0a\\x1b[2Jlines"], ["3", "ada", "**three**"],
    ]  # fmt: skip
    assert {line.split(" ")[3] for line in lines} == {"chat.message"}
    latest = ada("room", "history", "planning", "--limit", "2")
    assert latest.out.startswith("2 ")
    assert latest.err == "More: --before 2\n"
    assert ada("room", "history", "planning", "--before", "2").out.startswith("1 ")
    first = ada("room", "history", "planning", "--after", "0", "--limit", "1")
    assert (first.out[0], first.err) == ("1", "More: --after 1\n")
    whole = ada.json("room", "history", "planning")
    assert [it["payload"]["text"] for it in whole["messages"]] == [
        "one", "two\n\x1b[2Jlines", "**three**",
    ]  # fmt: skip
    assert ada("room", "history", "planning", "--after", "3").err == "No messages.\n"


def test_a_long_history_is_fetched_in_as_many_pages_as_it_takes(room, ada):
    for number in range(1, 131):
        post(ada, "planning", "chat.message", {"text": f"number {number}"})
    whole = ada.json("room", "history", "planning", "--limit", "1000")["messages"]
    assert [it["seq"] for it in whole] == list(range(1, 131))
    onwards = ada.json("room", "history", "planning", "--limit", "120", "--after", "5")["messages"]
    assert [it["seq"] for it in onwards] == list(range(6, 126))


def test_rights_are_granted_to_one_who_is_here_and_taken_back(room, ada, bob):
    absent = "The participant who is named is not in the room."
    refused(ada("room", "grant", "planning", "bob", "mcp.request.*"), absent)
    with bob.begin("room", "join", "planning") as joined:
        assert "system.presence.join bob joined" in joined.stdout.readline()
        granted = ada("room", "grant", "planning", "@Bob", "mcp.request.*", "room.invite")
        assert granted.out == "bob can now: mcp.request.*, room.invite\n"
        grant = granted.err.split()[-1]
        assert bob("room", "invite", "planning", "ada").code == 0
        assert ada("room", "revoke", "planning", "bob", "room.invite").code == 0
        assert bob("room", "invite", "planning", "ada").code == ExitCode.FAILED
        assert ada("room", "revoke", "planning", grant).out == f"Revoked from {grant}.\n"
        joined.stdin.close()
        assert joined.wait(60) == 0
    refused(ada("room", "revoke", "planning", "bob"), "There is no such grant in the room.")
    kicked = ada("room", "kick", "planning", "@Bob", "--reason", "Noise.")
    assert (kicked.out, kicked.err) == ("Removed bob from planning.\n", "")
    refused(bob("room", "say", "planning", "Why?"), "You were removed from this room.")


def test_one_who_may_not_is_told_what_is_allowed(ada, bob):
    ada("room", "create", "planning", "--capability", "chat.*", "--capability", "mcp.proposal.*")
    bob("room", "say", "planning", "hi")
    refused(
        bob("room", "grant", "planning", "ada", "chat.*"),
        "You have no permission for capability.grant.",
        "you can: chat.*, mcp.proposal.*",
    )
    refused(bob("room", "delete", "planning", "--yes"), "Only an owner of the room may do this.")


def test_a_proposal_is_listed_and_decided_by_its_number_or_id(room, ada, bob):
    assert ada("room", "proposals", "planning") == (0, "", "No proposals.\n")
    with bob.begin("room", "join", "planning") as joined:
        joined.stdout.readline()
        propose(bob, "planning", "one", to=["bob"])
        second = propose(bob, "planning", "two")
        third = propose(bob, "planning", "three")
        listed = ada("room", "proposals", "planning", "--state", "open").out.splitlines()
        assert [line.split()[0] for line in listed] == ["4", "3", "2"]
        wanted = ["open", "bob", "bob", 'delete_file path: "one"']
        assert re.split(" {2,}", listed[-1])[1:] == wanted
        approved = ada("room", "approve", "planning", "2", "--wait", "0")
        assert (approved.code, approved.out) == (0, "")
        assert approved.err.startswith("Approved #2. bob has not answered yet;")
        which = second["id"]
        ada.fails("room", "approve", "planning", which, told="--to is needed", code=ExitCode.USAGE)
        asked = ada.json("room", "approve", "planning", which, "--to", "@bob", "--wait", "0")
        assert (asked["id"], asked["state"], asked["to"]) == (which, "fulfilled", "bob")
        rejected = ada("room", "reject", "planning", "#4", "Keep it.")
        assert rejected.out == "Rejected, as message 7.\n"
        again = ada("room", "reject", "planning", third["id"], "No.")
        refused(again, "The proposal is already rejected.")
        refused(ada("room", "approve", "planning", "2"), "The proposal is already fulfilled.")
        refused(ada("room", "approve", "planning", "99"), "There is no proposal 99 in the room.")
        begun = ada("room", "approve", "planning", which[:30], "--to", "bob")
        refused(begun, "The proposal is already fulfilled.")
        joined.stdin.close()
        assert joined.wait(60) == 0


def test_asks_show_ids_that_approve_takes_with_times_arguments_target_and_reason(room, ada, bob):
    with bob.begin("room", "join", "planning") as joined:
        joined.stdout.readline()
        for path in ("one", "two", "three"):
            params = {"name": "delete_file", "arguments": {"path": path}}
            payload = {"method": "tools/call", "params": params, "reason": f"It is\n{path}."}
            post(bob, "planning", "mcp.proposal.tools/call", payload, to=["bob"])
        rows = [re.split(" {2,}", line) for line in ada("asks").out.splitlines()]
        assert sorted(row[0] for row in rows) == ["2", "3", "4"]
        row = next(row for row in rows if row[0] == "3")
        day = r"\d{4}-\d\d-\d\d \d\d:\d\d"
        assert row[1:5] == ["unknown", "bob", "bob", "planning"]
        assert re.fullmatch(day, row[5])
        assert re.fullmatch(day, row[6])
        assert row[7:] == ["delete_file path=two", "It is\\x0atwo."]
        assert ada("room", "approve", row[4], row[0], "--wait", "0").err.startswith("Approved #3.")
        assert re.match(day, ada("decisions").out)
        listed = ada("room", "proposals", "planning", "--state", "open").out
        assert 'delete_file path: "one"; because "It is\\none."' in listed
        joined.stdin.close()
        assert joined.wait(60) == 0


def test_a_number_names_the_proposal_with_this_number_whatever_the_ids_of_others(room, ada, bob):
    propose(bob, "planning", "one")
    propose(bob, "planning", "two", id="1")
    assert ada("room", "reject", "planning", "1", "No.").code == 0
    states = {
        it["seq"]: it["state"] for it in ada.json("room", "proposals", "planning")["proposals"]
    }
    assert states == {1: "rejected", 2: "open"}


def test_a_proposal_is_withdrawn_by_the_one_who_made_it(room, ada, bob):
    propose(bob, "planning", "one")
    refused(ada("room", "withdraw", "planning", "1"), "Only the proposer can withdraw a proposal.")
    assert bob("room", "withdraw", "planning", "#1").out == "Withdrawn, as message 2.\n"
    refused(bob("room", "withdraw", "planning", "1"), "The proposal is already withdrawn.")
    refused(bob("room", "withdraw", "planning", "9"), "There is no proposal 9 in the room.")


def test_those_who_are_here_and_are_named_with_an_at_are_mentioned(room, ada, bob):
    with bob.begin("room", "tail", "planning") as present:
        present.stdout.readline()
        said = ada.json("room", "say", "planning", "@Bob, @carl and a@bob: ask @bob.")
        assert said["payload"]["mentions"] == ["bob"]
        assert "mentions" not in ada.json("room", "say", "planning", "@carl?")["payload"]
        present.kill()


def test_a_room_in_which_nothing_was_said_has_no_messages(room, ada, bob):
    shown = ada("room", "show", "planning").out
    assert re.search(r"^Messages +none$", shown, re.MULTILINE)
    assert re.search(r"^Rejections +1 closes a proposal$", shown, re.MULTILINE)
    ada("room", "say", "planning", "Hello.")
    assert re.search(r"^Messages +1 to 1$", ada("room", "show", "planning").out, re.MULTILINE)
    with ada.at_terminal("room", "show", "planning", columns=40, rows=40) as terminal:
        terminal.wait_for("Keeps them      forever")
        rows = [row.rstrip() for row in terminal.rows]
    at = rows.index("                mcp.request.tools/list,")
    assert rows[at + 1] == "                mcpx.withdraw.proposal,"
    bob("room", "say", "planning", "Hello @ada.")
    bob("room", "say", "planning", "Are you there?")
    assert "@1 2 unread" in ada("room", "list").out
    ada("room", "create", "cellar", "--access", "private")
    ada("room", "invite", "cellar", "bob")
    assert re.search("^cellar .* invited", bob("room", "list").out, re.MULTILINE)
    with ada.at_terminal("room", "list", columns=44) as terminal:
        terminal.wait_for("new @1 2 unread")


@pytest.mark.requirement("room.guest-once", "room.guest-secret")
@pytest.mark.parametrize("way", ["stdin", "environment", "terminal"])
def test_a_guest_comes_in_with_an_invitation_once_and_later_without(hub, ada, cli, tmp_path, way):
    ada("room", "create", "planning", "--access", "invite")
    invited = ada("room", "invite", "planning", "--guest", "grace", "--grant", "mcp.proposal.*")
    assert INVITATION.fullmatch(invited.out)
    assert f"folkmoot room join planning --invitation --url {hub.url}\n" in invited.err
    token = invited.out.strip()
    assert f"  {hub.url}/rooms/planning#invite={token}\n" in invited.err

    file, grace = tmp_path / "grace.json", cli.someone("grace")
    join = ("room", "join", "planning", "--invitation", "--url", hub.url)
    if way == "stdin":
        came = grace(*join, given=f"{token}\nGood morning.\n")
        assert "grace chat.message Good morning." in came.out
    elif way == "environment":
        came = grace(*join, given="Good morning.\n", FOLKMOOT_INVITATION=token)
        assert "grace chat.message Good morning." in came.out
    else:
        with grace.at_terminal(*join) as terminal:
            terminal.wait_for("Invitation:").wait_for(lambda it: not it.echoes)
            terminal.type(f"{token}\r")
            terminal.wait_for("live").type("Good morning.\r")
            terminal.wait_for("grace: Good morning.").type("\x03")
            assert terminal.end() == 0
            assert token.encode() not in terminal.raw

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads(file.read_text())["guests"]
    assert [(it["room"], it["name"]) for it in kept] == [("planning", "grace")]
    assert kept[0]["credential"].startswith("gk_")
    assert grace("room", "say", "planning", "Me again.").code == 0
    assert "grace chat.message Me again." in ada("room", "history", "planning").out
    grace.fails(*join, told="folkmoot: error: The invitation ", given=f"{token}\n")
    assert grace("room", "list").code == ExitCode.SIGNED_OUT
    assert ada("room", "delete", "planning", "--yes").code == 0
    gone = grace("room", "say", "planning", "Still here?")
    assert gone.code in {ExitCode.FAILED, ExitCode.SIGNED_OUT}
    log = hub.stop().err
    assert token not in log
    assert kept[0]["credential"] not in log


def test_someone_is_invited_by_handle(ada, bob):
    ada("room", "create", "planning", "--access", "private")
    refused(bob("room", "say", "planning", "hi"), "There is no such room.")
    assert ada("room", "invite", "planning", "@Bob").out == "Invited @bob to planning.\n"
    assert bob("room", "say", "planning", "hi").code == 0
    refused(ada("room", "invite", "planning", "nobody"), "User not found.")


def test_a_room_is_deleted_only_by_one_who_types_its_name(room, ada):
    told = "there is no terminal to ask for confirmation; use --yes"
    ada.fails("room", "delete", "planning", told=told, code=ExitCode.USAGE)
    with ada.at_terminal("room", "delete", "planning") as terminal:
        terminal.wait_for("Type its name to confirm").type("plannin\r")
        assert terminal.end() == ExitCode.FAILED
        assert "Nothing was deleted." in terminal.text
    with ada.at_terminal("room", "delete", "planning") as terminal:
        terminal.wait_for("Type its name to confirm").type("planning\r")
        assert terminal.end() == 0
    assert ada("room", "list").err.startswith("No rooms yet.")


def test_history_on_a_terminal_has_colours_and_in_a_pipe_has_none(room, ada):
    ada("room", "say", "planning", "Look, @ada!")
    with ada.at_terminal("room", "history", "planning", columns=40) as terminal:
        assert terminal.end() == 0
        assert terminal.rows[1] == "  Look, @ada!"
        assert terminal.style_of("@ada!").reverse
        assert terminal.style_of("ada ").fg not in ("default", "")
    assert "\x1b" not in ada("room", "history", "planning").out


def test_a_name_and_its_choices_are_those_of_the_hub():
    assert (options.ROOM_NAME, options.ACCESS) == (spec.ROOM_NAME, model.ACCESS)
    assert tuple(state.value for state in ProposalStatus) == options.STATES


QUICK = [
    ["list"], ["create", "x"], ["show", "x"], ["join", "x"], ["say", "x", "y"], ["tail", "x"],
    ["history", "x"], ["invite", "x", "bob"], ["grant", "x", "bob", "a.b"], ["revoke", "x", "bob"],
    ["kick", "x", "bob"], ["invites", "x"], ["uninvite", "x", "1"],
    ["proposals", "x"], ["approve", "x", "1"], ["reject", "x", "1", "no"], ["withdraw", "x", "1"],
    ["change", "x", "--quorum", "2"], ["delete", "x", "--yes"],
    ["tools", "planning"], ["call", "planning", "f"], ["propose", "planning", "f", "a=1"],
]  # fmt: skip


def test_every_command_is_among_those_tried():
    assert {words[0] for words in QUICK} == set(COMMANDS)


@pytest.mark.parametrize("arguments", [["inbox"], *(["room", *words] for words in QUICK)])
def test_without_an_account_every_command_says_how_to_get_one(cli, tmp_path, arguments):
    ran = cli.fails(*arguments, told="folkmoot register HANDLE", code=ExitCode.SIGNED_OUT)
    assert ran.err.startswith("folkmoot: error: You are not signed in.")
    assert (ran.err.count("\n"), list(tmp_path.iterdir())) == (1, [])


def keep_account(folder: Path, url: str) -> str:
    file = folder / "ada.json"
    file.touch(0o600)
    login = {"hub": url, "handle": "ada", "token": f"sk_{'0' * 64}"}
    file.write_text(json.dumps({"accounts": [login]}))
    return str(file)


@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_without_a_hub_every_command_says_where_none_answers(cli, tmp_path, arguments):
    file = keep_account(tmp_path, "http://127.0.0.1:1")
    told = "http://127.0.0.1:1: no hub answers there (connection refused).\n"
    if arguments[0] in {"join", "tail"}:
        told = "ws://127.0.0.1:1/ws: no hub can be reached there ("
    given = {"FOLKMOOT_CREDENTIALS": file}
    ran = cli.fails("room", *arguments, told=told, code=ExitCode.UNREACHABLE, **given)
    assert ran.err.count("\n") == 1


def test_with_a_token_that_is_none_every_command_says_how_to_get_another(hub, cli, tmp_path):
    file = keep_account(tmp_path, hub.url)
    for arguments in QUICK:
        ran = cli("room", *arguments, FOLKMOOT_CREDENTIALS=file)
        assert (arguments, ran.code, ran.out) == (arguments, ExitCode.SIGNED_OUT, "")
        assert ran.err == (
            "folkmoot: error: The hub does not accept the saved token; 'folkmoot account recover "
            "HANDLE' gets a new one, or 'folkmoot login URL' signs you in with a browser.\n"
        )


def test_an_unknown_room_is_one_line_whatever_is_asked_of_it(ada):
    for arguments in QUICK[2:]:
        refused(ada("room", *arguments), "There is no such room.")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"[]", "the hub's answer cannot be understood."),
        (200, b"<html>", "what answers there (200) is not a hub. Is the address right?"),
        (500, b"{}", "the hub's answer cannot be understood."),
        (404, b'{"error": 1}', "the hub's answer cannot be understood."),
        (403, b'{"error": {"message": "No.\\u001b[2J"}}', "No.\\x1b[2J"),
    ],
)
def test_an_answer_that_is_none_of_a_hub_is_one_safe_line(cli, tmp_path, status, body, message):
    with answering(status, body) as url:
        ran = cli("room", "show", "x", FOLKMOOT_CREDENTIALS=keep_account(tmp_path, url))
    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert ran.err.endswith(f"{message}\n")
    assert len(ran.err.splitlines()) == 1
