"""Many callers share a link: each hears all of its own calls, and nothing of another's."""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import Any

import pytest

from folkmoot.gateway.model import UpstreamRequest
from folkmoot.relay.upstream.backend import LiveBackend
from tests.mcp.client.places import EVENTS, Asked, Place, event
from tests.relay.upstream import crowd_server
from tests.relay.upstream.crowd_server import CrowdServer
from tests.relay.upstream.scripted import (
    FORM,
    Told,
    both_eras,
    call,
    leave,
    resumed,
    running,
    spec,
)

CALLERS = 32
CALLS = 4
STEPS = ("log", "log", "progress", "ask")


class OverHttp:
    """The server over Streamable HTTP, in this process."""

    def __init__(self, era: str) -> None:
        self.server = CrowdServer(era)
        self.place = Place(self._do)
        self._aside: list[Asked] = []

    async def _do(self, asked: Asked) -> None:
        if asked.method == "GET" and self.server.era == "handshake":
            await asked.head(200, EVENTS)
            self._aside.append(asked)
            await asyncio.Event().wait()
        elif asked.method != "POST":
            await asked.say(405)
        elif "id" in asked.message and "method" in asked.message:
            await self._answer(asked)
        else:
            self.server.told(asked.message)
            await asked.say(202)

    async def _answer(self, asked: Asked) -> None:
        message, unsent = asked.message, bytearray()

        async def say(said: dict[str, Any]) -> None:
            unsent.extend(event({"jsonrpc": "2.0", **said}))
            if said["method"] != "notifications/message":
                # What is logged leaves with the next that is said, so that much is read at once.
                await asked.part(bytes(unsent))
                unsent.clear()

        if message["method"] != "tools/call":
            answer = await self.server.request(message, say, say)
            session = {"mcp_session_id": "one"} if message["method"] == "initialize" else {}
            await asked.say_json({"jsonrpc": "2.0", "id": message["id"], **answer}, **session)
            return
        await asked.head(200, EVENTS)
        answer = await self.server.request(message, say, self._say_aside)
        unsent.extend(event({"jsonrpc": "2.0", "id": message["id"], **answer}))
        await asked.part(bytes(unsent))
        await asked.end()

    async def _say_aside(self, said: dict[str, Any]) -> None:
        await self._aside[-1].part(event({"jsonrpc": "2.0", **said}))


class Caller:
    """One caller, who calls again and again and notes what is heard during each call."""

    def __init__(self, backend: LiveBackend, number: int, leaving: float) -> None:
        self.name = f"caller{number}"
        # Questions that nobody was asked, since the server could not say whose they were.
        self.refused = 0
        self._backend = backend
        # How often the caller leaves before the answer.
        self._leaving = leaving
        self._random = Random(number)

    async def call(self, number: int, *, exactly: bool) -> None:
        """Call once, or leave in the middle; `exactly` where nothing may be lost."""
        rng = self._random
        steps = ["progress", *rng.choices(STEPS, k=rng.randrange(6))]
        level, leaves = rng.choice((None, "debug", "info", "error")), rng.random() < self._leaving
        if leaves:
            steps = [step for step in steps if step != "ask"]
        names = [f"{self.name}/{number}/{place}" for place in range(len(steps))]
        hears = {"progress", "log"} if level in ("debug", "info") else {"progress"}
        own = [names[place] for place, step in enumerate(steps) if step in hears]
        heard = Told()
        hearing = {"progress": True, "log_level": level, "tell": heard}
        asks = {"person": self.name, "capabilities": FORM, **hearing}
        wanted = call("work", who=self.name, n=number, steps=steps, hangs=leaves, **asks)
        task = asyncio.ensure_future(self._answered(wanted, names))
        if leaves:
            await heard.until(bool)
            await leave(task)
            await asyncio.sleep(0)
            said = words(heard)
            assert said == own[: len(said)] or not exactly, (said, own)
        else:
            answers = await task
            own_answers = [{"by": self.name}, None]
            assert [each in own_answers for each in answers] == [True] * steps.count("ask")
            self.refused += answers.count(None)
            said = words(heard)
            progress = [names[place] for place, step in enumerate(steps) if step == "progress"]
            assert said == own or not exactly, (said, own)
            assert [each for each in said if each in progress] == progress
        assert set(said) <= set(own)

    async def _answered(self, wanted: UpstreamRequest, names: list[str]) -> list[Any]:
        """What the server got of us when it asked, once it has answered."""
        answer = await self._backend.request(wanted)
        while answer.result["resultType"] != "complete":
            questions = answer.result["inputRequests"]
            assert {each["params"]["message"] for each in questions.values()} <= set(names)
            given = {key: {"action": "accept", "content": {"by": self.name}} for key in questions}
            answer = await self._backend.request(resumed(wanted, answer, given))
        return answer.result["answers"]


def words(heard: Told) -> list[str]:
    """What was heard of the server, in order; that something was lost is said by ours."""
    said = [each.params for each in heard.things if each.params.get("logger") != "folkmoot"]
    return [each.get("data") or each["message"] for each in said]


async def crowd(
    backend: LiveBackend, *, exactly: bool, callers: int = CALLERS, leaving: float = 0.25
) -> int:
    """Have all of them call at once; how many questions nobody was asked."""
    people = [Caller(backend, number, leaving) for number in range(callers)]

    async def busy(caller: Caller) -> None:
        for number in range(CALLS):
            await caller.call(number, exactly=exactly)

    async with asyncio.TaskGroup() as tasks:
        for caller in people:
            tasks.create_task(busy(caller))
    seen = await backend.request(UpstreamRequest(method="seen", params={}))
    assert seen.result["wrong"] == []
    return sum(caller.refused for caller in people)


@both_eras
@pytest.mark.requirement("gateway.shared-link", "gateway.cancelled-requests")
async def test_over_http_each_of_many_callers_hears_all_of_its_own_and_nothing_else(era):
    async with (
        OverHttp(era).place.open() as place,
        running(spec(url=place.url, transport="http")) as there,
    ):
        assert await crowd(there.backend, exactly=True) == 0


@both_eras
@pytest.mark.requirement("gateway.shared-link", "gateway.cancelled-requests")
async def test_over_one_process_nobody_hears_of_another_and_progress_is_never_lost(era):
    command = (sys.executable, "-S", crowd_server.__file__, era)
    async with running(spec(command=command)) as running_:
        assert await crowd(running_.backend, exactly=False) == 0 or era == "handshake"


@pytest.mark.long
@pytest.mark.requirement("gateway.shared-link", "gateway.server-requests")
async def test_whoever_has_a_process_of_their_own_hears_all_of_it():
    command = (sys.executable, "-S", crowd_server.__file__, "handshake")
    async with running(spec(command=command, per_user=True)) as running_:
        # What one leaves behind may be put to oneself, as by any server of one's own.
        assert await crowd(running_.backend, exactly=True, callers=8, leaving=0) == 0
