"""A hub with a certificate of its own: HTTPS and WSS on its one port."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import httpx2
import msgspec
import pytest
from websockets.asyncio.client import connect

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.settings import Settings
from folkmoot.transports import server
from tests.certificates import certificate
from tests.harness import ask
from tests.nodes import port
from tests.transports.rooms.support import Seat, Town


def settings(folder: Path, **tls: str) -> Settings:
    return msgspec.convert({"port": 0, "data": str(folder), "tls": tls}, Settings)


def with_certificate(folder: Path) -> tuple[Settings, ssl.SSLContext]:
    cert, key = certificate(folder / "tls")
    chosen = settings(folder / "data", certificate=str(cert), key=str(key))
    return chosen, ssl.create_default_context(cafile=str(cert))


async def test_a_hub_with_a_certificate_speaks_https(tmp_path):
    chosen, trusting = with_certificate(tmp_path)
    async with Hub(chosen).running() as hub, httpx2.AsyncClient(verify=trusting) as client:
        assert hub.base_url.startswith("https://127.0.0.1:")
        answer = await client.get(f"{hub.base_url}/health")
        assert answer.status_code == 200
        assert answer.json()["status"] == "ok"
        assert f"{hub.base_url}/mcp" in (await client.get(hub.base_url)).text


async def test_a_room_is_joined_over_wss_on_the_same_port(tmp_path):
    chosen, trusting = with_certificate(tmp_path)
    async with Hub(chosen).running() as hub:
        there = Town(hub)
        ann = await there.person("ann")
        await there.room(ann)
        url = there.url(ann.token)
        assert url.startswith("wss://")
        async with connect(url, ssl=trusting) as socket:
            seat = Seat(socket, json.loads(await socket.recv()))
            await seat.say("x" * 200_000)
            await seat.heard("x" * 200_000)


async def test_a_client_that_begins_tls_and_falls_silent_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    chosen, _ = with_certificate(tmp_path)
    async with Hub(chosen).running() as hub:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(hub))
        assert await reader.read() == b""
        writer.close()


async def test_plain_http_on_the_port_of_tls_gets_no_answer(tmp_path):
    chosen, trusting = with_certificate(tmp_path)
    async with Hub(chosen).running() as hub:
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await ask(port(hub), "/health")
        async with httpx2.AsyncClient(verify=trusting) as client:
            assert (await client.get(f"{hub.base_url}/health")).status_code == 200


async def test_a_certificate_that_cannot_be_used_stops_the_start_and_leaves_nothing(tmp_path):
    chosen = settings(tmp_path / "data", certificate=str(tmp_path / "no.pem"), key="no.pem")
    with pytest.raises(e.SettingsError, match=r"tls\.certificate: there is no file"):
        async with Hub(chosen).running():
            pytest.fail("the hub started")
    assert not (tmp_path / "data").exists()
