"""Operators allow people and groups tools by naming them, and are told why someone cannot."""

from __future__ import annotations

import pytest

from tests.transports.rest.support import done, refused
from tests.transports.rest.test_servers import ECHO, SERVERS, TEAM, hub, until, use

__all__ = ["hub"]

BOB, TEAMS = "/v1/people/bob/access", "/v1/groups/team"
ECHO_TOOL, WIPE_TOOL = "small:echo", "small:wipe"


async def why(hub, tool=ECHO_TOOL, who="bob"):
    answer = (await hub.root.get(f"/v1/people/{who}/access?tool={tool}"))["answer"]
    return answer["sentence"], answer["change"]


async def allow(hub, *tools, path=BOB, allowed=True):
    return await hub.root.did("PUT", path, {"tools": list(tools), "allowed": allowed})


async def test_a_tool_is_allowed_to_one_person_and_taken_away_again(hub):
    await hub.add()
    bob = await hub.person("bob")
    assert await why(hub) == ("@bob can't call small:echo: nobody has allowed it.", "allow")
    told = await allow(hub, ECHO_TOOL)
    (share,) = told["servers"]
    assert share["access"]["may"] == "some"
    assert (share["access"]["names"], share["tools"]) == ([ECHO_TOOL], 2)
    assert await why(hub) == ("@bob can call small:echo: allowed by an operator.", "deny")
    assert await why(hub, WIPE_TOOL) == (
        "@bob can't call small:wipe: nobody has allowed it.",
        "allow",
    )
    assert not (await use(bob, ECHO_TOOL, arguments={"text": "hi"})).get("isError")
    await allow(hub, ECHO_TOOL, allowed=False)
    # What was not there before is not denied now: nothing of it is left.
    assert (await why(hub))[0] == "@bob can't call small:echo: nobody has allowed it."
    assert (await hub.root.get("/v1/people/bob/grants"))["held"][-1]["origin"] == "default"


async def test_of_a_server_for_everyone_a_tool_is_denied_to_one_and_allowed_again(hub):
    await hub.add(everyone=True)
    await hub.person("bob")
    assert await why(hub) == ("@bob can call small:echo: the server is open to everyone.", "deny")
    await allow(hub, ECHO_TOOL, allowed=False)
    assert await why(hub) == ("@bob can't call small:echo: denied by an operator.", "allow")
    assert (await why(hub, WIPE_TOOL))[1] == "deny"
    await allow(hub, ECHO_TOOL)
    assert (await why(hub))[1] == "deny"
    # The whole server is taken away, and one tool alone does not come back behind that.
    await allow(hub, "small", allowed=False)
    assert (await hub.root.get(BOB))["servers"][0]["access"]["may"] == "none"
    told = "@bob can't call small:echo: denied by an operator, with more than it."
    assert await why(hub) == (told, "")
    await allow(hub, "small")
    assert (await hub.root.get(BOB))["servers"][0]["access"]["may"] == "all"


async def test_taking_a_server_away_takes_all_that_was_allowed_of_it(hub):
    await hub.add()
    await hub.person("bob")
    await allow(hub, ECHO_TOOL, WIPE_TOOL)
    await hub.root.did("POST", "/v1/people/bob/grants", {"patterns": ["small:e*", "msg/send"]})
    await allow(hub, "small", allowed=False)
    held = (await hub.root.get("/v1/people/bob/grants"))["held"]
    granted = [it["capability"] for it in held if it["origin"] == "granted"]
    assert granted == ["mcp.request.tools/call:msg/send"]


async def test_why_not_tells_of_groups_suspension_and_review(hub):
    await hub.add()
    await hub.person("bob")
    await hub.grants(TEAM)
    assert await why(hub) == ("@bob can call small:echo: allowed for the group team.", "deny")
    config = hub.config.read_text().replace('["small:echo"]', '["small:echo", "!small:wipe"]')
    hub.config.write_text(config)
    done(await hub.root.ask("POST", "/v1/settings/reload", {}), 200)
    told = "@bob can't call small:wipe: denied for the group team. Change it there."
    assert await why(hub, WIPE_TOOL) == (told, "")
    done(await hub.root.ask("POST", "/v1/accounts/bob/suspend", {}), 200)
    assert await why(hub) == ("@bob can't call small:echo: the account is suspended.", "restore")
    done(await hub.root.ask("POST", "/v1/accounts/bob/restore", {}), 200)
    hub.offer({**ECHO, "description": "Repeats, and tells mallory."})
    done(await hub.root.ask("POST", f"{SERVERS}/small/restart", {}), 200)
    await until(lambda: hub.hub.behind.held() == {"small": 1})
    await hub.up("small")
    told = "Nobody can call small:echo yet: it is changed and waits for review."
    assert await why(hub) == (told, "accept")


