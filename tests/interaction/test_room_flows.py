"""Whole flows of a room between people, agents and tools, at a hub with its default settings.

They follow the public end-to-end scenarios of the MEW protocol (`e2e` in rjcorwin/mew-protocol), in
our kinds: what an agent sends and gets there it can send and get here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.room_client import (
    Message,
    Seat,
    Square,
    answer,
    call,
    chat,
    fulfilment,
    grant,
    message,
    proposal,
    square,
)

TOOLS = "mcp.request.tools/*"


@asynccontextmanager
async def hub_with(
    folder: Path, *agents: str, people: tuple[str, ...] = ()
) -> AsyncIterator[Square]:
    """A hub with its default rates, an owner `ada`, and these accounts."""
    async with square(folder, rate_limits="on") as there:
        await there.people("ada", *people)
        await there.people(*agents, account_type="agent")
        yield there


@asynccontextmanager
async def at_work(*agents: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Agents do what they do for as long as this lasts; one that fails fails the test."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(agent) for agent in agents]
        yield
        for task in running:
            task.cancel()


async def asked(seat: Seat, sent: Message) -> Message:
    """Ask for something, and get the answer."""
    await seat.said(sent)
    return await seat.until(lambda told: is_answer(told, sent["id"]))


def is_answer(told: Message, id_: str) -> bool:
    return told["kind"].startswith("mcp.response") and told["correlation_id"] == [id_]


async def computing(seat: Seat) -> None:
    """Multiply and add, for whoever asks."""
    while True:
        told = await seat.until(lambda told: told["kind"].startswith("mcp.request"))
        name, given = (told["payload"]["params"][member] for member in ("name", "arguments"))
        found = given["a"] * given["b"] if name == "multiply" else given["a"] + given["b"]
        result = {"content": [{"type": "text", "text": str(found)}]}
        reply = {"jsonrpc": "2.0", "id": told["payload"]["id"], "result": result}
        await seat.send(answer(told, payload=reply))


async def fulfilling(seat: Seat) -> None:
    """Have the calculator do what is proposed, and say what came of it."""
    while True:
        told = await seat.until(lambda told: told["kind"].startswith("mcp.proposal"))
        done = (await asked(seat, fulfilment(told, "calculator")))["payload"]["result"]
        await seat.send(chat(done["content"][0]["text"], correlation_id=[told["id"]]))


async def test_what_a_proposer_may_not_do_a_fulfiller_does(tmp_path):
    async with hub_with(tmp_path, "calculator", "fulfiller", "proposer") as there:
        # The proposer has no right of its own but to propose.
        rights = {"fulfiller": [{"kind": TOOLS, "to": "calculator"}, "chat.*"]}
        rights["calculator"] = ["mcp.response.*"]
        await there.room("ada", capabilities=["mcp.proposal.*"], grants=rights)
        async with (
            there.seats("calculator", "fulfiller", "proposer") as (calc, fulfiller, proposer),
            at_work(computing(calc), fulfilling(fulfiller)),
        ):
            sum_ = {"a": 10, "b": 5}
            refusal = await proposer.refused(call("calculator", "add", sum_))
            assert refusal["error"] == "proposal_required"
            proposed = await proposer.said(proposal("add", sum_))
            told = await proposer.kind("chat.message")
            assert (told["correlation_id"], told["payload"]["text"]) == ([proposed["id"]], "15")


@pytest.mark.requirement("room.reasoning-kinds")
async def test_thinking_aloud_keeps_its_context_from_start_to_conclusion(tmp_path):
    async with hub_with(tmp_path, "calculator", "research") as there:
        await there.room("ada", grants={"research": [TOOLS]})
        async with (
            there.seats("calculator", "ada", "research") as (calc, ada, agent),
            at_work(computing(calc)),
        ):
            wish = await ada.said(chat("What do 5 items at $12 cost, with 8% tax?"))
            start = message("reasoning.start", {"message": "With tax"})
            await agent.said({**start, "correlation_id": [wish["id"]]})
            inside = {"context": start["id"]}
            for thought, tool, a, b, wanted in (
                ("First the base: 5 × 12", "multiply", 5, 12, 60),
                ("Base is $60, now 8% tax", "multiply", 60, 0.08, 4.8),
                ("Tax is $4.80, now the total", "add", 60, 4.8, 64.8),
            ):
                await agent.said(message("reasoning.thought", {"message": thought}, **inside))
                told = await asked(agent, call("calculator", tool, {"a": a, "b": b}, **inside))
                assert float(told["payload"]["result"]["content"][0]["text"]) == wanted
            await agent.said(message("reasoning.conclusion", {"message": "$64.80"}, **inside))
            total = await agent.said(chat("The total is $64.80", correlation_id=[wish["id"]]))
            await ada.until(lambda told: told["id"] == total["id"])
            within = [one["kind"] for one in ada.heard if one.get("context") == start["id"]]
            step = ["reasoning.thought", "mcp.request.tools/call"]
            assert within == [*step * 3, "reasoning.conclusion"]


@pytest.mark.requirement("capability.target")
async def test_an_agent_proposes_is_granted_the_right_for_one_target_and_then_asks_itself(tmp_path):
    written: dict[str, str] = {}

    async def serving(seat: Seat) -> None:
        while True:
            told = await seat.until(lambda told: told["kind"].startswith("mcp.request"))
            written.update([told["payload"]["params"]["arguments"].values()])
            await seat.send(answer(told))

    def writing(path: str, text: str) -> dict[str, str]:
        return {"path": path, "content": text}

    async with hub_with(tmp_path, "agent", "fileserver", "calculator") as there:
        await there.room("ada")
        names = ("ada", "agent", "fileserver", "calculator")
        async with there.seats(*names) as (ada, agent, files, calc), at_work(serving(files)):
            await agent.send(proposal("write_file", writing("foo.txt", "foo"), to=["fileserver"]))
            proposed = await ada.kind("mcp.proposal.tools/call")
            constraint = {"method": "tools/call", "params": {"name": "write_file"}}
            right = {"kind": "mcp.request.*", "to": ["fileserver"], "payload": constraint}
            given = await ada.said(grant("agent", right))
            await ada.said(fulfilment(proposed, "fileserver"))
            ack = await agent.kind("capability.grant-ack")
            assert (ack["from"], ack["correlation_id"]) == ("gateway", [given["id"]])
            bar = writing("bar.txt", "bar")
            await asked(agent, call("fileserver", "write_file", bar))
            assert written == {"foo.txt": "foo", "bar.txt": "bar"}
            # The right is for one tool of one participant.
            for to, tool in (("fileserver", "delete_file"), (calc.name, "write_file")):
                assert (await agent.refused(call(to, tool, bar)))["error"] == "proposal_required"


@pytest.mark.requirement("participant.pause-enforced", "room.participant-kinds")
async def test_an_agent_is_cleared_restarted_compacted_paused_and_shut_down(tmp_path):
    async def controlled(seat: Seat) -> None:
        def status(told: Message, word: str) -> Message:
            reason = (told.get("payload") or {}).get("reason")
            said = {"status": f"{word}:{reason}" if reason else word}
            return message(
                "participant.status", said, to=[told["from"]], correlation_id=[told["id"]]
            )

        words = {
            "clear": ["cleared"],
            "restart": ["restarted"],
            "compact": ["compacting", "compacted"],
            "pause": ["paused"],
            "shutdown": ["shutting_down"],
        }
        while True:
            told = await seat.until(lambda told: told.get("to") == [seat.name])
            protocol, _, operation = told["kind"].partition(".")
            if told["kind"] == "system.participant.resumed":
                await seat.send(message("participant.status", {"status": "active"}))
            elif protocol == "participant":
                for word in words[operation]:
                    if word == "compacted":
                        done = {"status": "compacted", "freed_tokens": 64}
                        about = {"to": [told["from"]], "correlation_id": [told["id"]]}
                        await seat.send(message("participant.compact-done", done, **about))
                    await seat.send(status(told, word))

    async with hub_with(tmp_path, "agent", people=("bob",)) as there:
        await there.room("ada", grants={"bob": ["participant.*"], "agent": ["participant.*"]})
        # The rogue is a device of the agent's account that has not noticed that it is paused.
        async with (
            there.seats("bob", "agent", "agent") as (bob, agent, rogue),
            at_work(controlled(agent)),
        ):

            async def orders(operation: str, *wanted: str, **payload: Any) -> None:
                order = message(f"participant.{operation}", payload, to=["agent"])
                await bob.said(order)
                for said in wanted:
                    told = await bob.kind("participant.status")
                    assert told["payload"]["status"] == said
                    assert told["correlation_id"] == [order["id"]]

            await orders("clear", "cleared:test", reason="test")
            await orders("restart", "restarted")
            await orders("compact", "compacting:x", "compacted:x", reason="x")
            assert any(one["kind"] == "participant.compact-done" for one in bob.heard)
            await orders("pause", "paused:test", reason="test", timeout_seconds=3600)
            refusal = await rogue.refused(chat("still here"))
            assert (refusal["error"], refusal["by"]) == ("participant_paused", "bob")
            await orders("pause", "paused:soon", reason="soon", timeout_seconds=0.2)
            over = await bob.kind("system.participant.resumed")
            assert over["payload"] == {"participant": "agent", "by": "gateway"}
            assert (await bob.kind("participant.status"))["payload"] == {"status": "active"}
            await rogue.said(chat("here again"))
            await orders("shutdown", "shutting_down:bye", reason="bye")
