"""The examples do what they say, run as a person runs them, against a real hub."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from folkmoot.client import CapabilityDenied, RequestFailed, Room, ToolFailed
from tests.client.support import until
from tests.process import environment
from tests.transports.rooms.support import ROOM, Person, Town

EXAMPLES = Path(__file__).parents[2] / "examples"
MODERATED = {
    "kind": "mcp.request.tools/call:chat.say",
    "payload": {"params": {"arguments": {"moderated_by": "coordinator"}}},
}


class Running:
    """An example in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self) -> str:
        assert self._process.stdout
        return (await self._process.stdout.readline()).decode().strip()

    async def ended(self) -> tuple[int | None, str, str]:
        output, errors = await self._process.communicate()
        return self._process.returncode, output.decode(), errors.decode()

    async def interrupt(self) -> None:
        """Ctrl-C, which is how one ends: without a word."""
        self._process.send_signal(signal.SIGINT)
        assert await self.ended() == (0, "", "")


@asynccontextmanager
async def running(
    name: str, hub: Town, token: str, *options: str, room: str = ROOM
) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *("--url", hub.hub.base_url, "--room", room, *options),
        env=environment(FOLKMOOT_TOKEN=token) if token else environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def at(hub: Town, person: Person) -> Room:
    return Room(hub.hub.base_url, room=ROOM, token=person.token)


async def test_the_echo_agent_answers_those_who_mean_it(town):
    ann, echo = await town.person("ann"), await town.person("echo")
    await town.room(ann)
    async with running("echo_agent.py", town, echo.token) as agent, at(town, ann) as room:
        assert await agent.line() == f"echo is in {ROOM}."
        await room.say("nobody in particular")
        asked = await room.say("hello", mentions=["echo"])
        said = await until(room, lambda m: m.sender == "echo" and m.text is not None)
        assert said.text == "ann said: hello"
        assert said.payload["reply_to"] == asked.id
        assert said.to == ("ann",)
        result = await room.call("echo", "echo", {"text": "again"})
        assert result.structured == {"text": "again", "from": "ann"}
        await agent.interrupt()


@pytest.mark.requirement("chat.coordinator")
async def test_the_coordinator_speaks_for_those_who_may_not_and_nobody_gets_past_it(town):
    ann, bob = await town.person("ann"), await town.person("bob")
    coordinator = await town.person("coordinator")
    grants = {"coordinator": ["mcp.notification.notifications/chat/*"]}
    await town.room(ann, capabilities=[MODERATED], grants=grants)
    options = ("--ban", "darn", "--per-minute", "2")
    async with (
        running("coordinator.py", town, coordinator.token, *options) as agent,
        at(town, ann) as owner,
        at(town, bob) as room,
    ):
        assert await agent.line() == f"coordinator coordinates {ROOM}."
        with pytest.raises(CapabilityDenied):
            await room.say("directly")
        through = {"moderated_by": "coordinator"}
        answer = await room.call("coordinator", "chat.say", {"text": "hi", **through})
        heard = await until(owner, lambda m: m.text is not None)
        assert heard.text == "bob: hi"
        assert heard.sender == "coordinator"
        assert answer.structured == {"status": "broadcasted", "id": heard.id}
        with pytest.raises(ToolFailed, match="not a word"):
            await room.call("coordinator", "chat.say", {"text": "Darn it", **through})
        await room.call("coordinator", "chat.say", {"text": "darning socks", **through})
        with pytest.raises(ToolFailed, match="Try again in"):
            await room.call("coordinator", "chat.say", {"text": "three", **through})
        # The gateway's own tool is no way round it.
        with pytest.raises(RequestFailed, match="takes no argument moderated_by"):
            await room.call("gateway", "chat.say", {"text": "past it", **through})
        with pytest.raises(CapabilityDenied):
            await room.call("gateway", "chat.say", {"text": "past it"})
        await agent.interrupt()


async def test_the_proposer_proposes_what_it_may_not_do_and_reports_what_came_of_it(town):
    ann, agent = await town.person("ann"), await town.person("agent")
    await town.room(ann, capabilities=None)
    options = ("--tool", "chat.say", "--arguments", json.dumps({"text": "I may"}))

    async with at(town, ann) as owner:
        for decide in ("fulfil", "reject", "leave"):
            async with running("proposer.py", town, agent.token, *options) as example:
                assert await example.line() == "I may only propose it."
                proposed = await until(owner, lambda m: m.base.startswith("mcp.proposal"))
                assert proposed.id in await example.line()
                if decide == "fulfil":
                    await owner.fulfil(proposed)
                    done = "ann did it:"
                elif decide == "reject":
                    await owner.reject(proposed, "Not now.")
                    done = "ann rejected it: Not now."
                else:
                    await example.interrupt()
                    await until(owner, lambda m: m.kind == "mcpx.withdraw.proposal")
                    continue
                code, output, errors = await example.ended()
                assert (code, errors) == (0, "")
                assert output.startswith(done)
                report = await until(owner, lambda m: m.sender == "agent" and bool(m.text))
                assert (report.text or "").startswith(f"About chat.say: {done}")


@pytest.mark.parametrize(
    "name",
    [
        "echo_agent.py",
        pytest.param("coordinator.py", marks=pytest.mark.long),
        pytest.param("proposer.py", marks=pytest.mark.long),
    ],
)
async def test_an_example_that_cannot_begin_says_why_and_shows_no_traceback(town, name):
    ann = await town.person("ann")
    async with running(name, town, ann.token, room="nowhere") as example:
        assert await example.ended() == (1, "", "There is no such room.\n")
    async with running(name, town, "") as example:
        code, output, errors = await example.ended()
        assert (code, output) == (2, "")
        assert "FOLKMOOT_TOKEN must hold" in errors
