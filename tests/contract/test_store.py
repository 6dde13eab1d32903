from __future__ import annotations

import asyncio
import threading

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Event, NewRows, SqlStatement, Store, Tx, Unit
from tests.contract.engines import STORES
from tests.store.support import all_notes, make_table, rows, statement

pytestmark = pytest.mark.parametrize("open_store", STORES)


def insert(*numbers: int, fail: bool = False):
    async def unit(tx: Tx) -> int:
        for number in numbers:
            await tx.execute("INSERT INTO notes (id, body) VALUES (?, ?)", (number, "x"))
        if fail:
            raise LookupError("changed my mind")
        return len(numbers)

    return unit


async def test_a_write_answers_with_what_its_unit_returned(store):
    assert await store.write(insert(1, 2, 3)) == 3


async def test_what_was_written_is_read_as_soon_as_the_write_was_answered(store):
    for number in range(20):
        await store.write(insert(number))
        assert await store.read(all_notes) == list(range(number + 1))


async def test_a_unit_that_raises_leaves_nothing_and_its_caller_gets_its_own_error(store):
    with pytest.raises(LookupError, match="changed my mind"):
        await store.write(insert(1, 2, fail=True))
    assert await store.read(all_notes) == []


@pytest.mark.requirement("store.failing-unit-alone")
async def test_units_that_fail_among_others_undo_only_themselves(store):
    units = [insert(number, number + 1000, fail=number % 3 == 0) for number in range(100)]
    results = await asyncio.gather(*map(store.write, units), return_exceptions=True)
    kept = [number for number in range(100) if number % 3]
    assert [number for number in range(100) if results[number] == 2] == kept
    assert await store.read(all_notes) == kept + [number + 1000 for number in kept]


make_tallies = statement(
    "CREATE TABLE tallies (name TEXT NOT NULL PRIMARY KEY, value BIGINT, note TEXT)"
)
MORE = "ON CONFLICT (name) DO UPDATE SET value = tallies.value + excluded.value"


@pytest.mark.parametrize("single", [False, True])
async def test_rows_of_several_tables_are_inserted_together_or_not_at_all(store, single):
    def add(*numbers: int) -> Unit[None]:
        async def unit(tx: Tx) -> None:
            notes = [(number, "x") for number in numbers]
            tally = [("a", len(numbers), None), (f"from {min(numbers)}", 1, "one")]
            await tx.insert(
                NewRows("notes", ("id", "body"), notes),
                NewRows("tallies", ("name", "value", "note"), tally, MORE),
                NewRows("notes", ("id", "body"), []),
            )

        return unit

    await store.write(make_tallies)
    await store.write(add(*range(100)), single=single)
    with pytest.raises(e.ConstraintViolated):
        await store.write(add(100, 7), single=single)
    await store.write(add(100), single=single)
    assert await store.read(all_notes) == list(range(101))
    tallies = await store.read(rows("SELECT name, value, note FROM tallies ORDER BY name"))
    assert tallies == [("a", 101, None), ("from 0", 1, "one"), ("from 100", 1, "one")]


@pytest.mark.parametrize("any_order", [False, True])
async def test_statements_that_run_together_answer_what_each_returns(store, any_order):
    async def both(tx: Tx) -> list[list[tuple[object, ...]]]:
        return await tx.together(
            SqlStatement("INSERT INTO notes (id, body) VALUES (?, ?), (?, 'y')", (1, "x", 2)),
            SqlStatement("UPDATE tallies SET value = value + ? RETURNING name, value", (10,)),
            SqlStatement("DELETE FROM tallies WHERE name = ? RETURNING value", ("\0",)),
        )

    async def refused(tx: Tx) -> object:
        return await tx.together(SqlStatement("INSERT INTO notes VALUES (?, ?)", (1, "x")))

    await store.write(make_tallies)
    await store.write(statement("INSERT INTO tallies (name, value) VALUES ('a', 1), ('b', 2)"))
    none, changed, gone = await store.write(both, any_order=any_order)
    assert (none, sorted(changed), gone) == ([], [("a", 11), ("b", 12)], [])
    assert await store.read(all_notes) == [1, 2]
    with pytest.raises(e.ConstraintViolated):
        await store.write(refused, any_order=any_order)


async def test_a_row_that_is_changed_gets_the_next_number(store):
    async def number(tx: Tx) -> list[object]:
        change = "UPDATE notes SET body = ? WHERE id = ? RETURNING id, body"
        found: list[object] = [
            await tx.fetch_numbered("message_seq", change, ("y", id_)) for id_ in (1, 3, 2)
        ]
        return [*found, await tx.next_sequence("message_seq")]

    await store.write(insert(1, 2))
    first, absent, second, last = await store.write(number)
    assert (first, absent, second, last) == ((1, "y", 1), None, (2, "y", 2), 3)


async def test_a_broken_rule_of_the_schema_is_an_error_of_its_own(store):
    await store.write(insert(1))
    with pytest.raises(e.ConstraintViolated):
        await store.write(insert(2, 1))
    assert await store.read(all_notes) == [1]


