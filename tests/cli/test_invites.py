"""`folkmoot invite list`, and those of rooms, against a real hub."""

from __future__ import annotations

import pytest

from folkmoot.cli.output import ExitCode


@pytest.mark.long  # It starts the command a dozen times.
def test_open_invitations_are_listed_and_withdrawn_on_the_command_line(hub, ada, cli, tmp_path):
    assert "No open invitations." in ada("invite", "list").err
    ada("invite")
    cli("invite", "--for", "cleo")
    shown = ada("invite", "list").out
    assert "anyone" in shown
    assert "@ada" in shown
    every = cli("invite", "list", "--all").out
    assert "@cleo" in every
    assert "operator" in every
    [own] = ada.json("invite", "list")["invites"]
    missing = ada("invite", "withdraw", "i_none")
    assert missing.code != ExitCode.OK
    assert "no such open invitation" in missing.err
    done = ada("invite", "withdraw", own["id"][:10])
    assert done.out == f"Withdrew the invitation {own['id'][:10]}.\n"
    for it in cli.json("invite", "list", "--all")["invites"]:
        assert cli("invite", "withdraw", it["id"], "--all").code == 0
    assert cli("invite", "list", "--data", str(tmp_path)).code == ExitCode.USAGE
    ada("room", "create", "square")
    ada("room", "invite", "square", "--guest", "gus")
    assert "gus" in ada("room", "invites", "square").out
    assert ada("room", "uninvite", "square", "gus").code == 0
    assert ada("room", "invites", "square").err == "No open invitations.\n"
