"""The rooms' tools on real rooms, without a transport between."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.kinds import KNOWN_KINDS
from folkmoot.operations import CATALOGUE, Caller
from folkmoot.operations.rooms import messages
from folkmoot.operations.rooms.messages import GROUP_NAMES, group_of
from folkmoot.rooms import RoomOptions, visitor_of
from tests.client.support import eventually
from tests.operations.support import dispatcher
from tests.rooms.gathering import Gathering, chat

LONG = 50
PROPOSED = {"name": "count", "arguments": {"of": [1, 1.0, 2**53 + 1, None]}}


class Office:
    """Rooms and the tools that use them."""

    def __init__(self, here: Gathering) -> None:
        self.here = here
        self.tools = dispatcher(accounts=here.accounts, rooms=here.rooms)

    async def people(self, *handles: str) -> list[Someone]:
        return [Someone(self, await self.here.person(handle)) for handle in handles]

    async def square(self, *handles: str, **options: Any) -> list[Someone]:
        """People, of whom the first makes a room."""
        people = await self.people(*handles)
        await people[0].call("room/create", name="square", **options)
        return people


class Someone:
    """An account that calls tools, in the room `square` unless another is named."""

    def __init__(self, office: Office, account: Account) -> None:
        self.office = office
        self.account = account
        self.leaving = asyncio.Event()
        self.good = True

    async def result(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, bool]:
        async def confirm() -> bool:
            return self.good

        caller = Caller(account=self.account, awaited=self.leaving, confirm=confirm)
        row = CATALOGUE.named(tool)
        where = {"room": "square"} if "room" in row.schema["properties"] else {}
        result = await self.office.tools.call(row, where | arguments, caller)
        return json.loads(result.text()), result.is_error

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        payload, is_error = await self.result(tool, arguments)
        assert not is_error, payload
        return payload

    async def refused(self, tool: str, /, **arguments: Any) -> Any:
        payload, is_error = await self.result(tool, arguments)
        assert is_error, payload
        return payload

    async def denied(self, tool: str, /, **arguments: Any) -> Any:
        """The code of a refusal, or its sentence where it has none."""
        payload = await self.refused(tool, **arguments)
        return payload.get("code", payload["error"])

    async def messages(self, **arguments: Any) -> list[dict[str, Any]]:
        part: dict[str, Any] = await self.call("room/read", **arguments)
        return list(part["messages"])

    async def part(self, **arguments: Any) -> tuple[list[int], int, bool]:
        """The messages that are read, the last place, and whether there is more."""
        part = await self.call("room/read", **arguments)
        return [each["seq"] for each in part["messages"]], part["last_seq"], part["more"]

    async def proposals(self, **arguments: Any) -> list[dict[str, Any]]:
        found = await self.call("room/proposals", **arguments)
        return list(found["proposals"])

    async def say(self, *texts: str) -> None:
        for text in texts:
            await self.call("room/say", text=text)

    async def post(self, raw: bytes) -> None:
        await self.office.here.rooms.post(visitor_of(self.account), "square", raw)

    async def send(self, kind: str, **members: Any) -> None:
        await self.post(json.dumps({"protocol": "mcpx/v1", "kind": kind, **members}).encode())

    async def texts(self, **arguments: Any) -> list[str]:
        return [each["text"] for each in await self.messages(kinds=["chat"], **arguments)]


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Something that goes on beside what a test does."""
    async with asyncio.TaskGroup() as tasks:
        yield tasks.create_task(work)


def test_every_kind_there_is_belongs_to_a_group():
    groups = {known.kind: group_of(known.kind) for known in KNOWN_KINDS}
    assert set(groups.values()) == set(GROUP_NAMES)
    assert groups["chat.message"] == "chat"
    assert group_of("chat.message.markdown") == "chat"
    assert group_of("mcp.notification.notifications/chat/message") == "chat"
    assert group_of("mcp.proposal.tools/call:chat.say") == "proposal"
    assert group_of("mcpx.reject.proposal") == "proposal"
    assert group_of("mcpxy.reject.proposal") == "other"
    assert group_of("chat.acknowledge") == "other"


