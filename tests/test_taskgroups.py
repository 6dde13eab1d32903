"""Tasks beside something: what fails there is told as itself."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.core import errors as e
from folkmoot.taskgroups import background_tasks


async def test_what_fails_beside_tasks_comes_out_as_itself_and_ends_them():
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fail() -> None:
        async with background_tasks() as beside:
            beside.run(wait())
            await asyncio.sleep(0)
            raise e.TapeUnwritable("The disk is full.")

    with pytest.raises(e.TapeUnwritable, match="The disk is full"):
        await fail()
    assert ended.is_set()
