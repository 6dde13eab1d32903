from __future__ import annotations

import json

from folkmoot.core import errors as e
from folkmoot.transports.answers import refused
from tests.harness import ask
from tests.transports.rest.support import ROOMS


def test_a_failure_of_the_hubs_own_is_told_without_its_particulars():
    answer = refused(e.DiskFull("No room is left in /srv/secret."))
    assert answer.status_code == 507
    told = json.loads(bytes(answer.body))["error"]
    assert told["code"] == "disk_full"
    assert "secret" not in told["message"]


def test_a_time_to_wait_is_in_the_head_too():
    answer = refused(e.RateLimited("Later.", retry_after=7))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_requests_are_counted_by_their_path_and_never_by_the_name_of_a_room(hub):
    ada = await hub.person("ada")
    await ada.create("planning", access="private")
    await ada.get(f"{ROOMS}/planning/messages")
    metrics = (await ask(hub.port, "/metrics")).text
    assert "/v1/rooms/{room}/messages" in metrics
    assert "planning" not in metrics
