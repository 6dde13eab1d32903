"""Backends that list so much that to list, to find or to remember it would cost everyone."""

from __future__ import annotations

import asyncio
from typing import Any

from folkmoot.core.capability import Rights
from folkmoot.gateway import listing
from folkmoot.gateway.search import Search, own_tool
from folkmoot.relay.upstream.watching import EVERY_SECONDS, Watch
from tests.gateway.scripted import Scripted, tool
from tests.harness import reached

EVERYTHING = Rights(["mcp.*"])


def wordy(number: int) -> dict[str, Any]:
    properties = {
        f"a{argument}": {"description": f"word{argument} " * 500} for argument in range(60)
    }
    return tool(f"t{number}", properties=properties)


async def test_reading_many_tools_to_find_them_holds_nobody_up(gate):
    await gate.has(Scripted("demo"), tools=tuple(wordy(n) for n in range(40)))
    reading = asyncio.ensure_future(gate.gateway.search.ready())
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20
    assert len(gate.gateway.search.find("word1", lambda _: True)) == 10


def test_only_so_much_of_one_tool_is_read():
    search = Search([own_tool({"title": "ns/one", "inputSchema": wordy(1)["inputSchema"]})])
    assert search.find("word0", lambda _: True)
    assert not search.find("word59", lambda _: True)


async def test_the_order_of_long_lists_counts_as_what_is_kept_ready(gate, monkeypatch):
    resources = tuple({"uri": f"note://{n}", "name": "n"} for n in range(3_000))
    await gate.has(Scripted("demo"), resources=resources)
    listings = gate.gateway.listings
    monkeypatch.setattr(listing, "MAX_CACHED_LIST_BYTES", 600_000)
    first = listings.resources(EVERYTHING)
    for _ in range(3):
        listings.resources(Rights(["mcp.*"]))
    assert listings.resources(EVERYTHING) is not first
    assert listings._size <= 600_000


async def test_a_resource_that_changes_all_the_time_is_told_of_now_and_then():
    told: list[int] = []
    loop, watch = asyncio.get_running_loop(), Watch()
    watch.tellers.append(lambda: told.append(1))
    began = loop.time()
    for _ in range(1_000):
        watch.tell()
    assert len(told) <= 1 + (loop.time() - began) / EVERY_SECONDS
    # The last change is never left out.
    before = len(told)
    watch.tell()
    await reached(lambda: len(told) > before)