@pytest.mark.requirement("room.tools")
async def test_chat_is_shown_the_same_in_either_spelling(office):
    (ann,) = await office.square("ann")
    payload = {"text": "*hello* 🦉", "format": "markdown", "reply_to": "x", "mentions": ["bob"]}
    said = await ann.call("room/say", **payload, thread_id="t")
    await ann.send("chat.message", payload=payload)
    await ann.send("chat.message", payload={"text": "hi", "more": "x"})
    first, second, third = await ann.messages()
    assert (first["id"], first["seq"]) == (said["id"], said["seq"])
    assert first.pop("thread_id") == "t"
    assert first.pop("kind") == "mcp.notification.notifications/chat/message"
    assert second.pop("kind") == "chat.message"
    for message in (first, second):
        del message["seq"], message["id"], message["ts"]
        assert message == {"from": "ann", **payload}
    assert third["text"] == "hi"
    assert "payload" not in third
    assert "more" not in third


@pytest.mark.requirement("room.read-waits")
async def test_a_history_is_read_forward_from_a_place_and_back_from_its_end(office):
    (ann,) = await office.square("ann")
    await ann.say(*(f"{number}" for number in range(1, 8)))
    assert await ann.part(limit=3) == ([5, 6, 7], 7, False)
    assert (await ann.call("room/read"))["first_seq"] == 1
    assert await ann.part(limit=3, before=5) == ([2, 3, 4], 4, True)
    assert await ann.part(limit=3, after=0) == ([1, 2, 3], 3, True)
    assert await ann.part(limit=3, after=6) == ([7], 7, False)
    assert await ann.part(limit=3, after=7) == ([], 7, False)
    for nowhere in (0, 1):
        assert await ann.messages(limit=3, before=nowhere) == []
    for both in ({"after": 1}, {"wait": 1}):
        told = await ann.denied("room/read", before=5, **both)
        assert told == "before cannot be combined with after or wait."


async def test_an_answer_ends_early_when_its_messages_are_long(office, monkeypatch):
    monkeypatch.setattr(messages, "MAX_MESSAGES_BYTES", 5_000)
    (ann,) = await office.square("ann")
    await ann.say("a" * 2_000, "b" * 2_000, "c" * 2_000, "d" * 9_000, "e")

    assert await ann.part(after=0) == ([1, 2], 2, True)
    assert await ann.part(after=2) == ([3], 3, True)
    assert await ann.part(after=3) == ([4], 4, True)
    assert await ann.part(after=4) == ([5], 5, False)
    assert await ann.part() == ([5], 5, False)
    assert await ann.part(before=5) == ([4], 4, True)
    assert await ann.part(before=4) == ([2, 3], 3, True)


@pytest.mark.settings(options=RoomOptions(chat={}, memory_messages=5))
async def test_what_is_no_longer_kept_is_passed_over_and_told(office):
    (ann,) = await office.square("ann", durable=False)
    await ann.say(*(f"{number}" for number in range(1, 13)))
    part = await ann.call("room/read", after=2)
    assert [message["text"] for message in part["messages"]] == ["8", "9", "10", "11", "12"]
    assert (part["first_seq"], part["last_seq"]) == (8, 12)


async def test_the_kinds_asked_for_are_found_among_many_others(office, monkeypatch):
    monkeypatch.setattr(messages, "MAX_MESSAGES_READ", 4)
    monkeypatch.setattr(messages, "MAX_MESSAGES_SCANNED", 12)
    (ann,) = await office.square("ann")
    await ann.say("first")
    for _ in range(8):
        await ann.send("reasoning.thought", payload={"text": "hm"})
    await ann.say("second", "third")
    assert await ann.texts() == ["first", "second", "third"]
    assert await ann.texts(limit=1) == ["third"]
    assert await ann.texts(before=11) == ["first", "second"]
    assert await ann.texts(after=0) == ["first", "second", "third"]
    assert await ann.texts(after=0, limit=2) == ["first", "second"]
    for _ in range(20):
        await ann.send("reasoning.thought", payload={"text": "hm"})
    # It looks at so many and no more, and says where to go on.
    assert await ann.texts() == []
    assert await ann.part(kinds=["chat"], after=11) == ([], 23, True)
    assert await ann.part(kinds=["chat"], after=23) == ([], 31, False)
    assert await ann.part(kinds=["reasoning"], after=0, limit=3) == ([2, 3, 4], 4, True)


