from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.operations.call import Caller, StreamEvent
from folkmoot.transports.answers import refused
from folkmoot.transports.event_streams import progressing, written
from folkmoot.transports.resource import WaitingCallers
from tests.harness import ask
from tests.transports.rest.support import ROOMS


def test_a_failure_of_the_hubs_own_is_told_without_its_particulars():
    answer = refused(e.DiskFull("No room is left in /srv/secret."))
    assert answer.status_code == 507
    told = json.loads(bytes(answer.body))["error"]
    assert told["code"] == "disk_full"
    assert "secret" not in told["message"]


async def climbed(steps: int) -> str:
    """What someone is told of a long call that fails after so many steps."""
    caller, sent = Caller(), []

    async def climb() -> Any:
        for number in range(steps):
            caller.progress(number)
        raise e.DiskFull("No room is left in /srv/secret.")

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    receive = asyncio.Event().wait
    answer = await progressing(climb(), caller, WaitingCallers(), receive)
    await answer({"type": "http", "method": "POST"}, receive, send)
    return b"".join(sent).decode()


async def test_what_fails_before_any_progress_has_its_status_and_later_an_event():
    with pytest.raises(e.DiskFull):
        await climbed(0)
    *steps, error, rest = (await climbed(2)).split("\n\n")
    assert (steps, rest) == ([f"event: progress\ndata: {number}" for number in range(2)], "")
    assert error.startswith('event: error\ndata: {"error":{"code":"disk_full"')
    assert "secret" not in error
    assert written(StreamEvent(7, "step", "1")) == b"id: 1\nevent: step\ndata: 7\n\n"


def test_a_time_to_wait_is_in_the_head_too():
    answer = refused(e.RateLimited("Later.", retry_after=7))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_requests_are_counted_by_their_path_and_never_by_the_name_of_a_room(hub, ada):
    await ada.create("planning", access="private")
    await ada.get(f"{ROOMS}/planning/messages")
    metrics = (await ask(hub.port, "/metrics")).text
    assert "/v1/rooms/{room}/messages" in metrics
    assert "planning" not in metrics
