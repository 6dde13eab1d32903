"""Where the client is in the history, as numbers alone."""

from __future__ import annotations

from typing import Any

from folkmoot.client.model import HistoryBounds, Me, Resumed, Welcome
from folkmoot.client.session import Position


def welcome(
    last: int, first: int = 1, *, epoch: str = "e1", reason: str | None = "", enabled: bool = True
) -> Welcome:
    resume = None if reason == "" else Resumed(reason is None, reason)
    return Welcome(Me("bob"), epoch, HistoryBounds(last, first, enabled), resume=resume)


def begun(last: int = 10) -> Position:
    position = Position()
    assert position.resume_after(hungry=True) is None
    position.begin(welcome(last), None)
    return position


def lost(position: Position, *history: int, after: int = 10, **more: Any) -> tuple[int, int, bool]:
    """The gap where a connection is told that what it missed is gone, and whether it reads on."""
    beginning = position.begin(welcome(*history, **{"reason": "history_gone", **more}), after)
    return beginning.gap.after, beginning.gap.seq, beginning.again


def test_a_connection_is_live_when_it_has_replayed_what_was_missed():
    position = begun()
    assert position.is_live
    assert position.begin(welcome(12, reason=None), 10).gap is None
    assert not position.is_live
    position.advance(11)
    position.advance(12)
    assert position.is_live


def test_one_who_is_behind_goes_on_where_the_buffer_ended_once_it_is_empty():
    position = begun()
    for seq in (11, 12, 13):
        position.advance(seq)
        if not position.behind:
            position.keep(seq, fits=seq < 12)
    assert position.behind
    assert position.resume_after(hungry=False) == 13
    assert position.resume_after(hungry=True) == 11
    position.begin(welcome(13, reason=None), 13)
    assert position.behind
    position.begin(welcome(13, reason=None), 11)
    assert not position.behind
    assert not position.advance(12), "the client has heard it before"
    position.keep(12, fits=True)
    assert position.resume_after(hungry=False) == 12, "and the author has not"


def test_where_the_history_begins_later_it_is_joined_there():
    position = begun()
    assert lost(position, 30, 20) == (10, 19, True)
    assert position.resume_after(hungry=False) == 19


def test_where_nothing_is_kept_it_goes_on_from_now():
    position = begun()
    assert lost(position, 30, enabled=False) == (10, 30, False)
    assert position.is_live


def test_what_only_the_author_has_not_read_may_be_gone_while_the_client_heard_it():
    position = begun()
    position.keep(11, fits=False)
    for seq in range(11, 31):
        position.advance(seq)
    assert lost(position, 30, 20)[2]
    assert (position.heard, position.resume_after(hungry=True)) == (30, 19)


def test_in_a_new_epoch_the_old_numbers_mean_nothing():
    position = begun(100)
    found = lost(position, 3, after=100, epoch="e2", reason="epoch_changed")
    assert found == (100, 3, False)
    assert (position.epoch, position.heard, position.kept) == ("e2", 3, 3)
    assert not position.is_known(4)


def test_a_number_that_is_left_out_is_a_gap():
    position = begun()
    assert position.skipped(11) is None
    gap = position.skipped(14)
    assert (gap.after, gap.seq, gap.reason) == (10, 13, "skipped")
    assert position.advance(14)
    assert position.is_known(12)
