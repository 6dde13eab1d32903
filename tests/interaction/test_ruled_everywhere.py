"""What a rule stops is stopped on every way into the hub, for whomever the rule names.

The ways are those of `test_denied_everywhere`. For each rule the expected verdict is computed from
the tools that a way does the work of, so one that enters beside the pipeline fails here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Request, replace
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.settings import GatewaySpec
from tests.harness import reached
from tests.interaction.room_client import (
    ROOM,
    Square,
    chat,
    joined,
    rest,
    square,
    turned_away,
)
from tests.interaction.test_denied_everywhere import (
    TOOL,
    Visit,
    Way,
    refusals_left,
    routes,
    said,
    tools,
    visiting,
)
from tests.mcp_harness import settings
from tests.nodes import heard_everywhere, nodes_of

BLOCKED = "blocked"
NOT_ALLOWED = 4403
WAYS = (*said(), *tools(), *routes())

# Rules by name: whom and what they are about, and the tools that this stops.
RULES = {
    "a tool": ('tool = "room/say", caller = "bob"', "room/say"),
    "every tool of rooms": ('tool = "room/*", type = "request", group = "interns"', "room/*"),
    "calls by kind": (f'kind = "{TOOL}:room/decide", account = "person"', "room/decide"),
    "every call": ('method = "tools/call", not = { caller = "ann" }', "*"),
    "a room by path": (f'path = "$.params.arguments.room", is = "{ROOM}", caller = "bob"', ""),
}
# Those that are tried in the longer run.
LONG = ("calls by kind", "a room by path", "every call")


class Ruled(Visit):
    """Bob at a hub with rules: whether a way was blocked by one."""

    code = BLOCKED

    def is_the_hubs(self, sentence: str) -> bool:
        return True


@asynccontextmanager
async def ruled(folder: Path, when: str, action: str = 'action = "block"') -> AsyncIterator[Ruled]:
    """A hub with one rule, where ann has a room."""
    rules = folder / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "the rule"\nwhen = {{ {when} }}\n{action}\n')
    given = settings(folder / "hub", interceptors={"rules": str(rules)})
    async with visiting(given, Ruled) as there:
        for node in nodes_of(there.hub):
            await node.behind.rights.configure(GatewaySpec(groups={"interns": ("bob",)}))
        yield there


def tool_of(way: Way) -> str:
    """The tool whose work a way does; of several, a room's own names the rest."""
    named = [kind.removeprefix(f"{TOOL}:") for kind in way.kinds if kind.startswith(TOOL)]
    own = [name for name in named if name.startswith(("room/", "msg/", "ask/", "folkmoot/"))]
    return next((name for name in own if name != "room/post"), own[0])


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, marks=[pytest.mark.long] if rule in LONG else [], id=rule)
        for rule in RULES
    ],
)
async def test_what_a_rule_stops_is_stopped_and_noted_on_every_way_in(rule, tmp_path, caplog):
    when, pattern = RULES[rule]
    caplog.set_level(logging.INFO, "folkmoot.audit")

    def lines() -> list[tuple[str, ...]]:
        kept = [vars(record) for record in caplog.records if record.name == "folkmoot.audit"]
        return [(it["about"], it["outcome"], it["by"]) for it in kept if it["msg"] == "hub.call"]

    wrong: list[str] = []
    async with ruled(tmp_path, when) as there:
        in_it = {"room/create", "room/list", "room/unread"} if not pattern else set()

        def stops(way: Way) -> bool:
            tool = tool_of(way)
            if pattern:
                return fnmatchcase(tool, pattern)
            # Only what names the room in its arguments: the calls of tools here name nothing.
            named = tool.startswith("room/") and tool not in in_it
            return named and not way.name.startswith("tool ")

        async def try_all() -> None:
            for way in WAYS:
                if way.connected and there.seat is None:
                    continue
                caplog.clear()
                expected = stops(way)
                if await way.is_denied(there) is not expected:
                    wrong.append(f"{way.name}: {'passed' if expected else 'was stopped'}")
                noted = [(f"{TOOL}:{tool_of(way)}", BLOCKED, "bob")] if expected else []
                if lines() != noted:
                    wrong.append(f"{way.name}: noted {lines()}")

        if not pattern or any(fnmatchcase(it, pattern) for it in ("room/join", "room/read")):
            assert await turned_away(there.port, there.token) == NOT_ALLOWED
            await try_all()
        else:
            async with joined(there.port, there.token) as there.seat:
                await try_all()
        async with joined(there.port, there.ann) as ann:
            await ann.said(chat())
        assert not refusals_left()
    assert not wrong


