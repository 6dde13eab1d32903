"""How fast one participant may send, whatever the kind: in messages and in bytes.

An account has one bucket for what it begins and one for what it answers. A bucket fills at its rate
and holds ten seconds' worth, so that a burst passes and a flood does not. It outlives a connection:
to leave and come back gains nothing.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from folkmoot.core.errors import RateLimited
from folkmoot.ratelimits import in_words, named

BURST_SECONDS: Final = 10
"""So many seconds' worth may come at once."""

MOST_BUCKETS: Final = 100_000

ANSWERS: Final = ("mcp.response.", "mcp.notification.notifications/progress", "mcpx.begin.")
"""How the kinds begin that need an open request."""


class Rate(Struct, frozen=True):
    """So many messages and so many bytes a second."""

    messages: int
    bytes: int
    settings: tuple[str, str] = ("", "")
    """The settings that the two come from, which their errors name."""


class Rates(Struct, frozen=True):
    """The rates of a room, for each participant alone."""

    sent: Rate
    """Of what a participant begins."""
    answers: Rate
    """Of answers and progress, which others asked for."""


class Bucket(Struct, gc=False):
    """What an account may still send at a moment."""

    messages: float
    bytes: float
    at: float


class Buckets:
    """One bucket for each account that sent something; the oldest go first when there are many."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, account: str, rate: Rate, size: int, now: float) -> None:
        """Count a message of so many bytes, or raise `RateLimited` with the time to wait."""
        bucket = self._buckets.get(account)
        if bucket is None:
            bucket = self._buckets[account] = Bucket(math.inf, math.inf, now)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        messages, amount, passed = bucket.messages, bucket.bytes, now - bucket.at
        most_bytes = rate.bytes * BURST_SECONDS
        # A clock that was set back earns nothing, and locks nobody out.
        if passed > 0:
            messages += passed * rate.messages
            amount += passed * rate.bytes
        if messages > rate.messages * BURST_SECONDS:
            messages = rate.messages * BURST_SECONDS
        if amount > most_bytes:
            amount = most_bytes
        # One message larger than the bucket passes when the bucket is full, and leaves a debt.
        needed = min(most_bytes, size)
        bucket.at = now
        if messages < 1 or amount < needed:
            bucket.messages, bucket.bytes = messages, amount
            wait = max((1 - messages) / rate.messages, (needed - amount) / rate.bytes)
            seconds = max(1, math.ceil(wait))
            sentence = f"You are sending too much too fast. Try again in {in_words(seconds)}."
            setting = rate.settings[0 if messages < 1 else 1]
            raise RateLimited(sentence + named(setting), retry_after=seconds)
        bucket.messages, bucket.bytes = messages - 1, amount - size


class SendRates:
    """How much each account sent lately, on whichever connection and by whichever transport."""

    __slots__ = ("_answers", "_sent")

    def __init__(self) -> None:
        self._sent = Buckets()
        self._answers = Buckets()

    def take(self, account: str, rates: Rates, base: str, size: int, now: float) -> None:
        """Count a message of a kind, or raise `RateLimited` with the time to wait."""
        if base.startswith(ANSWERS):
            self._answers.take(account, rates.answers, size, now)
        else:
            self._sent.take(account, rates.sent, size, now)
