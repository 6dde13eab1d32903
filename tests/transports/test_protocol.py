from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from folkmoot.transports import protocol
from tests.harness import ask, read_answer, run, serving


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: localhost\r\n"])
def test_a_head_that_never_ends_loses_its_connection(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)

    async def main() -> None:
        async with serving() as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()

    run(main())


def test_a_second_request_has_the_same_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving() as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await read_answer(reader)).status == 200
            monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
            writer.write(b"GET /again")
            assert await reader.read() == b""
            writer.close()

    run(main())


def test_the_rest_of_an_answered_body_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with serving() as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await read_answer(reader)).status == 200
            monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
            writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\nx")
            assert (await read_answer(reader)).status == 405
            writer.write(b"more")
            assert await reader.read() == b""
            writer.close()

    run(main())


def test_a_head_without_end_is_refused() -> None:
    async def main() -> None:
        async with serving() as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n")
            answer = asyncio.create_task(read_answer(reader))
            while not answer.done():
                writer.write(b"x-filler: " + b"x" * 8_000 + b"\r\n")
                await asyncio.sleep(0)
            assert (await answer).status == 431
            writer.close()
            assert (await ask(hub.port)).status == 200

    run(main())


def test_a_large_body_is_not_mistaken_for_a_large_head() -> None:
    async def main() -> None:
        async with serving(max_body_bytes=1_000_000) as hub:
            answer = await ask(hub.port, "/", method="POST", body=b"x" * 500_000)
            assert answer.status == 405

    run(main())


def test_blanks_around_a_header_are_no_part_of_its_value() -> None:
    seen: list[str] = []

    async def remember(request: Request) -> Response:
        seen.append(request.headers["x-value"])
        return Response()

    async def main() -> None:
        async with serving([Route("/remember", remember)]) as hub:
            await ask(hub.port, "/remember", headers={"x-value": " \t some value \t "})

    run(main())
    assert seen == ["some value"]
