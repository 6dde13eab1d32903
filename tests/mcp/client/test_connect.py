"""Ways to servers, and finding out which one a server needs."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import ProtocolMessage
from folkmoot.core.transport import HttpMetadata
from folkmoot.mcp.client.connect import (
    detect,
)
from folkmoot.mcp.client.http import HttpTarget
from tests.mcp.client.places import Asked, Place, sdk_sse


async def test_a_server_tells_by_its_answers_what_it_speaks(hub):
    async def opens_its_stream_whatever_it_is_asked(asked: Asked) -> None:
        await asked.events(b"event: endpoint\ndata: /messages\n\n")

    async with sdk_sse() as old, Place(opens_its_stream_whatever_it_is_asked).open() as eager:
        for url, spoken in ((hub.url, "http"), (old, "sse"), (eager.url, "sse")):
            async with HttpTarget(url) as target:
                assert await detect(target) == spoken


async def test_a_server_of_the_stateless_era_is_asked_nothing_that_it_does_not_know():
    async def do(asked: Asked) -> None:
        await asked.result({"resultType": "complete", "supportedVersions": ["2026-07-28"]})

    noted: list[tuple[str, int | None]] = []

    def note(message: ProtocolMessage, metadata: HttpMetadata) -> None:
        noted.append((getattr(message, "method", "answer"), metadata.status))

    async with Place(do).open() as place, HttpTarget(place.url) as target:
        assert await detect(target, note) == "http"
        (asked,) = place.asked
        assert asked.message["method"] == "server/discover"
        assert asked.headers["mcp-method"] == "server/discover"
        assert asked.headers["mcp-protocol-version"] == "2026-07-28"
        meta = asked.message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert "io.modelcontextprotocol/clientInfo" in meta
    assert noted == [("server/discover", None), ("answer", 200)]


async def test_a_handshake_is_offered_to_a_server_that_takes_nothing_else():
    async def do(asked: Asked) -> None:
        if asked.method == "POST" and asked.message["method"] == "initialize":
            await asked.result({"protocolVersion": "2025-06-18"}, mcp_session_id="s")
        else:
            await asked.say(200 if asked.method == "DELETE" else 400, b"No session.")

    async with Place(do).open() as place, HttpTarget(place.url) as target:
        assert await detect(target) == "http"
        assert [each.method for each in place.asked] == ["POST", "GET", "POST", "DELETE"]


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, b""), (200, b""), (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}')],
)
async def test_a_server_that_only_refuses_the_handshake_is_no_old_one(status, body):
    async def do(asked: Asked) -> None:
        if asked.method == "POST":
            await asked.say(status, body, content_type="application/json", mcp_session_id="s")
        else:
            await asked.say(200)

    async with Place(do).open() as place, HttpTarget(place.url) as target:
        assert await detect(target) == "http"
        # A session that was opened by asking is ended again.
        assert [asked.method for asked in place.asked[1:]] == ["DELETE"] * (status == 200)


async def test_what_is_neither_is_said_to_be_neither():
    async def do(asked: Asked) -> None:
        await asked.say(404 if asked.method == "POST" else 200, b"hello", content_type="text/plain")

    async with Place(do).open() as place, HttpTarget(place.url + "?key=hunter2") as target:
        with pytest.raises(e.ServerAnswerInvalid, match=r"/mcp \(404\) is not an MCP server"):
            await detect(target)
    async with HttpTarget(place.url) as target:
        with pytest.raises(e.ServerUnreachable):
            await detect(target)