@pytest.mark.requirement("room.read-waits")
async def test_a_wait_is_not_ended_by_kinds_that_were_not_asked_for(office):
    ann, bob = await office.square("ann", "bob")
    wanted = {"kinds": ["chat"], "after": 0, "wait": LONG}
    async with meanwhile(ann.call("room/read", **wanted)) as waiting:
        await bob.call("room/join")
        await bob.call("room/propose", method="ping")
        await bob.call("room/leave")
        await bob.say("here I am")
    part = waiting.result()
    assert ([each["text"] for each in part["messages"]], part["last_seq"]) == (["here I am"], 4)


@pytest.mark.requirement("room.read-waits")
@pytest.mark.parametrize(
    ("durable", "looking", "waiting"),
    [(True, {"wait": 1}, {}), (False, {"after": 10_000}, {"after": 10_000})],
    ids=["without a place", "past the end"],
)
async def test_a_wait_without_a_place_that_is_there_is_for_what_is_new(
    office, durable, looking, waiting
):
    ann, bob = await office.square("ann", "bob", durable=durable)
    await ann.say("old")
    part = await bob.call("room/read", **looking)
    assert (part["messages"], part["last_seq"]) == ([], 1)
    async with meanwhile(bob.call("room/read", wait=LONG, **waiting)) as read:
        while not read.done():
            await ann.say("new")
            await asyncio.sleep(0)
    assert read.result()["messages"][0]["text"] == "new"


@pytest.mark.requirement("room.read-waits")
async def test_nobody_waits_for_one_who_has_left_or_whose_token_is_gone(office):
    ann, bob = await office.square("ann", "bob")
    async with meanwhile(bob.call("room/read", after=7, wait=LONG)) as waiting:
        bob.leaving.set()
    assert waiting.result()["messages"] == []
    bob.leaving.clear()
    async with meanwhile(bob.refused("room/read", after=0, wait=LONG)) as told:
        bob.good = False
        await ann.say("not for bob")
    assert told.result() == {"error": e.TokenInvalid.sentence}


async def test_whoever_is_put_out_while_waiting_reads_no_more(office):
    ann, bob = await office.square("ann", "bob")
    await bob.call("room/join")
    async with meanwhile(bob.refused("room/read", after=1, wait=LONG)) as told:
        await ann.send("room.kick", payload={"participant": "bob"})
        await ann.say("now that bob is gone")
    assert told.result()["code"] == "room_forbidden"
    assert await bob.denied("room/say", text="x") == "room_forbidden"


@pytest.mark.requirement("room.read-waits")
@pytest.mark.parametrize("durable", [True, False])
async def test_a_read_that_waits_ends_with_an_error_when_the_room_is_deleted(office, durable):
    ann, bob = await office.square("ann", "bob", durable=durable)
    await bob.call("room/join")
    here, writing, gone = office.here, threading.Event(), threading.Event()

    async def busy(_: Any) -> None:
        # In the writer's thread.
        writing.set()
        gone.wait(30)

    live = next(iter(here.rooms._live))
    async with asyncio.TaskGroup() as tasks:
        reading = here.rooms.messages(visitor_of(bob.account), "square", wait=LONG)
        read = asyncio.gather(reading, return_exceptions=True)
        told = tasks.create_task(bob.result("room/read", {"wait": LONG}))
        await eventually(lambda: len(live._waiters) == 2)
        # The room's record is still there when its readers are woken.
        tasks.create_task(here.store.write(busy))
        await asyncio.to_thread(writing.wait, 30)
        tasks.create_task(here.rooms.delete(visitor_of(ann.account), "square"))
        try:
            (found,) = await read
            assert isinstance(found, e.RoomNotFound), found
            payload, is_error = await told
        finally:
            gone.set()
    assert is_error, payload
    assert payload["code"] == "room_not_found"


