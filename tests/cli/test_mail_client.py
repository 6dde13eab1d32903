"""The command line as a client of a hub that answers what a test wrote down."""

from __future__ import annotations

import json
import re
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.cli.client import HubClient
from folkmoot.cli.credentials import Keyring, Login, write
from folkmoot.cli.output import ExitCode, lines, moment, one_line
from folkmoot.client.http import hub_url
from folkmoot.core import errors as e
from tests.cli.conftest import Cli
from tests.cli.scripted import Scripted, answering, scripted_hub

TOKEN = f"sk_{'ab' * 32}"
NEW_TOKEN = f"sk_{'cd' * 32}"
CODE = "AB3K-9TW2-HNPQ"
ESCAPE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe"
MESSAGE = {
    "id": "550e8400-e29b-41d4-a716-446655440000", "thread_id": "t", "from_handle": "bob",
    "to_handle": "ada", "body": "Hello\nAda", "priority": "normal",
    "encryption_mode": "server_assisted", "reply_to": None, "created_at": 1711411200,
}  # fmt: skip


@pytest.fixture(scope="module")
def serving() -> Iterator[Scripted]:
    with scripted_hub() as hub:
        yield hub


@pytest.fixture
def hub(serving: Scripted) -> Scripted:
    serving.answers = {
        "msg/register": {"handle": "ada", "token": TOKEN, "recovery_code": CODE, "public_key": "k"},
        "msg/recover": {"handle": "ada", "token": NEW_TOKEN},
        "msg/whoami": {"handle": "ada", "display_name": "Ada", "privacy": "public"},
    }
    serving.refusals = {}
    serving.asked.clear()
    return serving


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "config" / "folkmoot" / "credentials.json"


@pytest.fixture
def ada(cli: Cli, hub: Scripted) -> Cli:
    """The command of someone who has registered as @ada."""
    assert cli("register", "@Ada", "--url", hub.url).code == 0
    hub.asked.clear()
    return cli


def test_register_shows_the_secrets_once_and_keeps_them_for_the_owner_alone(cli, hub, keys):
    out = cli.says("register", "@Ada", "--invite", "an-invite", "--url", f"{hub.url}/mcp/")
    kept = "'folkmoot account token ada' shows the token again. The recovery code is"
    for said in (TOKEN, CODE, "Keep both in a safe place: anyone who has one can act as you", kept):
        assert said in out
    assert cli("account", "token", "ada").out == f"{TOKEN}\n"
    assert out.endswith("Next: 'folkmoot connect CLIENT' adds the hub to your assistant, as you.\n")
    assert hub.asked == [("msg/register", {"handle": "ada", "invite_code": "an-invite"}, None)]
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.parent.stat().st_mode) == 0o700
    assert json.loads(keys.read_text()) == {
        "accounts": [{"hub": hub.url, "handle": "ada", "token": TOKEN, "recovery_code": CODE}]
    }
    for command in (["whoami"], ["list"], ["list", "--json"], ["whoami", "--json"]):
        later = cli("account", *command)
        assert later.code == 0
        assert TOKEN not in later.out + later.err
        assert CODE not in later.out + later.err


def test_register_for_a_program_answers_json(cli, hub):
    kept = {"hub": hub.url, "handle": "ada", "token": TOKEN, "recovery_code": CODE}
    assert cli.json("register", "ada", "--agent", "--url", hub.url) == kept
    assert hub.asked[0].arguments == {"handle": "ada", "account_type": "agent"}


def test_credentials_that_cannot_be_kept_are_found_out_before_the_hub_makes_a_token(cli, hub, keys):
    keys.mkdir(parents=True)
    cli.fails("register", "ada", "--url", hub.url, told="is a directory")
    assert hub.asked == []


def test_recover_uses_the_code_that_was_kept(ada, hub, keys):
    ran = ada("account", "recover", "ada")
    assert ran.code == 0
    assert NEW_TOKEN in ran.out
    assert "connect CLIENT --force" in ran.out
    assert hub.asked[0].arguments == {"handle": "ada", "recovery_code": CODE}
    kept = json.loads(keys.read_text())["accounts"]
    assert kept == [{"hub": hub.url, "handle": "ada", "token": NEW_TOKEN, "recovery_code": CODE}]
    ada("account", "whoami")
    assert hub.asked[-1].authorization == f"Bearer {NEW_TOKEN}"


