"""`folkmoot tokens` against a real hub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Hub, Ran


@pytest.mark.requirement("credentials.many")
def test_tokens_are_created_listed_and_revoked_on_the_command_line(
    start_hub: Callable[..., Hub],
    folkmoot: Callable[..., Ran],
    on_terminal: Callable[..., str],
    tmp_path: Path,
) -> None:
    hub = start_hub(FOLKMOOT_RATE_LIMITS="off")
    mine = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "ada.json")}
    folkmoot("register", "ada", "--url", hub.url, **mine)

    wanted = ("--label", "the tides", "--expires", "7", "--scope", "rooms:square mail.read")
    made = folkmoot("tokens", "create", *wanted, **mine)
    assert (made.code, made.err) == (0, "")
    found = re.fullmatch(
        r"Token    (sk_[0-9a-f]{64})\nID       (c_[0-9a-f]{8})\n"
        r"Scope    mail\.read rooms:square\nExpires  [-0-9: ]{16}\n\n"
        r"Anyone who has the token can act as @ada within its scope\. It is not shown again\.\n"
        r"'folkmoot tokens revoke \2' revokes it\.\n",
        made.out,
    )
    assert found is not None, made.out
    listed = json.loads(folkmoot("tokens", "--json", **mine).out)
    assert {it["label"]: it["current"] for it in listed} == {
        "first token": True,
        "the tides": False,
    }
    assert "sk_" not in json.dumps(listed)
    table = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal("tokens", **mine))
    assert "mail.read rooms:square" in table
    assert re.search(r"first token", table)

    ran = folkmoot("tokens", "create", "--scope", "mail", **mine)
    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert "There is no scope 'mail'. Scopes: mail.read, " in ran.err

    for wrong, words in (("c_", "2 of your tokens have ids that begin with c_."),
                         ("nothing", "You have no token with this id.")):  # fmt: skip
        ran = folkmoot("tokens", "revoke", wrong, **mine)
        assert (ran.code, ran.out) == (ExitCode.FAILED, "")
        assert words in ran.err
    ran = folkmoot("tokens", "revoke", found[2], **mine)
    assert ran == Ran(0, f"Revoked {found[2]} (the tides).\n", "")

    own = next(it["id"] for it in listed if it["current"])
    ran = folkmoot("tokens", "revoke", own, **mine)
    assert ran.code == ExitCode.USAGE
    assert "use --yes" in ran.err
    ran = folkmoot("tokens", "revoke", own, "--yes", **mine)
    assert "'folkmoot account recover ada' gets a new token." in ran.out
    ran = folkmoot("tokens", **mine)
    assert ran.code == ExitCode.SIGNED_OUT
    assert folkmoot("account", "recover", "ada", **mine).code == 0
    assert [it["label"] for it in json.loads(folkmoot("tokens", "--json", **mine).out)] == [
        "recovered"
    ]


def test_a_command_that_is_made_from_its_row_shows_what_the_operation_answers(
    start_hub: Callable[..., Hub], folkmoot: Callable[..., Ran], tmp_path: Path
) -> None:
    hub = start_hub(FOLKMOOT_RATE_LIMITS="off")
    mine = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "ada.json")}
    folkmoot("register", "ada", "--url", hub.url, **mine)
    ran = folkmoot("digest", **mine)
    assert (ran.code, ran.err) == (0, "")
    assert re.search(r"^Total unread +0$", ran.out, re.MULTILINE), ran.out
    assert re.search(r"^Recent senders +-$", ran.out, re.MULTILINE), ran.out
    assert json.loads(folkmoot("digest", "--json", **mine).out)["total_unread"] == 0
