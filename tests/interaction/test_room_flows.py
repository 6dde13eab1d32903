"""Whole flows of a room between people and agents, at a hub with its default settings.

They follow the public end-to-end scenarios of the MEW protocol (`e2e` in rjcorwin/mew-protocol), in
our kinds: what an agent sends and gets there it can send and get here.
"""

from __future__ import annotations

import pytest

from tests.interaction.room_client import (
    answer,
    call,
    chat,
    fulfilment,
    grant,
    message,
    proposal,
)

pytestmark = pytest.mark.settings(rate_limits="on")


@pytest.mark.requirement("capability.target")
async def test_an_agent_proposes_is_granted_the_right_for_one_target_and_then_asks_itself(there):
    await there.people("ada")
    await there.people("agent", "fileserver", "calculator", account_type="agent")
    await there.room("ada")
    names = ("ada", "agent", "fileserver", "calculator")
    async with there.seats(*names) as (ada, agent, files, calc):
        foo, bar = ({"path": f"{name}.txt", "content": name} for name in ("foo", "bar"))
        refusal = await agent.refused(call("fileserver", "write_file", foo))
        assert refusal["error"] == "proposal_required"
        await agent.send(proposal("write_file", foo, to=["fileserver"]))
        proposed = await ada.kind("mcp.proposal.tools/call")
        constraint = {"method": "tools/call", "params": {"name": "write_file"}}
        right = {"kind": "mcp.request.*", "to": ["fileserver"], "payload": constraint}
        given = await ada.said(grant("agent", right))
        fulfilled = await ada.said(fulfilment(proposed, "fileserver"))
        ack = await agent.kind("capability.grant-ack")
        assert (ack["from"], ack["correlation_id"]) == ("gateway", [given["id"]])
        asked = await agent.said(call("fileserver", "write_file", bar))
        for request, written in ((fulfilled, foo), (asked, bar)):
            told = await files.kind("mcp.request.tools/call")
            assert (told["id"], told["payload"]["params"]["arguments"]) == (request["id"], written)
            await files.send(answer(told))
            done = await agent.kind("mcp.response.tools/call")
            assert done["correlation_id"] == [request["id"]]
        # The right is for one tool of one participant.
        for to, tool in (("fileserver", "delete_file"), (calc.name, "write_file")):
            assert (await agent.refused(call(to, tool, bar)))["error"] == "proposal_required"


@pytest.mark.requirement("participant.pause-enforced", "room.participant-kinds")
async def test_an_agent_is_cleared_restarted_compacted_shut_down_and_paused_for_a_while(there):
    await there.people("ada", "bob")
    await there.people("agent", account_type="agent")
    await there.room("ada", grants={"bob": ["participant.*"], "agent": ["participant.*"]})
    # The rogue is a device of the agent's account that has not noticed that it is paused.
    async with there.seats("bob", "agent", "agent") as (bob, agent, rogue):
        for verb in ("clear", "restart", "compact", "shutdown"):
            order = await bob.said(message(f"participant.{verb}", {"reason": "x"}, to=["agent"]))
            assert (await agent.kind(order["kind"]))["payload"] == {"reason": "x"}
            about = {"to": ["bob"], "correlation_id": [order["id"]]}
            if verb == "compact":
                await agent.said(message("participant.compact-done", {"freed_tokens": 6}, **about))
            await agent.said(message("participant.status", {"status": f"{verb}: done"}, **about))
            told = await bob.kind("participant.status")
            assert told["payload"] == {"status": f"{verb}: done"}
            assert told.items() >= about.items()
        for seconds in (3600, 0.2):
            pause = {"reason": "soon", "timeout_seconds": seconds}
            await bob.said(message("participant.pause", pause, to=["agent"]))
            if seconds == 3600:
                refusal = await rogue.refused(chat("still here"))
                assert (refusal["error"], refusal["by"]) == ("participant_paused", "bob")
        over = await bob.kind("system.participant.resumed")
        assert over["payload"] == {"participant": "agent", "by": "gateway"}
        await rogue.said(chat("here again"))
