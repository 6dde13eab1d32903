"""Many people who share one link to a server."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.faults.backends import flawed
from tests.mcp_harness import ERAS, Meeting, until
from tests.peers.gateway import fronted, token_of
from tests.transports.mcp.gateway_support import wired


@pytest.mark.long
@pytest.mark.requirement("gateway.shared-link")
@pytest.mark.parametrize("kind", ["handshake", "stateless"])
async def test_many_people_at_once_get_their_own_answers_though_some_leave(
    kind: str, tmp_path: Path
) -> None:
    people, turns, most = 8, 60, 3

    async def use(there: Meeting, number: int) -> int:
        token = await token_of(there, f"person{number}")
        era = list(ERAS)[number % 2]
        wire = await wired(there, token, era)
        chance, answered = random.Random(number), 0
        for turn in range(turns):
            texts = [f"{number} {turn} {each}" for each in range(most)]
            calls = [
                asyncio.ensure_future(
                    wire.ask(
                        "tools/call",
                        {"name": "shared_echo", "arguments": {"text": words}},
                        id_=turn * most + place,
                    )
                )
                for place, words in enumerate(texts)
            ]
            leaves = chance.random() < 0.3
            if leaves:
                await asyncio.sleep(chance.random() / 200)
                calls[0].cancel()
            for words, answer in zip(texts, await gathered(calls), strict=True):
                if answer is not None:
                    _, arguments, _ = json.loads(answer["result"]["content"][0]["text"])
                    assert arguments == {"text": words}
                    answered += 1
        return answered

    shared = flawed("shared", tmp_path / "shared", kind, most_calls=512)
    async with fronted(tmp_path / "hub", shared) as there:
        answered = await asyncio.gather(*(use(there, number) for number in range(people)))
        assert min(answered) > turns

        async def at_rest() -> bool:
            return not there.hub.behind.numbers()[0]["in_flight"]

        await until(at_rest)
        assert there.hub.behind.numbers()[0]["restarts"] == 0


async def gathered(calls: list[asyncio.Future[Any]]) -> list[Any]:
    """What came of calls; None for those that were given up."""
    await asyncio.wait(calls)
    return [None if each.cancelled() else each.result() for each in calls]
