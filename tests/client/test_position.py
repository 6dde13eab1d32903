"""Where the client is in the history, as numbers alone."""

from __future__ import annotations

import pytest

from folkmoot.client.model import HistoryBounds, Me, Resumed, Welcome
from folkmoot.client.session import Position


@pytest.mark.parametrize(("is_kept", "through"), [(True, 19), (False, 30)])
def test_where_nothing_is_kept_it_goes_on_from_now_and_else_where_the_history_begins(
    is_kept: bool, through: int
) -> None:
    position = Position()
    position.begin(Welcome(Me("bob"), "e1", HistoryBounds(10, 1, True)), None)
    gone = Resumed(False, "history_gone")
    welcome = Welcome(Me("bob"), "e1", HistoryBounds(30, 20, is_kept), resume=gone)
    beginning = position.begin(welcome, 10)
    assert beginning.gap is not None
    assert (beginning.gap.after, beginning.gap.seq, beginning.again) == (10, through, is_kept)
    assert position.resume_after(hungry=False) == through
    assert position.is_live is not is_kept