async def test_only_where_a_call_is_answered_can_a_rule_answer_it(tmp_path):
    action = 'action = "mock"\nresult = { content = [{ type = "text", text = "mine" }] }'
    async with ruled(tmp_path, 'tool = "room/*", caller = "bob"', action) as there:
        answer = await there.mcp("tools/call", name="room_list", arguments={})
        assert answer["result"]["content"][0]["text"] == "mine"
        listed = await rest(there.port, there.token, "GET", "")
        assert listed.status == 403
        told = listed.json()["error"]
        assert told["message"] == "the rule answers in the hub's place, which it may not."
        assert await turned_away(there.port, there.token) == NOT_ALLOWED


async def test_rules_name_guests_and_those_who_are_about_to_become_one(tmp_path):
    async with ruled(tmp_path, 'tool = "room/*", account = ["guest", "nobody"]') as there:
        made = await rest(there.port, there.ann, "POST", f"/{ROOM}/invites", {"guest": "grace"})
        token = made.json()["token"]
        exchanged = await rest(there.port, "", "POST", f"/{ROOM}/guests", {"token": token})
        assert exchanged.json()["error"]["code"] == BLOCKED
        assert await turned_away(there.port, token) == NOT_ALLOWED
        # Neither used the invitation up.
        for node in nodes_of(there.hub):
            node._passing.rules.ruleset.swap(())
        async with joined(there.port, token) as seat:
            assert seat.name == "grace"


class Rewrites:
    """Changes the calls of one tool: members of the request, or some of its arguments."""

    name = "rewrites"
    guards = False

    def __init__(self, tool: str, *, in_place: bool = False, **change: Any) -> None:
        self._tool = tool
        self._in_place = in_place
        self._change = change

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        message, change = envelope.message, self._change
        if not isinstance(message, Request) or message.params.get("name") != self._tool:
            return CONTINUE
        if self._in_place:
            message.params["arguments"].update(change)
            return CONTINUE
        if not change.keys() & {"method", "params"}:
            given = {**message.params["arguments"], **change}
            change = {"params": {**message.params, "arguments": given}}
        return Modify(replace(message, **change))


@asynccontextmanager
async def rewriting(folder: Path, tool: str, **change: Any) -> AsyncIterator[Square]:
    async with square(folder, [Rewrites(tool, **change)]) as there:
        await there.people("ann")
        await there.room("ann")
        await there.room("ann", "tea")
        yield there


@pytest.mark.parametrize(
    "change",
    [
        {"params": {"name": "room/list", "arguments": {"room": ROOM}}},
        {"method": "tools/list"},
        {"params": {"name": "room/show", "arguments": []}},
        {"room": "tea"},
        {"room": "tea", "in_place": True},
    ],
)
async def test_no_rewrite_makes_a_rest_call_another_than_policy_judged(change, tmp_path):
    async with rewriting(tmp_path, "room/show", **change) as there:
        answer = await there.rest("ann", "GET", f"/{ROOM}")
        assert answer.json()["error"]["code"] in ("rewrite_refused", "capability_denied")
        assert (await there.rest("ann", "GET", "")).status == 200


