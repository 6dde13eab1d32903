"""The small parts: deadlines that forget, and what stays bounded."""

from __future__ import annotations

import math
import secrets
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.uuids import Uuids
from folkmoot.rooms.machine.ids import Ids
from folkmoot.rooms.machine.members import skeleton
from folkmoot.rooms.machine.model import LookupNeeded
from folkmoot.rooms.machine.state import Deadlines


def test_what_is_dropped_does_not_pile_up():
    deadlines = Deadlines()
    for n in range(10_000):
        deadlines.set("request", str(n), float(n))
        deadlines.drop("request", str(n))
    assert len(deadlines._heap) < 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9) | st.none())))
def test_deadlines_come_due_in_order_and_once_as_in_a_plain_table(steps):
    deadlines, table = Deadlines(), dict[str, int]()
    for name, at in steps:
        kind: Any = "proposal" if name == "c" else "request"
        if at is None:
            deadlines.drop(kind, name)
            table.pop(name, None)
        else:
            deadlines.set(kind, name, at)
            table[name] = at
    assert deadlines.next <= min(table.values(), default=math.inf)
    due = [name for _, name in deadlines.pop_due(5)]
    assert sorted(due) == sorted(name for name, at in table.items() if at <= 5)
    assert [table[name] for name in due] == sorted(table[name] for name in due)
    assert deadlines.pop_due(5) == []
    deadlines.pop_due(9)
    assert deadlines.next == math.inf


def test_ids_are_forgotten_oldest_first_and_memory_stays_bounded():
    ids = Ids(100)
    for n in range(10_000):
        ids.add((f"m{n}",), n, "a")
        assert 94 <= len(ids._used) <= 100 or n < 100
    assert not ids.is_free("m9905")
    ids.drop_before(9_990)
    assert len(ids._used) == 10


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("chosen"), st.integers(1, 3)),
            st.tuples(st.just("made"), st.integers(1, 9)),
            st.tuples(st.just("trim"), st.integers(0, 20)),
        ),
        max_size=60,
    ),
    most=st.integers(8, 64),
)
def test_ids_that_the_room_made_are_known_like_those_that_senders_chose(steps, most):
    ids = Ids(most, stored=True)
    new_ids = Uuids(lambda: 1.0, secrets.token_bytes)
    seqs: dict[str, int] = {}
    seq, first = 0, 1
    for step, count in steps:
        if step == "trim":
            first = min(first + count, seq + 1)
            ids.drop_before(first)
            continue
        made = new_ids.many(count) if step == "made" else [f"m{seq + n}" for n in range(count)]
        add = ids.add_made if step == "made" else ids.add
        add(made, seq + 1, "ada")
        seqs.update(zip(made, range(seq + 1, seq + count + 1), strict=True))
        seq += count
        assert len(ids) <= max(most, count)
    # Whatever the history holds is refused, or looked up in the store; and nothing else is.
    for id_, at in seqs.items():
        if at >= first:
            assert not ids.is_free(id_)
            with pytest.raises((e.IdUsed, LookupNeeded)) as refusal:
                ids.check(id_, "ada", {})
            assert isinstance(refusal.value, LookupNeeded) or refusal.value.data["seq"] == at
            assert isinstance(refusal.value, LookupNeeded) == ids.is_unknown(id_)
    assert all(ids.is_free(id_) or ids.is_unknown(id_) for id_ in ["n1", new_ids()])


def test_ids_that_are_made_at_once_share_what_is_random_with_no_later_ones():
    new_ids = Uuids(lambda: 1.0, secrets.token_bytes)
    tails = [{id_[-16:] for id_ in new_ids.many(20)} for _ in range(100)]
    assert all(len(tail) == 1 for tail in tails)
    assert len(set.union(*tails)) == 100


def test_numbered_names_cannot_be_mistaken_for_each_other():
    assert len({skeleton(f"worker-{n}") for n in range(2_000)}) == 2_000
