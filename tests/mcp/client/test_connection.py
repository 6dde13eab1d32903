"""The connections of the HTTP client: what is used again, and what a hostile server can do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest

from folkmoot.core import errors as e
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.connection import (
    HEAD_BYTES,
    MOST_HEADERS,
    PIECE,
    HttpConnection,
    read_whole,
)
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.framing import EventReader

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain; x=y\r\n\r\nhi"
NONE = Headers()
# What the nth request gets, counted from nought; after nothing the connection is closed.
Answers: TypeAlias = Callable[[int], bytes]


class Raw:
    """A server that writes bytes, and counts its connections and requests."""

    def __init__(self, answers: Answers, *, hangs_up: bool = False) -> None:
        self.connections = 0
        self.heads: list[bytes] = []
        self.closed = asyncio.Event()
        self._answers = answers
        self._hangs_up = hangs_up

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                said = self._answers(len(self.heads) - 1)
                writer.write(said)
                if self._hangs_up or not said:
                    break
        except asyncio.IncompleteReadError:
            self.closed.set()
        finally:
            writer.close()


@asynccontextmanager
async def asking(
    answers: Answers | bytes, *, hangs_up: bool = False
) -> AsyncIterator[tuple[Raw, HttpTarget]]:
    made = answers if callable(answers) else lambda _: answers
    raw = Raw(made, hangs_up=hangs_up)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with HttpTarget(f"http://127.0.0.1:{port}/mcp") as target:
            yield raw, target
    finally:
        server.close()


async def body_of(target: HttpTarget, method: str = "POST") -> bytes:
    async with target.ask(method, NONE, b"x" if method == "POST" else None) as answer:
        return await read_whole(answer, 1_000_000)


async def test_a_connection_is_used_again_after_a_whole_answer():
    async with asking(PLAIN) as (raw, target):
        assert [await body_of(target) for _ in range(3)] == [b"hi"] * 3
        assert raw.connections == 1
        async with target.ask("GET", NONE) as answer:
            assert answer.content_type == "text/plain"
            assert answer.headers.get("Content-Length") == "2"


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
        PLAIN.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
async def test_what_is_said_beyond_an_answer_is_never_taken_for_the_next(answer):
    async with asking(answer) as (raw, target):
        assert [await body_of(target) for _ in range(2)] == [b"hi"] * 2
        assert raw.connections == 2


async def test_an_answer_that_is_not_read_to_its_end_closes_its_connection():
    half = PLAIN.replace(b"length: 2", b"length: 9")
    async with asking(half) as (raw, target):
        async with target.ask("GET", NONE) as answer:
            assert await answer.read() == b"hi"
        await raw.closed.wait()


async def test_answers_that_only_announce_another_are_passed_over():
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    async with asking(early + PLAIN) as (_, target):
        assert await body_of(target) == b"hi"


async def test_a_body_without_a_length_ends_with_its_connection():
    async with asking(b"HTTP/1.1 200 OK\r\n\r\nall of it", hangs_up=True) as (_, target):
        assert await body_of(target) == b"all of it"


NO_HTTP = [
    b"HTTP/1.1 200 OK\r\nx: " + b"x" * 2 * HEAD_BYTES,
    b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * HEAD_BYTES,
    b"HTTP/1.1 103 Early Hints\r\n\r\n" * HEAD_BYTES,
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"SSH-2.0-x\r\n\r\n",
]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        *((answer, e.ServerAnswerInvalid) for answer in NO_HTTP),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", e.CarryError),
        (PLAIN[:30], e.ServerUnreachable),
        (PLAIN[:-1], e.ServerUnreachable),
        (b"", e.ServerUnreachable),
    ],
)
async def test_an_answer_that_is_no_http_is_an_error_and_never_a_wait(answer, error):
    async with asking(answer, hangs_up=True) as (_, target):
        with pytest.raises(error):
            await body_of(target)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", "a\r\ny: b"), ("x", "a\nb"), ("x", "\0"), ("x y", "a"), ("x:", "a"), ("", "a"),
     ("x", "\ud800")],
)  # fmt: skip
async def test_a_header_that_would_be_read_as_more_is_not_written(name, value):
    async with asking(PLAIN) as (raw, target):
        with pytest.raises(e.ServerUnreachable, match="header") as caught:
            async with target.ask("POST", {name: value}, b"x"):
                pass
        assert caught.value.unsent
        assert not raw.heads


async def test_what_only_reads_is_asked_again_where_a_kept_connection_was_closed():
    # It hangs up on the second and on the fourth request.
    async with asking(lambda n: b"" if n in (1, 3) else PLAIN) as (raw, target):
        assert await body_of(target) == b"hi"
        assert await body_of(target, "GET") == b"hi"
        assert raw.connections == 2
        with pytest.raises(e.ServerUnreachable, match="broke the connection"):
            await body_of(target)


async def test_a_server_that_answers_before_it_has_read_all_is_heard():
    async with asking(PLAIN) as (raw, target):
        async with target.ask("POST", NONE, b"x" * PIECE * 64) as answer:
            assert await read_whole(answer, 10) == b"hi"
        assert await body_of(target) == b"hi"
        assert raw.connections == 2


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_an_answer_of_too_many_headers_is_refused():
    def answer(count: int) -> bytes:
        return PLAIN.replace(b"\r\n\r\n", b"\r\n" + b"x: y\r\n" * count + b"\r\n")

    async with asking(answer(MOST_HEADERS - 2)) as (_, target):
        assert await body_of(target) == b"hi"
    async with asking(answer(MOST_HEADERS - 1)) as (_, target):
        with pytest.raises(e.ServerAnswerInvalid, match="more than 100 headers"):
            await body_of(target)


async def turns(counted: Counter[str]) -> None:
    """Count the turns of the loop."""
    while True:
        counted["turns"] += 1
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
async def test_an_answer_of_tiny_chunks_lets_others_have_their_turn(monkeypatch, kind):
    counted: Counter[str] = Counter()
    in_turn: Counter[int] = Counter()
    on_body = HttpConnection.on_body

    def counting(self: HttpConnection, body: bytes) -> None:
        in_turn[counted["turns"]] += 1
        on_body(self, body)

    monkeypatch.setattr(HttpConnection, "on_body", counting)
    said = CHUNKED % kind + b"1\r\nx\r\n" * 12_000 + b"0\r\n\r\n"
    async with asking(said) as (_, target):
        counting = asyncio.create_task(turns(counted))
        for _ in range(2):
            assert await body_of(target) == b"x" * 12_000
        counting.cancel()
    assert in_turn.total() == 24_000
    assert max(in_turn.values()) < 3_000


@pytest.mark.parametrize("line", [b":\n", b"\n", b"\r", b"x\n", b": a longer comment\r\n"])
async def test_a_stream_of_tiny_lines_lets_others_have_their_turn(line):
    flood = line * 8_000
    said = CHUNKED % b"text/event-stream" + b"%x\r\n%b\r\n" % (len(flood), flood)
    said += b"b\r\ndata: last\n\r\n2\r\n\n\n\r\n0\r\n\r\n"
    reader, events = EventReader(1_000_000), []
    counted: Counter[str] = Counter()
    async with asking(said) as (_, target):
        counting = asyncio.create_task(turns(counted))
        async with target.ask("POST", NONE, b"x") as answer:
            before = -1
            async for chunk in answer.chunks():
                events += reader.feed(chunk)
                assert len(chunk.splitlines()) < 3_000
                assert counted["turns"] > before
                before = counted["turns"]
        counting.cancel()
    assert [event.data for event in events] == [b"last"]
