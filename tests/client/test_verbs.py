"""What can be done in a room, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.client import (
    CapabilityDenied,
    ParticipantPaused,
    ProposalRequired,
    RequestFailed,
    RoomForbidden,
    ToolFailed,
)
from folkmoot.client.http import refusal
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms.machine import DEFAULT_RIGHTS, Role
from tests.client.hub import CuttingHub, Envelope
from tests.client.support import enter, eventually, failing, of, until


async def test_what_is_said_comes_back_with_its_place_and_reaches_everyone(hub, alice, bob):
    said = await alice.say("*hello*", format="markdown", to="bob", mentions=["bob"])
    assert said.seq == hub.stored[-1].seq == alice.last_seq
    assert said.ts
    assert (said.sender, said.to, said.text) == ("alice", ("bob",), "*hello*")
    assert said.payload == {"text": "*hello*", "format": "markdown", "mentions": ["bob"]}
    assert await until(bob, of("*hello*")) == said
    assert "hello" not in repr(said)


async def test_what_one_said_is_edited_and_deleted(alice, bob):
    said = await alice.say("one")
    edit = await alice.say("two", replaces=said.id)
    assert (await until(bob, of("two"))).replaces == said.id
    gone = await alice.delete(said.id)
    heard = await until(bob, of(gone.text))
    assert (heard.replaces, heard.is_deleted, edit.is_deleted) == (said.id, True, False)
    with pytest.raises(e.NotRequester):
        await bob.delete(said.id)


async def test_chat_is_read_in_both_spellings(alice, bob):
    method = "notifications/chat/message"
    payload = {"jsonrpc": "2.0", "method": method, "params": {"text": "notified"}}
    await alice.send(f"mcp.notification.{method}", payload)
    await until(bob, of("notified"))
    assert (await alice.send("reasoning.thought", {"text": "hm"})).text is None


async def test_a_refusal_is_raised_as_the_error_with_the_hubs_code(hub, kim, bob):
    with pytest.raises(CapabilityDenied) as refused:
        await kim.send("reasoning.thought", {})
    assert refused.value.data["attempted_kind"] == "reasoning.thought"
    assert refused.value.data["your_capabilities"] == list(kim.me.capabilities)
    with pytest.raises(ProposalRequired):
        await bob.request("kim", "tools/call", {"name": "any"})
    with pytest.raises(e.NameRefused):
        async with enter(hub, "alice") as alice:
            await alice.invite(guest="gateway")


def test_a_code_that_is_not_known_is_still_a_refusal():
    error = refusal({"error": "from_the_future", "message": "Not yet.", "more": 1})
    assert (error.code, str(error), error.data) == ("message_refused", "Not yet.", {"more": 1})


async def test_a_request_is_answered_with_its_result_or_fails_with_its_error(alice, bob):

    async def answer() -> None:
        asked = await until(bob, lambda m: m.base == "mcp.request.resources/read")
        assert asked.kind == "mcp.request.resources/read:docs://a"
        await bob.respond(asked, result={"contents": []})
        asked = await until(bob, lambda m: m.base == "mcp.request.prompts/list")
        await bob.respond(asked, error={"code": -32001, "message": "None today."})

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(answer())
        got = await alice.request("bob", "resources/read", {"uri": "docs://a"})
        assert got == {"contents": []}
        with pytest.raises(RequestFailed, match="None today") as failure:
            await alice.request("bob", "prompts/list")
    assert failure.value.error == {"code": -32001, "message": "None today."}
    assert failure.value.reason is None
    with pytest.raises(e.RecipientUnknown):
        await alice.request("nobody", "ping")


def cancelled(there: CuttingHub) -> int:
    return there.kinds().count("mcp.notification.notifications/cancelled")


async def test_a_request_that_is_waited_for_no_longer_is_cancelled(hub, alice, bob):
    failure = await failing(alice.request("bob", "ping", timeout=0.01))
    assert failure.reason == "request_timed_out"
    await eventually(lambda: cancelled(hub) == 1)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(alice.request("bob", "ping"))
        await until(alice, lambda m: m.base == "mcp.request.ping" and m.seq > 3)
        await eventually(lambda: hub.kinds().count("mcp.request.ping") == 2)
        asking.cancel()
    await eventually(lambda: cancelled(hub) == 2)


async def test_the_gateways_own_tool_can_be_called(alice):
    result = await alice.call("gateway", "chat.say", {"text": "through the gateway"})
    assert result.structured["status"] == "broadcasted"
    assert "broadcasted" in result.text
    with pytest.raises(RequestFailed) as failure:
        await alice.call("gateway", "chat.shout", {"text": "!"})
    assert failure.value.reason == "method_unknown"


async def test_a_proposal_is_fulfilled_and_its_proposer_gets_the_answer(alice, bob, files):

    @files.tool
    def write_file(path: str) -> dict[str, str]:
        return {"wrote": path}

    params = {"name": "write_file", "arguments": {"path": "a"}}
    why = "It is empty."
    proposal = await bob.propose("tools/call", params, to="files", expires_in=60, reason=why)
    seen = await until(alice, lambda m: m.id == proposal.id)
    assert seen.kind == "mcp.proposal.tools/call:write_file"
    assert seen.payload["reason"] == why
    result = await alice.fulfil(seen)
    outcome = await proposal.outcome()
    assert (outcome.is_done, outcome.state, outcome.by) == (True, "fulfilled", "alice")
    assert outcome.result == result
    assert result["structuredContent"] == {"wrote": "a"}
    with pytest.raises(e.ProposalClosed):
        await alice.fulfil(seen)

    again = await bob.propose("tools/call", {"name": "nothing"})
    seen = await until(alice, lambda m: m.id == again.id)
    with pytest.raises(ValueError, match="to="):
        await alice.fulfil(seen)
    with pytest.raises(RequestFailed):
        await alice.fulfil(seen, to="files")
    outcome = await again.outcome()
    assert (outcome.is_done, outcome.state) == (False, "fulfilled")
    assert "no tool nothing" in str(outcome.error)


async def test_a_fulfilment_that_is_cancelled_is_told_as_a_failure(alice, bob, files):
    proposal = await bob.propose("ping", to="files")
    seen = await until(alice, lambda m: m.id == proposal.id)
    await failing(alice.fulfil(seen, timeout=0.01))
    outcome = await proposal.outcome()
    assert outcome.state == "fulfilled"
    assert "cancelled" in str(outcome.error)


async def test_a_proposal_is_rejected_with_a_reason_or_withdrawn_or_expires(hub, alice, bob):
    proposal = await bob.propose("ping")
    await alice.reject(proposal.message, "Not on a Sunday.")
    outcome = await proposal.outcome()
    found = (outcome.state, outcome.by, outcome.reason)
    assert found == ("rejected", "alice", "Not on a Sunday.")

    proposal = await bob.propose("ping")
    await bob.withdraw(proposal)
    assert (await proposal.outcome()).state == "withdrawn"

    proposal = await bob.propose("ping", expires_in=0.001)
    await eventually(lambda: hub.room.due < 2e9 and hub.tick())
    assert (await proposal.outcome()).state == "expired"


@pytest.mark.settings(quorum=2, rights={**DEFAULT_RIGHTS, Role.MEMBER: ("*",)})
async def test_where_several_must_reject_one_is_not_enough(alice, bob, carol):
    proposal = await bob.propose("ping")
    await alice.reject(proposal.id, "No.")
    await bob.say("one has said no")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await proposal.outcome()
    await carol.reject(proposal.id, "Nor do I.")
    assert (await proposal.outcome()).by == "carol"


async def test_a_proposal_that_is_refused_is_not_watched(kim):
    with pytest.raises(CapabilityDenied):
        await kim.propose("ping")
    assert not kim._proposals


async def test_rights_are_granted_and_taken_back_and_the_one_they_are_for_knows(alice, bob):
    with pytest.raises(ProposalRequired):
        await bob.request("alice", "ping")
    grant = await alice.grant("bob", ["mcp.request.ping"])
    await eventually(lambda: "mcp.request.ping" in bob.me.capabilities)
    await failing(bob.request("alice", "ping", timeout=0.01))
    await alice.revoke(grant_id=grant.id)
    await eventually(lambda: "mcp.request.ping" not in bob.me.capabilities)
    with pytest.raises(e.GrantUnknown):
        await alice.revoke("bob", ["mcp.request.ping"])


async def test_a_guest_is_invited_comes_with_the_token_and_keeps_the_credential(hub, alice):
    promised = ["mcp.proposal.*"]
    invitation = await alice.invite(guest="kim", capabilities=promised)
    assert (invitation.guest, invitation.token) == ("kim", "gi_kim")
    assert "gi_" not in repr(invitation)
    sent = await until(alice, lambda m: m.kind == "room.invite")
    assert sent.payload == {"guest": "kim", "capabilities": promised}
    async with enter(hub, "kim", token=invitation.token) as kim:
        assert (kim.me.id, kim.me.role) == ("kim", "guest")
        assert kim.credential == "gk_kim"
        hub.cut("kim")
        await kim.say("back again")
    assert hub.tokens[-2:] == ["gi_kim", "gk_kim"]
    assert all("gi_" not in str(asked) for asked in hub.joins)


async def test_someone_is_paused_and_goes_on(alice, bob):
    await alice.pause("bob", "Wait.", seconds=600)
    with pytest.raises(ParticipantPaused, match="alice paused you: Wait") as refused:
        await bob.say("but")
    assert refused.value.data["by"] == "alice"
    await alice.resume("bob")
    await bob.say("here again")
    await alice.pause(["bob"])
    await alice.resume()
    await bob.say("and again")


async def test_one_who_is_kicked_is_told_that_there_is_no_way_back(alice, bob):
    await alice.kick("bob", "enough")
    with pytest.raises(RoomForbidden):
        async for _ in bob:
            pass
    with pytest.raises(RoomForbidden):
        await bob.say("but")
    await until(alice, lambda m: m.kind == "system.presence.leave")
    assert "bob" not in alice.participants


async def test_a_tool_that_fails_raises_its_own_words_at_the_caller(alice, bob):

    @bob.tool
    def read_file(path: str) -> str:
        raise ToolFailed(f"There is no {path}.")

    with pytest.raises(ToolFailed, match="There is no a"):
        await alice.call("bob", "read_file", {"path": "a"})


async def test_a_message_the_hub_will_not_read_is_given_up_and_the_rest_goes_on(hub, alice):
    large = "x" * 100_000

    def cuts(moment: str, envelope: Envelope) -> bool | CloseCode:
        is_large = moment == "before" and envelope["payload"]["text"] == large
        return CloseCode.TOO_BIG if is_large else False

    hub.cuts = cuts
    async with asyncio.TaskGroup() as tasks:
        small = tasks.create_task(alice.say("small"))
        with pytest.raises(e.MessageTooLarge):
            await alice.say(large)
        assert (await small).text == "small"
    await alice.say("still here")
    assert hub.said() == ["small", "still here"]
