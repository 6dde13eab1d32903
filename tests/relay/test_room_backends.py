"""A backend takes part in a room: who may ask it there, and what comes of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from folkmoot.client import Message, Progress, ProposalRequired, RequestFailed, Room, ToolFailed
from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Notification, Response
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.rooms import read_spec
from folkmoot.rooms.limits import MAX_BACKEND_CALLS
from tests.client.support import eventually, until
from tests.gateway.scripted import Scripted, tool
from tests.mcp.client.places import told
from tests.proxy.rules.support import blocked, loaded
from tests.relay.room_backends import EVERYTHING, Slow, Village, spec, village
from tests.transports.rest.support import Asker
from tests.transports.rooms.support import Seat

TOOL = "github:create_issue"
HUB_RIGHT = "needs your own right at the hub"


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Village]:
    async with village(tmp_path) as made:
        yield made


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


async def refused(room: Room, *names: str) -> None:
    """See that the hub keeps someone from asking, whatever the room lets them do."""
    for name in names or (TOOL,):
        with pytest.raises(RequestFailed, match=HUB_RIGHT):
            await room.call("github", name)


@pytest.mark.requirement("capability.both-rights-for-backend", "gateway.rights-by-effective-kind")
async def test_a_call_needs_the_rooms_right_and_the_callers_own_at_the_hub(there):
    github = Scripted("github", lambda wanted: said(f"for {wanted.params['arguments']['a']}"))
    await there.offers(github)
    ann, bob, eve = [await there.person(name) for name in ("ann", "bob", "eve")]
    await there.grant(ann, TOOL)
    await there.grant(bob)
    await there.room(ann, capabilities=["chat.*", "mcp.proposal.*"], backends=["github"])
    async with there.at(ann) as owner, there.at(bob) as member, there.at(eve) as granted:
        assert owner.participants["github"].type == "backend"
        await owner.grant("eve", ["*"])
        async with there.at(str((await owner.invite(guest="guesty")).token)) as guest:
            await owner.grant("guesty", ["*"])
            await refused(guest)
            for method in ("ping", "tools/list"):
                with pytest.raises(RequestFailed, match=HUB_RIGHT):
                    await guest.request("github", method)
        await refused(granted, TOOL, "github:delete_repo", "github:nothing")
        with pytest.raises(ProposalRequired):
            await member.call("github", TOOL)
        assert (await owner.call("github", TOOL, {"a": 1})).text == "for 1"
        # The owner holds everything in the room, and one tool at the hub.
        await refused(owner, "github:delete_repo", "github:nothing")
        await owner.grant("bob", ["mcp.request.*"])
        assert (await member.call("github", TOOL, {"a": 2})).text == "for 2"
        await there.revoke(ann)
        await refused(owner)
    asked = [one.visitor.principal.account_id for one in (ann, bob)]
    assert [one.person for one in github.asked] == asked
    assert {one.params["name"] for one in github.asked} == {"create_issue"}


@pytest.mark.requirement("capability.both-rights-for-backend")
async def test_a_proposal_is_fulfilled_with_the_fulfillers_rights(there):
    await there.offers(Scripted("github", lambda wanted: said("made")))
    ann, bob, eve = [await there.person(name) for name in ("ann", "bob", "eve")]
    await there.grant(bob)
    await there.grant(ann, TOOL)
    await there.room(ann, capabilities=["mcp.proposal.*", "chat.*"], backends=["github"])
    async with there.at(ann) as owner, there.at(eve) as proposer, there.at(bob) as helper:
        await owner.grant("bob", ["mcp.request.*"])
        params = {"name": TOOL, "arguments": {"title": "x"}}
        proposal = await proposer.propose("tools/call", params, to="github")
        there_is = await until(helper, lambda m: m.id == proposal.id)
        assert (await helper.fulfil(there_is))["content"] == said("made")["content"]
        outcome = await proposal.outcome()
        assert (outcome.state, outcome.by) == ("fulfilled", "bob")
        answer = await until(proposer, lambda m: m.base == "mcp.response.tools/call")
        assert (answer.sender, answer.to) == ("github", ("bob", "eve"))
        assert [one.person for one in there.github.asked] == [bob.visitor.principal.account_id]
        # To propose is no right at the hub: whoever fulfils needs it.
        await there.revoke(bob)
        again = await proposer.propose("tools/call", params, to="github")
        there_is = await until(helper, lambda m: m.id == again.id)
        with pytest.raises(RequestFailed, match=HUB_RIGHT):
            await helper.fulfil(there_is)
        assert len(there.github.asked) == 1


@pytest.mark.requirement("capability.both-rights-for-backend")
async def test_nobody_speaks_for_a_backend_or_asks_as_another(there):
    github = Slow("github", lambda wanted: said("true"))
    await there.offers(github)
    ann, eve = await there.person("ann"), await there.person("eve")
    await there.grant(ann)
    await there.room(ann, backends=["github"])
    async with (
        there.at(ann) as owner,
        there.joined(eve.token) as other,
        asyncio.TaskGroup() as tasks,
    ):
        asking = tasks.create_task(owner.call("github", TOOL))
        await github.begun.wait()
        request = await heard(other, f"mcp.request.tools/call:{TOOL}")
        about = {"correlation_id": [request["id"]]}
        payload = {"jsonrpc": "2.0", "id": request["payload"]["id"], "result": said("forged")}
        forged = {"kind": f"mcp.response.tools/call:{TOOL}", "to": ["ann"], **about}
        forged["payload"] = payload
        progress = {"kind": "mcp.notification.notifications/progress", **about}
        meta = {"from": "ann", "person": "ann"}
        asked = {**told("tools/call", name=TOOL, _meta=meta), "id": 1}
        ask = {"kind": "mcp.request.tools/call", "to": ["github"], "context": "ann"}
        ask["payload"] = asked
        for message, refusal in (
            (forged, "not_asked"),
            ({**forged, "from": "github"}, "sender_forged"),
            ({**progress, "payload": told("notifications/progress", progress=1)}, "not_asked"),
            ({**ask, "from": "ann"}, "sender_forged"),
        ):
            await other.send(message)
            assert (await heard(other, "system.error"))["payload"]["error"] == refusal
        github.go.set()
        assert (await asking).text == "true"
        await other.send(ask)
        answer = await heard(other, f"mcp.response.tools/call:{TOOL}", "capability_denied")
        error = answer["payload"]["error"]
        assert HUB_RIGHT in error["message"]
        # Everyone reads it, so what the caller holds at the hub is not told.
        assert "your_capabilities" not in error["data"]
    assert len(github.asked) == 1


async def heard(seat: Seat, kind: str, text: str = "") -> dict[str, Any]:
    """The next message of a kind that has a text somewhere."""
    while True:
        told = await seat.hear()
        if told["kind"] == kind and text in str(told):
            return told


async def test_names_in_a_room_are_canonical_and_of_the_backend_that_is_asked(there):
    async with there.at(await there.owner("github:delete_*", "files:*", "github://*")) as owner:
        for name, sentence in {
            "github_delete_repo": "In a room it is called github:delete_repo",
            # What one may not use is not told of.
            "github_create_issue": "names from github start with github: or github://",
            "files:read": "names from github start with",
            "msg/send": "names from github start with",
            "room_list": "names from github start with",
        }.items():
            with pytest.raises(RequestFailed, match=sentence):
                await owner.call("github", name)
        with pytest.raises(ToolFailed, match="Unknown tool: github:delete_all"):
            await owner.call("github", "github:delete_all")
        shown = {"uri": "github://file/-/-/a"}
        with pytest.raises(RequestFailed, match="it is called github://file///a"):
            await owner.request("github", "resources/read", shown)
        for uri in ("file:///etc/passwd", "files://x/y", "github:x"):
            with pytest.raises(RequestFailed):
                await owner.request("github", "resources/read", {"uri": uri})
        assert there.github.asked == []
        assert (await owner.call("github", "github:delete_repo")).content == ()
        assert there.github.asked[0].params == {"name": "deleteRepo", "arguments": {}}


@pytest.mark.requirement("gateway.rights-by-effective-kind")
async def test_a_backend_lists_what_the_caller_may_use_and_answers_the_rest_of_its_methods(
    tmp_path,
):
    def answer(wanted: UpstreamRequest) -> Any:
        whole = {"contents": [], "messages": [], "completion": {"values": []}}
        return {"method": wanted.method, "params": wanted.params, **whole}

    offered = {
        "tools": (*(tool(f"list_{n:03}") for n in range(250)), tool("secret")),
        "resources": ({"uri": "file:///a", "name": "a"},),
        "templates": ({"uriTemplate": "file:///{x}", "name": "x"},),
        "prompts": ({"name": "greet"},),
    }
    async with village(tmp_path, Scripted("github", answer), inventory=offered) as there:
        completes = "mcp.request.completion/complete:github:*"
        ann = await there.owner("github:list_*", *EVERYTHING[1:], completes)
        async with there.at(ann) as owner:
            first = await owner.request("github", "tools/list")
            cursor = {"cursor": first["nextCursor"]}
            second = await owner.request("github", "tools/list", cursor)
            names = [one["name"] for one in first["tools"] + second["tools"]]
            assert names == [f"github:list_{n:03}" for n in range(250)]
            assert "nextCursor" not in second
            for kind, member, name, own in (
                ("resources", "resources", "uri", "github://file///a"),
                ("resources/templates", "resourceTemplates", "uriTemplate", "github://file///{x}"),
                ("prompts", "prompts", "name", "github:greet"),
            ):
                listed = await owner.request("github", f"{kind}/list")
                assert [one[name] for one in listed[member]] == [own]
            ref, argument = {"type": "ref/prompt", "name": "github:greet"}, {"name": "w"}
            for method, asked, own in (
                ("resources/read", {"uri": "github://file///a"}, {"uri": "file:///a"}),
                ("prompts/get", {"name": "github:greet"}, {"name": "greet"}),
                (
                    "completion/complete",
                    {"ref": ref, "argument": argument},
                    {"ref": ref | {"name": "greet"}, "argument": argument},
                ),
            ):
                assert (await owner.request("github", method, asked))["params"] == own
            assert await owner.request("github", "ping") == {}
            for method in ("resources/subscribe", "logging/setLevel", "sampling/createMessage"):
                params = {"uri": "github://file///a"} if "resources" in method else {}
                with pytest.raises(RequestFailed, match="A backend has no"):
                    await owner.request("github", method, params)
            with pytest.raises(RequestFailed, match="cursor must be"):
                await owner.request("github", "tools/list", {"cursor": "zzz"})


@pytest.mark.parametrize("durable", [True, False])
async def test_progress_is_told_now_and_then_and_the_last_of_it_always(durable, there):
    def answer(wanted: Any) -> Any:
        for done in range(1, 10):
            params = {"progressToken": "theirs", "progress": done, "message": f"{done} done"}
            wanted.tell(Notification(method="notifications/progress", params=params))
        return said("ready")

    await there.offers(Scripted("github", answer))
    ann = await there.owner(durable=durable)
    seen: list[Progress] = []
    async with there.at(ann) as owner:
        assert (await owner.call("github", TOOL, on_progress=seen.append)).text == "ready"
        assert (seen[-1].progress, seen[-1].message) == (9, "9 done")
        assert len(seen) <= 2
        await owner.call("github", TOOL)
        assert [one.progress for one in there.github.asked] == [True, False]


async def test_who_cancels_cancels_at_the_backend_and_who_leaves_does_not(there):
    github = Slow("github", lambda wanted: said("late"))
    await there.offers(github)
    ann = await there.owner()
    async with there.at(ann) as owner, asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(owner.call("github", TOOL))
        await github.begun.wait()
        asked.cancel()
        await github.given_up.wait()
    github.given_up.clear()
    github.begun.clear()
    await there.hub.rooms.post(ann.visitor, "plaza", asking(7))
    await github.begun.wait()
    live = await there.live(ann)
    assert not live.is_idle
    github.go.set()
    (answer,) = await there.said(ann, live.delivered)
    assert answer["payload"] == {"jsonrpc": "2.0", "id": 7, "result": said("late")}
    assert not github.given_up.is_set()
    await eventually(lambda: live.is_idle)
    assert "github" in [one["id"] for one in live.machine.participants()]


def asking(number: int, name: str = TOOL) -> bytes:
    payload = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}
    envelope = {"protocol": "mcpx/v1", "kind": "mcp.request.tools/call", "to": ["github"]}
    return msgspec.json.encode({**envelope, "payload": payload})


async def test_what_cannot_be_answered_is_told_in_one_sentence(tmp_path):
    answers: dict[str, Any] = {
        "large": said("x" * 2_000_000),
        "deep": {"content": [], "structuredContent": nested(80)},
        "asks": {
            "resultType": "input_required",
            "inputRequests": {"1": {"method": "elicitation/create", "params": {"message": "Why?"}}},
        },
        "odd": Response(id=1, error=ErrorObject(code=-32011, message="Too odd.")),
    }
    github = Scripted("github", lambda wanted: answers[wanted.params["name"]])
    async with village(tmp_path, github, inventory={"tools": tuple(map(tool, answers))}) as there:
        ann = await there.owner()
        async with there.at(ann) as owner:
            for name, sentence in {
                "large": "github answered, but the room cannot carry the answer: The message has 2",
                "deep": "the room cannot carry the answer: Objects and arrays are nested",
                "asks": r"github:asks needs more input, .* in a room: Why\?",
                "odd": "Too odd",
            }.items():
                with pytest.raises(RequestFailed, match=sentence):
                    await owner.call("github", f"github:{name}")
            there.hub.behind.gateway.lost("github", "It went away.")
            for method in ("tools/list", "ping"):
                with pytest.raises(RequestFailed, match="github is not available: It went"):
                    await owner.request("github", method)
            assert "github" in owner.participants


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_a_backend_answers_so_many_at_once_and_refuses_one_more(there):
    github = Slow("github", lambda wanted: said("done"))
    await there.offers(github)
    ann = await there.owner()
    async with there.at(ann) as owner, asyncio.TaskGroup() as tasks:
        asked = [owner.call("github", TOOL) for _ in range(MAX_BACKEND_CALLS)]
        calls = [tasks.create_task(each) for each in asked]
        live = await there.live(ann)
        await eventually(lambda: live.serving.under_way == MAX_BACKEND_CALLS)
        with pytest.raises(RequestFailed, match="already has 32 open requests"):
            await owner.call("github", TOOL)
        github.go.set()
        assert {(await one).text for one in calls} == {"done"}
        assert (await owner.call("github", TOOL)).text == "done"


async def test_a_request_that_the_hub_did_not_outlive_is_answered_when_the_room_is_loaded(tmp_path):
    github = Slow("github")
    async with village(tmp_path, github) as there:
        ann = await there.owner()
        await there.hub.rooms.post(ann.visitor, "plaza", asking(1))
        await github.begun.wait()
    assert github.given_up.is_set()
    async with village(tmp_path) as there:
        # It was here before, so it is not told of again.
        (told,) = await there.said(ann, 2)
        assert (told["seq"], told["kind"]) == (3, f"mcp.response.tools/call:{TOOL}")
        assert "may have done what was asked" in told["payload"]["error"]["message"]
        await there.hub.rooms.post(ann.visitor, "plaza", asking(1))
        await eventually(lambda: len(there.github.asked) == 1)


async def test_a_backend_leaves_with_the_settings_and_comes_back_with_them(there):
    ann = await there.person("ann")
    await there.grant(ann)
    await there.room(ann)
    async with there.at(ann) as owner:
        await there.set(ann, backends=["github"])
        await until(owner, came("join", "github"))
        await there.hub.behind.apply(spec())
        await until(owner, came("leave", "github"))
        assert "github" not in owner.participants
        view = await there.hub.rooms.get(ann.visitor, "plaza")
        assert (view.backends, view.participants) == (["github"], 1)
        # It is the room's still, so another change of the room does not ask for the right.
        await there.revoke(ann)
        await there.set(ann, backends=["github"])
        await there.hub.behind.apply(spec("github"))
        await until(owner, came("join", "github"))
        await there.set(ann, backends=None)
        await until(owner, came("leave", "github"))


def came(event: str, name: str) -> Callable[[Message], bool]:
    def is_so(message: Message) -> bool:
        who = message.payload.get("participant", {})
        return message.kind == f"system.presence.{event}" and who.get("id") == name

    return is_so


@pytest.mark.requirement("capability.both-rights-for-backend")
async def test_only_someone_who_may_use_a_backend_brings_it_into_their_room(there):
    ann, bob = await there.person("ann"), await there.person("bob")
    await there.grant(ann, TOOL)
    port = int(there.hub.base_url.rpartition(":")[2])
    owner, other = Asker(port, ann.token), Asker(port, bob.token)
    for namespace in ("github", "nothing"):
        made = {"name": "mine", "backends": [namespace]}
        answer = await other.ask("POST", "/v1/rooms", made)
        assert (answer.status, answer.json()["error"]["code"]) == (404, "backend_unknown")
        told = answer.json()["error"]["message"]
        assert told == f"You can't use a server called {namespace}."
    made = await owner.create("hers", backends=["github"])
    assert made["backends"] == ["github"]
    assert (await owner.get("/v1/rooms/hers/participants"))["participants"] == [
        {"id": "github", "type": "backend", "role": "backend", "offers_tools": True}
    ]
    assert "backends" not in await other.get("/v1/rooms/hers")
    assert (await owner.get("/v1/rooms"))["rooms"][0]["backends"] == ["github"]
    await other.create("mine")
    for room, backends, status in (("mine", ["github"], 404), ("hers", [], 403)):
        answer = await other.ask("PATCH", f"/v1/rooms/{room}", {"backends": backends})
        assert answer.status == status
    for wrong in (["GitHub"], "github", ["github", "github"], [7], ["a" * 21], [*"abc"] * 9):
        answer = await owner.ask("PATCH", "/v1/rooms/hers", {"backends": wrong})
        assert (answer.status, answer.json()["error"]["field"]) == (400, "backends"), wrong
    answer = await owner.ask("PATCH", "/v1/rooms/hers", {"backends": None})
    assert answer.json()["backends"] == []


async def test_names_of_backends_are_nobody_elses(there):
    ann, like = await there.person("ann"), await there.person("g1thub")
    await there.grant(ann)
    await there.grant(like)
    await there.room(ann)
    with pytest.raises(e.HandleTaken, match="taken"):
        await there.hub.accounts.register("github")
    async with there.at(ann) as owner:
        with pytest.raises(e.NameRefused, match="reserved"):
            await there.hub.rooms.invite(ann.visitor, "plaza", guest="github")
        await there.set(ann, backends=["github"])
        for name in ("github", "git-hub", "g1thub"):
            with pytest.raises(e.NameRefused):
                await there.hub.rooms.invite(ann.visitor, "plaza", guest=name)
        with pytest.raises(e.RoomForbidden, match="mistaken"):
            async with there.at(like):
                pass
        with pytest.raises(e.RecipientInvalid, match="A backend cannot be kicked"):
            await owner.kick("github")
        with pytest.raises(e.RecipientInvalid, match="has no rights of its own"):
            await owner.grant("github", ["chat.*"])
        theirs = read_spec({"name": "theirs", "backends": ["github"]})
        with pytest.raises(e.ArgumentInvalid, match="github could be mistaken for g1thub"):
            await there.hub.rooms.create(like.visitor, theirs)


async def test_interceptors_see_what_a_backend_answers_and_the_audit_names_the_room(
    tmp_path, caplog
):
    caplog.set_level(logging.INFO, logger="folkmoot.audit")
    github = Scripted("github", lambda wanted: said("a forbidden word"))
    rule = blocked('kind = "mcp.response.*", path = "$..text", contains = "forbidden"')
    async with village(tmp_path, github, interceptors=loaded(rule).interceptors) as there:
        ann = await there.owner()
        async with there.at(ann) as owner:
            with pytest.raises(RequestFailed, match="not allowed here"):
                await owner.call("github", TOOL)
    (line,) = [vars(one) for one in caplog.records if one.getMessage() == "backend.call"]
    told = [line[name] for name in ("room", "by", "outcome", "about")]
    assert told == ["plaza", "ann", "withheld", f"mcp.request.tools/call:{TOOL}"]