def test_recover_reads_the_code_from_the_standard_input(cli, hub):
    assert cli("account", "recover", "ada", "--url", hub.url, given=f"{CODE}\n").code == 0
    assert hub.asked[0].arguments == {"handle": "ada", "recovery_code": CODE}
    nothing = {"given": "", "told": "no recovery code", "code": ExitCode.USAGE}
    cli.fails("account", "recover", "bob", "--url", hub.url, **nothing)


@pytest.mark.long
def test_every_command_asks_for_the_operation_it_is(ada, hub):
    hub.answers |= {
        "msg/inbox": {"messages": []}, "msg/threads": {"threads": []}, "msg/send": {"to": "bob"},
        "msg/reply": {"to": "bob"}, "msg/contacts": {"contacts": []}, "msg/search_users": {},
        "msg/blocks": {"blocked": []},
        "msg/invite": {"invite_url": "http://h/invite/x"}, "msg/thread": {"messages": []},
        "msg/change_handle": {"new_handle": "ada2"},
    }  # fmt: skip
    name = MESSAGE["id"]
    table: list[tuple[list[str], str, dict[str, Any]]] = [
        (["inbox"], "msg/inbox", {"peek": True}),
        (["inbox", "--peek", "--wait", "3", "--limit", "7", "--cursor", "c"], "msg/inbox",
         {"limit": 7, "cursor": "c", "peek": True, "wait": 3}),
        (["send", "@Bob", "Hi", "--priority", "urgent"], "msg/send",
         {"to": "bob", "body": "Hi", "priority": "urgent"}),
        (["reply", name, "Yes"], "msg/reply", {"message_id": name, "body": "Yes"}),
        (["mail", "list", "--state", "muted"], "msg/threads", {"state": "muted"}),
        (["mail", "show", name, "--peek"], "msg/thread", {"thread_id": name, "peek": True}),
        (["mail", "contacts"], "msg/contacts", {}),
        (["mail", "contacts", "list"], "msg/contacts", {}),
        (["mail", "contacts", "add", "bob", "--nickname", "B"], "msg/add_contact",
         {"handle": "bob", "nickname": "B"}),
        (["mail", "contacts", "remove", "bob"], "msg/remove_contact", {"handle": "bob"}),
        (["mail", "block", "bob"], "msg/block", {"handle": "bob", "action": "block"}),
        (["mail", "unblock", "@bob@localhost"], "msg/block",
         {"handle": "bob", "action": "unblock"}),
        (["mail", "blocked"], "msg/blocks", {}),
        (["mail", "lookup", "bob"], "msg/lookup", {"handle": "bob"}),
        (["mail", "find", "b%b"], "msg/search_users", {"query": "b%b"}),
        (["invite", "--message", "Come"], "msg/invite", {"message": "Come"}),
        (["account", "profile", "--name", "A", "--bio", "", "--privacy", "private"],
         "msg/set_profile", {"display_name": "A", "bio": "", "privacy": "private"}),
        (["account", "profile"], "msg/whoami", {}),
        (["account", "change-handle", "ada2"], "msg/change_handle", {"new_handle": "ada2"}),
        (["account", "delete", "--yes"], "msg/delete_account", {"confirm": "ada2"}),
    ]  # fmt: skip
    for command, tool, arguments in table:
        hub.asked.clear()
        ran = ada(*command)
        assert ran.code == 0, ran
        assert hub.asked == [(tool, arguments, f"Bearer {TOKEN}")]
    assert ada("account", "whoami").code == ExitCode.SIGNED_OUT


@pytest.mark.requirement("crypto.mode-shown")
def test_mail_is_shown_with_who_when_how_it_was_encrypted_and_the_id_to_answer(ada, hub):
    new = {**MESSAGE, "unread": True}
    sealed = {**MESSAGE, "body": None, "encryption_mode": "e2e", "priority": "urgent"}
    broken = {**MESSAGE, "body": None, "error": "It was changed.", "unread": False}
    mine = {**MESSAGE, "from_handle": "ada", "to_handle": "bob", "body": "Hi"}
    hub.answers["msg/inbox"] = {"messages": [new, sealed, broken, mine], "next_cursor": "c9"}
    ran = ada("inbox")
    when = moment(MESSAGE["created_at"])
    assert ran.out.splitlines() == [
        f"@bob  {when}  new  server-assisted  550e8400",
        "    Hello",
        "    Ada",
        "",
        f"@bob  {when}  urgent  e2e  550e8400",
        "    (end-to-end encrypted: only the app or bridge that holds the key can read it)",
        "",
        f"@bob  {when}  server-assisted  550e8400",
        "    (It was changed.)",
        "",
        f"@ada → @bob  {when}  server-assisted  550e8400",
        "    Hi",
    ]
    assert ran.err == "\nMore: --cursor c9\n"
    assert ada.json("inbox") == hub.answers["msg/inbox"]


