"""What a recorded client says back, in the live server's words."""

from __future__ import annotations

import pytest

from folkmoot.core.message import Request, Response
from folkmoot.proxy.replay.playing import Echoes


@pytest.mark.requirement("proxy.replay")
@pytest.mark.parametrize(
    "told",
    [lambda task_id: {"task": {"taskId": task_id}}, lambda task_id: {"taskId": task_id}],
    ids=["handshake", "stateless"],
)
def test_a_task_is_asked_about_by_the_id_that_the_live_server_gave_it(told):
    echoes = Echoes()
    echoes.learn(Response(id=1, result=told("then")), Response(id=1, result=told("now")))
    asked = Request(id=2, method="tasks/get", params={"taskId": "then"})
    assert echoes.put(asked).params == {"taskId": "now"}
    other = Request(id=3, method="tasks/get", params={"taskId": "another"})
    assert echoes.put(other) is other
