"""Tools in a room, from the command line and in the live view: real hub, real agent."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.client import Context, Room
from tests.cli.conftest import Cli, Hub, Person
from tests.cli.roomers import post, token_of
from tests.cli.terminal import Terminal

JOIN = ("room", "join", "planning")


@contextmanager
def agent(
    hub: str, token: str, called: list[dict[str, Any]], *, slow: bool = False
) -> Iterator[None]:
    """An agent in the room until the end; a slow one has a tool that takes long."""
    ready: Future[Callable[[], None]] = Future()

    async def serve() -> None:
        done = asyncio.Event()
        async with Room(hub, room="planning", token=token) as room:

            @room.tool
            def high_water(harbour: str, days: int = 1) -> str:
                """When the tide is highest.

                In local time.
                """
                called.append({"harbour": harbour, "days": days})
                if harbour == "Atlantis":
                    raise ValueError
                return "six o'clock"

            async def ebb(ctx: Context) -> None:
                """Wait for low water."""
                await ctx.progress(1, total=2, message="falling")
                try:
                    await asyncio.sleep(600)
                finally:
                    called.append({"ebb": "ended"})

            if slow:
                room.tool(ebb)
            loop = asyncio.get_running_loop()
            ready.set_result(lambda: loop.call_soon_threadsafe(done.set))
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    stop = ready.result(30)
    try:
        yield
    finally:
        stop()
        thread.join(30)


@pytest.fixture
def called(hub: Hub, room: None, person: Person) -> Iterator[list[dict[str, Any]]]:
    """What an agent in the room was asked that knows the tides."""
    called: list[dict[str, Any]] = []
    with agent(hub.url, token_of(person("tides", "--agent")), called):
        yield called


@pytest.fixture
def robot(person: Person) -> Cli:
    return person("robot", "--agent")


@pytest.mark.requirement("room.call-tools")
def test_a_person_lists_and_calls_tools_and_proposes_what_they_may_not_call(ada, bob, called):
    for who in (ada, bob):
        ran = who("room", "tools", "planning")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.split("  ") == [
            "tides", "high_water harbour= [days=integer]", "When the tide is highest.\n",
        ]  # fmt: skip
    assert ada.json("room", "tools", "planning", "--to", "tides")["tools"][0]["to"] == "tides"
    ran = ada("room", "call", "planning", "high_water", "harbour=12", "days=2")
    assert ran == (0, "six o'clock\n", "")
    assert called == [{"harbour": "12", "days": 2}]
    answer = ada.json("room", "call", "planning", "high_water", '{"harbour": "Rye"}')
    assert answer["state"] == "answered"

    ran = bob("room", "call", "planning", "high_water", "harbour=Rye", "--reason", "I sail.")
    (proposal,) = ada.json("room", "proposals", "planning")["proposals"]
    number = proposal["seq"]
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"You can't call high_water yourself, so it was proposed as #{number}.\n"
    assert proposal["message"]["payload"]["reason"] == "I sail."
    assert 'high_water harbour: "Rye"' in ada("room", "proposals", "planning").out
    ran = ada("room", "approve", "planning", str(number))
    assert ran == (0, "six o'clock\n", f"Approved #{number}.\n")
    ran = bob("room", "call", "planning", "high_water", "harbour=Atlantis")
    number = ada.json("room", "proposals", "planning")["proposals"][0]["seq"]
    ada.fails("room", "approve", "planning", str(number), told="tides: The tool high_water failed.")

    ran = ada("room", "propose", "planning", "high_water", "days=3")
    assert ran.out.startswith("Proposed as #")
    latest = ada.json("room", "proposals", "planning")["proposals"][0]
    assert (latest["kind"], latest["to"]) == ("mcp.proposal.tools/call:high_water", ["tides"])
    assert latest["message"]["payload"]["params"]["arguments"] == {"days": 3}
    ran = bob("room", "propose", "planning", "resources/read:docs://intro")
    latest = ada.json("room", "proposals", "planning")["proposals"][0]
    assert latest["message"]["payload"]["params"] == {"uri": "docs://intro"}


@pytest.mark.requirement("room.call-tools")
def test_progress_of_a_call_is_shown_and_ctrl_c_cancels_it_at_the_agent(ada, robot, called):
    with (
        agent(ada.hub, token_of(robot), called, slow=True),
        ada.begin("room", "call", "planning", "ebb") as calling,
    ):
        assert calling.stderr.readline() == "1 of 2 falling\n"
        calling.send_signal(signal.SIGINT)
        assert calling.wait(60) == ExitCode.INTERRUPTED
        for _ in range(3000):
            if called:
                break
            time.sleep(0.01)
    assert called == [{"ebb": "ended"}]


def test_an_agent_without_tools_is_not_waited_for(ada, robot):
    ada("room", "create", "study")
    with robot.at_terminal("room", "join", "study") as there:
        there.wait_for("live")
        listed = ada.json("room", "tools", "study")
        assert (listed["tools"], listed["unanswered"]) == ([], [])
        listed = ada("room", "tools", "study", "--to", "robot")
        assert listed == (0, "", "robot offers no tools.\n")
        called = ada("room", "call", "study", "high_water", "--to", "robot", "--wait", "0")
        told = "robot offers no tools. It can still answer by hand.\n"
        assert (called.code, called.err[: len(told)]) == (ExitCode.FAILED, told)
        with ada.at_terminal("room", "join", "study", rows=40) as hers:
            hers.wait_for("live").type("/tools\r").wait_for("Nobody here offers tools.")
            hers.type("/tools robot\r").wait_for("robot offers no tools.")
            hers.type("/call high_water\r").wait_for("Nobody here offers high_water.")
            hers.type("/call high_water harbour=Rye @robot\r")
            hers.wait_for("ada asked robot: high_water harbour=Rye")
        assert "tools/list" not in ada("room", "history", "study").out


@pytest.mark.requirement("room.call-tools")
def test_a_call_that_comes_to_nothing_says_why(ada, called):
    call = ("room", "call", "planning")
    for arguments, code, sentence in (
        (("low_water",), ExitCode.FAILED, "Nobody in the room offers low_water."),
        (("high_water", "days=soon"), ExitCode.USAGE, "days must be an integer, not 'soon'"),
        (("high_water", "Rye"), ExitCode.USAGE, "Arguments are written name=value, not 'Rye'"),
        (("high_water",), ExitCode.FAILED, "tides: The argument harbour is missing."),
        (("high_water", "harbour=Atlantis"), ExitCode.FAILED, "tides: The tool high_water failed."),
        (("high_water", "harbour=x", "--to", "zoe"), ExitCode.FAILED, "zoe is not in the room."),
    ):
        ran = ada(*call, *arguments)
        assert (ran.code, ran.out) == (code, "")
        assert sentence.lower() in ran.err.lower()
    assert len(called) == 1


@pytest.mark.requirement("room.call-tools")
def test_tools_are_used_in_the_live_view_and_what_happens_is_said_in_words(ada, bob, called):
    with ada.at_terminal(*JOIN, rows=40) as hers, bob.at_terminal(*JOIN, rows=40) as his:
        hers.wait_for("live").type("/tools\r")
        hers.wait_for("  high_water harbour= [days=integer]  When the tide is highest.")
        hers.type("/call high_water harbour=Rye\r")
        hers.wait_for("ada asked tides: high_water harbour=Rye").wait_for("tides: six o'clock")
        his.wait_for("tides: six o'clock").type("/call high_water harbour=Rye @tides\r")
        his.wait_for("You can't call high_water yourself, so it was proposed as #")
        hers.wait_for("1 proposal: Tab")
        assert 'harbour: "Rye"' in hers.text
        number = ada.json("room", "proposals", "planning")["proposals"][0]["seq"]
        assert f"bob proposes #{number} to tides: high_water" in hers.text
        hers.type("\t").wait_for("bob asks tides for high_water").type("a")
        his.wait_for(f"ada approved #{number}").wait_for(f"six o'clock  re #{number}")
        assert "mcp." not in his.text
        assert "tools/call" not in his.text
        his.type("/call high_water Rye\r").wait_for("Arguments are written name=value, not 'Rye'.")
        his.type("/call low_water\r").wait_for("Nobody here offers low_water.")
        his.type("/call\r").wait_for("Usage: /call TOOL [NAME=VALUE…] [@WHO]")
        his.type("/raw\r").wait_for("Messages are shown with their kinds from now on.")
        hers.type("/call high_water harbour=Rye\r")
        his.wait_for("request tools/call:high_water").wait_for("response tools/call:high_water")


@pytest.mark.requirement("room.keys-by-right")
def test_the_live_view_offers_only_the_keys_and_commands_that_one_may_use(ada, bob, called):
    call = {"method": "tools/call", "params": {"name": "high_water", "arguments": {}}}
    with bob.at_terminal(*JOIN, rows=40) as his:
        his.wait_for("live")
        proposed = post(ada, "planning", "mcp.proposal.tools/call", call, to=["tides"])
        his.wait_for(f"ada proposes #{proposed['seq']}").type("\t/help\r").wait_for("/propose TOOL")
        his.wait_for(lambda it: "planning · bob" in status(it))
        assert "Tab" not in status(his)
        for command in ("/kick", "/grant", "/invite", "/reject"):
            assert command not in his.text
        ada("room", "grant", "planning", "bob", "mcpx.reject.proposal")
        his.wait_for("1 proposal: Tab").type("\t").wait_for("r reject · Esc back")
        assert "approve ·" not in his.text
        his.type("a").type("\x1b").wait_for(lambda it: "Esc back" not in it.text)
        ada("room", "grant", "planning", "bob", "mcp.request.tools/call:high_water")
        his.wait_for("You can now: ").type("\t").wait_for("a approve · r reject · Esc back")
        his.type("\x1b").wait_for(lambda it: "Esc back" not in it.text)
        states = [it["state"] for it in ada.json("room", "proposals", "planning")["proposals"]]
        assert states == ["open"]


def status(terminal: Terminal) -> str:
    return terminal.text.splitlines()[-1]