async def test_a_statement_that_makes_no_sense_is_an_error_of_the_store(store):
    for attempt in (store.write, store.read):
        with pytest.raises(e.StatementFailed):
            await attempt(statement("SELEKT 1"))


async def test_a_long_read_answers_what_a_short_one_does(store):
    await store.write(insert(*range(100)))
    assert await store.read(all_notes) == await store.read(all_notes, long=True)


async def test_execute_answers_how_many_rows_it_changed(store):
    async def unit(tx: Tx) -> list[int]:
        return [
            await tx.execute("INSERT INTO notes (id, body) VALUES (1, 'a'), (2, 'b')"),
            await tx.execute("UPDATE notes SET body = 'c' WHERE id = ?", (2,)),
            await tx.execute("UPDATE notes SET body = 'c' WHERE id = ?", (3,)),
            await tx.execute("DELETE FROM notes WHERE id > ?", (0,)),
        ]

    assert await store.write(unit) == [2, 1, 0, 2]


async def test_fetch_one_answers_the_first_row_or_none(store):
    async def unit(tx: Tx) -> list[object]:
        return [
            await tx.fetch_one("SELECT id, body FROM notes ORDER BY id DESC"),
            await tx.fetch_one("SELECT id FROM notes WHERE id = ?", (7,)),
            await tx.fetch_one("INSERT INTO notes (id, body) VALUES (3, 'z') RETURNING id"),
        ]

    await store.write(insert(1, 2))
    assert await store.write(unit) == [(2, "x"), None, (3,)]
    assert await store.read(all_notes) == [1, 2, 3]


async def test_values_come_back_as_they_went_in(store):
    values = 2**53 + 1, "naïve ☃ \U0001f600 'quoted'"
    await store.write(statement("INSERT INTO notes (id, body) VALUES (?, ?)", *values))
    assert await store.read(rows("SELECT id, body FROM notes")) == [values]


async def test_a_read_sees_one_view_however_many_statements_it_runs(store):
    async def sums(tx: Tx) -> bool:
        first = await tx.fetch("SELECT count(*) FROM notes")
        for _ in range(20):
            if await tx.fetch("SELECT count(*) FROM notes") != first:
                return False
        return True

    writes = [store.write(insert(number)) for number in range(200)]
    reads = [store.read(sums) for _ in range(50)]
    results = await asyncio.gather(*writes, *reads)
    assert all(results)


async def test_what_is_committed_is_there_after_closing_and_opening(open_store, tmp_path):
    async with open_store(tmp_path) as store:
        await store.write(make_table)
        await store.write(insert(1, 2))
    async with open_store(tmp_path) as store:
        assert await store.read(all_notes) == [1, 2]


def heard_from(store: Store) -> list[Event]:
    heard: list[Event] = []
    store.bus.listen(">", heard.append)
    return heard


async def test_what_a_unit_publishes_is_heard_before_its_caller_is_answered_and_after_its_commit(
    store,
):
    heard = heard_from(store)

    async def unit(tx: Tx) -> None:
        tx.publish("note.1", {"new": True})
        await tx.execute("INSERT INTO notes (id, body) VALUES (1, 'x')")
        tx.publish("note.count")

    await store.write(unit)
    assert heard == [Event("note.1", {"new": True}), Event("note.count", None)]


async def test_a_unit_that_is_undone_publishes_nothing_whatever_stands_beside_it(store):
    heard = heard_from(store)

    def unit(number: int) -> Unit[None]:
        async def run(tx: Tx) -> None:
            tx.publish(f"note.{number}")
            await tx.execute("INSERT INTO notes (id, body) VALUES (?, 'x')", (number % 10,))

        return run

    units = [unit(number) for number in range(20)]
    await asyncio.gather(*map(store.write, units), return_exceptions=True)
    subjects = {int(event.subject.removeprefix("note.")) % 10 for event in heard}
    assert (len(heard), subjects) == (10, set(range(10)))


async def test_what_a_unit_publishes_is_heard_although_its_caller_has_gone(store):
    heard = heard_from(store)
    running, may_end = threading.Event(), threading.Event()

    async def unit(tx: Tx) -> None:
        tx.publish("note.1")
        running.set()
        may_end.wait(5)
        await insert(1)(tx)

    caller = asyncio.ensure_future(store.write(unit))
    await asyncio.to_thread(running.wait, 5)
    caller.cancel()
    await asyncio.wait([caller])
    may_end.set()
    await store.write(insert(2))
    assert heard == [Event("note.1", None)]


@pytest.mark.parametrize(("subject", "event"), [("no subject", 1), ("a.*", 1), ("a", object())])
async def test_what_cannot_be_published_fails_its_unit(store, subject, event):

    async def unit(tx: Tx) -> None:
        await insert(1)(tx)
        tx.publish(subject, event)

    with pytest.raises(e.BusError):
        await store.write(unit)
    assert await store.read(all_notes) == []


async def test_a_query_publishes_nothing(store):
    heard = heard_from(store)

    async def query(tx: Tx) -> None:
        tx.publish("note.1")

    for long in (False, True):
        with pytest.raises(e.StatementFailed):
            await store.read(query, long=long)
    assert heard == []
