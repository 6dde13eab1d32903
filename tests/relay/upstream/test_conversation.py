"""One link to a server, with the requests of several people on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp import peer
from folkmoot.mcp.eras.calls import QUESTION_SECONDS
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.link_reader import LOST
from folkmoot.relay.upstream.requests import Unanswered
from tests.harness import reached
from tests.relay.upstream.scripted import (
    FORM,
    Told,
    both_eras,
    call,
    leave,
    resumed,
    running,
    seen,
    spec,
    talking,
)

SURE = {"message": "Sure?", "requestedSchema": {}}
QUESTION: dict[str, Any] = {"asks": "elicitation/create", "about": SURE}


async def ask(conversation: BackendConversation, tool: str, **options: Any) -> Any:
    return (await conversation.request(call(tool, **options), 20)).result


async def calls(conversation: BackendConversation, tool: str) -> list[dict[str, Any]]:
    """The calls of a tool that have reached the server."""
    found = await seen(conversation, "tools/call")
    return [each for each in found if each["params"]["name"] == tool]


async def see_untied(conversation: BackendConversation, asks: UpstreamRequest) -> None:
    """See that nobody is asked what the server asks during a call."""
    told = (await conversation.request(asks, 20)).result
    assert "does not belong to exactly one" in told["answered"]["error"]["message"]


@both_eras
async def test_servers_of_both_eras_are_opened_and_asked_in_one_way(conversation, era):
    assert conversation.stateless is (era == "stateless")
    assert conversation.server == {"name": "scripted", "version": "1"}
    assert conversation.discovered["instructions"] == "Ask."
    assert "tools" in conversation.capabilities
    wanted = call("echo", a=1, capabilities={"sampling": {}, "roots": {}})
    answer = (await conversation.request(wanted, 20)).result
    assert (answer["said"], answer["resultType"]) == ({"a": 1}, "complete")
    offered = {name.rpartition("/")[2]: value for name, value in answer["meta"].items()}
    if era == "stateless":
        assert offered["protocolVersion"] == "2026-07-28"
        assert offered["clientInfo"]["name"] == "folkmoot"
        assert offered["clientCapabilities"] == {"sampling": {}}
    else:
        assert offered == {}
        (hello,) = await seen(conversation, "initialize")
        assert hello["params"]["clientInfo"]["name"] == "folkmoot"
        assert set(hello["params"]["capabilities"]) == {"elicitation", "sampling"}


@both_eras
async def test_who_leaves_cancels_at_the_server_and_a_late_answer_reaches_nobody(conversation, era):
    leaving = asyncio.ensure_future(ask(conversation, "ask", **QUESTION))
    staying = asyncio.ensure_future(ask(conversation, "hang"))
    await ask(conversation, "echo")
    await leave(leaving)
    assert conversation.in_flight == 1
    while not (told := await seen(conversation, "notifications/cancelled")):
        pass
    (asked,) = await calls(conversation, "ask")
    assert told[0]["params"]["requestId"] == asked["id"]
    before = conversation.dropped
    await ask(conversation, "late", id=asked["id"])
    assert conversation.dropped > before
    assert not staying.done()
    staying.cancel()


@pytest.mark.requirement("gateway.shared-link")
@both_eras
async def test_a_log_message_goes_to_the_only_call_it_can_be_of_and_by_its_level(conversation, era):
    mine, other = Told(), Told()
    wants: dict[str, Any] = {"tell": mine, "log_level": "warning"}
    await ask(conversation, "log", level="error", data="for me", **wants)
    await ask(conversation, "log", level="info", data="too little", **wants)
    await ask(conversation, "log", level="error", data="nobody asked", tell=mine)
    assert mine.said("data") == ["for me"]
    waiting = asyncio.ensure_future(ask(conversation, "hang", tell=other, log_level="debug"))
    await ask(conversation, "log", level="error", data="whose?", **wants)
    await leave(waiting)
    await ask(conversation, "log", level="error", data="of the one who left?", **wants)
    # Both are told once of what is lost to them, and nothing of what it was.
    assert mine.said("data") == ["for me", LOST["data"], LOST["data"]]
    assert other.said("data") == [LOST["data"]]
    assert {each.params["level"] for each in other.things} == {"error"}


@pytest.mark.requirement("gateway.server-requests", "gateway.shared-link")
async def test_a_question_reaches_the_caller_of_the_only_call_in_flight_and_nobody_else(
    conversation,
):
    wanted = call("ask", capabilities=FORM, **QUESTION)
    first = await conversation.request(wanted, 20)
    ((key, question),) = first.result["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    given = {"action": "accept", "content": {}}
    done = await conversation.request(resumed(wanted, first, {key: given}), 20)
    assert done.result["answered"]["result"] == given

    waiting = asyncio.ensure_future(ask(conversation, "hang", capabilities=FORM))
    await see_untied(conversation, wanted)
    await leave(waiting)
    # The server may not have heard yet that nobody waits for that one.
    await see_untied(conversation, wanted)


@pytest.mark.requirement("gateway.server-requests", "gateway.cancelled-requests")
async def test_however_long_ago_a_call_was_cancelled_its_question_reaches_nobody_else(
    conversation, monkeypatch
):
    monkeypatch.setattr(peer, "ANSWER_SECONDS", 0.0)
    waiting = asyncio.ensure_future(ask(conversation, "hang", person="ann"))
    await ask(conversation, "echo")
    (left,) = await calls(conversation, "hang")
    await leave(waiting)
    asks = call("ask", capabilities=FORM, person="bob", **QUESTION)
    for _ in range(2):
        await see_untied(conversation, asks)
    # It is not worth keeping, since nobody else can be asked anything on it.
    assert conversation.replaced
    # Ann herself can, and everyone once the server has answered what she cancelled.
    own = call("ask", capabilities=FORM, person="ann", **QUESTION)
    first = await conversation.request(own, 20)
    assert first.result["resultType"] == "input_required"
    await conversation.request(resumed(own, first, {"1": {"action": "decline"}}), 20)
    await ask(conversation, "late", id=left["id"])
    assert (await conversation.request(asks, 20)).result["resultType"] == "input_required"


@pytest.mark.requirement("gateway.cancelled-requests")
async def test_a_call_that_was_given_up_unanswered_is_remembered_too(conversation):
    annas = call("ask", capabilities=FORM, person="ann", **QUESTION)
    assert (await conversation.request(annas, 20)).result["inputRequests"]
    for now in (0.0, QUESTION_SECONDS):
        # Ann does not come back with what she was asked.
        for message in conversation._steps(conversation.bridge.expire(now)):
            if "requestId" in (getattr(message, "params", None) or {}):
                conversation.outbox.put(message)
    assert not conversation.busy
    await see_untied(conversation, call("ask", capabilities=FORM, person="bob", **QUESTION))


@pytest.mark.requirement("gateway.server-requests")
async def test_what_the_hub_itself_asks_keeps_nobody_from_being_asked(conversation):
    waiting = asyncio.ensure_future(ask(conversation, "hang", person="ann"))
    await ask(conversation, "echo")
    await leave(waiting)
    lists = UpstreamRequest(method="completion/complete", params={"hang": True})
    listing = asyncio.ensure_future(conversation.request(lists, 20))
    asks = call("ask", capabilities=FORM, person="ann", **QUESTION)
    assert (await conversation.request(asks, 20)).result["resultType"] == "input_required"
    listing.cancel()


@both_eras
@pytest.mark.requirement("gateway.cancelled-requests")
async def test_a_link_with_more_cancelled_requests_than_are_remembered_is_replaced(
    era, monkeypatch
):
    monkeypatch.setattr(peer, "MOST_CANCELLED", 3)
    async with running(spec(era=era, call_seconds=20)) as there:
        backend, before = there.backend, there.process
        (line,) = backend.lines
        first = line.conversation
        staying = asyncio.ensure_future(backend.request(call("slow", nap=0.3)))
        leaving = [asyncio.ensure_future(backend.request(call("hang"))) for _ in range(4)]
        await reached(lambda: first.in_flight >= 5)
        await leave(asyncio.gather(*leaving))
        await there.until(lambda _: line.ready not in (None, first))
        assert there.process != before
        assert (await backend.request(call("echo"))).result["pid"] == there.process
        # Whoever waits for the old one has its answer before that is closed.
        assert (await staying).result["pid"] == before
        assert line.failures == 0


@pytest.mark.requirement("gateway.cancelled-requests")
async def test_whoever_was_asked_on_a_link_that_is_replaced_can_answer_there(there, monkeypatch):
    monkeypatch.setattr(peer, "MOST_CANCELLED", 0)
    backend, before = there.backend, there.process
    asks = call("ask", capabilities=FORM, **QUESTION)
    asked = await backend.request(asks)
    leaving = asyncio.ensure_future(backend.request(call("hang")))
    await backend.request(call("echo"))
    leaving.cancel()
    await there.until(lambda b: b.lines[0].ready is not None and there.process != before)
    given = {"1": {"action": "decline"}}
    done = await backend.request(resumed(asks, asked, given))
    assert done.result["answered"]["result"] == given["1"]


async def test_a_server_is_refused_what_the_caller_of_the_call_does_not_offer(conversation):
    for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
        offered = {} if method != "roots/list" else {"roots": {}}
        answer = await ask(conversation, "ask", asks=method, capabilities=offered)
        assert "does not offer" in answer["answered"]["error"]["message"]


@both_eras
async def test_changes_are_heard_from_when_the_server_agreed_until_one_listens_no_more(
    conversation, era
):
    lists, note = Told(), Told()
    changes = await conversation.listen({"toolsListChanged": True}, lists, 20)
    watched = await conversation.listen({"resourceSubscriptions": ["note://1"]}, note, 20)
    assert changes.agreed.result() == {"toolsListChanged": True}
    assert watched.agreed.result() == {"resourceSubscriptions": ["note://1"]}
    await ask(conversation, "grow", name="more")
    await ask(conversation, "touch", uri="note://1")
    (heard,) = {each.method for each in await lists.until(bool) if "list" in each.method}
    assert heard == "notifications/tools/list_changed"
    assert "note://1" in {each.params.get("uri") for each in await note.until(bool)}
    watched.close()
    note.things.clear()
    await ask(conversation, "touch", uri="note://1")
    assert note.things == []
    assert watched.ended.is_set()


@pytest.mark.parametrize("shy", ["silent", "touchy"])
async def test_a_server_that_cannot_bear_the_question_what_it_is_is_offered_a_handshake(shy):
    options = {"seconds": 2.0} if shy == "silent" else {"shake": True}
    async with talking("handshake", shy, **options) as conversation:
        assert not conversation.stateless
        assert (await ask(conversation, "echo", a=1))["said"] == {"a": 1}


async def test_the_end_of_a_server_fails_what_is_open_and_what_is_asked_afterwards(conversation):
    waiting = asyncio.ensure_future(ask(conversation, "hang"))
    with pytest.raises(Unanswered) as died:
        await ask(conversation, "die")
    assert (died.value.begun, died.value.gone) == (True, True)
    with pytest.raises(Unanswered):
        await waiting
    await conversation.ended.wait()
    with pytest.raises(Unanswered) as afterwards:
        await ask(conversation, "echo")
    assert not afterwards.value.begun


async def test_a_server_that_ends_at_once_is_told_of_with_how_it_ended():
    with pytest.raises(e.FolkmootError, match=r"^The server has ended with exit code 2\.$"):
        async with talking("handshake", "broken"):
            pass


async def test_what_a_listener_gets_wrong_does_not_end_the_link(caplog):
    def tell(_: object) -> None:
        raise RuntimeError

    async with talking() as conversation:
        await ask(conversation, "progress", times=1, tell=tell, progress=True)
        wanted = UpstreamRequest(method="ping", params={})
        assert (await conversation.request(wanted, 20)).result["resultType"] == "complete"
    assert "could not be passed on" in caplog.text
