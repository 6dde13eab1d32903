"""What an interceptor can say."""

from __future__ import annotations

from typing import get_args

from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.verdict import CONTINUE, Block, Continue, Delay, Hold, Mock, Modify, Verdict


def test_there_are_six_verdicts_and_to_continue_says_nothing_more():
    assert get_args(Verdict) == (Continue, Modify, Block, Mock, Delay, Hold)
    assert Continue() == CONTINUE


def test_a_verdict_says_all_that_is_needed_to_follow_it():
    error = e.BlockedByInterceptor("Not here.")
    assert Block(error).error is error
    assert (Mock(result={}).error, Mock().result) == (UNSET, UNSET)
    assert (Hold().reason, Hold().seconds, Delay(2).seconds) == ("", None, 2)