async def test_a_rule_changes_the_arguments_of_a_rest_call(tmp_path):
    async with rewriting(tmp_path / "1", "room/list", limit=1) as there:
        assert len((await there.rest("ann", "GET", "")).json()["rooms"]) == 1
    for tool, path in (("room/list", ""), ("room/read", f"/{ROOM}/messages?after=0&wait=1")):
        async with rewriting(tmp_path / tool, tool, limit=10**9) as there:
            answer = await there.rest("ann", "GET", path)
            assert answer.json()["error"]["code"] == "rewrite_refused"
    async with rewriting(tmp_path / "2", "room/create", access="private") as there:
        assert (await there.rest("ann", "GET", f"/{ROOM}")).json()["access"] == "private"
        wrong = await there.rest("ann", "POST", "", {"name": "x", "room": "y"})
        assert wrong.status in (400, 500)


@pytest.mark.requirement("room.interceptors-never-rewrite")
async def test_a_rule_that_would_change_what_is_done_in_a_room_or_which_one_is_joined_stops_it(
    tmp_path,
):
    (tmp_path / "say").mkdir()
    (tmp_path / "join").mkdir()
    action = 'action = "modify"\nset = { "$.params.arguments.text" = "another" }'
    async with ruled(tmp_path / "say", 'tool = "room/say"', action) as there:
        async with joined(there.port, there.token) as seat:
            assert (await seat.refused(chat()))["error"] == "rewrite_refused"
        posted = await rest(there.port, there.token, "POST", f"/{ROOM}/messages", chat())
        assert posted.json()["error"]["code"] == "rewrite_refused"
    action = 'action = "modify"\nset = { "$.params.arguments.room" = "another" }'
    async with ruled(tmp_path / "join", 'tool = "room/join"', action) as there:
        assert await turned_away(there.port, there.token) == NOT_ALLOWED


async def while_held(
    there: Ruled, asking: Awaitable[Any], change: Callable[[], Awaitable[Any]]
) -> Any:
    """What is answered to a request when something was changed while a rule held it."""
    each = [node._passing.held for node in nodes_of(there.hub)]
    answering = asyncio.ensure_future(asking)
    await reached(lambda: any(held.list() for held in each))
    await change()
    await heard_everywhere(there.hub)
    (held,) = (held for held in each if held.list())
    held.release(held.list()[0].id)
    return await answering


@pytest.mark.parametrize(
    "change",
    [
        "suspended",
        "denied",
        *(pytest.param(it, marks=pytest.mark.long) for it in ("left", "nothing")),
    ],
)
@pytest.mark.parametrize("what", ["create", "post"])
async def test_who_asks_by_rest_is_made_out_again_when_something_changed_while_it_was_held(
    what, change, tmp_path
):
    when = 'tool = "room/create"' if what == "create" else 'kind = "chat.message"'
    async with ruled(tmp_path, f'{when}, caller = "bob"', 'action = "hold"') as there:
        accounts = there.hub.accounts
        bob = await accounts.authenticate(there.token)
        assert bob is not None

        async def happens() -> None:
            if change == "suspended":
                await accounts.suspend(bob, suspended=True)
            elif change == "left":
                await accounts.delete(bob)
            elif change == "denied":
                await there.change("grant", f"!{TOOL}:room/*")

        path, body = ("", {"name": "bobs"}) if what == "create" else ("/plaza/messages", chat())
        answer = await while_held(there, rest(there.port, there.token, "POST", path, body), happens)
        codes = {"denied": (403, 403), "nothing": (201, 201)}
        assert answer.status in codes.get(change, (401, 403)), answer
        rooms = (await rest(there.port, there.ann, "GET", "")).json()["rooms"]
        heard = (await rest(there.port, there.ann, "GET", f"/{ROOM}/messages")).text
        done = "bobs" in [it["name"] for it in rooms] or '"bob"' in heard
        assert done is (change == "nothing")
