"""Trouble on purpose, the same each time."""

from __future__ import annotations

from collections import Counter

from folkmoot.core import errors as e
from folkmoot.core.verdict import CONTINUE, Block, Delay, Mock, Verdict
from folkmoot.proxy.interceptors.faults import LONGEST, NEVER
from tests.proxy.rules.support import TO_CLIENT, Way, answer, blocks, call, notice, refusal, used


def verdicts(name: str, options: str, times: int = 200) -> list[Verdict]:
    way = Way(used(name, options))
    return [way.judge(call("x")).verdict for _ in range(times)]


def test_delays_are_drawn_from_the_distribution_and_are_the_same_for_the_same_seed():
    assert set(map(repr, verdicts("latency", "seconds = 0.5"))) == {repr(Delay(0.5))}
    for distribution in ("uniform", "normal", "exponential"):
        options = f'seconds = 0.5, spread = 0.2, distribution = "{distribution}", seed = 3'
        drawn = [it.seconds for it in verdicts("latency", options) if isinstance(it, Delay)]
        assert len(drawn) == 200
        assert all(0 <= each <= LONGEST for each in drawn)
        assert 0.4 < sum(drawn) / 200 < 0.6
        again = [it.seconds for it in verdicts("latency", options) if isinstance(it, Delay)]
        assert drawn == again
    assert verdicts("latency", 'seconds = 0, distribution = "exponential"', 1) == [Delay(0.0)]


def test_faults_come_as_often_as_they_are_to_and_the_same_for_the_same_seed():
    options = "error = 0.2, drop = 0.2, disconnect = 0.2, seed = 5"
    drawn = verdicts("faults", options, 1_000)
    counted = Counter(type(it) for it in drawn)
    assert all(150 < counted[kind] < 250 for kind in (Mock, Delay, Block))
    assert counted[type(CONTINUE)] > 350
    assert [type(it) for it in drawn] == [type(it) for it in verdicts("faults", options, 1_000)]


def test_each_fault_is_what_it_is_called():
    (failed,) = verdicts("faults", 'error = 1.0, message = "Oops."', 1)
    assert failed.error.message == "Oops."
    assert verdicts("faults", "drop = 1.0", 1) == [Delay(NEVER)]
    gone = refusal(Way(used("faults", "disconnect = 1.0")).judge(call("x")))
    assert isinstance(gone, e.ServerUnreachable)
    assert blocks(Way(used("faults", 'error = 1.0, message = "Oops."')), notice("n"))


def test_a_truncated_answer_is_an_answer_of_which_half_is_missing():
    way = Way(used("faults", "truncate = 1.0"))
    given = {
        "content": [{"type": "text", "text": "12345678"}, {"type": "text", "text": "x"}],
        "n": 5,
    }
    ruling = way.judge(answer(given), TO_CLIENT)
    assert ruling.envelope.message.result == {"content": [{"type": "text", "text": "1234"}], "n": 5}
    assert way.judge(call("x")).verdict is CONTINUE