@pytest.mark.requirement("room.tools")
async def test_a_fulfilment_asks_for_exactly_what_was_proposed(office):
    ann, bob, cid = await office.square("ann", "bob", "cid")
    for each in (ann, bob, cid):
        await each.call("room/join")
    proposed = {"method": "tools/call", "params": PROPOSED, "reason": "We must know."}
    made = await bob.call("room/propose", **proposed, expires_in=60)
    (shown,) = await cid.proposals(state="open")
    assert shown["proposal"] == made["proposal"]
    assert shown["kind"] == "mcp.proposal.tools/call:count"
    assert shown["params"] == PROPOSED
    counted = [type(each) for each in shown["params"]["arguments"]["of"]]
    assert counted == [int, float, int, type(None)]
    told = (shown["reason"], shown["expires_at"])
    assert told == ("We must know.", made["expires_at"])
    decide = {"proposal": made["proposal"], "decision": "fulfil"}
    told = await ann.denied("room/decide", **decide)
    assert told == "Set `to` to the participant who should act: a participant of the room."
    assert await ann.denied("room/decide", **decide, to="dan") == "recipient_unknown"
    assert await ann.denied("room/decide", **decide, to="ann") == "recipient_invalid"
    done = await ann.call("room/decide", **decide, to="cid")
    assert (done["state"], done["to"]) == ("fulfilled", "cid")
    (request,) = await cid.messages(after=done["seq"] - 1)
    assert request["kind"] == "mcp.request.tools/call:count"
    assert request["payload"]["params"] == PROPOSED
    assert request["correlation_id"] == [made["proposal"]]
    assert request["id"] == done["request"]
    (shown,) = await bob.proposals()
    assert (shown["state"], shown["closed_by"]) == ("fulfilled", "ann")
    refused = await ann.refused("room/decide", **decide, to="cid")
    assert (refused["code"], refused["state"]) == ("proposal_closed", "fulfilled")


@pytest.mark.requirement("room.tools")
async def test_a_proposal_that_names_someone_is_fulfilled_by_them_alone(office):
    ann, bob, cid = await office.square("ann", "bob", "cid")
    for each in (ann, bob, cid):
        await each.call("room/join")
    made = await bob.call("room/propose", method="ping", to="cid")
    decide = {"proposal": made["proposal"], "decision": "fulfil"}
    assert await ann.denied("room/decide", **decide, to="bob") == "proposal_altered"
    assert (await ann.call("room/decide", **decide))["to"] == "cid"
    two = {"id": "two", "to": ["bob", "cid"], "payload": {"method": "ping"}}
    await bob.send("mcp.proposal.ping", **two)
    decide["proposal"] = "two"
    told = await ann.denied("room/decide", **decide)
    assert told == "Set `to` to the participant who should act: one of bob, cid."
    await ann.call("room/decide", **decide, to="cid")
    (request,) = await ann.messages(limit=1)
    assert "params" not in request["payload"]


@pytest.mark.requirement("room.tools")
async def test_rejections_need_a_reason_and_as_many_as_the_room_says(office):
    ann, bob, cid = await office.people("ann", "bob", "cid")
    reject = ["mcpx.reject.proposal"]
    grants = {"cid": reject, "@Bob": reject}
    await ann.call("room/create", name="square", policy={"quorum": 2}, grants=grants)
    made = await bob.call("room/propose", method="ping")
    decide = {"proposal": made["proposal"], "decision": "reject"}
    for reason in ({}, {"reason": " "}):
        assert await ann.denied("room/decide", **decide, **reason) == "A rejection needs a reason."
    decide["reason"] = "Too loud."
    first = await ann.call("room/decide", **decide)
    assert (first["state"], first["rejections"]) == ("open", 1)
    assert await ann.denied("room/decide", **decide) == "rejected_already"
    assert await bob.denied("room/decide", **decide) == "proposal_own"
    second = await cid.call("room/decide", **decide)
    assert (second["state"], second["rejections"]) == ("rejected", 2)
    gone = await bob.refused("room/decide", proposal=made["proposal"], decision="withdraw")
    assert (gone["code"], gone["state"]) == ("proposal_closed", "rejected")


@pytest.mark.requirement("room.tools")
async def test_a_proposal_is_withdrawn_by_its_proposer_alone(office):
    ann, bob = await office.square("ann", "bob")
    made = await bob.call("room/propose", method="ping")
    decide = {"proposal": made["proposal"], "decision": "withdraw"}
    assert await ann.denied("room/decide", **decide) == "proposal_not_own"
    assert (await bob.call("room/decide", **decide, reason="Never mind."))["state"] == "withdrawn"
    decide["proposal"] = "no such thing"
    for decision in ("fulfil", "reject", "withdraw"):
        wrong = {**decide, "decision": decision, "reason": "x"}
        assert await ann.denied("room/decide", **wrong) == "proposal_unknown"