def test_what_the_inbox_showed_is_marked_as_read_and_nothing_else(ada, hub):
    new = [{**MESSAGE, "id": name, "thread_id": name[0], "unread": True} for name in ("a1", "a2")]
    seen = {**MESSAGE, "id": "b1", "thread_id": "b", "unread": False}
    hub.answers |= {
        "msg/inbox": {"messages": [*new, seen]},
        "msg/thread": {"messages": [new[0], seen]},
    }
    ada("inbox", "--peek")
    assert [it.operation for it in hub.asked] == ["msg/inbox"]
    hub.asked.clear()
    ada("inbox", "--json")
    assert [it[:2] for it in hub.asked[1:]] == [
        ("msg/mark_read", {"thread_id": "a", "message_ids": ["a1", "a2"]})
    ]
    hub.asked.clear()
    ada("mail", "show", str(MESSAGE["id"]))
    assert [it[:2] for it in hub.asked[1:]] == [
        ("msg/mark_read", {"thread_id": "a", "message_ids": ["a1"]})
    ]


def test_an_empty_inbox_says_so_where_no_program_reads(ada, hub):
    hub.answers["msg/inbox"] = {"messages": []}
    assert ada("inbox") == (0, "", "No mail.\n")
    assert ada("inbox", "--wait", "1") == (0, "", "No new mail.\n")


@pytest.mark.parametrize("on_terminal", [False, True], ids=["pipe", "terminal"])
def test_what_others_wrote_cannot_act_on_the_terminal(ada, hub, on_terminal):
    said = {"from_handle": ESCAPE, "body": f"a{ESCAPE}\nb\r\nc[bold red]", "id": ESCAPE}
    hostile = {**MESSAGE, **said}
    person = {"handle": ESCAPE, "display_name": ESCAPE, "bio": ESCAPE, "nickname": ESCAPE}
    hub.answers |= {
        "msg/inbox": {"messages": [hostile], "next_cursor": ESCAPE},
        "msg/threads": {"threads": [{"other_handle": ESCAPE, "last_message_body": ESCAPE}]},
        "msg/contacts": {"contacts": [person]},
        "msg/search_users": {"results": [person]},
        "msg/lookup": person,
        "msg/send": {"to": ESCAPE, "message_id": ESCAPE},
        "msg/invite": {"invite_url": ESCAPE},
    }
    hub.refusals["msg/block"] = ESCAPE
    commands = [
        ["inbox"], ["inbox", "--json"], ["mail", "list"], ["mail", "contacts"],
        ["mail", "find", "x"], ["mail", "lookup", "x"], ["mail", "lookup", "x", "--json"],
        ["send", "x", "y"], ["invite"], ["mail", "block", "x"],
    ]  # fmt: skip
    for command in commands:
        if on_terminal:
            shown = ada.shown(*command, NO_COLOR="1")
        else:
            ran = ada(*command)
            shown = ran.out + ran.err
        assert "owned" in shown
        for acting in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"):
            assert acting not in shown, command


def test_text_comes_from_the_standard_input(ada, hub):
    hub.answers["msg/send"] = {"to": "bob", "message_id": "m"}
    ran = ada("send", "bob", "-", given="Grüße,\nund mehr\n")
    assert (ran.code, ran.out) == (0, "Sent to @bob: m\n")
    assert hub.asked[0].arguments["body"] == "Grüße,\nund mehr"
    ada.fails("send", "bob", "-", told="not UTF-8", code=ExitCode.USAGE, given=b"\xff\xfe")


