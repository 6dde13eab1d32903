"""Narrow credentials, from outside: what their scope has not is refused on every way in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.core.scopes import ALL, NAMES, Need, scope
from folkmoot.gateway.rights import Scoped
from folkmoot.operations import OPERATIONS, Caller
from folkmoot.operations.table import NEEDS
from tests.apps import connect
from tests.interaction.room_client import (
    ROOM,
    chat,
    grant,
    joined,
    message,
    proposal,
    turned_away,
)
from tests.mcp_harness import Meeting, both_eras
from tests.transports.mcp.gateway_support import Demo, Wire, fronted
from tests.transports.rest.support import ROOMS, Asker, done, refused

ME = "/v1/me/credentials"
INBOX = "mmp://mailboxes/inbox"
MISSING = "scope_missing"
NOT_ALLOWED = 4403


class Owner:
    """Ada, who makes narrow tokens for her programs."""

    def __init__(self, there: Meeting, token: str, *, of_app: bool = False) -> None:
        self.there = there
        self.of_app = of_app
        self.asker = Asker(there.port, token, "ada")

    async def token(self, scope: str = "", **wanted: Any) -> str:
        if self.of_app:
            accounts = self.there.hub.accounts
            return (await connect(accounts, await accounts.named("ada"), scope=scope)).access_token
        given = {**wanted, **({"scope": scope} if scope else {})}
        made = done(await self.asker.ask("POST", ME, given), 201)
        if scope:
            assert sorted(made["scope"].split()) == sorted(scope.split())
        return str(made["token"])

    async def program(self, scope: str) -> Asker:
        """A program of hers, by REST."""
        return Asker(self.there.port, await self.token(scope), "ada")

    async def wire(self, scope: str) -> Wire:
        """A program of hers, at `/mcp`."""
        return Wire(self.there, await self.token(scope))


LISTED = {
    "resources": ({"uri": "demo://notes/a", "name": "a"},),
    "prompts": ({"name": "greet"},),
}


@pytest.fixture
def era() -> str:
    return "stateless"


@pytest.fixture
def of_app() -> bool:
    """Whether ada's programs have access tokens instead of tokens of her own."""
    return False


either = pytest.mark.parametrize("of_app", [False, True], ids=["token", "app"])


@pytest.fixture
async def ada(tmp_path: Path, era: str, of_app: bool) -> AsyncIterator[Owner]:
    async with fronted(tmp_path, era, Demo(), Demo("other"), listed=LISTED) as there:
        yield Owner(there, (await there.hub.accounts.register("ada")).token, of_app=of_app)


async def missing(wire: Wire, tool: str, **arguments: Any) -> str:
    """The scope that a call of a tool lacks; empty where it has all."""
    answer = await wire.ask("tools/call", {"name": tool, "arguments": arguments})
    told = json.loads(answer["result"]["content"][0]["text"])
    return str(told["scope_needed"]) if told.get("code") == MISSING else ""


@pytest.mark.requirement("credentials.scope")
def test_every_row_of_the_table_is_in_a_scope_that_there_is():
    for row in OPERATIONS:
        # Of what is followed as events, each is judged by itself.
        assert row.public or row.events is not None or row.scope in {*NAMES, ALL}, row.name
    assert {need.scope for need in NEEDS.values()} - {"", ALL} <= NAMES.keys()


@pytest.mark.requirement("credentials.scope")
@both_eras
@either
async def test_a_narrow_token_lists_and_calls_only_what_is_in_its_scope(ada):
    reader = await ada.there.returning(await ada.token("mail.read tools:demo"))
    listed = {tool.name for tool in (await reader.client.list_tools()).tools}
    assert {"msg_inbox", "msg_threads", "demo_echo", "msg_register"} <= listed
    assert not listed & {"msg_send", "room_say", "msg_whoami", "other_echo"}
    found = await reader.call("folkmoot_find_tool", query="send a message echo")
    assert not {tool["name"] for tool in found["tools"]} - listed
    await reader.call("msg_inbox")
    sentence = await reader.refused("msg_send", to="ada", body="hi")
    assert sentence == "Your token lacks the scope mail.send."
    payload, is_error = await reader.result("folkmoot_call_tool", {
        "name": "msg_send", "arguments": {"to": "ada", "body": "hi"},
    })  # fmt: skip
    assert is_error
    assert payload["code"] == MISSING
    assert (await reader.client.call_tool("demo_echo", {})).is_error is False
    payload, is_error = await reader.result("other_echo", {})
    assert is_error
    assert payload["scope_needed"] == "tools:other"


