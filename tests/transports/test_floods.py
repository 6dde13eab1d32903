"""What a stranger's bytes cost: however they are cut, the hub answers others meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.mcp.server.heads import read_head
from folkmoot.transports.limits import MAX_HEADERS, MAX_WAITING_REQUESTS
from tests.harness import ask, read_answer, run, serving

ENOUGH = 30_000_000
"""More bytes than the system's buffers of a connection hold."""
MAX_STRETCH = 0.03
"""Seconds of processor time that one turn of the loop may take: ten times what it does."""


async def longest_stretch(stop: asyncio.Event) -> float:
    """The most processor time that passed between two turns of the loop."""
    longest, before = 0.0, time.thread_time()
    while not stop.is_set():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


pytestmark = pytest.mark.requirement("edge.cost")

HEAD = b"GET / HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.parametrize("name", [b"a", b"a%d"], ids=["repeated", "different"])
def test_a_head_of_too_many_headers_is_refused(name: bytes) -> None:
    async def main() -> None:
        async with serving() as hub:
            for count, status in ((MAX_HEADERS - 1, 200), (MAX_HEADERS, 431), (10_000, 431)):
                reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
                lines = [
                    (name % each if b"%" in name else name) + b":\r\n" for each in range(count)
                ]
                writer.write(HEAD + b"".join(lines) + b"\r\n")
                answer = await read_answer(reader)
                assert answer.status == status
                if status == 431:
                    assert answer.json()["error"]["code"] == "head_too_large"
                    assert "100 headers" in answer.json()["error"]["message"]
                    assert await reader.read() == b""
                writer.close()
            assert (await ask(hub.port)).status == 200

    run(main())


def test_four_times_as_many_repeated_headers_cost_about_four_times_as_much() -> None:
    def cost(count: int) -> float:
        pairs = [(b"a", b"b"), (b"c", b"d")] * (count // 2)
        began = time.process_time()
        assert read_head(pairs).twice == {b"a", b"c"}
        return time.process_time() - began

    cost(1_000)
    assert min(cost(16_000) for _ in range(3)) < 16 * min(cost(4_000) for _ in range(3)) + 0.005


def test_a_connection_with_too_many_waiting_requests_is_closed_after_their_answers() -> None:
    served = 0

    async def count(_: Request) -> Response:
        nonlocal served
        served += 1
        await asyncio.sleep(0)
        return PlainTextResponse(str(served))

    async def main() -> bytes:
        async with serving([Route("/count", count)]) as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(b"GET /count HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3_000)
            answers = await reader.read()
            writer.close()
            return answers

    answers = run(main())
    assert served == MAX_WAITING_REQUESTS + 1
    assert answers.count(b"HTTP/1.1 200 OK") == served
    assert answers.endswith(b"\r\n\r\n%d" % served)


def test_a_few_waiting_requests_are_answered_in_their_order() -> None:
    async def number(request: Request) -> Response:
        body = await request.body()
        return PlainTextResponse(f"{request.path_params['number']} {len(body)}")

    async def main() -> None:
        async with serving([Route("/{number}", number, methods=["GET", "POST"])]) as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            for start in range(0, 40, 10):
                for each in range(start, start + 10):
                    body = b"x" * 700 * (each % 3)
                    head = b"POST /%d HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
                    writer.write(head % (each, len(body)) + body)
                for each in range(start, start + 10):
                    assert (await read_answer(reader)).text == f"{each} {700 * (each % 3)}"
            writer.close()

    run(main())


@pytest.mark.parametrize("upgrade", [b"", b"connection: upgrade\r\nupgrade: websocket\r\n"])
def test_nothing_more_is_read_while_a_request_waits_for_a_long_answer(upgrade: bytes) -> None:
    """The application waits for the client to leave, which must not read what the client sends."""
    more = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1_000

    async def wait(request: Request) -> Response:
        left = asyncio.ensure_future(request.receive()), asyncio.ensure_future(request.receive())
        await over.wait()
        for each in left:
            each.cancel()
        return Response()

    over = asyncio.Event()

    async def main() -> int:
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
            return sent

    assert run(main()) < ENOUGH


@pytest.mark.parametrize("answered", [False, True], ids=["read", "refused"])
def test_a_body_of_tiny_chunks_lets_others_have_their_turn_and_is_refused(answered: bool) -> None:
    async def length(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def main() -> tuple[float, bytes]:
        methods = ["GET" if answered else "POST"]
        async with serving([Route("/length", length, methods=methods)]) as hub:
            async with asyncio.TaskGroup() as tasks:
                stretch = tasks.create_task(longest_stretch(stop := asyncio.Event()))
                reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
                writer.write(b"POST /length HTTP/1.1\r\nhost: localhost\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000)
                with suppress(OSError):
                    came = await reader.readuntil(b"\r\n\r\n")
                    await reader.read()
                writer.close()
                assert (await ask(hub.port)).status == 200
                stop.set()
            return stretch.result(), came

    stretch, came = run(main())
    assert came.split()[1] == (b"405" if answered else b"413")
    assert stretch < MAX_STRETCH
