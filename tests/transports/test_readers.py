"""Clients that ask and then do not read, or read slowly."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from folkmoot.transports import protocol
from tests.harness import ask

PART = b"x" * 65_536
PARTS = 200


async def large(_: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(PARTS):
            yield PART

    return StreamingResponse(parts())


async def whole(_: Request) -> Response:
    return PlainTextResponse(PART * PARTS)


SERVED = {"routes": [Route("/large", large), Route("/whole", whole)]}


def deaf(port: int, path: str, times: int = 1) -> socket.socket:
    """Ask without ever reading."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() * times)
    client.setblocking(False)
    return client


async def gone(client: socket.socket) -> None:
    """Wait until the other side has given the connection up, without reading."""
    while True:
        try:
            client.send(b"\n")
        except BlockingIOError:
            pass
        except OSError:
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("path", "times"), [("/large", 1), ("/whole", 1), ("/large", 20)])
async def test_a_client_that_does_not_read_loses_its_connection(
    hub, monkeypatch, caplog, path, times
):
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.1)
    with deaf(hub.port, path, times) as client:
        await gone(client)
    assert (await ask(hub.port)).status == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_client_that_reads_slowly_but_steadily_gets_everything(hub, monkeypatch):
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 2)
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port, limit=65_536)
    writer.write(b"GET /whole HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    read = 0
    while data := await reader.read(262_144):
        read += len(data)
        await asyncio.sleep(0.06)
    writer.close()
    assert read > len(PART) * PARTS


@pytest.mark.settings(shutdown_seconds=30)
async def test_a_client_that_does_not_read_does_not_hold_up_the_stop(hub, monkeypatch):
    monkeypatch.setattr(protocol, "STOP_WRITE_SECONDS", 0.1)
    client = deaf(hub.port, "/large")
    while "in_flight 1.0" not in hub.metrics.exposition("")[0].decode():
        assert (await ask(hub.port)).status == 200
    started = time.monotonic()
    client.close()
    assert time.monotonic() - started < 20
