from __future__ import annotations

import secrets
from itertools import cycle
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.uuids import MANY, Uuids, as_stored, is_beginning, is_uuid

MOMENTS = st.lists(st.floats(min_value=0, max_value=2**33), min_size=1, max_size=50)


@given(moments=MOMENTS)
def test_each_is_a_uuid_of_version_7_and_comes_after_the_one_before(moments):
    clock = iter(moments)
    new_id = Uuids(lambda: next(clock), secrets.token_bytes)
    made = [new_id() for _ in moments]
    assert made == sorted(set(made))
    for id_ in map(UUID, made):
        assert id_.version == 7
        assert id_.variant == "specified in RFC 4122"


def test_an_id_tells_its_moment():
    assert UUID(Uuids(lambda: 1_700_000_000.123, secrets.token_bytes)()).int >> 80 == (
        1_700_000_000_123
    )


def test_more_ids_than_a_millisecond_can_count_are_still_in_order():
    new_id = Uuids(lambda: 1.0, secrets.token_bytes)
    for made in ([new_id() for _ in range(10_000)], new_id.many(10_000)):
        assert len(made) == 10_000
        assert made == sorted(set(made))


def test_what_is_random_is_used_once():
    new_id = Uuids(lambda: 1.0, secrets.token_bytes)
    tails = {new_id()[-16:] for _ in range(3 * MANY)}
    assert len(tails) == 3 * MANY


def test_eight_characters_of_an_id_are_enough_to_name_it():
    whole = "550e8400-e29b-41d4-a716-446655440000"
    assert [len_ for len_ in range(40) if is_beginning(whole[:len_])] == list(range(8, 36))
    assert not is_beginning("550E8400")
    assert not is_beginning("not an id")


@given(counts=st.lists(st.integers(1, 3 * MANY), max_size=30), moments=MOMENTS)
def test_many_ids_at_once_follow_each_other_as_single_ones_do(counts, moments):
    clock = cycle(moments)
    new_id = Uuids(lambda: next(clock), secrets.token_bytes)
    made = []
    for count in counts:
        made += new_id.many(count)
        made.append(new_id())
    assert len(made) == sum(counts) + len(counts)
    assert made == sorted(set(made))
    assert all(UUID(id_).version == 7 for id_ in made[:: MANY // 2])


def test_an_id_in_capitals_is_the_same_id():
    whole = Uuids(lambda: 1.0, secrets.token_bytes)()
    assert is_uuid(whole)
    assert is_uuid(whole.upper())
    assert as_stored(whole.upper()) == whole
    assert as_stored("Build-17") == "Build-17"
    assert not is_uuid(whole[:-1])
    assert not is_uuid(f"{whole}\n")