def test_a_conversation_is_found_by_the_name_of_the_other(ada, hub):
    hub.answers |= {
        "msg/threads": {"threads": [{"id": "t1", "other_handle": "cy"},
                                    {"id": "t2", "other_handle": "bob"}]},
        "msg/thread": {"messages": [MESSAGE]},
    }  # fmt: skip
    assert "Hello" in ada("mail", "show", "@Bob").out
    assert hub.asked[-1].arguments == {"thread_id": "t2", "peek": True}
    first = "a1b2c3d4-e29b-41d4-a716-446655440000"
    second = "a1b2c3d4-0000-41d4-a716-446655440000"
    hub.answers["msg/threads"] = {"threads": [{"id": first, "other_handle": "bob"}]}
    ada("mail", "show", "A1B2C3D4")
    assert hub.asked[-1].arguments == {"thread_id": first, "peek": True}
    # A handle can look like the beginning of an id.
    for others in ({"id": second, "other_handle": "cy"}, {"id": "t", "other_handle": "a1b2c3d4"}):
        hub.answers["msg/threads"]["threads"][1:] = [others]
        ada.fails("mail", "show", "a1b2c3d4", told="more than one conversation")
    ada("mail", "show", "a1b2c3d4-e")
    assert hub.asked[-1].arguments == {"thread_id": first, "peek": True}
    ada.fails(
        "mail", "show", "dora", told="folkmoot: error: You have no conversation with @dora.\n"
    )


def test_a_conversation_reads_downward(ada, hub):
    late = {**MESSAGE, "body": "Later.", "created_at": MESSAGE["created_at"] + 60}  # type: ignore[operator]
    hub.answers["msg/thread"] = {"messages": [late, MESSAGE], "next_cursor": "c9"}
    ran = ada("mail", "show", str(MESSAGE["id"]))
    assert ran.out.index("Hello") < ran.out.index("Later.")
    assert ran.err == "Earlier messages: --cursor c9\n\n"
    assert ada.json("mail", "show", str(MESSAGE["id"])) == hub.answers["msg/thread"]


@pytest.mark.parametrize("columns", [80, 40])
def test_mail_fits_a_terminal(ada, hub, columns):
    message = {**MESSAGE, "unread": True, "priority": "urgent", "body": "word " * 30}
    thread = {"id": MESSAGE["id"], "other_handle": "bob", "last_message_body": "word " * 30,
              "member_state": "starred", "unread_count": 3}  # fmt: skip
    hub.answers |= {"msg/inbox": {"messages": [message]}, "msg/threads": {"threads": [thread]}}
    for command in (["inbox"], ["mail", "list"]):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", ada.shown(*command, columns=columns, NO_COLOR="1"))
        assert "550e8400" in shown
        assert max(map(len, shown.splitlines())) <= columns, shown


def test_an_invites_link_says_which_hub(cli, hub):
    for link in (f"{hub.url}/invite/a-code", f" {hub.url}/invite/a-code/?x#y"):
        ran = cli("register", "ada", "--invite", link)
        assert (ran.code, ran.err) == (0, "")
        assert hub.asked[-1].arguments == {"handle": "ada", "invite_code": "a-code"}
    assert cli("register", "ada", "--invite", link, "--url", hub.url).code == 0
    hub.asked.clear()
    for link, why in (
        ("https://moot.example/invite/x", "the invite is to https://moot.example"),
        ("moot.example/invite/x", "must be a URL such as"),
        ("https://moot.example/x", "must be a link with /invite/CODE"),
    ):
        wanted = ("--invite", link, "--url", hub.url)
        cli.fails("register", "ada", *wanted, told=why, code=ExitCode.USAGE)
    assert hub.asked == []


