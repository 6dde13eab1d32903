"""A server's calls are counted by the minute, in a ring that does not grow."""

from __future__ import annotations

from folkmoot.gateway.history import CallHistory
from folkmoot.gateway.limits import HISTORY_MINUTES
from tests.clocks import StillClock


def test_calls_are_told_by_the_minute_they_ended_in():
    clock = StillClock()
    clock.seconds = 0.0
    history = CallHistory(clock)
    history.answered(0.0, 0.2, good=True)
    history.answered(59.9, 0.4, good=False)
    clock.seconds = 61.0
    history.failed()
    told = history.view("files")
    counted = [each[-2:] for each in (told.calls, told.errors, told.refused)]
    assert counted == [[2, 1], [0, 1], [1, 0]]
    assert (told.mean_ms[-2:], told.slowest_ms[-2:]) == ([300.0, None], [400.0, None])
    assert (sum(told.calls), len(told.calls)) == (3, HISTORY_MINUTES)


def test_what_is_older_than_an_hour_is_forgotten_and_its_place_used_again():
    clock = StillClock()
    history = CallHistory(clock)
    for minute in range(10 * HISTORY_MINUTES):
        clock.seconds = minute * 60.0
        history.answered(clock.seconds, 0.001, good=True)
    assert history.view("files").calls == [1] * HISTORY_MINUTES
    clock.seconds += 30 * 60.0
    assert history.view("files").calls == [1] * 30 + [0] * 30
    clock.seconds += 24 * 3600.0
    assert sum(history.view("files").calls) == 0
