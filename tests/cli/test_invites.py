"""`folkmoot invites`, and those of rooms, against a real hub."""

from __future__ import annotations

import pytest

from folkmoot.cli.output import ExitCode


@pytest.mark.long  # It starts the command a dozen times.
def test_open_invitations_are_listed_and_withdrawn_on_the_command_line(hub, ada, cli, tmp_path):
    assert "No invitation is open." in ada("invites").err
    ada("invite")
    cli("invite", "--for", "cleo")
    shown = ada("invites").out
    assert "anyone" in shown
    assert "@ada" in shown
    every = cli("invites", "--all").out
    assert "@cleo" in every
    assert "operator" in every
    [own] = ada.json("invites")["invites"]
    missing = ada("invites", "withdraw", "i_none")
    assert missing.code != ExitCode.OK
    assert "no such open invitation" in missing.err
    done = ada("invites", "withdraw", own["id"][:10])
    assert done.out == f"Withdrew the invitation {own['id'][:10]}.\n"
    for it in cli.json("invites", "--all")["invites"]:
        assert cli("invites", "withdraw", it["id"], "--all").code == 0
    assert cli("invites", "--data", str(tmp_path)).code == ExitCode.USAGE
    ada("room", "create", "square")
    ada("room", "invite", "square", "--guest", "gus")
    assert "gus" in ada("room", "invites", "square").out
    assert ada("room", "uninvite", "square", "gus").code == 0
    assert ada("room", "invites", "square").err == "Nobody is waited for.\n"
