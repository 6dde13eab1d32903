"""The small parts: deadlines that forget, and what stays bounded."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.rooms.machine.members import skeleton
from folkmoot.rooms.machine.state import Deadlines, Ids


def test_deadlines_come_due_in_order_and_once() -> None:
    deadlines = Deadlines()
    deadlines.set("request", "a", 3.0)
    deadlines.set("proposal", "b", 1.0)
    deadlines.set("request", "c", 2.0)
    deadlines.set("request", "a", 0.5)
    deadlines.drop("request", "c")
    assert deadlines.next == 0.5
    assert deadlines.pop_due(2.0) == [("request", "a"), ("proposal", "b")]
    assert deadlines.pop_due(9.0) == []
    assert deadlines.next == math.inf


def test_what_is_dropped_does_not_pile_up() -> None:
    deadlines = Deadlines()
    for n in range(10_000):
        deadlines.set("request", str(n), float(n))
        deadlines.drop("request", str(n))
    assert len(deadlines._heap) < 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9) | st.none())))
def test_deadlines_agree_with_a_plain_table(steps: list[tuple[str, int | None]]) -> None:
    deadlines, table = Deadlines(), dict[str, int]()
    for name, at in steps:
        if at is None:
            deadlines.drop("request", name)
            table.pop(name, None)
        else:
            deadlines.set("request", name, at)
            table[name] = at
    assert deadlines.next <= min(table.values(), default=math.inf)
    due = [name for _, name in deadlines.pop_due(5)]
    assert sorted(due) == sorted(name for name, at in table.items() if at <= 5)


def test_ids_are_forgotten_oldest_first_and_memory_stays_bounded() -> None:
    ids = Ids(100)
    for n in range(10_000):
        ids.add((f"m{n}",), n, "a")
        assert 94 <= len(ids._used) <= 100 or n < 100
    assert not ids.is_free("m9905")
    ids.drop_before(9_990)
    assert len(ids._used) == 10


def test_numbered_names_cannot_be_mistaken_for_each_other() -> None:
    assert len({skeleton(f"worker-{n}") for n in range(2_000)}) == 2_000
