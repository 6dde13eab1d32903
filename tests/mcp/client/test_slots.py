from __future__ import annotations

import asyncio

from folkmoot.mcp.client.link import Slots
from tests.harness import run


def test_whoever_comes_when_all_slots_are_taken_waits_in_turn() -> None:
    async def main() -> list[int]:
        slots, came = Slots(1), []

        async def one(number: int) -> None:
            await slots.take()
            came.append(number)

        assert slots.take_free()
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(one(number))
            await asyncio.sleep(0)
            assert not slots.take_free()
            for _ in range(3):
                slots.give()
                await asyncio.sleep(0)
        return came

    assert run(main()) == [0, 1, 2]


def test_a_slot_is_not_lost_with_whoever_leaves_while_waiting() -> None:
    async def main() -> bool:
        slots = Slots(1)
        await slots.take()
        early, late = (asyncio.ensure_future(slots.take()) for _ in range(2))
        await asyncio.sleep(0)
        early.cancel()
        await asyncio.sleep(0)
        slots.give()
        # It was given to the second one, who leaves at the same moment.
        late.cancel()
        await asyncio.gather(early, late, return_exceptions=True)
        return slots.take_free()

    assert run(main())
