"""`folkmoot invites`, and those of rooms, against a real hub."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Hub, Ran


@pytest.mark.long  # It starts the command a dozen times.
def test_open_invitations_are_listed_and_withdrawn_on_the_command_line(
    start_hub: Callable[..., Hub], folkmoot: Callable[..., Ran], tmp_path: Path
) -> None:
    hub = start_hub(FOLKMOOT_RATE_LIMITS="off")
    mine = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "ada.json")}
    folkmoot("register", "ada", "--url", hub.url, **mine)
    assert "No invitation is open." in folkmoot("invites", **mine).err
    folkmoot("invite", **mine)
    folkmoot("invite", "--for", "cleo")
    shown = folkmoot("invites", **mine).out
    assert "anyone" in shown
    assert "@ada" in shown
    every = folkmoot("invites", "--all").out
    assert "@cleo" in every
    assert "operator" in every
    [own] = json.loads(folkmoot("invites", "--json", **mine).out)["invites"]
    missing = folkmoot("invites", "withdraw", "i_none", **mine)
    assert missing.code != ExitCode.OK
    assert "no such open invitation" in missing.err
    done = folkmoot("invites", "withdraw", own["id"][:10], **mine)
    assert done.out == f"Withdrew the invitation {own['id'][:10]}.\n"
    for it in json.loads(folkmoot("invites", "--all", "--json").out)["invites"]:
        assert folkmoot("invites", "withdraw", it["id"], "--all").code == 0
    assert folkmoot("invites", "--data", str(tmp_path)).code == ExitCode.USAGE
    folkmoot("room", "create", "square", **mine)
    folkmoot("room", "invite", "square", "--guest", "gus", **mine)
    assert "gus" in folkmoot("room", "invites", "square", **mine).out
    assert folkmoot("room", "uninvite", "square", "gus", **mine).code == 0
    assert folkmoot("room", "invites", "square", **mine).err == "Nobody is waited for.\n"