async def test_what_a_proposal_cannot_be_is_told_in_words_a_model_can_act_on(office):
    (ann,) = await office.square("ann")
    for arguments, sentence in (
        ({"method": "tools/call"}, '"params.name" must be a string.'),
        ({"method": "tools/call", "params": {"name": 7}}, '"params.name" must be a string.'),
        ({"method": "notifications/x"}, "The method notifications/x is not valid for a proposal."),
        ({"method": "ping:x"}, "The method ping takes no context."),
    ):
        told = await ann.refused("room/propose", **arguments)
        assert told["error"] == sentence
        assert told["code"]
    assert await ann.proposals() == []


@pytest.mark.settings(options=RoomOptions(chat={}, memory_messages=5, keep_messages=5))
@pytest.mark.parametrize("durable", [True, False])
async def test_an_older_proposal_that_is_no_longer_in_the_history_is_found_and_not_offered(
    office, durable
):
    ann, bob, cid = await office.people("ann", "bob", "cid")
    rooms, owner = office.here.rooms, visitor_of(ann.account)

    async def offered() -> list[int]:
        waiting = await rooms.waiting(owner, "square")
        ear, live = await office.here.join(owner)
        live.left(ear)
        told = ear.heard[0]["payload"]["waiting"]["proposals"]
        asked = (await rooms.asks.open_for(owner)).proposals
        return [len(waiting.proposals), len(told), len(asked)]

    await ann.call("room/create", name="square", durable=durable)
    await cid.say("first")
    made = await bob.call("room/propose", method="ping", to="gateway")
    assert await offered() == [1, 1, 1]
    await bob.say(*"abcdefgh")
    await rooms._upkeep.round()
    # It went though an older message is kept: Bob has most of them.
    page = await rooms.messages(owner, "square", after=0, limit=1)
    assert msgspec.json.decode(page.messages[0])["seq"] == 1
    assert await offered() == [0, 0, 0]
    (shown,) = await ann.proposals()
    assert (shown["proposal"], shown["state"]) == (made["proposal"], "open")
    assert "params" not in shown
    decide = {"proposal": made["proposal"]}
    told = await ann.refused("room/decide", **decide, decision="fulfil")
    assert told["error"].startswith("The room no longer keeps this proposal")
    await ann.call("room/decide", **decide, decision="reject", reason="Too late.")


async def test_proposals_are_listed_in_parts(office):
    (ann,) = await office.square("ann")
    for _ in range(5):
        await ann.call("room/propose", method="ping")
    for place, seqs in (({}, [5, 4]), ({"before": 4}, [3, 2])):
        assert [each["seq"] for each in await ann.proposals(limit=2, **place)] == seqs


@pytest.mark.requirement("room.tools")
async def test_a_room_is_made_as_it_was_asked_for(office):
    ann, bob = await office.people("ann", "bob")
    rights = {"capabilities": ["chat.*"], "grants": {"bob": ["mcp.request.tools/call"]}}
    wanted = {"access": "private", "durable": False, **rights}
    policy = {"quorum": 3, "keep_days": 7}
    made = await ann.call("room/create", name="square", **wanted, policy=policy)
    assert made.items() >= {**wanted, "role": "owner"}.items()
    assert made["policy"].items() >= policy.items()
    joined = await bob.call("room/join")
    assert "grants" not in joined
    assert (joined["role"], joined["you"], joined["owners"]) == ("member", "bob", ["ann"])
    assert joined["present"] == [
        {"id": "bob", "type": "person", "role": "member", "offers_tools": None}
    ]
    for wrong, code in (
        ({"name": "Square"}, "room_name_invalid"),
        ({"name": "square"}, "room_name_taken"),
        ({"name": "x", "capabilities": ["system.*"]}, "capability_reserved"),
        ({"name": "x", "capabilities": ["not a pattern"]}, "pattern_syntax"),
    ):
        assert await ann.denied("room/create", **wrong) == code
    for arguments, sentence in (
        ({"policy": {"quorum": 0}}, "policy.quorum must be a whole number from 1 to 1,000."),
        ({"grants": {"nobody": []}}, "grants: there is no user nobody."),
        ({"access": "secret"}, "access must be open, invite or private."),
    ):
        assert await ann.refused("room/create", name="x", **arguments) == {"error": sentence}