@pytest.mark.requirement("credentials.scope")
@either
async def test_resources_prompts_and_subscriptions_are_in_scope_or_refused(ada):
    mail, demo = await ada.wire("mail.read"), await ada.wire("tools:demo")

    async def ask(wire: Wire, method: str, **params: Any) -> Any:
        answer = await wire.ask(method, params)
        return answer.get("error", {}).get("data", {}).get("scope_needed", "")

    assert await ask(mail, "resources/read", uri=INBOX) == ""
    assert await ask(demo, "resources/read", uri=INBOX) == "mail.read"
    assert await ask(demo, "resources/read", uri="demo://notes/a") == ""
    assert await ask(mail, "resources/read", uri="demo://notes/a") == "tools:demo"
    assert await ask(mail, "prompts/get", name="demo_greet") == "tools:demo"
    assert await ask(demo, "prompts/get", name="demo_greet") == ""

    async def listed(wire: Wire) -> set[str]:
        resources = (await wire.ask("resources/list"))["result"]["resources"]
        prompts = (await wire.ask("prompts/list"))["result"]["prompts"]
        return {each["uri"] for each in resources} | {each["name"] for each in prompts}

    mails, demos = await listed(mail), await listed(demo)
    assert INBOX in mails - demos
    assert demos - mails == {"demo://notes/a", "demo_greet"}
    subscribe = {"notifications": {"resourceSubscriptions": [INBOX]}}
    refused_ = await demo.ask("subscriptions/listen", subscribe)
    assert refused_["error"]["data"]["code"] == MISSING
    for wire in (mail, demo):
        await wire.leave()


@pytest.mark.requirement("credentials.scope")
@either
async def test_a_token_for_one_room_opens_no_other_on_any_way(ada):
    port = ada.there.port
    for name in (ROOM, "kitchen"):
        await ada.asker.create(name)
    token = await ada.token(f"rooms:{ROOM}")
    tides, wire = Asker(port, token), Wire(ada.there, token)
    assert await missing(wire, "room_join", room="kitchen") == "rooms:kitchen"
    assert await missing(wire, "room_join", room=ROOM) == ""
    assert await missing(wire, "room_say", room=ROOM, text="hi") == ""
    assert await missing(wire, "room_list") == "rooms"
    assert await missing(wire, "room_create", name="new") == "rooms"
    assert await missing(wire, "room_invite", room=ROOM, handle="x") == (f"rooms.manage:{ROOM}")
    assert await missing(wire, "room_decide", room=ROOM) == f"decide:{ROOM}"
    assert await missing(wire, "room_say", room=["kitchen"], text="x") == "rooms"
    await tides.get(f"{ROOMS}/{ROOM}")
    await tides.say(ROOM, "by REST")
    for method, path, body in (
        ("GET", f"{ROOMS}/kitchen/messages", None),
        ("POST", f"{ROOMS}/kitchen/messages", chat()),
        ("GET", ROOMS, None),
        ("DELETE", f"{ROOMS}/{ROOM}", None),
        ("POST", ME, {}),
    ):
        refused(await tides.ask(method, path, body), 403, MISSING)
    assert await turned_away(port, token, "kitchen") == NOT_ALLOWED
    async with joined(port, token) as seat, joined(port, ada.asker.token) as whole:
        await seat.said(chat("on a WebSocket"))
        await seat.said(proposal())
        told = await seat.refused(grant("ada", "chat.*"))
        assert told["error"] == MISSING
        assert f"rooms.manage:{ROOM}" in told["message"]
        told = await whole.refused(grant("ada", "chat.*"))
        assert told["error"] == "recipient_invalid", "the room says so: it is in scope"
        await seat.said(chat("and still here"))
    await wire.leave()


