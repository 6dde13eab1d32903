"""Settings and rules that operators change over REST, and that a running hub goes by at once."""

from __future__ import annotations

from typing import Any

from folkmoot.core.closecodes import CloseCode
from tests.mcp_harness import until
from tests.transports.rest.support import done, refused
from tests.transports.rest.test_servers import COMMENT, hub  # noqa: F401 - the fixture
from tests.transports.rooms.support import Town

SETTINGS, RULES, TAPES = "/v1/settings", "/v1/rules", "/v1/tapes"


async def change(here: Any, **new: Any) -> Any:
    return done(await here.confirmed("PATCH", SETTINGS, new), 200)["settings"]


async def registers(here: Any, handle: str) -> bool:
    answer = await here.stranger.ask("POST", "/v1/accounts", {"handle": handle})
    return bool(answer.status == 201)


async def send(who: Any, text: str) -> dict[str, Any]:
    """A call at `/mcp`, where rules and tapes see it."""
    call = {"name": "msg/send", "arguments": {"to": "bob", "body": text}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    request["params"]["_meta"] = meta
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "msg/send",
    }
    answer = await who.ask("POST", "/mcp", request, headers=headers)
    told: dict[str, Any] = answer.json()
    return told


async def test_who_can_register_changes_at_once_and_stays_in_the_file(hub):  # noqa: F811
    assert await registers(hub, "one")
    told = await change(hub, registration="closed", keep_mail_days=30)
    assert (told["registration"]["value"], told["mail.keep_days"]["value"]) == ("closed", 30)
    assert told["registration"]["origin"].startswith(str(hub.config))
    assert not await registers(hub, "two")
    text = hub.config.read_text()
    assert 'registration = "closed"\n' in text.partition("[")[0]
    assert COMMENT in text
    await change(hub, registration="open", new_tools="list", audit_arguments="none")
    assert await registers(hub, "two")
    gateway = hub.hub.behind.gateway
    assert (gateway.new_tools, gateway.audit.arguments) == ("list", "none")
    await hub.hub._audit.drain()
    lines = (await hub.root.get("/v1/audit?action=settings.changed"))["lines"]
    assert [it["by"] for it in lines] == ["otto", "otto"]


async def test_recording_is_switched_on_and_off_while_calls_go_on(hub):  # noqa: F811
    bob = await hub.person("bob")
    await send(hub.root, "before")
    await change(hub, record=True)
    await send(hub.root, "on tape")
    (tape,) = (await hub.root.get(TAPES))["tapes"]
    assert tape["recording"]
    folder = hub.hub.settings.data_folder / "tapes"
    text = (folder / tape["name"]).read_text()
    assert text.count('"type":"message"') == 2
    assert "on tape" not in text  # Nobody's mail is.
    await change(hub, record=False)
    await send(bob, "after")
    (tape,) = (await hub.root.get(TAPES))["tapes"]
    assert not tape["recording"]
    assert (folder / tape["name"]).read_text().count('"type":"message"') == 2
    await change(hub, record=True)
    assert len((await hub.root.get(TAPES))["tapes"]) == 2


async def test_a_rule_counts_at_once_also_for_those_who_are_connected(hub):  # noqa: F811
    ann, bob = await hub.people("ann", "bob")
    await ann.create("square", access="open")
    assert (await hub.root.get(RULES)) == {"file": None, "rules": []}
    async with Town(hub.hub).joined(ann.token, room="square") as seat:
        rule = {"rule": "No words", "action": "block", "tool": "msg/send", "reason": "Not today."}
        added = done(await hub.confirmed("POST", RULES, rule), 201)
        await seat.socket.wait_closed()
        assert seat.socket.close_code == CloseCode.RESTARTING
    assert added["rules"] == [
        {
            "name": "No words",
            "when": {"tool": "msg/send"},
            "action": "block",
            "options": {"message": "Not today."},
        }
    ]
    assert "Not today." in str(await send(ann, "hello"))
    blocked = {"to": "bob", "body": "hello"}
    refused(await ann.ask("POST", "/v1/messages", blocked), 403, "blocked")
    also = {"rule": "Nor here", "action": "block", "tool": "room/*", "caller": "@Ann"}
    done(await hub.confirmed("POST", RULES, also), 201)
    refused(await ann.ask("GET", "/v1/rooms/square/messages"), 403, "blocked")
    assert await bob.get("/v1/rooms/square/messages")
    for name in ("Nor here", "No words"):
        done(await hub.confirmed("DELETE", f"{RULES}/{name.replace(' ', '%20')}"), 200)
    assert await ann.read("square")
    assert "Not today." not in str(await send(ann, "hello"))
    await hub.hub._audit.drain()
    lines = (await hub.root.get("/v1/audit?action=rule.*"))["lines"]
    assert [it["action"] for it in lines] == ["rule.removed"] * 2 + ["rule.added"] * 2


async def test_what_is_wrong_saves_nothing(hub, monkeypatch):  # noqa: F811
    rule = {"rule": "One", "action": "hold", "tool": "boats:*", "group": "crew"}
    done(await hub.confirmed("POST", RULES, rule), 201)
    files = [hub.config, hub.hub.settings.data_folder / "rules.toml"]
    before = [it.read_text() for it in files]
    refused(await hub.confirmed("POST", RULES, rule), 400, "command_invalid")
    refused(await hub.confirmed("DELETE", f"{RULES}/Two"), 400, "command_invalid")
    broken = {**rule, "rule": "\u0007"}
    assert (await hub.confirmed("POST", RULES, broken)).status == 400
    hub.hub.behind.following.loaded.origins["registration"] = "FOLKMOOT_REGISTRATION"
    elsewhere = await hub.confirmed("PATCH", SETTINGS, {"registration": "open"})
    assert "is set by FOLKMOOT_REGISTRATION" in elsewhere.text
    refused(elsewhere, 400, "command_invalid")
    assert [it.read_text() for it in files] == before
    # By hand a file can say more than is offered here: it stays.
    files[1].write_text(
        before[1] + '\n# slow\n[[rule]]\nname = "b"\naction = "delay"\nseconds = 0.1\n'
    )
    rules = hub.hub._passing.rules
    await until(lambda: len(rules.ruleset.rules) == 2)
    done(await hub.confirmed("DELETE", f"{RULES}/One"), 200)
    assert '# slow\n[[rule]]\nname = "b"' in files[1].read_text()


async def test_whoever_does_not_show_that_they_are_there_changes_nothing(hub):  # noqa: F811
    bob = await hub.person("bob")
    rule = {"rule": "One", "action": "block", "tool": "*"}
    for method, path, content in (
        ("PATCH", SETTINGS, {"registration": "closed"}),
        ("POST", RULES, rule),
        ("DELETE", f"{RULES}/One", None),
    ):
        refused(await hub.root.ask(method, path, content), 403, "confirmation_invalid")
        refused(await bob.ask(method, path, content), 403, "scope_missing")
    assert (await hub.root.get(RULES))["file"] is None
