"""Many callers share a server behind the hub: each hears all of its own, and nothing else."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from tests.harness import run
from tests.mcp_harness import ERAS, META, MODERN
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place
from tests.peers.talking_server import ASK, LOG, PAUSE, PROGRESS, WAIT, Talking, talking_http

AT_ONCE = 2
"""Calls that a caller has open at the same time."""
MOST_STEPS = 6
CANCELLED_PART = 0.25
SECONDS = 600.0
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
OPTIONS = {
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    "io.modelcontextprotocol/logLevel": "debug",
}
Steps: TypeAlias = tuple[str, ...]
TOLD = {
    "notifications/message": (LOG, lambda params: params["data"]),
    "notifications/progress": (PROGRESS, lambda params: params["message"]),
    "elicitation/create": (ASK, lambda params: params["message"]),
}
"""What comes of each step, and where its words are."""


class Call:
    """One call: what it is to hear, and what it heard."""

    def __init__(self, tag: str, number: int, steps: Steps, chance: random.Random) -> None:
        self.tag = tag
        self.id = number
        self.plan = chance.choices(steps, k=chance.randint(0, MOST_STEPS))
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
        self.heard.append((step, words(message["params"])))
        self._check()

    def _check(self) -> None:
        if len(self.heard) >= len(self.due):
            self.heard_all.set()

    def params(self, **more: Any) -> dict[str, Any]:
        """The params of its request."""
        arguments = {"tag": self.tag, "plan": self.plan}
        meta = {"progressToken": self.id, **more.pop("meta", {})}
        return {"name": "talking_talk", "arguments": arguments, "_meta": meta, **more}


class Caller:
    """Someone at plain HTTP, in one era."""

    def __init__(self, url: str, token: str, era: str, name: str, talking: Talking) -> None:
        self.url, self.era, self.name, self.talking = url, era, name, talking
        self.token = token
        self.session = ""
        self.http = httpx2.AsyncClient(verify=False, timeout=SECONDS)

    async def open(self) -> None:
        """Come in; in a session, wanting to hear everything."""
        if self.era == "handshake":
            client = {"name": self.name, "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES}
            answer = await self._post("initialize", {**params, "clientInfo": client}, 0)
            self.session = answer.headers["mcp-session-id"]
            await self._post("notifications/initialized", {})
            await self._post("logging/setLevel", {"level": "debug"}, 0)

    async def use(self, turns: int, steps: Steps) -> list[Call]:
        """Make calls; all of them, once they are over."""
        chance = random.Random(self.name)
        made = []
        for turn in range(turns):
            calls = [
                Call(f"{self.name}/{turn}/{each}", 1 + turn * AT_ONCE + each, steps, chance)
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
        more: dict[str, Any] = {}
        while True:
            async with self._stream(call, **more) as messages:
                async for message in messages:
                    if "method" not in message:
                        assert message["id"] == call.id
                        assert "result" in message, message
                        result = message["result"]
                        break
                    call.hear(message)
                    if "id" in message:
                        await self._answer(message)
                else:
                    raise AssertionError(f"no answer to {call.tag}")
            if result.get("resultType") != "input_required":
                return result
            ((key, question),) = result["inputRequests"].items()
            call.hear(question)
            more = {"inputResponses": {key: accepting(question)}}
            more["requestState"] = result["requestState"]

    async def _cancelled(self, call: Call) -> None:
        """Make a call, and cancel it while it waits."""
        making = asyncio.ensure_future(self._result(call))
        try:
            await self.talking.waits[call.tag].wait()
            await call.heard_all.wait()
            if self.session:
                await self._post("notifications/cancelled", {"requestId": call.id})
            else:
                making.cancel()
            await self.talking.cancelled[call.tag].wait()
        finally:
            making.cancel()
            await asyncio.wait([making])

    async def _answer(self, question: dict[str, Any]) -> None:
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": accepting(question)}
        answer = await self.http.post(self.url, json=reply, headers=self._headers())
        assert answer.status_code == 202

    async def _post(self, method: str, params: Any, number: int | None = None) -> httpx2.Response:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        told |= {} if number is None else {"id": number}
        answer = await self.http.post(self.url, json=told, headers=self._headers())
        assert answer.is_success, answer.text
        return answer

    @asynccontextmanager
    async def _stream(self, call: Call, **more: Any) -> AsyncIterator[AsyncIterator[Any]]:
        if not self.session:
            more["meta"] = {**META, **OPTIONS}
        params = call.params(**more)
        told = {"jsonrpc": "2.0", "id": call.id, "method": "tools/call", "params": params}
        async with self.http.stream(
            "POST", self.url, json=told, headers=self._headers(params["name"])
        ) as answer:
            yield read(answer)

    def _headers(self, tool: str = "") -> dict[str, str]:
        headers = {
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {self.token}",
        }
        if self.session:
            return {**headers, "mcp-session-id": self.session}
        named = {"mcp-method": "tools/call", "mcp-name": tool}
        return {**headers, "mcp-protocol-version": MODERN, **named} if tool else headers


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


async def crowd(folder: Path, era: str, steps: Steps, callers: int, turns: int) -> list[Call]:
    """Every call of all callers, half of them of each era, through a server of one era."""
    talking = Talking()
    async with (
        talking_http(talking, era) as behind,
        fronted(
            folder,
            backend("talking", Place("http", url=behind), most_calls=512),
            http={"shutdown_seconds": 1},
        ) as there,
    ):
        people = [
            Caller(
                there.url,
                await token_of(there, f"caller{number}"),
                list(ERAS)[number % 2],
                f"caller{number}",
                talking,
            )
            for number in range(callers)
        ]
        try:
            for caller in people:
                await caller.open()
            made = await asyncio.gather(*(caller.use(turns, steps) for caller in people))
        finally:
            for caller in people:
                await caller.http.aclose()
    return [call for calls in made for call in calls]


kinds = pytest.mark.parametrize(
    ("era", "steps"),
    [
        pytest.param("stateless", (LOG, PROGRESS, PAUSE, ASK), id="stateless"),
        pytest.param("handshake", (LOG, PROGRESS, PAUSE, ASK), id="handshake"),
    ],
)


def check(calls: list[Call]) -> None:
    """All was heard that was due, in order, and nothing else."""
    assert {call.tag: call.heard for call in calls} == {call.tag: call.due for call in calls}
    assert any(call.cancels for call in calls)


@kinds
@pytest.mark.requirement("gateway.own-alone")
def test_each_of_many_callers_hears_all_of_its_own_and_nothing_else(era, steps, tmp_path):
    check(run(crowd(tmp_path, era, steps, callers=8, turns=1), SECONDS))


@kinds
@pytest.mark.long
@pytest.mark.requirement("gateway.own-alone")
def test_each_of_many_callers_hears_its_own_for_long(era, steps, tmp_path):
    check(run(crowd(tmp_path, era, steps, callers=32, turns=10), SECONDS))
