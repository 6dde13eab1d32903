"""Many callers share a server behind the hub: each hears all of its own, and nothing else."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import run
from tests.mcp_harness import ERAS, Meeting, both_eras
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place
from tests.peers.talking_server import ASK, LOG, PAUSE, PROGRESS, WAIT, Talking, talking_http
from tests.transports.mcp.gateway_support import wired

# Calls that a caller has open at the same time.
AT_ONCE = 2
MOST_STEPS = 6
CANCELLED_PART = 0.25
SECONDS = 600.0
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
OPTIONS = {
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    "io.modelcontextprotocol/logLevel": "debug",
}
# What comes of each step, and where its words are.
TOLD = {
    "notifications/message": (LOG, "data"),
    "notifications/progress": (PROGRESS, "message"),
    "elicitation/create": (ASK, "message"),
}


class Call:
    """One call: what it is to hear, and what it heard."""

    def __init__(self, tag: str, number: int, chance: random.Random) -> None:
        self.tag = tag
        self.id = number
        self.plan = chance.choices((LOG, PROGRESS, PAUSE, ASK), k=chance.randint(0, MOST_STEPS))
        self.due = [(s, f"{tag} {number}") for number, s in enumerate(self.plan) if s != PAUSE]
        self.cancels = chance.random() < CANCELLED_PART
        self.heard: list[tuple[str, str]] = []
        self.heard_all = asyncio.Event()
        if self.cancels:
            self.plan.append(WAIT)
        self._check()

    def hear(self, message: dict[str, Any]) -> None:
        """Take what was said or asked in the call's stream."""
        step, words = TOLD[message["method"]]
        if step == PROGRESS:
            assert message["params"]["progressToken"] == self.id
        self.heard.append((step, message["params"][words]))
        self._check()

    def _check(self) -> None:
        if len(self.heard) >= len(self.due):
            self.heard_all.set()


class Caller:
    """Someone at plain HTTP, in one era."""

    def __init__(self, name: str, talking: Talking) -> None:
        self.name = name
        self.talking = talking

    async def come(self, there: Meeting, era: str) -> None:
        """Come in; in a session, wanting to hear everything."""
        self.wire = await wired(there, await token_of(there, self.name), era, CAPABILITIES)
        self.wire.http.timeout = SECONDS
        if self.wire.session:
            await self.wire.ask("logging/setLevel", {"level": "debug"})

    async def use(self, turns: int) -> list[Call]:
        """Make calls; all of them, once they are over."""
        chance = random.Random(self.name)
        made = []
        for turn in range(turns):
            calls = [
                Call(f"{self.name}/{turn}/{each}", 1 + turn * AT_ONCE + each, chance)
                for each in range(AT_ONCE)
            ]
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
                for call in calls:
                    tasks.create_task(self._cancelled(call) if call.cancels else self._made(call))
            made += calls
        return made

    async def _made(self, call: Call) -> None:
        """Make a call, answer what is asked, and look at the result."""
        told = json.loads((await self._result(call))["content"][0]["text"])
        answers = [f"{words}!" for step, words in call.due if step == ASK]
        assert told == {"tag": call.tag, "answers": answers}

    async def _result(self, call: Call) -> Any:
        given = {"name": "talking_talk", "arguments": {"tag": call.tag, "plan": call.plan}}
        meta = {"progressToken": call.id, **({} if self.wire.session else OPTIONS)}
        while True:
            asked = self.wire.message("tools/call", given, call.id, meta)
            result = await self._answer_to(asked, call)
            if result.get("resultType") != "input_required":
                return result
            ((key, question),) = result["inputRequests"].items()
            call.hear(question)
            given["inputResponses"] = {key: accepting(question)}
            given["requestState"] = result["requestState"]

    async def _answer_to(self, asked: Any, call: Call) -> Any:
        """The result of one request; what is said and asked before it is heard and answered."""
        async with self.wire.http.stream(
            "POST", self.wire.there.url, json=asked, headers=self.wire.headers(asked)
        ) as answer:
            async for message in read(answer):
                if "method" not in message:
                    assert message["id"] == call.id
                    return message["result"]
                call.hear(message)
                if "id" in message:
                    reply = {"id": message["id"], "result": accepting(message)}
                    assert (await self.wire.post({"jsonrpc": "2.0", **reply})).status == 202
        raise AssertionError(f"no answer to {call.tag}")

    async def _cancelled(self, call: Call) -> None:
        """Make a call, and cancel it while it waits."""
        making = asyncio.ensure_future(self._result(call))
        try:
            await self.talking.waits[call.tag].wait()
            await call.heard_all.wait()
            if self.wire.session:
                given_up = {"method": "notifications/cancelled", "params": {"requestId": call.id}}
                await self.wire.post({"jsonrpc": "2.0", **given_up})
            else:
                making.cancel()
            await self.talking.cancelled[call.tag].wait()
        finally:
            making.cancel()
            await asyncio.wait([making])


def accepting(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to a question: its own words, said louder."""
    return {"action": "accept", "content": {"word": f"{question['params']['message']}!"}}


async def read(answer: httpx2.Response) -> AsyncIterator[Any]:
    """The messages of an answer, in either form."""
    if answer.headers["content-type"].startswith("application/json"):
        yield json.loads(await answer.aread())
        return
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


async def check_crowd(folder: Path, era: str, callers: int, turns: int) -> None:
    """Callers, half of them of each era, hear through a server of one era all that is due to them,
    in order, and nothing else.
    """
    talking = Talking()
    async with talking_http(talking, era) as behind:
        server = backend("talking", Place("http", url=behind), most_calls=512)
        async with fronted(folder, server, http={"shutdown_seconds": 1}) as there:
            people = [Caller(f"caller{number}", talking) for number in range(callers)]
            for number, caller in enumerate(people):
                await caller.come(there, list(ERAS)[number % 2])
            made = await asyncio.gather(*(caller.use(turns) for caller in people))
    calls = [call for each in made for call in each]
    assert {call.tag: call.heard for call in calls} == {call.tag: call.due for call in calls}
    assert any(call.cancels for call in calls)


@both_eras
@pytest.mark.requirement("gateway.own-alone")
def test_each_of_many_callers_hears_all_of_its_own_and_nothing_else(era, tmp_path):
    run(check_crowd(tmp_path, era, callers=8, turns=1), SECONDS)


@both_eras
@pytest.mark.long
@pytest.mark.requirement("gateway.own-alone")
def test_each_of_many_callers_hears_its_own_for_long(era, tmp_path):
    run(check_crowd(tmp_path, era, callers=32, turns=10), SECONDS)
