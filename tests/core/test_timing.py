"""TimingContext."""

from __future__ import annotations

import inspect

import pytest

from folkmoot.core import timing
from folkmoot.core.timing import TimingContext


@pytest.mark.requirement("timing.now")
def test_a_new_timing_knows_only_its_creation():
    fresh = TimingContext(1.0, 1_700_000_000.0)
    assert (fresh.created_at, fresh.system_time) == (1.0, 1_700_000_000.0)
    assert fresh.processing_started is fresh.processing_completed is fresh.sent_at is None


@pytest.mark.requirement("timing.passed-in")
def test_the_times_are_passed_in():
    assert "import time" not in inspect.getsource(timing)
    assert list(inspect.signature(TimingContext.start_processing).parameters) == ["self", "at"]


@pytest.mark.requirement("timing.processing", "timing.duration", "timing.sent")
def test_durations_are_known_once_both_ends_are():
    fresh = TimingContext(10.0, 0.0)
    started = fresh.start_processing(12.0)
    done = started.complete_processing(15.0)
    sent = done.mark_sent(16.0)
    assert [t.waiting_duration() for t in (fresh, started)] == [None, 2.0]
    assert [t.processing_duration() for t in (fresh, started, done)] == [None, None, 3.0]
    assert [t.total_duration() for t in (done, sent)] == [None, 6.0]
    assert fresh == TimingContext(10.0, 0.0)
