"""Rules that name who asks: the caller, a group they are in, or what kind of account they have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from folkmoot.settings import GatewaySpec
from tests.harness import ask, reached
from tests.mcp_harness import Meeting, both_eras, meeting
from tests.transports.mcp.gateway_support import Wire, wired

# What is said to whom a rule stops, and whom and what it is about.
BLOCKED = {
    "not eve": 'tool = "msg/send", type = "request", caller = ["@Eve", "mallory_*"]',
    "not interns": 'tool = "msg/send", group = "interns"',
    "not agents": 'tool = "msg/send", type = "request", account = "agent"',
    "not for eve": 'tool = "msg/contacts", type = "response", caller = "eve"',
    "not nobody": 'method = "tools/call", account = "nobody"',
}
HELD = 'tool = "msg/send", type = "request", caller = "harry"'
RULES = f'[[rule]]\nname = "ask first"\nwhen = {{ {HELD} }}\naction = "hold"\n' + "".join(
    f'[[rule]]\nname = "{said}"\nwhen = {{ {when} }}\naction = "block"\nmessage = "{said}"\n'
    for said, when in BLOCKED.items()
)


def with_rules(folder: Path, text: str = RULES) -> dict[str, Any]:
    """The settings of a hub that has rules."""
    rules = folder / "rules.toml"
    rules.write_text(text)
    return {"interceptors": {"rules": str(rules)}}


async def sent(wire: Wire) -> str:
    """What someone is told who sends a message: nothing, or why not."""
    call = {"name": "msg_send", "arguments": {"to": "bob", "body": "Hello"}}
    answer = await wire.ask("tools/call", call)
    return str(answer["error"]["message"]) if "error" in answer else ""


async def held(there: Meeting) -> int:
    """The number of the first message that is held."""
    waiting = there.hub._passing.held
    await reached(lambda: bool(len(waiting)))
    return waiting.list()[0].id


@both_eras
async def test_rules_name_who_asks(era, tmp_path):
    async with meeting(tmp_path / "hub", era, **with_rules(tmp_path)) as there:
        register = there.hub.accounts.register
        tokens = {it: (await register(it)).token for it in ("bob", "eve", "mallory_2", "iris")}
        await there.hub.behind.rights.configure(GatewaySpec(groups={"interns": ("iris",)}))
        tokens["robot"] = (await register("robot", account_type="agent")).token
        wires = {name: await wired(there, token) for name, token in tokens.items()}
        assert {name: await sent(wire) for name, wire in wires.items()} == {
            "bob": "",
            "eve": "not eve",
            "mallory_2": "not eve",
            "iris": "not interns",
            "robot": "not agents",
        }
        contacts = {"name": "msg_contacts"}
        assert "result" in await wires["bob"].ask("tools/call", contacts)
        told = await wires["eve"].ask("tools/call", contacts)
        assert told["error"]["message"] == "not for eve"
        new = {"name": "msg_register", "arguments": {"handle": "newcomer"}}
        for token in ("", "sk_of_nobody"):
            stranger = await wired(there, token)
            assert (await stranger.ask("tools/call", new))["error"]["message"] == "not nobody"
        # Whoever is in a group stays in it under another name, as with rights.
        iris = await there.hub.accounts.authenticate(tokens["iris"])
        await there.hub.accounts.change_handle(iris, "ivy")
        assert await sent(wires["iris"]) == "not interns"


@both_eras
@pytest.mark.parametrize("change", ["suspended", "renamed", "left"])
async def test_who_asks_is_made_out_again_when_something_changed_while_a_message_was_held(
    era, change, tmp_path
):
    async with meeting(tmp_path / "hub", era, **with_rules(tmp_path)) as there:
        accounts = there.hub.accounts
        bob, made = [await accounts.register(name) for name in ("bob", "harry")]
        harry = await accounts.authenticate(made.token)
        sending = asyncio.ensure_future(sent(await wired(there, made.token)))
        number = await held(there)
        assert there.hub._passing.held.view(number).who == "harry"
        match change:
            case "suspended":
                await accounts.suspend(harry, suspended=True)
            case "renamed":
                await accounts.change_handle(harry, "harold")
            case "left":
                await accounts.delete(harry)
        there.hub._passing.held.release(number)
        await sending
        reader = await accounts.authenticate(bob.token)
        senders = [it.from_handle for it in (await there.hub.mail.inbox(reader)).messages]
        assert senders == (["harold"] if change == "renamed" else [])


@pytest.mark.requirement("invite.page-form")
async def test_no_rule_is_passed_by_from_a_page(tmp_path):
    async with meeting(tmp_path / "hub", "stateless", **with_rules(tmp_path)) as there:
        ada = (await there.hub.accounts.register("ada")).account
        code = await there.hub.accounts.create_invite(ada)
        body = msgspec.json.encode({"handle": "newcomer", "invite_code": code})
        told = {"content-type": "application/json"}
        port = int(there.hub.base_url.rpartition(":")[2])
        answer = await ask(port, "/v1/accounts", method="POST", headers=told, body=body)
        assert "not nobody" in answer.text
        assert await there.hub.accounts.count() == 1
