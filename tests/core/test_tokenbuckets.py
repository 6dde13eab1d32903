"""Token buckets."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.core.tokenbuckets import TokenBuckets


def test_a_bucket_lets_a_burst_pass_and_then_a_token_at_a_time():
    buckets = TokenBuckets[str](max_keys=2)

    def take(now: float, key: str = "a") -> float:
        return buckets.take(key, 3, 30.0, now)

    assert [take(100.0) for _ in range(4)] == [0, 0, 0, 10]
    assert take(109.0) == pytest.approx(1)
    assert [take(110.0), take(110.0)] == [0, 10]
    assert [take(900.0) for _ in range(4)] == [0, 0, 0, 10]


def test_a_bucket_that_is_put_back_goes_on_where_it_was():
    before, after = TokenBuckets[str](), TokenBuckets[str]()
    assert [before.take("a", 1, 10.0, 100.0) for _ in range(2)] == [0, 10]
    kept = before.find("a")
    assert kept is not None
    after.restore("a", kept)
    assert (after.take("a", 1, 10.0, 104.0), after.take("b", 1, 10.0, 104.0)) == (6, 0)
    assert after.find("c") is None


def test_a_clock_that_was_set_back_locks_nobody_out_of_a_bucket():
    buckets = TokenBuckets[str]()
    assert [buckets.take("a", 2, 2.0, 1_000_000.0) for _ in range(3)] == [0, 0, 1]
    assert buckets.take("a", 2, 2.0, 5.0) == 1
    assert buckets.take("a", 2, 2.0, 6.0) == 0


def test_the_bucket_longest_unused_makes_room():
    buckets = TokenBuckets[str](max_keys=2)
    for key in ("a", "b", "a", "c"):
        buckets.take(key, 2, 10.0, 0.0)
    assert len(buckets) == 2
    assert buckets.take("a", 2, 10.0, 0.0) > 0
    assert buckets.take("b", 2, 10.0, 0.0) == 0


def test_more_than_a_bucket_holds_passes_when_it_is_full_and_is_paid_for():
    buckets = TokenBuckets[str]()
    assert buckets.take("a", 10, 10.0, 0.0, 50) == 0
    assert buckets.take("a", 10, 10.0, 0.0, 1) == 41
    assert buckets.take("a", 10, 10.0, 41.0, 1) == 0


def test_a_window_opens_with_its_first_token_and_is_filled_when_it_is_over():
    buckets = TokenBuckets[str](at_once=True)
    assert [buckets.take("a", 2, 60, now) for now in (0.0, 40.0, 59.0)] == [0, 0, 1]
    assert [buckets.take("a", 2, 60, now) for now in (60.0, 60.0, 60.0)] == [0, 0, 60]
    buckets.take("b", 2, 60, 119.0)
    assert len(buckets) == 2
    buckets.take("c", 2, 60, 120.0)
    assert len(buckets) == 2


def test_what_was_given_back_can_be_taken_and_leaves_nothing_behind():
    for at_once in (False, True):
        buckets = TokenBuckets[str](at_once=at_once)
        assert [buckets.take("a", 2, 60, 0.0) for _ in range(3)][:2] == [0, 0]
        buckets.give_back("a", 2)
        assert buckets.take("a", 2, 60, 0.0) == 0
        buckets.give_back("a", 2)
        buckets.give_back("a", 2)
        buckets.give_back("a", 2)
        assert len(buckets) == 0


def test_what_is_overdrawn_is_taken_all_the_same():
    buckets = TokenBuckets[str](at_once=True)
    waits = [buckets.take("a", 1, 60, 0.0, overdraw=True) for _ in range(3)]
    assert waits == [0, 60, 60]
    buckets.give_back("a", 1)
    assert buckets.take("a", 1, 60, 0.0) == 60


@given(
    st.booleans(),
    st.integers(1, 5),
    st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=40),
)
@example(at_once=True, tokens=1, pauses=[8.954972664660955, 0.0, 0.0, 0.0, 0.0])
def test_no_span_of_time_has_more_than_twice_what_a_bucket_holds(at_once, tokens, pauses):
    buckets = TokenBuckets[str](at_once=at_once)
    now, given_at = 0.0, list[float]()
    for pause in pauses:
        now += pause
        wait = buckets.take("a", tokens, 60.0, now)
        if not wait:
            given_at.append(now)
        else:
            assert wait <= 60.0 + 1e-9  # Floats round.
            assert buckets.take("a", tokens, 60.0, now + wait) == 0
            now += wait
            given_at.append(now)
    for begin in given_at:
        assert sum(begin <= at <= begin + 60 for at in given_at) <= 2 * tokens + 1


@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.floats(-5, 30, allow_nan=False), st.integers(1, 5)), max_size=20),
)
def test_to_take_tokens_together_is_to_take_each_or_none(tokens, steps):
    together, alone = TokenBuckets[str](), TokenBuckets[str]()
    now = 100.0
    for pause, amount in steps:
        now += pause
        if together.take_whole("a", tokens, 60.0, now, amount):
            assert [alone.take("a", tokens, 60.0, now) for _ in range(amount)] == [0] * amount
        assert together.take("a", tokens, 60.0, now) == pytest.approx(
            alone.take("a", tokens, 60.0, now), abs=1e-4
        )
