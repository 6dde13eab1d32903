"""Bodies of requests that are too large, too slow or too many."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from folkmoot.ratelimits import Rate
from folkmoot.transports import bodies, protocol
from folkmoot.transports.bodies import BodyBounds
from folkmoot.transports.limits import BODY_STRANGERS_SHARE, MAX_LINGERING, SMALL_BODY_BYTES
from tests.harness import Answer, ask, reached, read_answer, serving
from tests.transports.conftest import Dial

KIB = 1024
BOUNDS = BodyBounds(
    body_bytes=1024 * KIB,
    values=1_000,
    anonymous_bytes=64 * KIB,
    anonymous_values=100,
    total_bytes=2048 * KIB,
    arriving=3,
)
EXCEEDED = (429, "connections_exceeded")
ME = {"authorization": "Bearer mine"}
YOU = {"authorization": "Bearer yours"}


async def identify(scope: Scope) -> str:
    tokens = {b"Bearer mine": "me", b"Bearer yours": "you"}
    return tokens.get(dict(scope["headers"]).get(b"authorization", b""), "")


async def count(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


class Held:
    """A route that reads the body and answers when it is told to."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.reading = 0

    async def answer(self, request: Request) -> Response:
        await request.body()
        self.reading += 1
        await self.done.wait()
        return PlainTextResponse("done")


BOUNDED: dict[str, Any] = {"bodies": BOUNDS, "identify": identify}
COUNT = Route("/count", count, methods=["POST"])
SERVED = {"routes": [COUNT], **BOUNDED}


async def post(
    port: int, body: bytes, headers: dict[str, str] | None = None, path: str = "/count"
) -> Answer:
    return await ask(port, path, method="POST", headers=headers, body=body)