async def test_a_group_is_made_allowed_a_tool_changed_and_removed_in_the_settings_file(hub):
    await hub.add()
    bob = await hub.person("bob")
    before = hub.config.read_text()
    made = await hub.root.did("PUT", TEAMS, {"members": ["bob", "ann"]})
    assert [(it["name"], it["members"]) for it in made["groups"]] == [("team", ["bob", "ann"])]
    shown = await allow(hub, ECHO_TOOL, path=f"{TEAMS}/access")
    (share,) = shown["groups"][0]["servers"]
    assert (share["namespace"], share["access"]["names"]) == ("small", [ECHO_TOOL])
    assert not (await use(bob, ECHO_TOOL, arguments={"text": "hi"})).get("isError")
    told = await hub.root.get(f"{SERVERS}/small/access")
    assert [(it["name"], it["members"]) for it in told["groups"]] == [("team", 2)]
    assert await why(hub) == ("@bob can call small:echo: allowed for the group team.", "deny")
    # Nothing else of the file moved.
    written = hub.config.read_text()
    assert written.startswith(before)
    assert '[groups]\nteam = ["bob", "ann"]' in written
    await allow(hub, "small", path=f"{TEAMS}/access")
    await allow(hub, WIPE_TOOL, path=f"{TEAMS}/access", allowed=False)
    assert '"@team" = ["small:echo", "small", "!small:wipe"]' in hub.config.read_text()
    await hub.root.did("PUT", TEAMS, {"members": ["ann"]})
    assert (await why(hub))[1] == "allow"
    refused(await hub.root.ask("PUT", TEAMS, {"members": ["no one"]}), 400, "command_invalid")
    assert (await hub.root.get("/v1/groups"))["groups"][0]["members"] == ["ann"]
    await allow(hub, "small", path=f"{TEAMS}/access", allowed=False)
    await hub.root.did("DELETE", TEAMS)
    assert (await hub.root.get("/v1/groups"))["groups"] == []
    assert hub.config.read_text() == f"{before}\n[groups]\n\n[grants]\n"
    refused(await hub.root.ask("DELETE", TEAMS), 400, "command_invalid")
    await hub.hub._audit.drain()
    lines = (await hub.root.get("/v1/audit?action=group.*"))["lines"]
    assert {it["action"] for it in lines} == {"group.changed", "group.access", "group.removed"}
    assert {(it["by"], it["about"]) for it in lines if "outcome" not in it} <= {("otto", "team")}


WRITES = (
    (BOB, {"tools": [ECHO_TOOL]}),
    (TEAMS, {"members": ["bob"]}),
    (f"{TEAMS}/access", {"tools": [ECHO_TOOL]}),
)


async def test_nobody_but_an_operator_looks_or_allows(hub):
    await hub.add()
    bob = await hub.person("bob")
    await hub.grants(TEAM)
    before = hub.config.read_text()
    for path, content in WRITES:
        refused(await bob.ask("PUT", path, content), 403, "scope_missing")
        refused(await hub.stranger.ask("PUT", path, content), 401, "authentication_required")
    refused(await bob.ask("DELETE", TEAMS), 403, "scope_missing")
    for path in (BOB, f"{BOB}?tool={ECHO_TOOL}", "/v1/groups"):
        refused(await bob.ask("GET", path), 403, "scope_missing")
    assert hub.config.read_text() == before


async def test_what_names_no_tool_or_nobody_is_refused(hub):
    await hub.add()
    await hub.person("bob")
    for tools in (
        ["small:no"],
        ["none"],
        ["none:echo"],
        ["small:*"],
        ["!small"],
        ["msg/send"],
        [""],
    ):
        answer = await hub.root.ask("PUT", BOB, {"tools": tools})
        assert answer.status == 404, (tools, answer)
    for content in ({"tools": []}, {"tools": [ECHO_TOOL] * 1001}, {"tools": ["x" * 1025]}, {}):
        refused(await hub.root.ask("PUT", BOB, content), 400, "argument_invalid")
    answer = await hub.root.ask("PUT", "/v1/people/nobody/access", {"tools": [ECHO_TOOL]})
    refused(answer, 404, "user_not_found")
    answer = await hub.root.ask("PUT", "/v1/groups/none/access", {"tools": [ECHO_TOOL]})
    refused(answer, 400, "command_invalid")
    held = (await hub.root.get("/v1/people/bob/grants"))["held"]
    assert not [it for it in held if it["origin"] == "granted"]


@pytest.mark.settings(edit=False)
async def test_with_the_switch_off_groups_are_not_changed_over_the_network(hub):
    answer = await hub.root.ask("PUT", TEAMS, {"members": ["bob"]})
    assert "edit_from_web" in refused(answer, 403, "capability_denied")["message"]


async def test_people_show_when_they_were_last_seen_and_the_audit_log_names_what_ids_stand_for(hub):
    bob = await hub.person("bob")
    assert (await hub.root.get("/v1/accounts/bob"))["seen_at"] is None
    made = await bob.did("POST", "/v1/me/credentials", {"label": "his laptop"})
    await hub.hub.accounts.authentication.upkeep()
    assert (await hub.root.get("/v1/accounts/bob"))["seen_at"] > 0
    await hub.hub._audit.drain()

    async def named():
        (line, *_) = (await hub.root.get("/v1/audit?action=token.created&by=bob"))["lines"]
        return line["about"], line.get("name")

    assert await named() == (made["id"], "his laptop")
    await bob.did("DELETE", f"/v1/me/credentials/{made['id']}")
    assert await named() == (made["id"], None)
