"""What one client of a front may try to learn of another, or do to it."""

from __future__ import annotations

import asyncio
import json

import pytest

from folkmoot.core.message import Notification, Response
from tests.mcp.client.saying import at_rest
from tests.mcp.server.played import BOTH, fronted, modern_tool, text_of, tool


async def test_what_is_said_late_about_one_clients_request_reaches_no_other(client):
    message, headers = modern_tool("echo", token="mine")
    assert (await client.ask("POST", message, headers)).status_code == 200
    first = client.played.got[0].message.params["_meta"]["progressToken"]
    message, headers = modern_tool("wait", token="mine")
    async with client.stream("POST", message, headers) as stream:
        await stream.message()
        late = {"progressToken": first, "progress": 9}
        [carrier] = client.played.carriers
        await carrier.send(Notification(method="notifications/progress", params=late))
        client.played.go_on.set()
        assert [told.get("id") for _, told in await stream.rest()] == [1]


async def test_a_client_that_reads_none_of_its_answers_gets_no_more_of_them(http):
    port = int(http.url.split(":")[2].partition("/")[0])
    writers = [await unread(port, http.session, number) for number in range(1, 9)]
    await http.played.until(lambda: len(http.played.got) == len(writers) + 2)
    [carrier] = http.played.carriers
    sent: list[int] = []

    async def answer() -> None:
        for number in range(1, 9):
            large = {"text": "x" * 8 * 2**20}
            await carrier.send(Response(id=number, result=large))
            sent.append(number)

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(answer())
        await at_rest(lambda: len(sent))
        assert len(sent) < 2
        for writer in writers:
            writer.transport.abort()
        await task


async def unread(port: int, session: str, number: int) -> asyncio.StreamWriter:
    """A call whose answer nobody reads."""
    body = json.dumps(tool("wait", number)).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
    lines = (
        "POST /mcp HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        f"accept: {BOTH}",
        f"mcp-session-id: {session}",
        f"content-length: {len(body)}",
    )
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return writer


@pytest.mark.parametrize(("apart", "conversations"), [((), 1), (("authorization",), 2)])
async def test_clients_share_a_conversation_only_if_they_are_the_same_to_the_server(
    apart, conversations
):
    async with fronted(apart=apart) as client:
        for who in ("ann", "bob", "ann"):
            message, headers = modern_tool("echo", text=who)
            told = await client.ask("POST", message, headers | {"authorization": who})
            assert text_of(told) == who
        assert len(client.played.carriers) == conversations


@pytest.mark.settings(apart=("authorization",))
async def test_conversations_are_bounded_and_the_longest_unused_goes(client, monkeypatch):
    monkeypatch.setattr("folkmoot.mcp.server.stateless.MOST_CARRIERS", 2)
    message, headers = modern_tool("wait", token=1)
    async with client.stream("POST", message, headers | {"authorization": "ann"}) as waits:
        await waits.message()
        for who in ("bob", "cid"):
            message, headers = modern_tool("echo")
            told = await client.ask("POST", message, headers | {"authorization": who})
            assert told.status_code == 200
        assert [each.over for each in client.played.carriers] == [False, True, False]  # type: ignore[attr-defined]
        client.played.go_on.set()
        assert len(await waits.rest()) == 1
