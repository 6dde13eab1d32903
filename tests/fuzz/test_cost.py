"""The fuzzer of cost: it finds what grows faster than it is sent, and nothing at a hub."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fuzz.cost import Cost, Hub, fuzz, run, table

COUNTING = """
import asyncio, sys

async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    names = [line.split(b":")[0] for line in head.split(b"\\r\\n")[1:-2]]
    if sys.argv[1] == "twice":
        assert all(names.count(name) for name in names)
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n")
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def counting(how: str) -> Iterator[Hub]:
    """A server that looks at the headers once each, or for each of them at all."""
    command = [sys.executable, "-c", COUNTING, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        yield Hub(int(child.stdout.readline()), child.pid)
        child.kill()


@pytest.mark.long
def test_a_cost_that_grows_with_the_square_of_the_input_is_found():
    def found(how: str) -> list[Cost]:
        with counting(how) as hub:
            return [cost for cost in asyncio.run(fuzz(hub, 6, 1)) if cost.is_bad]

    assert any(cost.name.startswith("head:") for cost in found("twice"))
    assert found("once") == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_input_costs_a_hub_more_than_its_size_explains():
    costs = run(40, 20261117)
    assert len(costs) > 40
    assert not any(cost.is_bad for cost in costs), table(costs)
