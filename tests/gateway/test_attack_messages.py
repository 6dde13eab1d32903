"""Backends whose messages cost much to read, or much to keep."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Notification
from folkmoot.mcp.server.responses import HttpReply
from folkmoot.mcp.server.streams import Weight
from folkmoot.mcp.wire import members_of
from folkmoot.relay.upstream import requests
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.requests import Unanswered
from tests.gateway.scripted import turn
from tests.relay.upstream.scripted import CLOCK, call, spec

if TYPE_CHECKING:
    from starlette.types import Message

SERVER = r"""
import json, sys
BODIES = {"values": '{"a":[' + '{},' * 400_000 + '1]}', "digits": '{"a":' + '9' * 4000 + '}',
    "bytes": '{"a":"' + 'x' * 17_000_000 + '"}', "text": '{"a":"' + '{},' * 400_000 + '"}'}
for line in sys.stdin:
    asked = json.loads(line)
    told = '{"supportedVersions":["2026-07-28"],"capabilities":{}}'
    if asked["method"] == "tools/call":
        for data in ("x" * 70_000, "short"):
            params = {"level": "error", "data": data}
            notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
            print(json.dumps(notice), flush=True)
        told = BODIES[asked["params"]["name"]]
    if "id" in asked:
        print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked["id"], told), flush=True)
"""


async def test_an_answer_that_would_hold_everyone_up_is_not_read():
    connecting = Connecting(spec(command=(sys.executable, "-c", SERVER)), CLOCK, {})
    async with BackendConversation.opened(connecting.link, seconds=30) as conversation:
        for name in ("values", "digits", "bytes"):
            with pytest.raises(Unanswered) as refused:
                await conversation.request(call(name), 30)
            assert isinstance(refused.value.why, e.ServerAnswerInvalid)
            assert not refused.value.gone
        # It is not the length alone that costs; but of what nobody asked for, much may wait.
        heard: list[Notification] = []
        listening = call("text", log_level="debug", tell=heard.append)
        answer = await conversation.request(listening, 30)
        assert len(members_of(answer.result)["a"]) == 1_200_000
        assert [members_of(each.params).get("data") for each in heard] == ["short"]


@pytest.mark.parametrize(("byte", "count"), [(b"x", 40_000_000), (b",", 500_000)])
async def test_a_server_that_writes_what_is_long_to_read_waits(byte, count, monkeypatch):
    monkeypatch.setattr(requests, "LONGEST_PAUSE", 0.05)
    loop, reading = asyncio.get_running_loop(), requests.Pace()
    # On a busy machine time has passed already, which counts for it.
    for _ in range(5):
        reading.spend(byte * count)
    began = loop.time()
    await reading.keep()
    assert loop.time() - began > 0.03


async def test_what_waits_for_a_client_that_does_not_read_is_bounded_in_bytes():
    written: list[bytes] = []
    reading = asyncio.Event()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await reading.wait()
            written.append(message["body"])

    async with asyncio.TaskGroup() as tasks:
        reply = HttpReply(send, tasks)
        reply.say({"data": "first"}, Weight.LOG)
        await turn()
        for number in range(100):
            reply.say({"number": number, "data": "x" * 100_000}, Weight.LOG)
        reply.say({"data": "x" * 2_000_000}, Weight.LOG)
        reply.say({"question": "Go on?"}, Weight.QUESTION)
        reading.set()
        await reply.answer({"answer": True})
    told = b"".join(written)
    for said in (b"first", b'"number":99', b"question", b"answer"):
        assert said in told
    assert len(told) < 1_200_000
