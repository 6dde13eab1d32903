"""All servers behind the hub: what changes when the settings do, and that each stands alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.gateway.model import Backend, Inventory
from folkmoot.relay.upstream import backend as backends
from folkmoot.relay.upstream import links
from folkmoot.relay.upstream.fleet import Fleet
from folkmoot.relay.upstream.model import AppliedChanges
from tests.relay.upstream.scripted import CLOCK, Told, call, spec


class Gateway:
    """Whoever is told of servers."""

    def __init__(self) -> None:
        self.backends: dict[str, Backend] = {}
        self.arrivals = Told()
        self.losses = Told()

    def attach(self, backend: Backend) -> None:
        self.backends[backend.spec.namespace] = backend

    def detach(self, namespace: str) -> None:
        del self.backends[namespace]

    async def arrived(self, namespace: str, inventory: Inventory) -> None:
        self.arrivals(namespace, len(inventory.tools))

    def lost(self, namespace: str, why: str) -> None:
        self.losses(namespace, why)

    def state_changed(self, namespace: str, state: str) -> None:
        """It is of no interest here."""

    task_changed = state_changed


@asynccontextmanager
async def fleet(gateway: Gateway | None = None) -> AsyncIterator[tuple[Fleet, Gateway]]:
    there = gateway or Gateway()
    async with Fleet(there, CLOCK, environ={}).running() as running:
        yield running, there


async def process(fleet: Fleet, namespace: str) -> Any:
    return (await fleet.backends[namespace].request(call("echo"))).result["pid"]


async def test_only_what_the_settings_change_is_started_stopped_and_started_anew():
    async with fleet() as (running, gateway):
        names = ("one", "two", "three")
        changes = await running.apply({name: spec(name) for name in names})
        assert changes == AppliedChanges(added=names)
        await running.settled(20)
        assert {name for name, _ in gateway.arrivals.things} == set(names)
        before = {name: await process(running, name) for name in names}
        gateway.arrivals.things.clear()

        moved = {"one": spec("one", trusted=True, call_seconds=5), "four": spec("four")}
        moved["two"] = spec("two", env={"A": "b"})
        changes = await running.apply(moved)
        told = {"added": ("four",), "removed": ("three",), "changed": ("one", "two")}
        assert changes == AppliedChanges(**told)
        assert changes
        await running.settled(20)
        assert await process(running, "one") == before["one"]
        assert running.backends["one"].spec.trusted
        assert await process(running, "two") != before["two"]
        assert sorted(gateway.backends) == ["four", "one", "two"]
        assert sorted(gateway.arrivals.things) == [("four", 2), ("one", 2), ("two", 2)]
        assert not os.path.exists(f"/proc/{before['three']}")  # noqa: PTH110
        assert not await running.apply(moved)
        assert [view.namespace for view in running.views()] == ["four", "one", "two"]


@pytest.mark.parametrize("way", ["restart", "apply"])
async def test_a_server_is_started_again_though_whoever_wanted_it_left_when_it_was_stopped(way):
    async with fleet() as (running, _):
        await running.apply({"one": spec("one")})
        await running.settled(20)
        before = await process(running, "one")
        moved = msgspec.structs.replace(spec("one"), env={"A": "b"})
        work = running.restart("one") if way == "restart" else running.apply({"one": moved})
        asked = asyncio.ensure_future(work)
        stop, stopping = running._stop, asyncio.Event()

        async def stop_slowly(names: Iterable[str]) -> None:
            await stop(names)
            stopping.set()
            for _ in range(10):
                await asyncio.sleep(0)

        running._stop = stop_slowly
        await stopping.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await running.settled(20)
        assert await process(running, "one") != before
        with pytest.raises(e.BackendUnknown):
            await running.restart("two")


async def test_what_fails_in_one_server_is_no_other_ones_business(monkeypatch, caplog):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.05)
    judge = backends.LiveBackend._judge

    def faulty(backend: backends.LiveBackend) -> None:
        if backend.spec.namespace == "faulty":
            raise RuntimeError("a fault of ours")
        judge(backend)

    monkeypatch.setattr(backends.LiveBackend, "_judge", faulty)

    class Stumbling(Gateway):
        async def arrived(self, namespace: str, inventory: Inventory) -> None:
            await super().arrived(namespace, inventory)
            if namespace == "one":
                raise RuntimeError("a fault of the gateway's")

        def lost(self, namespace: str, why: str) -> None:
            super().lost(namespace, why)
            raise RuntimeError("another fault of the gateway's")

    async with fleet(Stumbling()) as (running, gateway):
        names = ("one", "two", "faulty")
        settings = {name: spec(name) for name in names}
        await running.apply({**settings, "gone": spec("gone", command=("/no/such",))})
        await gateway.losses.until(bool)
        await gateway.arrivals.until(lambda all_: {name for name, _ in all_} >= {"one", "two"})
        await process(running, "one")
        await process(running, "two")
        with pytest.raises(e.BackendUnavailable, match="gone is not available: /no/such"):
            await running.backends["gone"].request(call("echo"))
    assert "a backend failed" in caplog.text


async def test_a_server_is_tried_apart_and_what_it_wrote_is_for_operators_and_not_for_callers():
    async with fleet() as (running, gateway):
        found = await running.test(spec("one"))
        assert (found.ok, found.transport, len(found.inventory.tools)) == (True, "stdio", 2)
        broken = spec("two", "handshake", "broken")
        bad = await running.test(broken)
        assert not bad.ok
        assert "no such module: sesame" in bad.why
        assert gateway.backends == running.backends == {}
        await running.apply({"two": broken})
        await gateway.losses.until(bool)
        ended = "The server has ended with exit code 2."
        assert running.backends["two"].why == ended
        assert running.views()[0].why == f"{ended} It wrote: no such module: sesame"
        assert gateway.losses.things == [("two", ended)]
