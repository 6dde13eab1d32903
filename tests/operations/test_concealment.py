"""Secret arguments and answers of operations, which no rule, held message, tape or log shows."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Request, members, replace
from folkmoot.core.redaction import is_secret_name
from folkmoot.core.verdict import CONTINUE, Block, Verdict
from folkmoot.operations import OPERATIONS, Absent
from folkmoot.operations.concealment import MASK, conceal, conceal_call
from folkmoot.proxy.redaction import mail
from tests.mcp_harness import both_eras, meeting, rpc, settings
from tests.proxy.rules.support import call, envelope
from tests.transports.rest.support import House, done, refused, until
from tests.transports.rest.test_sessions import SESSION, Browser
from tests.transports.rest.test_tapes import operator

HOLD = """
[[rule]]
name = "ask first"
when = { tool = ["folkmoot/s*", "folkmoot/use_code", "room/enter_as_guest", "msg/*"] }
action = "hold"
"""
PIN = "correct-horse-battery"
PASTED = json.dumps({"mcpServers": {"x": {"command": "/nowhere", "env": {"NUMBER": PIN}}}})
# Names that sound like a secret: this one is the id of a token.
NO_SECRETS = {"credential"}

every_row = pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)


class Spy:
    """An interceptor that keeps all it sees."""

    name, guards = "spy", False

    def __init__(self, verdict: Verdict = CONTINUE) -> None:
        self.verdict = verdict
        self.seen: list[MessageEnvelope[Any]] = []

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        self.seen.append(envelope)
        return self.verdict

    @property
    def text(self) -> str:
        """The messages, as whoever prints them has them."""
        return " ".join(str(each.message) for each in self.seen)


@asynccontextmanager
async def spied(folder: Path, spy: Spy, **values: object) -> AsyncIterator[House]:
    async with Hub(settings(folder, **values), interceptors=[spy]).running() as hub:
        yield House(hub)


@every_row
def test_whatever_sounds_like_a_secret_is_marked_as_one(row):
    takes = {row.takes}
    if not isinstance(row.routes, Absent):
        takes |= {route.takes for route in row.routes if route.takes is not None}
    names = {field.name for each in takes for field in msgspec.structs.fields(each)}
    given = {field.name for field in msgspec.structs.fields(row.gives)}
    told = names if isinstance(row.tool, Absent) else names | given
    sounds = {name for name in told if is_secret_name(name) or name == "code"} - NO_SECRETS
    assert sounds <= {*row.secret} <= names | given


async def test_a_held_call_shows_no_secret_and_has_it_again_when_it_is_released(tmp_path, caplog):
    rules = tmp_path / "rules.toml"
    rules.write_text(HOLD)
    caplog.set_level(logging.DEBUG, "folkmoot")
    spy = Spy()
    chosen = {"rules": str(rules)}
    async with spied(tmp_path / "hub", spy, interceptors=chosen) as here:
        root, ann = await operator(here), await here.person("ann")
        await ann.create("square")
        path = "/v1/rooms/square/invites"
        invited = done(await ann.ask("POST", path, {"guest": "gus"}), 201)
        held = here.hub._passing.held
        shown: list[Any] = []

        async def through(asked: Any, *, edited: bool = False) -> Any:
            asking = asyncio.ensure_future(asked)
            await until(lambda: len(held) or asking.done())
            listed = await root.get("/v1/held")
            number = listed["held"][0]["id"]
            whole = await root.get(f"/v1/held/{number}")
            shown.extend((listed, whole))
            body = {"message": whole["message"]} if edited else {}
            done(await root.ask("POST", f"/v1/held/{number}/release", body), 200)
            return await asking

        browser = Browser(here.port)
        for edited in (False, True):
            entered = browser.ask("POST", SESSION, {"token": ann.token})
            assert (await through(entered, edited=edited)).status == 200
        account = await here.hub.accounts.authenticate(ann.token)
        assert account is not None
        made = await here.hub.accounts.browsers.create_code(account)
        code = made.code
        used = await through(browser.ask("POST", f"{SESSION}/code", {"code": code}))
        assert used.status == 200, used
        guest = here.stranger.ask("POST", "/v1/rooms/square/guests", {"token": invited["token"]})
        assert (await through(guest)).status in (200, 201)
        confirmed = {"folkmoot-confirm": root.token}
        added = root.ask("POST", "/v1/servers", {"text": PASTED}, headers=confirmed)
        told = await through(added)
        # A hub without a settings file adds no server; the call went all the way.
        refused(told, 400, "command_invalid")
        seen = json.dumps(shown) + spy.text + caplog.text
        assert MASK in seen
        for secret in (ann.token, root.token, code, invited["token"], PIN):
            assert secret not in seen


@both_eras
async def test_over_mcp_neither_arguments_nor_answers_nor_tapes_show_a_secret(era, tmp_path):
    rules, tapes = tmp_path / "rules.toml", tmp_path / "tapes"
    rules.write_text(HOLD.replace('"msg/*"', '"msg/recover"'))
    shown_to, record = {"rules": str(rules)}, {"folder": str(tapes)}
    async with meeting(tmp_path / "hub", era, interceptors=shown_to, record=record) as there:
        held = there.hub._passing.held
        shown: list[Any] = []

        async def released(asked: Any) -> Any:
            """What comes of a call, all of whose messages are held and released."""
            asking = asyncio.ensure_future(asked)
            while not asking.done():
                await until(lambda: len(held) or asking.done())
                for view in held.list():
                    shown.append((view, members(held.envelope(view.id).message)))
                    held.release(view.id)
            return await asking

        ann = await there.person("ann")
        stranger = await there.stranger()
        recovering = stranger.call("msg_recover", handle="ann", recovery_code=ann.recovery_code)
        answer = await released(recovering)
        assert answer["token"].startswith("sk_")
        assert len(shown) == 2
        secrets = [ann.recovery_code, answer["token"]]
        assert not [each for each in secrets if each in str(shown)]
        # Nobody is served by these over MCP, but whoever tries sends the secret all the same.
        wrong = {"name": "folkmoot/use_code", "arguments": {"code": PIN}}
        wrapped = {"name": "folkmoot_call_tool", "arguments": {**wrong, "more": 1}}
        for params in (wrong, wrapped):
            asked = there.post(rpc("tools/call", params), query=f"?token={answer['token']}")
            await released(asked)
        assert PIN not in str(shown)
    written = b"".join(each.read_bytes() for each in tapes.glob("*.jsonl"))
    assert PIN.encode() not in written
    assert b"recover" in written


async def test_a_stopped_call_has_no_secret_in_the_audit_log(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "folkmoot")
    spy = Spy(Block(e.BlockedByInterceptor("No.")))
    gateway = {"audit_arguments": "record"}
    async with spied(tmp_path, spy, gateway=gateway) as here:
        root = await operator(here)
        answer = await root.ask("POST", "/v1/servers", {"text": PASTED})
        refused(answer, 403, "blocked")
    lines = [vars(each) for each in caplog.records if each.name == "folkmoot.audit"]
    assert any(MASK in str(line.get("arguments")) for line in lines), lines
    assert PIN not in str(lines)


def shown_and_left(message: Any, change: Any) -> tuple[Any, Any]:
    """What interceptors see of a message, and what goes on once one of them changed it."""
    concealed = conceal(envelope(message))
    shown = concealed.envelope.message
    return shown, concealed.reveal(concealed.envelope.with_message(change(shown))).message


def test_a_changed_call_has_its_secret_where_the_mask_still_stands_and_nowhere_else():
    def with_params(**changes: Any) -> Any:
        return lambda shown: replace(shown, params={**shown.params, **changes})

    message = call("msg_recover", {"handle": "ann", "recovery_code": PIN})
    shown, left = shown_and_left(message, lambda shown: shown)
    assert shown.params["arguments"] == {"handle": "ann", "recovery_code": MASK}
    assert left is message
    bob, other = {"handle": "bob", "recovery_code": MASK}, {"recovery_code": "other"}
    for changes, given in (
        ({"arguments": bob}, {"handle": "bob", "recovery_code": PIN}),
        ({"arguments": other}, other),
        ({"name": "msg/send", "arguments": {"body": MASK}}, {"body": MASK}),
        ({"arguments": None}, None),
    ):
        _, left = shown_and_left(message, with_params(**changes))
        assert left.params["arguments"] == given
    wrapped = {"name": "msg/recover", "arguments": {"recovery_code": PIN}, "more": 1}
    message = call("folkmoot/call_tool", wrapped)
    shown, left = shown_and_left(message, with_params(_meta={}))
    assert PIN not in str(shown)
    assert left.params["arguments"] == wrapped
    for harmless in (
        call("msg/recover", {"handle": "ann"}),
        call("msg/recover", {"recovery_code": ""}),
        call("demo:sign_in", {"token": PIN}),
        Request(id=1, method="tools/call", params={"name": 1, "arguments": {}}),
        Request(id=1, method="tools/call", params=["msg/recover"]),
        Request(id=1, method="prompts/get", params={"name": "msg/recover"}),
    ):
        assert conceal(envelope(harmless)) is None
        assert conceal_call(harmless) is harmless


def test_tapes_know_the_arguments_of_every_tool_of_mail():
    taken = {
        row.name.removeprefix("msg/"): {field.encode_name for field in fields(row.takes)}
        for row in OPERATIONS
        if row.name.startswith("msg/")
    }
    shown = {
        name: {each for each in names - mail.ARGUMENTS if not is_secret_name(each)}
        for name, names in taken.items()
    }
    assert shown == {name: set(names) for name, names in mail.SHOWN.items()}