def test_conversations_are_put_away_and_deleted(ada, hub):
    name = str(MESSAGE["id"])
    hub.answers["msg/threads"] = {"threads": [{"id": name, "other_handle": "bob"}]}
    for tool in ("archive", "star", "mute"):
        hub.answers[f"msg/{tool}"] = {"thread_id": name, "message": f"Thread {tool}d."}
        assert ada("mail", tool, "@bob").out == f"Thread {tool}d.\n"
        assert hub.asked[-1][:2] == (f"msg/{tool}", {"thread_id": name, "undo": False})
        ada("mail", tool, name[:8], "--undo")
        assert hub.asked[-1][:2] == (f"msg/{tool}", {"thread_id": name, "undo": True})
    hub.answers["msg/delete_message"] = {"message_id": name}
    assert ada("mail", "delete", name[:8], name).out == "Deleted 550e8400.\n" * 2
    assert ada.json("mail", "delete", name[:8]) == {"deleted": [name]}
    hub.answers["msg/delete_thread"] = {"thread_id": name, "message": "Thread deleted."}
    hub.asked.clear()
    ada.fails("mail", "delete-thread", "bob", told="--yes", code=ExitCode.USAGE)
    assert [it[0] for it in hub.asked] == ["msg/threads"]
    assert ada("mail", "delete-thread", "bob", "--yes").out == "Thread deleted.\n"
    assert hub.asked[-1][:2] == ("msg/delete_thread", {"thread_id": name, "confirm": True})
    hub.asked.clear()
    for command in (
        ["mail", "delete", "bob"],
        ["mail", "delete", name, "1234567"],
        ["reply", "@bob", "Hi"],
    ):
        ada.fails(*command, told="ID must be a message's id", code=ExitCode.USAGE)
    assert hub.asked == []
    hub.refusals["msg/delete_message"] = "Message not found."
    gone = ada("mail", "delete", "12345678", "--json")
    assert (gone.code, json.loads(gone.out)) == (ExitCode.FAILED, {"deleted": []})
    assert gone.err == "folkmoot: error: Message not found.\n"


def test_a_connection_that_breaks_is_not_called_a_hub_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def hang_up() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)

        hanging = threading.Thread(target=hang_up)
        hanging.start()
        with pytest.raises(e.HubUnreachable) as told:
            HubClient(url).call("msg/inbox", {}, wait=5)
        hanging.join()
    assert told.value.message in {
        f"{url}: the connection broke before the answer came.",
        f"{url}: no hub answers there (connection reset by peer).",
    }


def test_an_account_is_deleted_only_by_someone_who_means_it(ada, hub):
    ada.fails("account", "delete", told="--yes", code=ExitCode.USAGE)
    assert hub.asked == []


def test_several_accounts_are_kept_and_one_is_used_when_none_is_named(ada, hub):
    hub.answers["msg/register"] = {"handle": "bob", "token": NEW_TOKEN, "recovery_code": CODE}
    second = ada("register", "bob")
    assert f"Commands still run as @ada on {hub.url}" in second.out
    assert "Next: 'folkmoot connect CLIENT --as bob' adds" in second.out
    assert "Next: give the token to the program" in ada("register", "bob", "--agent").out
    hub.asked.clear()
    ada("account", "whoami")
    ada("account", "whoami", "--as", "@Bob")
    ada("account", "use", "bob")
    ada("account", "whoami")
    assert [asked.authorization for asked in hub.asked] == [
        f"Bearer {TOKEN}", f"Bearer {NEW_TOKEN}", f"Bearer {NEW_TOKEN}",
    ]  # fmt: skip
    assert [it["handle"] for it in ada.json("account")] == ["bob", "ada"]
    assert ada("account", "token", "@Ada") == (0, f"{TOKEN}\n", "")
    assert ada("account", "token", "bob") == (0, f"{NEW_TOKEN}\n", "")
    assert ada("account", "forget", "bob").code == 0
    assert ada("account", "token", "bob").code == ExitCode.SIGNED_OUT
    assert ada("account", "whoami", "--as", "bob").code == ExitCode.SIGNED_OUT
    assert ada("account", "whoami", "--url", "http://other.example").code == ExitCode.SIGNED_OUT


def test_the_same_handle_on_two_hubs_is_chosen_by_its_hub(ada, keys, hub):
    other = Login("http://other.example", "ada", NEW_TOKEN)
    write(keys, Keyring([Login(hub.url, "bob", TOKEN), other]))
    hub.answers["msg/register"] = {"handle": "ada", "token": TOKEN, "recovery_code": CODE}
    told = ada("register", "ada", "--url", hub.url).out
    assert f"'folkmoot account use ada --url {hub.url}' changes the default" in told
    assert f"'folkmoot connect CLIENT --as ada --url {hub.url}' adds" in told
    used = ada("account", "use", "ada", "--url", hub.url)
    assert used.out == f"Commands now run as @ada on {hub.url}.\n"
    assert ada.json("account")[0]["hub"] == hub.url


