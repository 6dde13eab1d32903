"""What rules stop is in the audit log, and what they keep back is not `ok` there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from folkmoot.telemetry.logs import AuditTrail
from tests.interaction.room_client import call, chat, joined, rest
from tests.mcp_harness import both_eras
from tests.proxy.rules.support import blocked
from tests.relay.test_rules_of_callers import with_rules
from tests.transports.mcp.gateway_support import Demo, fronted, text, wired

# Tools, and what a rule does with their requests or responses.
ABOUT = {
    "demo:remove": ("request", 'action = "block"'),
    "demo:ask": ("request", 'action = "mock"\nresult = { content = [] }'),
    "demo:pay": ("request", 'action = "hold"\nseconds = 0.01'),
    "demo:look": ("response", 'action = "block"'),
    "msg/send": ("request", 'action = "block"'),
    "msg/whoami": ("response", 'action = "block"'),
}
RULES = "".join(
    f'[[rule]]\nname = "{tool}"\nwhen = {{ tool = "{tool}", type = "{kind}" }}\n{action}\n'
    for tool, (kind, action) in ABOUT.items()
)
CALL = "mcp.request.tools/call"


async def done(_: Any) -> Any:
    return text("done")


def audited(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [record for record in caplog.records if record.name == "folkmoot.audit"]
    return [{"action": record.getMessage(), **vars(record)} for record in found]


@both_eras
async def test_calls_that_rules_stop_and_answers_they_keep_back_are_in_the_audit_log(
    era, tmp_path, caplog
):
    caplog.set_level(logging.INFO, "folkmoot.audit")
    demo = Demo(remove=done, ask=done, pay=done, look=done)
    names = [f"demo_{name}" for name in ("remove", "ask", "pay", "look", "echo")]
    names += ["msg_send", "msg/send", "msg_whoami"]
    async with fronted(tmp_path / "hub", era, demo, **with_rules(tmp_path, RULES)) as there:
        wire = await wired(there, await there.person("ann"))
        caplog.clear()
        for number, name in enumerate(names, 1):
            call = wire.message("tools/call", {"name": name}, number, None)
            assert (await wire.post(call)).status == 200
        stranger = await wired(there, "", "stateless")
        await stranger.ask("tools/call", {"name": "demo_remove"})
    lines = audited(caplog)
    assert [(it["action"], it["about"], it["outcome"], it["by"]) for it in lines] == [
        ("backend.call", f"{CALL}:demo:remove", "blocked", "ann"),
        ("backend.call", f"{CALL}:demo:ask", "mocked", "ann"),
        ("backend.call", f"{CALL}:demo:pay", "message_dropped", "ann"),
        ("backend.call", f"{CALL}:demo:look", "withheld", "ann"),
        ("backend.call", f"{CALL}:demo:echo", "ok", "ann"),
        *[("hub.call", f"{CALL}:msg/send", "blocked", "ann")] * 2,
        ("hub.call", f"{CALL}:msg/whoami", "withheld", "ann"),
    ]
    assert [each.params["name"] for each in demo.asked] == ["look", "echo"]
    assert all(len(it["arguments_hash"]) == 32 for it in lines)


@pytest.mark.parametrize("way", ["websocket", "rest"])
async def test_messages_that_rules_stop_in_rooms_are_in_the_audit_log(way, tmp_path, caplog):
    hush = blocked('kind = "chat.message", caller = "ann"') + 'message = "ann is quiet"\n'
    caplog.set_level(logging.INFO, "folkmoot.audit")
    async with fronted(tmp_path / "hub", "stateless", **with_rules(tmp_path, hush)) as there:
        ann, bob = await there.people("ann", "bob")
        await ann.call("room_create", name="plaza")
        if way == "websocket":
            async with joined(there.port, ann.token) as seat:
                told = await seat.refused(chat())
            async with joined(there.port, bob.token) as seat:
                await seat.said(chat())
        else:
            answer = await rest(there.port, ann.token, "POST", "/plaza/messages", chat())
            told = {**answer.json()["error"], "error": answer.json()["error"]["code"]}
            answer = await rest(there.port, bob.token, "POST", "/plaza/messages", chat())
            assert answer.status == 201
        assert (told["error"], told["message"]) == ("blocked", "ann is quiet")
    (line,) = [it for it in audited(caplog) if it["action"] == "room.blocked"]
    assert (line["room"], line["by"], line["about"]) == ("plaza", "ann", "chat.message")
    assert line["detail"] == {"error": "blocked"}


async def test_a_rule_about_a_backends_tool_holds_for_whoever_calls_it_from_a_room(
    tmp_path, caplog
):
    rule = blocked('tool = "demo:remove", type = "request", caller = "ann"')
    caplog.set_level(logging.INFO, "folkmoot.audit")
    demo = Demo(remove=done, look=done)
    async with fronted(tmp_path / "hub", "stateless", demo, **with_rules(tmp_path, rule)) as there:
        ann, bob = await there.people("ann", "bob")
        await ann.call("room_create", name="plaza", backends=["demo"], capabilities=["*"])
        removing = {"room": "plaza", "to": "demo", "tool": "demo:remove", "arguments": {}}
        path = "/plaza/messages"
        for each in (ann, bob):
            asked = call("demo", "demo:remove")
            posted = await rest(there.port, each.token, "POST", path, asked)
            assert posted.status == (403 if each is ann else 201), posted.text
        async with joined(there.port, ann.token) as seat:
            assert (await seat.refused(call("demo", "demo:remove")))["error"] == "blocked"
            await seat.said(call("demo", "demo:look"))
        assert await ann.refused("room_call", **removing) == "This is not allowed here."
        await bob.call("room_call", **removing)
    assert sorted([each.params["name"] for each in demo.asked]) == ["look", "remove", "remove"]
    lines = [(it["by"], it["about"]) for it in audited(caplog) if it["action"] == "room.blocked"]
    assert lines == [("ann", f"{CALL}:demo:remove")] * 3


def test_a_line_that_comes_after_the_end_of_its_request_does_not_wait():
    told: list[str | None] = []
    trail = AuditTrail()
    assert not trail.withhold()
    trail.add(told.append)
    assert told == []
    trail.add(told.append)
    assert told == [None]
    assert (trail.withhold(), told) == (True, [None, "withheld"])
    trail.end()
    trail.add(told.append)
    assert told == [None, "withheld", None]
