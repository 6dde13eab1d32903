from __future__ import annotations

import asyncio

import pytest

from folkmoot.taskgroups import Eager


async def at_once() -> str:
    return "there"


async def test_what_is_there_already_is_done_at_once():
    eager = Eager(at_once())
    assert eager.done
    assert eager.result == await eager == "there"


async def test_what_takes_a_while_can_be_awaited_to_its_end():
    async def slow() -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return 3

    eager = Eager(slow())
    assert not eager.done
    assert await eager == 3
    assert eager.done


async def test_its_errors_are_raised_where_it_is_awaited():
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Eager(fails())


async def test_a_timeout_ends_it_and_it_may_clean_up_first():
    cleaned = False

    async def waits() -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned = True

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Eager(waits())
    assert cleaned


async def test_whoever_takes_no_notice_of_an_end_goes_on():
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "still here"

    eager = Eager(stubborn())
    asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)  # type: ignore[union-attr]
    assert await eager == "still here"


async def test_it_can_go_on_outside_of_a_task_and_then_in_one():
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()

    async def waits() -> list[int]:
        await first
        async with asyncio.timeout(None):
            return [await second]

    eager = Eager(waits())
    woken: asyncio.Future[None] = loop.create_future()
    assert eager.call_when_woken(lambda _: woken.set_result(None))
    first.set_result(True)
    await woken
    rest = asyncio.create_task(eager.rest())
    second.set_result(2)
    assert await rest == [2]

    async def at_last() -> int:
        return int(await first)

    again = Eager(at_last())
    assert again.done or again.step()
    assert again.result == 1
    assert not Eager(asyncio.sleep(0)).call_when_woken(print)
