from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from folkmoot.transports import protocol
from folkmoot.transports.accept import TurnedAway
from folkmoot.transports.connections import OpenConnections
from folkmoot.transports.protocol import HubProtocol, HubProtocols
from tests.harness import ask, read_answer

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def said(request: Request) -> Response:
    """What a request says: a header, and how long its body is."""
    return Response(f"{request.headers.get('x-value')} {len(await request.body())}")


SERVED = {"routes": [Route("/said", said, methods=["GET", "POST"])]}


@pytest.mark.parametrize("sent", [b"", GET[:8], GET[:-2]])
async def test_a_head_that_never_ends_loses_its_connection(dial, monkeypatch, sent):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    reader, _ = await dial(sent)
    assert await reader.read() == b""


@pytest.mark.parametrize("limit", ["HEAD_SECONDS", "LINGER_SECONDS"])
async def test_a_second_head_and_the_rest_of_an_answered_body_are_not_waited_for_long(
    dial, monkeypatch, limit
):
    reader, writer = await dial(GET)
    assert (await read_answer(reader)).status == 200
    monkeypatch.setattr(protocol, limit, 0.05)
    if limit == "LINGER_SECONDS":
        writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\nx")
        assert (await read_answer(reader)).status == 405
    writer.write(b"GET /more")
    # A connection that was closed before this came is reset.
    with suppress(ConnectionResetError):
        assert await reader.read() == b""


async def test_a_head_without_end_is_refused(dial, hub):
    reader, writer = await dial(b"GET / HTTP/1.1\r\nhost: localhost\r\n")
    answer = asyncio.create_task(read_answer(reader))
    while not answer.done():
        writer.write(b"x-filler: " + b"x" * 8_000 + b"\r\n")
        await asyncio.sleep(0)
    assert (await answer).status == 431
    assert (await ask(hub.port)).status == 200


@pytest.mark.settings(max_body_bytes=1000000)
async def test_a_large_body_is_not_mistaken_for_a_large_head(hub):
    answer = await ask(hub.port, "/", method="POST", body=b"x" * 500_000)
    assert answer.status == 405


async def test_blanks_after_an_expectation_do_not_keep_its_client_waiting(dial):
    head = b"POST /said HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n"
    reader, writer = await dial(head + b"expect: 100-continue \t\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"abc")
    assert (await read_answer(reader)).text == "None 3"


async def test_blanks_around_a_header_are_no_part_of_its_value(hub):
    answer = await ask(hub.port, "/said", headers={"x-value": " \t some value \t "})
    assert answer.text == "some value 0"


class HandLoop:
    """As much of a loop as a connection's patience needs: time passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, asyncio.Handle]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.Handle:
        timer = asyncio.Handle(callback, (), asyncio.get_running_loop())
        self._timers.append((self.now + delay, timer))
        return timer

    def let_pass(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for when, timer in self._timers if when <= self.now]
        self._timers = [each for each in self._timers if each[0] > self.now]
        for timer in due:
            if not timer.cancelled():
                timer._run()


class Trickle(asyncio.Transport):
    """A connection whose other side reads so many bytes a second of an answer."""

    def __init__(self, loop: HandLoop, answer: int, rate: int) -> None:
        super().__init__()
        self._loop, self._answer, self._rate = loop, answer, rate
        self.aborted_at: float | None = None

    def get_write_buffer_size(self) -> int:
        return max(0, self._answer - int(self._rate * self._loop.now))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def abort(self) -> None:
        self.aborted_at = self._loop.now


@pytest.mark.parametrize(
    ("answer", "rate", "aborted_at"),
    [
        (1 << 20, 0, 30),
        (1 << 20, 1_024, 30),
        (1 << 20, 16_000, 30),
        (1 << 20, 17_000, None),
        (40 << 20, 17_000, None),
        (100_000, 4_096, None),
    ],
)
async def test_an_answer_is_not_kept_for_one_who_takes_it_by_drops(answer, rate, aborted_at):
    loop = HandLoop()
    transport = Trickle(loop, answer, rate)
    in_hand: Any = loop
    open_connections = OpenConnections(10, TurnedAway())
    made = HubProtocols(Response(), open_connections)
    connection = HubProtocol(
        made._config, made._state, {}, in_hand, open_connections=open_connections
    )
    connection.connection_made(transport)
    connection.pause_writing()
    # asyncio resumes when little is left, in whatever second that is.
    while transport.aborted_at is None and transport.get_write_buffer_size() > 16_384:
        loop.let_pass(1)
    assert transport.aborted_at == aborted_at
