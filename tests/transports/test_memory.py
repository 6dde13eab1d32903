from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from folkmoot.transports.limits import COLLECT_AFTER_YOUNG
from folkmoot.transports.protocol import HubProtocol
from folkmoot.transports.server import collecting_seldom
from tests.harness import reached

BODIES = """
from pathlib import Path
from folkmoot.transports.server import return_large_buffers

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

return_large_buffers()
# So many that no hole is left from before.
sessions = [b"x" * 100_000 for _ in range(300)]
before = resident()
# Whoever frees one large buffer shows the C library that such a size is usual.
body = b"x" * 4_000_000
del body
bodies = []
for _ in range(20):
    bodies.append(b"x" * 3_900_000)
    sessions.append(b"x" * 100_000)
bodies.clear()
print(resident() - before)
"""
MAX_KEPT = 8_000_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks at itself through /proc")
def test_large_bodies_leave_no_memory_behind_among_small_things_that_stay():
    ran = subprocess.run([sys.executable, "-c", BODIES], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < MAX_KEPT


class Node:
    """Something that holds itself, as what only a search for garbage finds."""

    def __init__(self) -> None:
        self.itself = self


async def test_a_hub_collects_its_garbage_by_the_clock_and_leaves_out_what_it_began_with():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    async with collecting_seldom(0.001):
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[2] in (COLLECT_AFTER_YOUNG, 0)
        node = Node()
        gc.collect()
        gone = asyncio.Event()
        weakref.finalize(node, gone.set)
        del node
        await gone.wait()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
    if frozen:
        gc.freeze()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf",
    ],
    ids=["idle", "answered", "half a body"],
)
async def test_a_connection_is_forgotten_at_once_without_a_search_for_garbage(dial, sent):
    def connections() -> int:
        return sum(isinstance(each, HubProtocol) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        reader, writer = await dial(sent)
        if sent:
            await reader.read(1)
        await reached(lambda: connections() == 1)
        writer.transport.abort()
        await reached(lambda: connections() == 0)
    finally:
        gc.enable()
