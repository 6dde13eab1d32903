"""How much one connection may send."""

from __future__ import annotations

import pytest

from folkmoot.transports.websocket import ConnectionRate


class Sender:
    """A connection that counts as an outlet does, on a clock that is moved by hand."""

    def __init__(self, per_second: int) -> None:
        self.now = 100.0
        self._rate = ConnectionRate(per_second, lambda: self.now)
        self._allowed, self._since = self._rate.begin()

    def send(self) -> bool:
        if not self._allowed:
            self._allowed, self._since = self._rate.more(self._since)
        self._allowed -= 1
        return self._allowed >= 0


def test_five_seconds_worth_may_come_at_once_and_no_more():
    sender = Sender(10)
    assert [sender.send() for _ in range(51)] == [True] * 50 + [False]


@pytest.mark.parametrize("per_second", [1, 3, 200])
def test_whoever_sends_at_the_rate_may_go_on_for_ever(per_second):
    sender = Sender(per_second)
    for _ in range(20 * per_second):
        assert sender.send()
        sender.now += 1 / per_second + 1e-9


@pytest.mark.parametrize("per_second", [1, 3, 200])
def test_whoever_sends_a_little_more_is_found(per_second):
    sender = Sender(per_second)

    def goes_on() -> bool:
        sender.now += 0.8 / per_second
        return sender.send()

    sent = sum(1 for _ in iter(goes_on, False))
    assert sent < 30 * per_second


def test_silence_earns_at_most_twice_the_burst():
    sender = Sender(10)
    sender.now += 1e6
    assert [sender.send() for _ in range(101)] == [True] * 100 + [False]
