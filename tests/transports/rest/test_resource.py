from __future__ import annotations

import asyncio
import json

from folkmoot.core import errors as e
from folkmoot.operations.call import StreamEvent
from folkmoot.transports.answers import refused
from folkmoot.transports.event_streams import outcome, written
from tests.harness import ask
from tests.transports.rest.support import ROOMS


def test_a_failure_of_the_hubs_own_is_told_without_its_particulars():
    answer = refused(e.DiskFull("No room is left in /srv/secret."))
    assert answer.status_code == 507
    told = json.loads(bytes(answer.body))["error"]
    assert told["code"] == "disk_full"
    assert "secret" not in told["message"]


async def test_what_fails_while_its_progress_is_told_is_an_event_without_its_particulars():
    working = asyncio.get_running_loop().create_future()
    working.set_exception(e.DiskFull("No room is left in /srv/secret."))
    error = written(outcome(working, whole=False)).decode()
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
