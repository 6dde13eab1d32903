from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Row, Tx
from folkmoot.ratelimits import (
    DAY,
    HOUR,
    KEPT_KEYS,
    MINUTE,
    SLOWED_SECONDS,
    Limit,
    RateLimits,
    in_words,
)
from folkmoot.store import SqliteStore
from tests.clocks import StillClock


def limits(clock: StillClock, most: int = 2, max_keys: int = 100) -> RateLimits:
    return RateLimits(clock, {"send": Limit(most, MINUTE)}, max_keys=max_keys)


async def test_as_many_as_may_be_and_then_none_until_the_window_is_over():
    clock = StillClock()
    counted = limits(clock)
    await counted.take("send", "alice")
    clock.seconds += 40
    await counted.take("send", "alice")
    with pytest.raises(e.RateLimited) as refused:
        await counted.take("send", "alice")
    assert refused.value.data == {"retry_after": 20}
    assert refused.value.message == "Rate limit exceeded. Try again in 20 seconds."
    assert refused.value.http == 429
    await counted.take("send", "bob")
    clock.seconds += 20
    await counted.take("send", "alice")


@pytest.mark.parametrize("since_start", [62_165.994, 62_308.665, 64_221.07])
async def test_the_time_to_wait_is_never_longer_than_the_window(since_start):
    clock = StillClock()
    clock.seconds = since_start
    counted = RateLimits(clock, {"send": Limit(1, HOUR)})
    await counted.take("send", "alice")
    with pytest.raises(e.RateLimited) as refused:
        await counted.take("send", "alice")
    assert refused.value.data == {"retry_after": HOUR}


async def test_of_guesses_only_the_wrong_ones_count():
    counted = limits(StillClock())
    for _ in range(3):
        async with counted.guessing("send", "alice", e.InvitationInvalid):
            pass
    for _ in range(3):
        with pytest.raises(e.UserNotFound):
            async with counted.guessing("send", "alice", e.InvitationInvalid):
                raise e.UserNotFound
    for _ in range(2):
        with pytest.raises(e.InvitationInvalid):
            async with counted.guessing("send", "alice", e.InvitationInvalid):
                raise e.InvitationInvalid("Not this one.")
    with pytest.raises(e.RateLimited):
        async with counted.guessing("send", "alice", e.InvitationInvalid):
            pytest.fail("There were too many.")


async def test_what_was_refused_does_not_count():
    counted = limits(StillClock(), most=1)
    await counted.take("send", "alice")
    for _ in range(10):
        with pytest.raises(e.RateLimited):
            await counted.take("send", "alice")
    await counted.give_back("send", "alice")
    await counted.take("send", "alice")


async def test_what_was_given_back_leaves_nothing_behind():
    counted = limits(StillClock())
    await counted.take("send", "alice")
    await counted.give_back("send", "alice")
    await counted.give_back("send", "alice")
    await counted.give_back("other", "alice")
    assert counted.keys("send") == 0


async def test_a_limit_that_does_not_exist_stops_nobody():
    counted = RateLimits(StillClock(), {})
    for _ in range(1_000):
        await counted.take("send", "alice")
    assert counted.keys("send") == 0


async def test_the_number_of_keys_is_bounded_and_each_limit_has_its_own():
    clock = StillClock()
    counted = RateLimits(clock, {"send": Limit(1, MINUTE), "recover": Limit(1, HOUR)}, max_keys=10)
    await counted.take("recover", "alice")
    for number in range(1_000):
        await counted.take("send", str(number))
    assert counted.keys("send") == 10
    with pytest.raises(e.RateLimited):
        await counted.take("recover", "alice")
    clock.seconds += MINUTE
    await counted.take("send", "later")
    assert counted.keys("send") == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (60, "60 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (121, "3 minutes"),
        (HOUR, "60 minutes"),
        (2 * HOUR, "2 hours"),
        (DAY, "24 hours"),
        (2 * DAY, "2 days"),
    ],
)
def test_a_time_is_told_as_people_say_it(seconds, words):
    assert in_words(seconds) == words


async def test_what_is_only_slowed_counts_on_and_locks_nobody_out():
    clock = StillClock()
    counted = RateLimits(clock, {"recover": Limit(2, HOUR, slows=True)})
    waits = [await counted.take("recover", "alice") for _ in range(4)]
    assert waits == [0.0, 0.0, SLOWED_SECONDS, SLOWED_SECONDS]
    await counted.give_back("recover", "alice")
    assert await counted.take("recover", "alice") == SLOWED_SECONDS
    clock.seconds += HOUR
    assert await counted.take("recover", "alice") == 0.0


async def restarted(store: SqliteStore, clock: StillClock) -> RateLimits:
    """What counts after a restart, in the middle of a window."""
    counted = RateLimits(clock, {"send": Limit(9, MINUTE), "recover": Limit(2, HOUR)})
    await counted.restore(store)
    return counted


async def test_counts_of_hours_outlive_a_restart_for_the_rest_of_their_window(store):
    clock = StillClock()
    counted = await restarted(store, clock)
    for _ in range(2):
        await counted.take("recover", "alice 10.0.0.7")
    await counted.take("recover", "bob")
    await counted.give_back("recover", "bob")
    await counted.take("send", "carol")
    await counted.save(store)
    clock.seconds += 600
    again = await restarted(store, clock)
    assert (again.keys("recover"), again.keys("send")) == (1, 0)
    with pytest.raises(e.RateLimited) as refused:
        await again.take("recover", "alice 10.0.0.7")
    assert refused.value.data["retry_after"] == HOUR - 600
    clock.seconds += HOUR - 600
    assert (await restarted(store, clock)).keys("recover") == 0


async def test_what_is_stored_of_attempts_is_bounded_names_nobody_and_is_written_only_when_new(
    store,
):
    clock = StillClock()
    counted = await restarted(store, clock)

    async def stored(tx: Tx) -> list[Row]:
        return await tx.fetch("SELECT value FROM meta WHERE key = 'rate_counts'")

    writes = store.stats().units
    await counted.save(store)
    assert store.stats().units == writes
    for number in range(KEPT_KEYS + 500):
        await counted.take("recover", f"mallory 10.0.0.{number}")
    for _ in range(10):
        await counted.save(store)
    assert store.stats().units == writes + 1
    ((text,),) = await store.read(stored)
    assert len(text) < 64 * KEPT_KEYS
    assert "mallory" not in text
    assert "10.0.0." not in text
    assert (await restarted(store, clock)).keys("recover") == KEPT_KEYS


async def test_what_cannot_be_given_back_spoils_nothing_that_was_done():
    class Away:
        async def take(self, _key: str, _most: int, _seconds: int, *, overdraw: bool) -> float:
            return 0.0 if not overdraw else 1.0

        async def give_back(self, _key: str) -> None:
            raise e.StoreOverloaded("Too many wait.")

    counted = limits(StillClock())
    counted.shared = Away()
    async with counted.guessing("send", "alice", e.StoreOverloaded):
        done = True
    assert done


def test_taking_from_a_limit_in_memory_never_switches_tasks():
    counted = limits(StillClock())
    for method in (counted.take, counted.give_back):
        with pytest.raises(StopIteration):
            method("send", "alice").send(None)
