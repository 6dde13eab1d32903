"""`folkmoot tokens` against a real hub."""

from __future__ import annotations

import json
import re

import pytest

from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Ran


@pytest.mark.requirement("credentials.many")
def test_tokens_are_created_listed_and_revoked_on_the_command_line(ada):

    wanted = ("--label", "the tides", "--expires", "7", "--scope", "rooms:square mail.read")
    out = ada.says("tokens", "create", *wanted)
    found = re.fullmatch(
        r"Token    (sk_[0-9a-f]{64})\nID       (c_[0-9a-f]{8})\n"
        r"Scope    mail\.read rooms:square\nExpires  [-0-9: ]{16}\n\n"
        r"Anyone who has the token can act as @ada within its scope\. It is not shown again\.\n"
        r"'folkmoot tokens revoke \2' revokes it\.\n",
        out,
    )
    assert found is not None, out
    listed = ada.json("tokens")
    assert [it["label"] for it in listed if it["current"]] == ["first token"]
    assert [it["label"] for it in listed if not it["current"]] == ["the tides"]
    assert "sk_" not in json.dumps(listed)
    table = re.sub(r"\x1b\[[0-9;]*m", "", ada.shown("tokens"))
    assert "mail.read rooms:square" in table
    assert re.search(r"first token", table)

    told = "There is no scope 'mail'. Scopes: mail.read, "
    ran = ada.fails("tokens", "create", "--scope", "mail", told=told)

    for wrong, words in (("c_", "2 of your tokens have ids that begin with c_."),
                         ("nothing", "You have no token with this id.")):  # fmt: skip
        ada.fails("tokens", "revoke", wrong, told=words)
    ran = ada("tokens", "revoke", found[2])
    assert ran == Ran(0, f"Revoked {found[2]} (the tides).\n", "")

    own = next(it["id"] for it in listed if it["current"])
    ada.fails("tokens", "revoke", own, told="use --yes", code=ExitCode.USAGE)
    ran = ada("tokens", "revoke", own, "--yes")
    assert "'folkmoot account recover ada' gets a new token." in ran.out
    ran = ada("tokens")
    assert ran.code == ExitCode.SIGNED_OUT
    assert ada("account", "recover", "ada").code == 0
    assert [it["label"] for it in ada.json("tokens")] == ["recovered"]


def test_an_existing_token_is_taken_on_a_second_computer_and_is_never_an_argument(
    hub, ada, tmp_path
):
    keys = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "laptop.json")}
    laptop = ada._replace(environ={**ada.environ, **keys})
    token = ada.json("tokens", "create", "--label", "laptop")["token"]
    add = ("account", "add", "--token", "-", "--url", hub.url)
    for given, code, said in (
        ("sk_" + "0" * 64, ExitCode.SIGNED_OUT, f"{hub.url} does not accept this token."),
        ("nonsense", ExitCode.USAGE, "a token is sk_ and 64 letters and digits"),
        ("", ExitCode.USAGE, "the standard input has no token"),
    ):
        ran = laptop(*add, given=given)
        assert (ran.code, ran.out, said in " ".join(ran.err.split())) == (code, "", True), ran.err
    shown = laptop("account", "add", "--token", token, "--url", hub.url)
    assert (shown.code, "Use '--token -'" in shown.err) == (ExitCode.USAGE, True)
    assert token not in shown.err
    assert laptop.json("account", "list") == []

    ran = laptop(*add, given=f"{token}\n")
    place = tmp_path / "laptop.json"
    assert ran == Ran(0, f"Saved @ada on {hub.url} in {place}, which only you can read.\n", "")
    assert laptop("account", "token", "ada").out.strip() == token
    assert laptop.json("account", "whoami")["handle"] == "ada"

    reader = ada.json("tokens", "create", "--scope", "mail.read")["token"]
    ran = laptop(*add, given=reader)
    assert (ran.code, "add --as HANDLE" in " ".join(ran.err.split())) == (ExitCode.USAGE, True)
    assert laptop(*add, "--as", "ada", given=reader).code == 0
    assert laptop("inbox").code == 0
    wrong = laptop(*add, "--as", "bob", given=token)
    assert (wrong.code, "a token of @ada" in wrong.err) == (ExitCode.USAGE, True)


def test_connect_gives_a_client_a_token_of_its_own_scope(hub, ada, tmp_path):
    file = tmp_path / "mcp.json"
    wanted = ("connect", "cursor", "--scope", "mail.read rooms:square", "--file", str(file))
    shown = ada(*wanted, "--dry-run")
    assert (shown.code, "sk_…" in shown.out) == (0, True)
    assert len(ada.json("tokens")) == 1
    assert "Its token can do no more than: mail.read rooms:square." in ada.says(*wanted)
    header = json.loads(file.read_text())["mcpServers"]["folkmoot"]["headers"]["Authorization"]
    token = header.removeprefix("Bearer ")
    assert token != ada("account", "token", "ada").out.strip()
    bearer = ("--header", f"Authorization: Bearer {token}")
    assert ada("call", f"{hub.url}/mcp", "msg_inbox", *bearer).code == 0
    assert ada("call", f"{hub.url}/mcp", "msg_send", "to=bob", "body=x", *bearer).code == 1
    made = {it["label"]: it["scope"] for it in ada.json("tokens")}
    assert made["Cursor"] == "mail.read rooms:square"
    # Nothing is created where the file has such an entry, or the scope does not exist.
    assert ada(*wanted).code == ExitCode.FAILED
    assert "There is no scope" in ada("connect", "cursor", "--scope", "all", "--file",
                                      str(tmp_path / "other.json")).err  # fmt: skip
    assert len(ada.json("tokens")) == 2
    assert not (tmp_path / "other.json").exists()


def test_a_command_that_is_made_from_its_row_shows_what_the_operation_answers(ada):
    out = ada.says("digest")
    assert re.search(r"^Total unread +0$", out, re.MULTILINE), out
    assert re.search(r"^Recent senders +-$", out, re.MULTILINE), out
    assert ada.json("digest")["total_unread"] == 0
