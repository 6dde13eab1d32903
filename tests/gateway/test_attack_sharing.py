"""What one person can take of a backend that others use too."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from folkmoot.core import errors as e
from tests.relay.upstream.scripted import call, running, spec


async def test_nobody_takes_all_that_a_backend_can_do():
    async with running(spec(most_calls=8)) as there:
        backend = there.backend
        hangs, echo = replace(call("hang"), person="ann"), replace(call("echo"), person="bob")
        waiting = [asyncio.ensure_future(backend.request(hangs)) for _ in range(7)]
        await asyncio.sleep(0)
        with pytest.raises(e.BackendBusy, match="too many open requests"):
            await backend.request(replace(echo, person="ann"))
        assert (await backend.request(echo)).result["content"] == []
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        assert (await backend.request(replace(echo, person="ann"))).result["content"] == []
