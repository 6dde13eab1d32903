"""What PostgreSQL answers for many callers at once: look-ups, and rate limits of all hubs."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.ratelimits import DAY, Limit, RateLimits
from folkmoot.store.postgres import PostgresStore, rates
from folkmoot.store.postgres.gather import Gatherer
from tests import postgres
from tests.clocks import StillClock
from tests.store.support import statement

pytestmark = postgres.NEEDED

BY_NAME = "SELECT name, value FROM names WHERE name = ?"
HOUR = 3_600


async def make_names(tx: Tx) -> None:
    await tx.execute("CREATE TABLE names (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
    for number in range(10):
        await tx.execute("INSERT INTO names VALUES (?, ?)", (f"n{number}", number))


async def test_look_ups_of_one_moment_are_one_statement_and_each_gets_its_own(stores):
    store = stores[0]
    await store.write(make_names)
    asked: list[int] = []
    run = store._run_alone

    async def counting(sql: str, params: tuple[list[str]]) -> list[tuple[object, ...]]:
        asked.append(len(params[0]))
        return await run(sql, params)

    store._run_alone = counting  # type: ignore[method-assign, assignment]
    numbers = [number % 12 for number in range(600)]
    found = await asyncio.gather(*(store.look_up(BY_NAME, f"n{number}") for number in numbers))
    assert found == [(f"n{number}", number) if number < 10 else None for number in numbers]
    assert asked == [600]
    assert await store.look_up(BY_NAME, "n\0") is None


async def test_what_was_committed_before_a_look_up_is_found_by_it(stores):
    store, other = stores
    await store.write(make_names)
    running = [asyncio.create_task(store.look_up(BY_NAME, "x0")) for _ in range(5)]
    for number in range(20):
        name = f"x{number}"
        await other.write(statement("INSERT INTO names VALUES (?, 1)", name))
        running += [asyncio.create_task(store.look_up(BY_NAME, "n1")) for _ in range(5)]
        assert await store.look_up(BY_NAME, name) == (name, 1)
    await asyncio.gather(*running)


async def test_a_look_up_that_fails_fails_for_those_who_asked_and_for_nobody_later(stores):
    store = stores[0]
    asking = (store.look_up(BY_NAME, "n1") for _ in range(3))
    failed = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in failed] == [e.StatementFailed] * 3
    await store.write(make_names)
    assert await store.look_up(BY_NAME, "n1") == ("n1", 1)
    left = asyncio.create_task(store.look_up(BY_NAME, "n1"))
    stays = asyncio.create_task(store.look_up(BY_NAME, "n2"))
    await asyncio.sleep(0)
    left.cancel()
    assert await stays == ("n2", 2)
    await store.close()
    with pytest.raises(e.StoreClosed):
        await store.look_up(BY_NAME, "n1")


async def test_a_server_that_does_not_answer_makes_a_queue_that_has_a_bound():
    never = asyncio.Event()

    async def ask(questions: list[int]) -> list[int]:
        await never.wait()
        return questions

    gatherer = Gatherer[int, int](ask, asyncio.ensure_future, most_waiting=10)
    waiting = [asyncio.create_task(gatherer.get(number)) for number in range(12)]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert {type(each.exception()) for each in done} == {e.StoreOverloaded}
    never.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert answers[:10] == list(range(10))


def limits(store: PostgresStore, limit: Limit) -> RateLimits:
    counted = RateLimits(StillClock(), {"send": limit})
    counted.shared = store.rates
    return counted


async def take(counted: RateLimits, key: str, count: int) -> list[float | e.RateLimited]:
    takes = (counted.take("send", key) for _ in range(count))
    answers = await asyncio.gather(*takes, return_exceptions=True)
    assert all(isinstance(each, (float, e.RateLimited)) for each in answers), answers
    return answers  # type: ignore[return-value]


async def test_a_rate_limit_is_exact_over_all_hubs_that_count_at_once(stores):
    hubs = [limits(store, Limit(50, HOUR)) for store in stores]
    takes = [take(hub, key, 40) for hub in hubs for key in ("a", "b") for _ in range(2)]
    answers = await asyncio.gather(*takes)
    passed = [each.count(0.0) for each in answers]
    assert (passed[0] + passed[1] + passed[4] + passed[5], sum(passed)) == (50, 100)
    refused = [each for some in answers for each in some if isinstance(each, e.RateLimited)]
    assert len(refused) == 220
    assert all(HOUR - 60 < each.data["retry_after"] <= HOUR for each in refused)


async def test_what_is_given_back_can_be_taken_at_another_hub(stores):
    one, two = (limits(store, Limit(3, HOUR)) for store in stores)
    assert (await take(one, "a", 4)).count(0.0) == 3
    await asyncio.gather(*(two.give_back("send", "a") for _ in range(2)))
    assert (await take(two, "a", 4)).count(0.0) == 2
    with pytest.raises(KeyError):
        async with one.guessing("send", "b", e.RateLimited):
            raise KeyError
    assert (await take(two, "b", 4)).count(0.0) == 3


async def test_a_limit_that_slows_counts_everything_and_refuses_nothing(stores):
    one, two = (limits(store, Limit(3, HOUR, slows=True)) for store in stores)
    first = await take(one, "a", 2)
    later = await take(two, "a", 3)
    assert [bool(each) for each in first + later] == [False, False, False, True, True]


async def test_a_window_that_is_over_counts_anew_and_is_removed(stores, connection, monkeypatch):
    one, two = (limits(store, Limit(3, 60)) for store in stores)
    assert (await take(one, "a", 5)).count(0.0) == 3
    await connection.execute("UPDATE rate_counts SET opened = opened - 61")
    assert (await take(two, "a", 5)).count(0.0) == 3
    assert (await take(one, "a", 5)).count(0.0) == 0
    await take(one, "b", 1)
    stored = await connection.fetchval("SELECT string_agg(key, ' ') FROM rate_counts")
    assert "send" not in stored
    await stores[0].rates.clean()
    assert await connection.fetchval("SELECT count(*) FROM rate_counts") == 2
    await connection.execute("UPDATE rate_counts SET opened = opened - 61 WHERE taken = 1")
    await stores[0].rates.clean()
    assert await connection.fetchval("SELECT count(*) FROM rate_counts") == 1
    monkeypatch.setattr(rates, "CLEAN", rates.CLEAN.replace("100000", "2"))
    daily = limits(stores[0], Limit(5, DAY))
    await take(daily, "guesses", 5)
    for key in "cdefg":
        await take(one, key, 1)
    await stores[0].rates.clean()
    assert await connection.fetchval("SELECT count(*) FROM rate_counts") == 3
    # A flood of one limit has forgotten nothing that another counted.
    assert (await take(daily, "guesses", 1)).count(0.0) == 0
    logged = "SELECT relpersistence FROM pg_class WHERE oid = 'rate_counts'::regclass"
    assert await connection.fetchval(logged) == b"u"
