"""What a stranger's bytes cost: however they are cut, the hub answers others meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.core.closecodes import CloseCode
from folkmoot.mcp.server.heads import read_head
from folkmoot.transports import protocol
from folkmoot.transports.limits import (
    LARGE_FRAGMENT_BYTES,
    MAX_HEADERS,
    MAX_WAITING_REQUESTS,
)
from folkmoot.transports.websocket import ConnectionRate, LinkLimits, Refusal, UpgradeRequest
from folkmoot.transports.websocket.reader import FrameReader
from tests.harness import (
    MAX_STRETCH,
    ask,
    longest_stretch,
    reached,
    read_answer,
    serving,
)
from tests.transports.websocket.support import (
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    Party,
    client,
    frame,
    opened,
)

if TYPE_CHECKING:
    from picows import WSFrame, WSTransport

# More bytes than the system's buffers of a connection hold.
ENOUGH = 30_000_000


HEAD = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
GET = b"GET /get HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST /post HTTP/1.1\r\nhost: localhost\r\n"


async def length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


SERVED = {"routes": [Route("/get", length), Route("/post", length, methods=["POST"])]}


@pytest.mark.parametrize("name", [b"a", b"a%d"], ids=["repeated", "different"])
async def test_a_head_of_too_many_headers_is_refused(dial, hub, name):
    for count, status in ((MAX_HEADERS - 1, 200), (MAX_HEADERS, 431), (10_000, 431)):
        reader, writer = await dial()
        lines = [(name % each if b"%" in name else name) + b":\r\n" for each in range(count)]
        writer.write(HEAD + b"".join(lines) + b"\r\n")
        answer = await read_answer(reader)
        assert answer.status == status
        if status == 431:
            assert answer.refusal == (431, "head_too_large")
            assert "100 headers" in answer.json()["error"]["message"]
            assert await reader.read() == b""
    assert (await ask(hub.port)).status == 200


def test_four_times_as_many_repeated_headers_cost_about_four_times_as_much():
    def cost(count: int) -> float:
        pairs = [(b"a", b"b"), (b"c", b"d")] * (count // 2)
        began = time.process_time()
        assert read_head(pairs).twice == {b"a", b"c"}
        return time.process_time() - began

    cost(1_000)
    assert min(cost(16_000) for _ in range(3)) < 16 * min(cost(4_000) for _ in range(3)) + 0.005


async def test_a_connection_with_too_many_waiting_requests_is_closed_after_their_answers(dial, hub):
    reader, _ = await dial(GET * 3_000)
    answers = await reader.read()
    served = MAX_WAITING_REQUESTS + 1
    assert answers.count(b"HTTP/1.1 200 OK") == served
    assert answers.endswith(b"\r\n\r\n0")
    assert f'route="/get",status="200"}} {served}.0' in hub.metrics.exposition("")[0].decode()


async def test_a_few_waiting_requests_are_answered_in_their_order(dial):
    reader, writer = await dial()
    for start in range(0, 40, 10):
        sizes = [90 * (each % 3) + each for each in range(start, start + 10)]
        for size in sizes:
            writer.write(POST + b"content-length: %d\r\n\r\n" % size + b"x" * size)
        assert [(await read_answer(reader)).text for _ in sizes] == [str(size) for size in sizes]


async def test_a_request_in_two_pieces_is_answered_after_a_body_that_was_thrown_away(dial):
    reader, writer = await dial(POST + b"content-length: 1000000\r\n\r\n")
    assert (await read_answer(reader)).status == 413
    for _ in range(10):
        writer.write(b"x" * 100_000)
        await writer.drain()
    for piece in (GET[:9], GET[9:]):
        await asyncio.sleep(0.05)
        writer.write(piece)
    async with asyncio.timeout(10):
        assert (await read_answer(reader)).text == "0"


async def test_the_head_of_a_request_that_is_not_read_yet_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    over = asyncio.Event()

    async def slow(_request: Request) -> Response:
        await over.wait()
        return PlainTextResponse("slow")

    async with serving([Route("/slow", slow)]) as hub:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        whole = b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n"
        writer.write(whole * 2 + whole[:10])
        await asyncio.sleep(0.2)
        over.set()
        writer.write(whole[10:])
        assert [(await read_answer(reader)).text for _ in range(3)] == ["slow"] * 3
        writer.close()


@pytest.mark.parametrize("upgrade", [b"", b"connection: upgrade\r\nupgrade: websocket\r\n"])
async def test_nothing_more_is_read_while_a_request_waits_for_a_long_answer(upgrade):
    """The application waits for the client to leave, which must not read what the client sends."""
    more = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1_000

    async def wait(request: Request) -> Response:
        left = asyncio.ensure_future(request.receive()), asyncio.ensure_future(request.receive())
        await over.wait()
        for each in left:
            each.cancel()
        return Response()

    over = asyncio.Event()
    async with serving([Route("/wait", wait)]) as hub:
        with socket.create_connection(("127.0.0.1", hub.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
            client.sendall(b"GET /wait HTTP/1.1\r\nhost: localhost\r\n" + upgrade + b"\r\n")
            client.setblocking(False)
            sent = stalled = 0
            while stalled < 100 and sent < ENOUGH:
                await asyncio.sleep(0.001)
                with suppress(BlockingIOError):
                    sent += client.send(more)
                    stalled = -1
                stalled += 1
        over.set()
    assert sent < ENOUGH


@pytest.mark.parametrize(("path", "status"), [(b"/post", b"413"), (b"/get", b"405")])
async def test_a_body_of_tiny_chunks_lets_others_have_their_turn_and_is_refused(
    dial, hub, path, status
):
    async with asyncio.TaskGroup() as tasks:
        stretch = tasks.create_task(longest_stretch(stop := asyncio.Event()))
        head = POST.replace(b"/post", path) + b"transfer-encoding: chunked\r\n\r\n"
        reader, _ = await dial(head + b"1\r\nx\r\n" * 100_000)
        with suppress(OSError):
            came = await reader.readuntil(b"\r\n\r\n")
            await reader.read()
        assert (await ask(hub.port)).status == 200
        stop.set()
    assert came.split()[1] == status
    assert stretch.result() < MAX_STRETCH


def still() -> float:
    """A clock that stands still, so that nothing is earned."""
    return 0.0


KINDS = {
    "ping": frame(b"", PING),
    "pong": frame(b"", PONG),
    "empty continuation": frame(b"", CONTINUATION, fin=False),
    "fragment of a byte": frame(b"x", CONTINUATION, fin=False),
    "empty message": frame(b""),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_every_frame_counts_against_the_rate(kind):
    rate = ConnectionRate(10, still)
    first = frame(b"x", fin=False) if kind.startswith(("empty c", "fragment")) else b""
    async with opened(LinkLimits(rate=rate)) as at, client(at) as one:
        one.send(first or KINDS[kind], *(KINDS[kind],) * (rate.burst - 1), frame(b"", PING))
        opcode, payload = await one.receive()
        while opcode != CLOSE:
            opcode, payload = await one.receive()
        assert int.from_bytes(payload[:2], "big") == CloseCode.OVER_RATE


async def test_large_fragments_of_a_message_do_not_count():
    rate = ConnectionRate(1, still)
    async with opened(LinkLimits(rate=rate)) as at, client(at) as one:
        part = b"x" * LARGE_FRAGMENT_BYTES
        one.send(frame(part, fin=False), *(frame(part, CONTINUATION, fin=False),) * 100)
        one.send(frame(b"", CONTINUATION))
        assert len(await one.text()) == 101 * LARGE_FRAGMENT_BYTES


class Refusing(Party):
    """Lets nobody in."""

    async def accept(self, request: UpgradeRequest) -> Refusal:
        return Refusal(CloseCode.NOT_AUTHENTICATED, "No valid token was given.")


async def test_a_refused_socket_is_not_parsed_on(monkeypatch):
    frames = 0
    on_ws_frame = FrameReader.on_ws_frame

    def counted(self: FrameReader, transport: WSTransport, one: WSFrame) -> None:
        nonlocal frames
        frames += 1
        on_ws_frame(self, transport, one)

    monkeypatch.setattr(FrameReader, "on_ws_frame", counted)
    async with opened(party=Refusing) as at, client(at, after=KINDS["pong"] * 1_000) as one:
        for _ in range(10):
            one.send(KINDS["pong"] * 10_000)
            await one.writer.drain()
        assert (await one.receive())[0] == CLOSE
        assert await one.reader.read() == b""
    assert frames < 1_000


async def test_a_refused_socket_still_ends_with_its_close():
    async with opened(party=Refusing) as at, client(at, after=KINDS["pong"] * 50) as one:
        assert await one.closed() == CloseCode.NOT_AUTHENTICATED


async def test_many_small_frames_let_others_have_their_turn():
    async with opened() as at, client(at) as one, asyncio.TaskGroup() as tasks:
        stretch = tasks.create_task(longest_stretch(stop := asyncio.Event()))
        one.send(frame(b"first"), KINDS["pong"] * 60_000, frame(b"last"))
        assert [await one.text(), await one.text()] == [b"first", b"last"]
        stop.set()
    assert stretch.result() < MAX_STRETCH


async def test_messages_that_were_received_wait_while_reading_is_paused():
    async with opened() as at, client(at) as one:
        await at.party.number(1)
        guest = at.party.guests[0]
        one.send(*(frame(b"%d" % number) for number in range(5_000)))
        await reached(lambda: bool(guest.heard))
        guest.link.pause_reading()
        await asyncio.sleep(0.05)
        assert len(guest.heard) < 2_000
        guest.link.resume_reading()
        await reached(lambda: len(guest.heard) == 5_000)
        assert guest.heard == [b"%d" % number for number in range(5_000)]
