"""`folkmoot grant`, `revoke`, `grants` and `invite --for`: with a running hub and without."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import registered
from tests.harness import ask, run

CALL = "mcp.request.tools/call"
SETTINGS = """
registration = "closed"
[groups]
ops = ["gina"]
[grants]
"@ops" = ["mcp.request.tools/call:msg/*"]
"""


def test_rights_are_given_shown_and_taken_while_no_hub_runs(cli, data):
    (data / "config.toml").write_text(SETTINGS)
    ran = cli("grant", "@Alice", "msg/send", "!room/*", "weather:*")
    assert ran.out.splitlines() == [
        f"Granted to @alice: {CALL}:msg/send",
        f"Granted to @alice: !{CALL}:room/*",
        f"Granted to @alice: {CALL}:weather:*",
    ]
    assert ran.err.splitlines() == [
        f"folkmoot: warning: {CALL}:weather:* covers nothing yet: no backend is called weather.",
        "No hub is running. This takes effect at its next start.",
    ]
    shown = cli("rights", "alice").out.splitlines()
    assert shown[0].split() == [f"{CALL}:msg/*", "every", "account"]
    assert [line.split()[:2] for line in shown[-3:]] == [
        [f"!{CALL}:room/*", "granted"],
        [f"{CALL}:msg/send", "granted"],
        [f"{CALL}:weather:*", "granted"],
    ]
    ran = cli("rights")
    assert ran.out.splitlines() == [
        "@alice  3 granted",
        "@gina   1 in the settings (ops)  nobody has this handle yet",
    ]
    ran = cli("revoke", "alice", "weather:*")
    assert ran.out == f"Revoked from @alice: {CALL}:weather:*\n"
    told = cli.json("revoke", "alice", "--all")
    assert told == {"handle": "alice", "revoked": [f"!{CALL}:room/*", f"{CALL}:msg/send"]}


def test_a_running_hub_goes_by_it_at_once_and_takes_in_whom_the_operator_invited(
    cli, data, start_hub
):
    (data / "config.toml").write_text(SETTINGS)
    hub = start_hub()
    port = hub.port
    invite: dict[str, Any] = cli.json("invite", "--for", "@GINA")
    assert invite["handle"] == "gina"
    assert invite["invite_url"] == f"{hub.url}/invite/{invite['invite_code']}"
    page = run(ask(port, f"/invite/{invite['invite_code']}"))
    assert f"Register me as @gina, with the invite code {invite['invite_code']}" in page.text
    gina = registered(cli, hub, "gina", "--invite", invite["invite_code"])
    assert gina("mail", "find", "alice").code == 0
    ran = cli("grant", "gina", "!msg/search_users")
    assert (ran.code, ran.err) == (0, "")
    refused = gina("mail", "find", "alice")
    assert "mcp.request.tools/call:msg/search_users is denied to you." in refused.err
    assert cli("revoke", "gina", "!msg/search_users").code == 0
    assert gina("mail", "find", "alice").code == 0
    people = cli.json("rights")["people"]
    assert [(it["handle"], it["state"], it["groups"]) for it in people] == [
        ("gina", "account", ["ops"])
    ]
    logged = hub.stop().err
    assert logged.count('"logger":"folkmoot.audit"') == 4
    assert '"message":"policy.refused","by":"gina"' in logged
    assert invite["invite_code"] not in logged


def test_what_is_done_while_no_hub_runs_is_in_the_log_of_the_next_start(cli, data, start_hub):
    assert cli("grant", "alice", "msg/send", "!room/*").code == 0
    assert cli("grant", "alice", "msg/send").code == 0
    assert cli("revoke", "alice", "msg/send").code == 0
    invite: dict[str, Any] = cli.json("invite", "--for", "gina")
    first = start_hub().stop().err
    lines = [json.loads(line) for line in first.splitlines() if "folkmoot.audit" in line]
    assert [(it["message"], it["by"], it["about"], it["detail"]) for it in lines] == [
        ("hub.grant", "operator", "alice", f"{CALL}:msg/send"),
        ("hub.grant", "operator", "alice", f"!{CALL}:room/*"),
        ("hub.revoke", "operator", "alice", f"{CALL}:msg/send"),
        ("account.invited", "operator", "gina", None),
    ]
    assert all(it["at"][:19] <= it["ts"][:19] for it in lines)
    assert invite["invite_code"] not in first
    assert "folkmoot.audit" not in start_hub().stop().err
