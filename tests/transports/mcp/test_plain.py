from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

from folkmoot.transports.bodies import read_body, replaying

GONE = {"type": "http.disconnect"}


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def hearing(messages: Iterator[dict[str, Any]]) -> Any:
    async def receive() -> dict[str, Any]:
        return next(messages)

    return receive


async def test_a_body_is_told_once_more_and_then_what_comes_after_it():
    parts = [part(b"{", more=True), part(b"", more=True), part(b"}", more=False), GONE]
    receive = hearing(iter(parts))
    body = await read_body(receive)
    assert body == b"{}"
    again = replaying(body, receive)
    assert [await again(), await again()] == [part(b"{}", more=False), GONE]


async def test_of_a_client_that_leaves_in_between_there_is_no_body():
    for parts in ([GONE], [part(b"{", more=True), GONE]):
        assert await read_body(hearing(iter(parts))) is None


async def test_a_body_takes_the_room_of_its_bytes_in_however_many_parts_it_comes():
    size = 100_000
    parts = (part(b"x", more=number < size) for number in range(1, size + 1))
    tracemalloc.start()
    body = await read_body(hearing(parts))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert body == b"x" * size
    assert most < 5 * size
