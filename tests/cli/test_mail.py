"""The command line against a real hub: two people, each with a file of their own."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest

from folkmoot.cli.output import ExitCode
from tests.harness import ask, run


def test_two_people_write_to_each_other(ada, bob):
    sent = ada("send", "@Bob", "The boat is ready.\n\x1b[31mAda")
    assert re.fullmatch(r"Sent to @bob: [0-9a-f]{8}\n", sent.out)
    name = sent.out.split()[-1]

    peeked = bob.json("inbox", "--peek")["messages"][0]
    assert (peeked["id"][:8], peeked["unread"]) == (name, True)
    assert bob("mail", "list").out.startswith("@ada  1  ")
    ending = f"server-assisted  {name}\n    The boat is ready.\n    \\x1b[31mAda\n"
    first, again = bob("inbox").out, bob("inbox").out
    assert first.startswith("@ada  ")
    assert first.endswith(f"  new  {ending}")
    assert again.endswith(f"  {ending}")
    assert "new" not in again
    assert bob.json("mail", "list")["threads"][0]["unread_count"] == 0

    assert bob("reply", name, "I am coming.", "--priority", "urgent").code == 0
    conversation = ada.json("mail", "show", "bob")
    assert [it["body"] for it in conversation["messages"]] == [
        "I am coming.", "The boat is ready.\n\x1b[31mAda",
    ]  # fmt: skip
    by_id = ada("mail", "show", conversation["thread"]["id"][:8]).out
    assert by_id.index("@ada → @bob") < by_id.index("urgent")

    assert bob("mail", "archive", "ada").out == "Thread archived.\n"
    assert bob.json("mail", "list", "--state", "archived")["threads"][0]["other_handle"] == "ada"
    assert bob("mail", "archive", "@ada", "--undo").out == "Thread unarchived.\n"
    assert bob("mail", "delete", name).out == f"Deleted {name}.\n"
    assert bob("reply", name, "Again?").err == "folkmoot: error: Message not found.\n"
    assert "The boat" not in bob("mail", "show", "ada").out
    assert "The boat" in ada("mail", "show", "bob").out
    assert bob("mail", "delete-thread", "ada", "--yes").out == "Thread deleted.\n"
    assert bob("mail", "list").err == "No conversations.\n"


def test_people_are_found_kept_and_kept_away(ada, bob):
    assert bob("account", "profile", "--name", "Bob B", "--bio", "Builds\nboats").out == (
        "Profile updated.\n"
    )
    assert ada("mail", "find", "bo").out == "@bob  Bob B  Builds\\x0aboats\n"
    assert "Bob B" in ada("mail", "lookup", "bob").out
    assert ada("mail", "contacts", "add", "bob", "--nickname", "Bobby").code == 0
    assert ada("mail", "contacts").out.startswith("@bob  Bob B  Bobby  ")
    assert ada("mail", "contacts", "remove", "bob").code == 0
    assert ada("mail", "contacts") == (0, "", "No contacts.\n")
    assert ada("mail", "block", "bob").code == 0
    bob.fails("send", "ada", "Hello?", told="folkmoot: error: Cannot send message to this user.\n")
    assert ada("mail", "unblock", "bob").code == 0
    assert bob("send", "ada", "Hello!").code == 0
    assert (
        ada("mail", "lookup", "nobody").err
        == "folkmoot: error: There is no @nobody here. Invite them: folkmoot invite\n"
    )


@pytest.mark.requirement("invite.page-valid", "invite.page-claimed", "invite.page-invalid")
def test_someone_is_invited_and_finds_the_words_that_were_left(hub, ada, cli):
    made = ada("invite", "--message", "Welcome, Cy!")
    link = made.out.strip()
    assert made.err == "The link works only on this machine. To invite others, set public_url.\n"
    path = urlsplit(link).path
    code = path.rsplit("/", 1)[1]
    asks = {"accept": "text/html", "host": f"127.0.0.1:{hub.port}"}
    shown = run(ask(hub.port, path, headers=asks))
    page = shown.text
    assert shown.status == 200
    assert "This invite is valid. Use it in your MCP client to register." in page
    assert "@ada invited you to Folkmoot." in page
    assert "Welcome, Cy!" in page
    assert f"folkmoot register yourname --invite {link}" in page
    cy = cli.someone("cyd")
    assert cy("register", "cyd", "--invite", link).code == 0
    assert cy.json("inbox")["messages"][0]["body"] == "Welcome, Cy!"
    claimed = run(ask(hub.port, path, headers=asks))
    assert claimed.status == 410
    assert claimed.text.count("This invite has already been claimed.") == 1
    assert run(ask(hub.port, "/invite/AAAAAAAAAAAAAAAAAAAAAA")).status == 404
    late = cli.someone("dora")("register", "dora", "--invite", code, "--url", hub.url)
    assert late.code == ExitCode.FAILED
    stopped = hub.stop()
    assert code not in stopped.err
    assert "/invite/[redacted]" in stopped.err
    assert "sk_" not in stopped.err.replace("sk_[", "")


def test_a_handle_is_changed_and_an_account_left(ada, bob):
    assert ada("account", "change-handle", "countess").code == 0
    assert "@countess" in ada("account", "whoami").out
    assert bob("send", "ada", "Still you?").code == 0
    assert "Still you?" in ada("inbox").out
    assert "Still you?" in bob("mail", "show", "ada").out
    assert bob("mail", "contacts", "add", "ada").out == "Added @countess to your contacts.\n"
    assert bob("mail", "contacts", "remove", "ada").out == "Removed @countess from your contacts.\n"
    assert bob("mail", "block", "ada").out == "@countess can no longer write to you.\n"
    assert bob("mail", "unblock", "ada").out == "@countess can write to you again.\n"
    assert ada("account", "change-handle", "bob").err == "folkmoot: error: Handle already taken.\n"
    assert ada("account", "delete", "--yes").code == 0
    assert ada("inbox").code == ExitCode.SIGNED_OUT
    assert (
        bob("send", "countess", "Gone?").err
        == "folkmoot: error: There is no @countess here. Invite them: folkmoot invite\n"
    )


def test_someone_downloads_all_that_is_theirs(ada, tmp_path):
    file = tmp_path / "ada-copy.json"
    ran = ada("account", "export", "-o", str(file))
    assert (ran.code, ran.out) == (0, f"Exported your data to {file}.\n")
    assert "holds decrypted mail" in ran.err
    assert json.loads(file.read_bytes())["account"]["handle"] == "ada"
    assert file.stat().st_mode & 0o777 == 0o600
    ada.fails("account", "export", "-o", str(file), told="--overwrite replaces it")
    assert ada("account", "export", "-o", str(file), "--overwrite").code == 0
    ada.fails("account", "export", "-o", str(tmp_path / "no" / "file"), told="no such file")
    assert sorted(tmp_path.glob(".ada-copy*")) == []
