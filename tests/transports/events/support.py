"""A client of `/v1/events`, on a plain socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness import Answer, read_answer
from tests.transports.rest.support import Asker

EVENTS = "/v1/events"


class Source:
    """A client of the stream, on a socket of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self.last = ""

    async def event(self) -> tuple[str, Any]:
        """The next event: its name and its data; comments and the first one are passed over.

        So is the audit log, whose lines are written some time after what they tell of.
        """
        while True:
            while b"\n\n" not in self._buffer:
                size = int(await self._reader.readline(), 16)
                self._buffer += await self._reader.readexactly(size)
                assert await self._reader.readline() == b"\r\n"
                if not size:
                    raise EOFError
            block, _, self._buffer = self._buffer.partition(b"\n\n")
            lines = [line.split(": ", 1) for line in block.decode().splitlines()]
            told = {line[0]: line[1] for line in lines if len(line) == 2 and line[0]}
            self.last = told.get("id", self.last)
            if told.get("data") and told["event"] != "audit.changed":
                return told["event"], json.loads(told["data"])

    async def names(self, count: int) -> list[str]:
        return [(await self.event())[0] for _ in range(count)]

    async def ended(self) -> bool:
        """Wait for the end, whatever comes before."""
        try:
            while True:
                await self.event()
        except EOFError:
            return True

    def close(self) -> None:
        self._writer.close()


async def refusal(who: Asker, last: str = "", **headers: str) -> Answer:
    """What is answered to whoever may not follow."""
    answer = await connect(who, last, **headers)
    assert isinstance(answer, Answer)
    return answer


async def connect(
    who: Asker, last: str = "", socket: Path | None = None, **headers: str
) -> Source | Answer:
    if socket is None:
        reader, writer = await asyncio.open_connection("127.0.0.1", who.port)
    else:
        reader, writer = await asyncio.open_unix_connection(socket)
    named = {"host": f"localhost:{who.port}", "accept": "text/event-stream", **headers}
    if who.token:
        named["authorization"] = f"Bearer {who.token}"
    if last:
        named["last-event-id"] = last
    lines = [f"GET {EVENTS} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    answer = await read_answer(reader)
    if answer.status != 200:
        writer.close()
        return answer
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    return Source(reader, writer)


@asynccontextmanager
async def following(
    who: Asker, last: str = "", socket: Path | None = None
) -> AsyncIterator[Source]:
    source = await connect(who, last, socket)
    assert isinstance(source, Source), source
    try:
        yield source
    finally:
        source.close()
