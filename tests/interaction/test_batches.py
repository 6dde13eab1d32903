"""Batches, which version 2025-03-26 alone had: one sentence for all of them, wherever they come."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mcp.client.places import Asked, Place
from tests.mcp.client.saying import python
from tests.mcp_harness import modern, rpc
from tests.relay.listening import initialize, listening
from tests.relay.standing import before

VERSION = "2025-03-26"
SENTENCE = "JSON-RPC batches are not accepted; send one message at a time."
BATCHES = {
    "requests": json.dumps([rpc("ping", id_=1), rpc("ping", id_=2)]).encode(),
    "a handshake": json.dumps([initialize(1, VERSION)]).encode(),
    "notifications": b' [{"jsonrpc":"2.0","method":"notifications/initialized"}]',
    "answers": b'\n[{"jsonrpc":"2.0","id":1,"result":{}}]',
    "nothing": b"[]",
    "no end": b"[" * 1_000,
}
# A server that answers everything with what it is.
ONE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    told = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "one"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


def check(status: int, body: bytes) -> None:
    """That a batch was refused with the sentence."""
    told: dict[str, Any] = json.loads(body)
    assert status == 400
    assert (told["jsonrpc"], told["id"]) == ("2.0", None)
    assert (told["error"]["code"], told["error"]["message"]) == (-32600, SENTENCE)
    assert told["error"]["data"]["code"] == "batch_refused"


@pytest.mark.requirement("mcp.batches")
async def test_a_hub_refuses_a_batch_and_the_session_goes_on(hub):
    opened = await hub.post(initialize(0, VERSION))
    assert opened.status == 200
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    await hub.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
    _, stateless = modern("tools/list")
    for headers in ({}, session, session | {"mcp-protocol-version": VERSION}, stateless):
        for batch in BATCHES.values():
            refused = await hub.post(batch, headers=headers)
            check(refused.status, refused.body)
    assert (await hub.post(rpc("ping"), headers=session)).status == 200


@pytest.mark.requirement("mcp.batches")
async def test_a_proxy_before_a_command_refuses_a_batch_and_the_session_goes_on():
    async with listening(*python(ONE)) as proxy:
        opened = await proxy.post(initialize(0, VERSION))
        session = {"mcp_session_id": opened.headers["mcp-session-id"]}
        for headers in ({}, session):
            for batch in BATCHES.values():
                refused = await proxy.post(batch, **headers)
                check(refused.status, refused.body)
        assert (await proxy.post(rpc("ping"), **session)).status == 200


@pytest.mark.requirement("mcp.batches")
async def test_a_proxy_before_a_url_refuses_a_batch_and_the_server_never_hears_of_it():
    async def answered(asked: Asked) -> None:
        await asked.result({})

    async with Place(answered).open() as place, before(place.url) as proxy:
        for batch in BATCHES.values():
            refused = await proxy.post(batch)
            check(refused.status_code, refused.content)
        assert place.asked == []
