"""A clock on the wall that jumps: set by hand, by a time server, by a machine that slept."""

from __future__ import annotations

import asyncio
import time

import msgspec

from folkmoot.app import Hub
from folkmoot.clock import SystemClock
from folkmoot.settings import Settings
from folkmoot.store import find_faults
from tests.harness import ask
from tests.operator import ask_socket

JUMPS = (-10.0, -86_400.0, +86_400.0 * 365, -86_400.0 * 365 * 60)


async def test_a_clock_that_jumps_disturbs_nothing(tmp_path, monkeypatch):
    moved, true = 0.0, time.time
    monkeypatch.setattr(time, "time", lambda: true() + moved)
    monkeypatch.setattr(SystemClock, "now", staticmethod(time.time))
    settings = msgspec.convert({"port": 0, "data": str(tmp_path / "data")}, Settings)
    identities = set()
    for number, jump in enumerate(JUMPS):
        async with Hub(settings).running() as hub:
            identities.add((hub.store.identity.database_id, hub.store.identity.epoch))
            port = int(hub.base_url.rpartition(":")[2])
            uptimes = [(await ask(port, "/health")).json()["uptime"]]
            moved += jump
            uptimes.append((await ask(port, "/health")).json()["uptime"])
            assert 0 <= uptimes[0] <= uptimes[1] < 60
            assert (await ask(port, "/health/ready")).status == 200
            assert (await ask(port, "/metrics")).status == 200
            target, control = tmp_path / f"{number}.db", tmp_path / "data/control.sock"
            where = {"path": str(target)}
            await asyncio.to_thread(ask_socket, control, "folkmoot/backup", where)
            assert await asyncio.to_thread(find_faults, target) == []
    assert len(identities) == 1