def test_a_token_in_the_environment_needs_no_saved_account_and_comes_first(cli, ada, hub):
    hub.answers["msg/contacts"] = {"contacts": [], "next_cursor": None}
    given = {"FOLKMOOT_TOKEN": NEW_TOKEN, "FOLKMOOT_URL": hub.url}
    for who in (cli.someone("nobody"), ada):
        assert who("mail", "contacts", **given).err == "No contacts.\n"
        assert hub.asked[-1].authorization == f"Bearer {NEW_TOKEN}"
    assert ada("mail", "contacts", "--as", "ada", **given).code == 0
    assert hub.asked[-1].authorization == f"Bearer {TOKEN}"
    nobody = cli.someone("nobody")
    nobody.fails("inbox", told="FOLKMOOT_TOKEN is not a token", code=ExitCode.SIGNED_OUT,
                 FOLKMOOT_TOKEN="sk_1\r\nX: y", FOLKMOOT_URL=hub.url)  # fmt: skip
    nobody.fails("inbox", told="FOLKMOOT_URL ", code=ExitCode.SIGNED_OUT,
                 FOLKMOOT_TOKEN=NEW_TOKEN, FOLKMOOT_URL="ftp://x")  # fmt: skip


def test_credentials_that_others_can_read_are_not_used(ada, keys, hub):
    keys.chmod(0o644)
    ada.fails("account", "whoami", told="others can read it")
    assert hub.asked == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"accounts": [{"hub": 1}]}', "\x00"])
def test_a_broken_credentials_file_is_left_alone(cli, hub, keys, content):
    keys.parent.mkdir(parents=True)
    keys.write_text(content)
    keys.chmod(0o600)
    cli.fails("register", "ada", "--url", hub.url, told="is not a valid credentials file")
    assert keys.read_text() == content
    assert hub.asked == []


def sse(*events: str) -> bytes:
    return "".join(f"{event}\n\n" for event in events).encode()


RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\\"a\\":1}"}]}}'
NOTICE = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'


def test_an_answer_that_comes_as_a_stream_is_found_in_it():
    stream = sse(": ping", f"event: message\ndata: {NOTICE}", f"event: message\ndata: {RESULT}")
    with answering(200, stream, "text/event-stream; charset=utf-8") as url:
        assert HubClient(url).call("msg/inbox", {}) == {"a": 1}
    with (
        answering(200, sse(f"data: {NOTICE}"), "text/event-stream") as url,
        pytest.raises(e.HubUnreachable, match="hung up before it answered"),
    ):
        HubClient(url).call("msg/inbox", {})


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (200, b"<html>Router</html>", e.AnswerInvalid),
        (301, b"", e.AnswerInvalid),
        (200, b"[]", e.AnswerInvalid),
        (200, b"{}", e.AnswerInvalid),
        (200, b'{"result": {"content": []}}', e.AnswerInvalid),
        (200, b'{"result": {"content": [{"text": "[]"}]}}', e.AnswerInvalid),
        (200, b'{"result": {"content": [{"text": "{"}]}}', e.AnswerInvalid),
        (200, b"[" * 100_000, e.AnswerInvalid),
        (401, b'{"error": {"code": "x", "message": "No."}}', e.NotSignedIn),
        (429, b'{"error": {"code": "x", "message": "Later."}}', e.ToolRefused),
        (400, b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "M"}}', e.ToolRefused),
    ],
)
def test_what_is_not_a_hubs_answer_is_one_clear_error(status, body, error):
    with answering(status, body) as url, pytest.raises(error):
        HubClient(url).call("msg/inbox", {})


def test_an_address_has_one_spelling():
    for given in ("http://H.example/", "http://h.example/mcp", " http://h.example/mcp/ "):
        assert hub_url(given) == "http://h.example"
    assert hub_url("https://h.example:8/hub/mcp?token=sk_1") == "https://h.example:8/hub"


def test_what_acts_or_hides_is_spelled_out_and_the_rest_stays():
    assert one_line("a\x1b[0m\n\t\x85b") == "a\\x1b[0m\\x0a\\x09\\x85b"
    assert one_line("\u202e\ufeff\U000e0041") == "\\u202e\\ufeff\\U000e0041"
    assert lines("a\tb\r\nc\rd") == ["a\tb", "c\\x0dd"]
    for whole in ("Grüße 👩‍👩‍👧 نمی‌خواهم", "日本", "é"):
        assert one_line(whole) == whole
    assert moment("never") == moment(1e30) == "some time"