@pytest.mark.requirement("credentials.scope")
@either
async def test_a_token_to_speak_in_a_room_directs_nobody_there(ada):
    port = ada.there.port
    await ada.asker.create(ROOM, capabilities=["*"])
    bob = await ada.there.hub.accounts.register("bob")
    narrow = await ada.token(f"rooms:{ROOM}")
    manager = await ada.token(f"rooms:{ROOM} rooms.manage:{ROOM}")
    async with joined(port, bob.token), joined(port, narrow) as seat:
        for verb in ("pause", "resume", "forget", "compact", "clear", "restart", "shutdown"):
            wanted = message(f"participant.{verb}", {}, to=["bob"])
            told = await seat.refused(wanted)
            assert told["error"] == MISSING
            assert f"rooms.manage:{ROOM}" in told["message"]
            path = f"{ROOMS}/{ROOM}/messages"
            refused(await Asker(port, narrow).ask("POST", path, wanted), 403, MISSING)
        await seat.said(message("participant.status", {"status": "fine"}))
        async with joined(port, manager) as other:
            await other.said(message("participant.pause", {}, to=["bob"]))
            await other.said(message("participant.resume", {}, to=["bob"]))


@pytest.mark.requirement("credentials.scope")
async def test_a_welcome_tells_the_rights_that_are_left_of_a_narrow_token(ada):
    port = ada.there.port
    await ada.asker.create(ROOM)
    tried = {
        "chat.message": "rooms",
        "mcp.proposal.tools/call:x": "rooms",
        "mcpx.withdraw.proposal": "rooms",
        "mcpx.reject.proposal": "decide",
        "capability.grant": "rooms.manage",
        "room.kick": "rooms.manage",
        "room.invite": "rooms.manage",
        "participant.pause": "rooms.manage",
        "participant.status": "rooms",
    }
    for more in ((), ("decide",), ("rooms.manage",), ("decide", "rooms.manage")):
        has = {"rooms", *more}
        token = await ada.token(" ".join(f"{each}:{ROOM}" for each in sorted(has)))
        async with joined(port, token) as seat:
            held = Rights(seat.welcome["you"]["capabilities"])
            assert {kind for kind in tried if held.allows(parse(kind), {})} == {
                kind for kind, needs in tried.items() if needs in has
            }
    async with joined(port, ada.asker.token) as whole:
        assert whole.welcome["you"]["capabilities"] == ["*"]


@pytest.mark.requirement("credentials.scope")
async def test_whoever_proposes_with_a_narrow_token_withdraws_with_it(ada):
    await ada.asker.create(ROOM)
    token = await ada.token(f"rooms:{ROOM}")
    wire = Wire(ada.there, token)
    async with joined(ada.there.port, token) as seat:
        mine = await seat.said(proposal())
        about = {"correlation_id": [mine["id"]]}
        await seat.said(message("mcpx.withdraw.proposal", {}, **about))
        mine = await seat.said(proposal())
        given = {"room": ROOM, "proposal": mine["id"]}
        listed = await wire.ask("tools/list")
        assert "room_decide" in {tool["name"] for tool in listed["result"]["tools"]}
        for decision in ("reject", "fulfil"):
            needed = await missing(wire, "room_decide", **given, decision=decision)
            assert needed == f"decide:{ROOM}"
        assert await missing(wire, "room_decide", **given, decision="withdraw") == ""
        found = await Asker(ada.there.port, token).get(f"{ROOMS}/{ROOM}/proposals")
        assert {one["state"] for one in found["proposals"]} == {"withdrawn"}
    await wire.leave()


@pytest.mark.requirement("credentials.scope")
@either
async def test_a_server_in_a_room_is_asked_only_with_the_scope_for_it(ada):
    await ada.asker.create(ROOM, backends=["demo"], capabilities=["*"])
    call = {"room": ROOM, "to": "demo", "tool": "demo:echo", "arguments": {}}
    for scope_, answered in ((f"rooms:{ROOM}", False), (f"rooms:{ROOM} tools:demo", True)):
        wire = await ada.wire(scope_)
        answer = await wire.ask("tools/call", {"name": "room_call", "arguments": call})
        told = json.loads(answer["result"]["content"][0]["text"])
        assert ("result" in told) is answered, told
        await wire.leave()
    narrow = await ada.program("rooms")
    new = {"name": "new", "backends": ["demo"]}
    refused(await narrow.ask("POST", ROOMS, new), 404, "backend_unknown")


@pytest.mark.requirement("credentials.scope-child")
async def test_a_token_makes_none_that_may_do_more(ada):
    agent = await ada.program("account account.read rooms")
    assert done(await agent.ask("POST", ME, {}), 201)["scope"] == "account account.read rooms"
    less = done(await agent.ask("POST", ME, {"scope": "rooms:square"}), 201)
    assert less["scope"] == "rooms:square"
    for wanted in ("*", "mail.read", "account decide", "operate"):
        told = refused(await agent.ask("POST", ME, {"scope": wanted}), 400, "argument_invalid")
        assert told["field"] == "scope"
    child = Asker(ada.there.port, less["token"])
    assert refused(await child.ask("POST", ME, {}), 403, MISSING)["scope_needed"] == "account"
    listed = (await agent.get(ME))["tokens"]
    assert sorted(it["scope"] for it in listed) == [
        "*", "account account.read rooms", "account account.read rooms", "rooms:square",
    ]  # fmt: skip


