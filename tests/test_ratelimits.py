from __future__ import annotations

import pytest

from folkmoot.core.errors import InvitationInvalid, RateLimited, UserNotFound
from folkmoot.ratelimits import DAY, HOUR, MINUTE, Limit, RateLimits, TokenBuckets, in_words


class Clock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def limits(clock: Clock, most: int = 2, most_keys: int = 100) -> RateLimits:
    return RateLimits(clock, {"send": Limit(most, MINUTE)}, most_keys=most_keys)


def test_as_many_as_may_be_and_then_none_until_the_window_is_over() -> None:
    clock = Clock()
    counted = limits(clock)
    counted.take("send", "alice")
    clock.time += 40
    counted.take("send", "alice")
    with pytest.raises(RateLimited) as refused:
        counted.take("send", "alice")
    assert refused.value.data == {"retry_after": 20}
    assert refused.value.message == "Rate limit exceeded. Try again in 20 seconds."
    assert refused.value.http == 429
    counted.take("send", "bob")
    clock.time += 20
    counted.take("send", "alice")


@pytest.mark.parametrize("since_start", [62_165.994, 62_308.665, 64_221.07])
def test_the_time_to_wait_is_never_longer_than_the_window(since_start: float) -> None:
    clock = Clock()
    clock.time = since_start
    counted = RateLimits(clock, {"send": Limit(1, HOUR)})
    counted.take("send", "alice")
    with pytest.raises(RateLimited) as refused:
        counted.take("send", "alice")
    assert refused.value.data == {"retry_after": HOUR}


def test_of_guesses_only_the_wrong_ones_count() -> None:
    counted = limits(Clock())
    for _ in range(3):
        with counted.guessing("send", "alice", InvitationInvalid):
            pass
    for _ in range(3):
        with pytest.raises(UserNotFound), counted.guessing("send", "alice", InvitationInvalid):
            raise UserNotFound
    for _ in range(2):
        with (
            pytest.raises(InvitationInvalid),
            counted.guessing("send", "alice", InvitationInvalid),
        ):
            raise InvitationInvalid("Not this one.")
    with pytest.raises(RateLimited), counted.guessing("send", "alice", InvitationInvalid):
        pytest.fail("There were too many.")


def test_what_was_refused_does_not_count() -> None:
    clock = Clock()
    counted = limits(clock, most=1)
    counted.take("send", "alice")
    for _ in range(10):
        with pytest.raises(RateLimited):
            counted.take("send", "alice")
    counted.give_back("send", "alice")
    counted.take("send", "alice")


def test_what_was_given_back_leaves_nothing_behind() -> None:
    counted = limits(Clock())
    counted.take("send", "alice")
    counted.give_back("send", "alice")
    counted.give_back("send", "alice")
    counted.give_back("other", "alice")
    assert counted.keys("send") == 0


def test_a_limit_that_does_not_exist_stops_nobody() -> None:
    counted = RateLimits(Clock(), {})
    for _ in range(1_000):
        counted.take("send", "alice")
    assert counted.keys("send") == 0


def test_the_number_of_keys_is_bounded_and_each_limit_has_its_own() -> None:
    clock = Clock()
    counted = RateLimits(clock, {"send": Limit(1, MINUTE), "recover": Limit(1, HOUR)}, most_keys=10)
    counted.take("recover", "alice")
    for number in range(1_000):
        counted.take("send", str(number))
    assert counted.keys("send") == 10
    with pytest.raises(RateLimited):
        counted.take("recover", "alice")
    clock.time += MINUTE
    counted.take("send", "later")
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
def test_a_time_is_told_as_people_say_it(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


def test_a_bucket_lets_a_burst_pass_and_then_a_token_at_a_time() -> None:
    buckets = TokenBuckets[str](most_keys=2)

    def take(now: float, key: str = "a") -> int:
        return buckets.take(key, 3, 10.0, now)

    assert [take(100.0) for _ in range(4)] == [0, 0, 0, 10]
    assert take(109.0) == 1
    assert [take(110.0), take(110.0)] == [0, 10]
    assert [take(900.0) for _ in range(4)] == [0, 0, 0, 10]


def test_a_clock_that_was_set_back_locks_nobody_out_of_a_bucket() -> None:
    buckets = TokenBuckets[str]()
    assert [buckets.take("a", 2, 1.0, 1_000_000.0) for _ in range(3)] == [0, 0, 1]
    assert buckets.take("a", 2, 1.0, 5.0) == 1
    assert buckets.take("a", 2, 1.0, 6.0) == 0


def test_the_bucket_longest_unused_makes_room() -> None:
    buckets = TokenBuckets[str](most_keys=2)
    for key in ("a", "b", "a", "c"):
        buckets.take(key, 3, 10.0, 0.0)
    assert list(buckets._full_at) == ["a", "c"]
