from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.transports.limits import MAX_HEAD_BYTES
from tests.harness import ask, read_answer

CHUNKED = b"POST %b HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


async def names(request: Request) -> Response:
    body = await request.body()
    return PlainTextResponse(f"{len(body)} {' '.join(request.headers)}")


SERVED = {"routes": [Route("/names", names, methods=["POST"])]}


@pytest.mark.parametrize("path", [b"/names", b"/nowhere"])
@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"0\r\n", b"x: y\r\n" * 1000),
        (b"0\r\nx: ", b"y" * 6000),
        (b"0\r\n", b"y" * 6000),
        (b"1;", b"y" * 6000),
    ],
    ids=["trailers", "value", "name", "extension"],
)
async def test_trailers_without_end_lose_their_connection(dial, hub, path, start, more):
    reader, writer = await dial(CHUNKED % path + start)
    ended = asyncio.create_task(reader.read())
    sent = 0
    with suppress(OSError):
        while not ended.done():
            writer.write(more)
            await writer.drain()
            sent += len(more)
            assert sent < 400 * MAX_HEAD_BYTES
            await asyncio.sleep(0)
    with suppress(OSError):
        await ended
    assert (await ask(hub.port)).status == 200


async def test_trailers_are_no_headers(dial):
    reader, writer = await dial(CHUNKED % b"/names" + b"3\r\nabc\r\n0\r\nx-forged: y\r\n\r\n")
    answer = await read_answer(reader)
    assert answer.text == "3 host transfer-encoding"
    writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert (await read_answer(reader)).status == 200


@pytest.mark.settings(max_body_bytes=1000000)
async def test_many_small_chunks_are_not_mistaken_for_trailers(dial):
    reader, writer = await dial(CHUNKED % b"/names")
    for _ in range(8):
        writer.write(b"1\r\nx\r\n" * 2000)
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    assert (await read_answer(reader)).text.startswith("16000 ")