async def test_rooms_are_listed_in_pages_with_what_one_is_in_each(office):
    ann, bob = await office.people("ann", "bob")
    for name, access in (("a", "open"), ("b", "invite"), ("c", "private"), ("d", "open")):
        await ann.call("room/create", name=name, access=access)
    await bob.call("room/join", room="d")
    listed, cursor = [], None
    while True:
        page = await bob.call("room/list", limit=1, cursor=cursor)
        listed += page["rooms"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [(room["name"], room["role"], room["participants"]) for room in listed] == [
        ("a", None, 0),
        ("b", None, 0),
        ("d", "member", 1),
    ]
    assert len((await ann.call("room/list"))["rooms"]) == 4


@pytest.mark.requirement("room.tools")
async def test_an_invitation_is_for_a_handle_or_for_a_guest(office):
    ann, bob = await office.square("ann", "bob", access="private")
    for both in ({}, {"handle": "bob", "guest": "zoe"}):
        assert await ann.denied("room/invite", **both) == "Give either handle or guest."
    assert await bob.denied("room/join") == "room_not_found"
    invited = await ann.call("room/invite", handle="@Bob")
    assert invited.keys() == {"room", "handle", "message"}
    await bob.call("room/join")
    assert await bob.denied("room/invite", guest="zoe") == "capability_denied"
    guest = await ann.call("room/invite", guest="zoe")
    visitor, _ = await office.here.rooms.exchange("square", guest["token"])
    assert visitor.principal.name == "zoe"
    kept = await ann.call("room/read")
    assert guest["token"] not in json.dumps(kept)
    assert await ann.denied("room/invite", handle="nobody") == "User not found."


async def test_a_message_of_another_tool_is_shown_with_its_payload_as_it_was_sent(office):
    (ann,) = await office.square("ann")
    raw = b'{"protocol":"mcpx/v1","kind":"acme.thing","payload":{"a":1.0,"b":[1e3,"\\u00e9"]}}'
    await ann.post(raw)
    await ann.post(chat("after"))
    read = CATALOGUE.named("room/read")
    assert read is not None
    caller = Caller(account=ann.account)
    result = await office.tools.call(read, {"room": "square"}, caller)
    assert '"payload":{"a":1.0,"b":[1e3,"\\u00e9"]}' in result.text()
    assert msgspec.json.decode(result.text())["messages"][1]["text"] == "after"


async def test_a_room_is_searched_back_from_its_end_and_each_search_looks_only_so_far(
    office, monkeypatch
):
    ann, bob = await office.square("ann", "bob")
    await bob.call("room/join")
    for number in range(30):
        who = bob if number % 10 == 5 else ann
        await who.call("room/say", text=f"Boat {number}", thread_id="sea" if number == 7 else None)
    found = await ann.call("room/read", search="bOAT 2")
    assert [one["text"] for one in found["messages"]] == [
        "Boat 2",
        *(f"Boat {n}" for n in range(20, 30)),
    ]
    assert found["looked_from"] == 1
    latest = await ann.call("room/read", search="boat", limit=2)
    assert [one["text"] for one in latest["messages"]] == ["Boat 28", "Boat 29"]
    before = await ann.call("room/read", search="boat", limit=1, before=latest["looked_from"])
    assert before["messages"][0]["text"] == "Boat 27"
    assert "only" in (await ann.denied("room/read", search="boat", wait=1))
    monkeypatch.setattr(messages, "MAX_READ", 5)
    monkeypatch.setattr(messages, "MAX_MESSAGES_SEARCHED", 10)
    rooms, visitor = office.here.rooms, visitor_of(ann.account)
    page = await messages.find(rooms, visitor, "square", messages.Sought(thread="sea"), None, 50)
    assert (page.messages, page.through_seq - page.from_seq) == ([], 9)
    for sought, count in (
        (messages.Sought(sender="bob", kind="chat"), 1),
        (messages.Sought(kind="presence"), 0),
        (messages.Sought("system.presence"), 0),
    ):
        page = await messages.find(rooms, visitor, "square", sought, None, 50)
        assert len(page.messages) == count
    (stranger,) = await office.people("eve")
    await ann.call("room/create", name="closed", access="private")
    assert await stranger.denied("room/read", room="closed", search="x") == "room_not_found"