@pytest.mark.requirement("credentials.scope")
async def test_what_is_no_scope_is_refused_and_no_token_is_made(ada):
    for wanted in (
        *("", "  ", "mail", "mail.*", "mail.read:inbox", "rooms:", "rooms:Sq uare"),
        *("operate", "* operate", "rooms:" + "x" * 1000),
    ):
        told = refused(await ada.asker.ask("POST", ME, {"scope": wanted}), 400, "argument_invalid")
        assert told["field"] == "scope", wanted
    assert len((await ada.asker.get(ME))["tokens"]) == 1


@pytest.mark.requirement("credentials.scope")
async def test_a_copy_of_everything_needs_a_token_that_can_read_everything(ada):
    await ada.there.hub.accounts.register("bob")
    done(await ada.asker.ask("POST", "/v1/messages", {"to": "bob", "body": "between us"}), 201)
    for narrow in ("account account.read", "account mail.read"):
        answer = await (await ada.program(narrow)).ask("GET", "/v1/me/export")
        refused(answer, 403, MISSING)
        assert "between us" not in answer.text
    assert "between us" in (await ada.asker.ask("GET", "/v1/me/export")).text


@pytest.mark.requirement("credentials.operate")
def test_no_grant_and_no_whole_token_runs_the_hub():
    needs = {"folkmoot/grant": Need("operate"), "msg/send": Need("mail.send")}
    kind = parse("mcp.request.tools/call:folkmoot/grant")
    everything = Rights(["*"])
    assert not Scoped(everything, scope("*"), needs).allows(kind, {})
    assert Scoped(everything, scope("*"), needs).missing(kind, {}) == "operate"
    assert Scoped(Rights(["chat.*"]), scope("* operate"), needs).allows(kind, {})
    assert not Scoped(
        Rights(["*", "!mcp.request.tools/call:folkmoot/*"]), scope("operate"), needs
    ).allows(kind, {})
    operating = Scoped(everything, scope("operate"), needs)
    assert operating.allows(kind, {})
    assert not operating.allows(parse("mcp.request.tools/call:msg/send"), {})


@pytest.mark.requirement("credentials.scope")
def test_an_operation_that_nobody_knows_needs_everything():
    kind = parse("mcp.request.tools/call:room/unheard_of")
    narrow = Scoped(Rights(["*"]), scope("rooms mail.read"), NEEDS)
    assert narrow.missing(kind, {"params": {}}) == "*"
    assert not narrow.allows(kind, {})
    assert Scoped(Rights(["*"]), scope("*"), NEEDS).allows(kind, {})


@pytest.mark.requirement("credentials.operate", "credentials.scope-child")
async def test_only_the_operator_makes_a_token_for_someone_else_or_to_run_the_hub(ada):
    there = ada.there
    await there.hub.accounts.register("tides", account_type="agent")
    path = "/v1/people/tides/credentials"
    row = next(row for row in OPERATIONS if row.name == "folkmoot/create_token_for")

    async def operate(**wanted: Any) -> Any:
        return (await there.hub._dispatcher.perform(row, wanted, Caller(operator=True))).payload

    asked = {"scope": "rooms:square"}
    refused(await ada.asker.ask("POST", path, asked), 403, MISSING)
    made = await operate(handle="tides", scope="rooms:square", expires_in=60)
    assert made.scope == "rooms:square"
    assert (await there.hub.accounts.authenticate(made.token)).handle == "tides"
    with pytest.raises(e.UserNotFound):
        await operate(handle="nobody")
    operator = Asker(there.port, (await operate(handle="ada", scope="operate *")).token)
    # To run the hub from afar is one thing, to be anyone another.
    refused(await operator.ask("POST", path, asked), 403, "capability_denied")
    for wanted in ("operate", "* operate"):
        refused(await operator.ask("POST", ME, {"scope": wanted}), 400, "argument_invalid")
    assert done(await operator.ask("POST", ME, {}), 201)["scope"] == "*"