class Slow(NamedTuple):
    """A client that has sent the head of a request and not all of its body."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answer(self) -> Answer:
        return await read_answer(self.reader)

    async def goes_on(self, more: bytes) -> str:
        """What is answered to the rest of the body."""
        self.writer.write(more)
        return (await self.answer()).text


@pytest.fixture
async def begin(dial: Dial) -> Any:
    """Begin to send a body of some length, or in chunks."""

    async def begun(
        length: int | None, sent: bytes = b"", headers: dict[str, str] | None = None
    ) -> Slow:
        size = {"transfer-encoding": "chunked"} if length is None else {"content-length": length}
        named = {"host": "localhost", **size, **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return Slow(*await dial(f"POST /count HTTP/1.1\r\n{lines}\r\n".encode() + sent))

    return begun


async def refusal(begun: Slow) -> tuple[int, str]:
    answer = await begun.answer()
    return answer.status, answer.json()["error"]["code"]


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}])
async def test_a_strangers_large_body_is_refused_before_any_of_it_is_read(hub, begin, headers):
    answer = await (await begin(64 * KIB + 1, headers=headers)).answer()
    assert answer.status == 413
    assert answer.json()["error"] == {
        "code": "body_too_large",
        "message": "Without a valid token a request's body may have at most 65,536 bytes.",
        "limit": 65_536,
        "setting": "http.max_anonymous_body_bytes",
    }
    assert (await post(hub.port, b"x" * 64 * KIB, headers)).text == "65536"
    assert (await post(hub.port, b"x" * 900 * KIB, ME)).text == str(900 * KIB)
    assert (await post(hub.port, b"x" * 1025 * KIB, ME)).status == 413


async def test_a_strangers_body_of_unknown_length_is_refused_where_it_becomes_large(begin):
    for headers, status in (({}, 413), (ME, 200)):
        slow = await begin(None, headers=headers)
        for _ in range(9):
            slow.writer.write(b"2000\r\n" + b"x" * 8192 + b"\r\n")
            await slow.writer.drain()
        if headers:
            slow.writer.write(b"0\r\n\r\n")
        assert (await slow.answer()).status == status


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: [{}] * n,
        lambda n: {f"{i:x}": {} for i in range(n)},
        lambda n: {f"{i:x}": i for i in range(n)},
        lambda n: [["x"]] * n,
        lambda n: [0] * n,
    ],
    ids=["objects", "members", "keys", "lists", "numbers"],
)
async def test_the_number_of_values_is_bounded_lower_for_strangers(hub, shape):
    for headers, most in (({}, 100), (ME, 1_000)):
        few = json.dumps(shape(most // 4)).encode()
        assert (await post(hub.port, few, headers)).status == 200
        answer = await post(hub.port, json.dumps(shape(most + 2)).encode(), headers)
        assert answer.status == 413
        assert f"at most {most:,} JSON values" in answer.json()["error"]["message"]


async def test_too_many_values_are_refused_before_all_of_them_have_come(begin, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_CHECK_BYTES", 64 * KIB)
    begun = await begin(1000 * KIB, b"[" + b"0," * 40 * KIB, ME)
    assert (await begun.answer()).status == 413


async def test_text_is_no_value_however_many_commas_it_has(hub):
    text = json.dumps({"text": ",[{" * 20_000}).encode()
    assert (await post(hub.port, text)).text == str(len(text))


async def test_when_many_bodies_are_held_strangers_are_refused_first():
    held = Held()
    async with (
        asyncio.TaskGroup() as tasks,
        serving([COUNT, Route("/held", held.answer, methods=["POST"])], **BOUNDED) as hub,
    ):

        async def hold(size: int, headers: dict[str, str] | None = None) -> None:
            assert (await post(hub.port, b"x" * size, headers, "/held")).status == 200

        share = BOUNDS.total_bytes // BODY_STRANGERS_SHARE
        for _ in range(share // (64 * KIB)):
            tasks.create_task(hold(64 * KIB))
        await reached(lambda: held.reading >= share // (64 * KIB))
        refused = await post(hub.port, b"x" * (SMALL_BODY_BYTES + 1))
        assert refused.status == 503
        assert refused.json()["error"]["code"] == "hub_full"
        assert int(refused.headers["retry-after"]) > 0
        assert (await post(hub.port, b"x" * (SMALL_BODY_BYTES + 1), ME)).status == 200
        # Whoever wants to register is no burden.
        assert (await post(hub.port, b"x" * SMALL_BODY_BYTES)).status == 200
        before = held.reading
        tasks.create_task(hold(1000 * KIB, ME))
        await reached(lambda: held.reading != before)
        # Also for those who are signed in there is an end, and for each of them one before.
        mine = await post(hub.port, b"x" * 100 * KIB, ME)
        assert (mine.status, mine.json()["error"]["code"]) == EXCEEDED
        assert (await post(hub.port, b"x" * 1000 * KIB, YOU)).status == 503
        assert (await post(hub.port, b"x" * 100, ME)).status == 200
        held.done.set()
    text = hub.metrics.exposition("")[0].decode()
    assert 'folkmoot_http_bodies_refused_total{reason="total"} 2.0' in text
    assert "folkmoot_http_body_bytes 0.0" in text


async def test_a_body_must_make_progress_in_every_window(begin, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(bodies, "MIN_BODY_BYTES_A_SECOND", 100 * KIB)
    # What came at the start does not pay for a client that is slow from then on.
    slow = await begin(900 * KIB, b"x" * 500 * KIB, ME)
    refused = asyncio.ensure_future(refusal(slow))
    while not refused.done():
        slow.writer.write(b"x")
        await asyncio.wait([refused], timeout=0.01)
    assert await refused == (408, "body_timeout")


async def test_one_address_and_one_account_have_few_bodies_half_sent(hub, begin):
    slow = [await begin(100, b"x", headers) for headers in ({}, ME) for _ in range(3)]
    for headers in ({}, ME):
        assert await refusal(await begin(100, b"x", headers)) == EXCEEDED
        # What comes whole is not slow.
        assert (await post(hub.port, b"x" * 100, headers)).status == 200
    assert [await each.goes_on(b"x" * 99) for each in slow] == ["100"] * 6
    assert await (await begin(100, b"x")).goes_on(b"x" * 99) == "100"


async def test_an_account_begins_no_more_bytes_than_it_may_have(begin):
    first = await begin(900 * KIB, b"x", ME)
    assert await refusal(await begin(900 * KIB, b"x", ME)) == EXCEEDED
    other = await begin(900 * KIB, b"x", YOU)
    for each in (first, other):
        assert await each.goes_on(b"x" * (900 * KIB - 1)) == str(900 * KIB)
    again = await begin(900 * KIB, b"x" * 900 * KIB, ME)
    assert (await again.answer()).status == 200


async def test_one_of_an_address_may_send_a_body_to_its_end_once_it_is_answered(begin):
    assert MAX_LINGERING > 1
    first = await begin(900 * KIB, b"x" * 500 * KIB)
    assert (await first.answer()).status == 413
    second = await begin(900 * KIB, b"x" * 500 * KIB)
    with suppress(ConnectionError):
        await second.reader.read()
    # The first one is still there for another request.
    again = b"POST /count HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\nx"
    assert await first.goes_on(b"x" * 400 * KIB + again) == "1"


async def test_whoever_stops_in_the_middle_of_a_refused_body_is_not_waited_for_long(
    begin, monkeypatch
):
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.05)
    # More than is parsed once it was refused: the rest is thrown away unread.
    first = await begin(900 * KIB, b"x" * 500 * KIB)
    assert (await first.answer()).status == 413
    with suppress(ConnectionError):
        assert await first.reader.read() == b""


RATED = msgspec.structs.replace(
    BOUNDS, rate=Rate(20 * KIB, 20 * KIB, ("", "rates.body_bytes_per_second"))
)


@pytest.mark.settings(bodies=RATED)
async def test_an_account_sends_large_bodies_no_faster_than_its_rate(hub):
    large, small = b" " * 100 * KIB, b" " * 60 * KIB
    first = [await post(hub.port, large, ME) for _ in range(3)]
    assert [answer.status for answer in first] == [200, 200, 429]
    assert int(first[2].headers["retry-after"]) >= 1
    assert "rates.body_bytes_per_second" in first[2].body.decode()
    # What is no larger than a stranger's does not count, and others have their own rate.
    assert (await post(hub.port, small, ME)).status == 200
    assert (await post(hub.port, large, YOU)).status == 200


@pytest.mark.settings(bodies=RATED)
async def test_a_large_body_in_chunks_counts_by_what_came(begin):
    slow = await begin(None, headers=ME)
    with suppress(ConnectionError):
        for _ in range(10):
            slow.writer.write(b"%x\r\n%b\r\n" % (60 * KIB, b" " * 60 * KIB))
            await slow.writer.drain()
        slow.writer.write(b"0\r\n\r\n")
    assert (await slow.answer()).status == 429
