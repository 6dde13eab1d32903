"""Limits: how often messages may come, and how large they may be."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from msgspec import Meta

from folkmoot.core import errors as e
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import encode_message
from folkmoot.core.tokenbuckets import TokenBuckets
from folkmoot.core.verdict import CONTINUE, Block, Verdict
from folkmoot.proxy.interceptors.base import (
    RESPONSE,
    Action,
    Guard,
    Means,
    MessageKey,
    MessageView,
    Options,
    truncated,
)
from folkmoot.ratelimits import rate_limited

MOST_KEYS: Final = 10_000
"""What is counted at once; the session or tool longest unused is forgotten for a new one."""
MINUTE: Final = 60.0


class RateOptions(Options, frozen=True, kw_only=True):
    """How many a minute, how many at once, and what is counted apart."""

    per_minute: Annotated[float, Meta(gt=0, le=1e9)]
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] = 0
    by: tuple[Literal["session", "tool"], ...] = ("session",)


class RateLimit(Action):
    """Lets through so many calls a minute; the error of the next one says when to try again.

    What is counted is a bucket for each key: it holds `burst` and fills again at the rate.
    """

    def __init__(self, options: RateOptions, means: Means) -> None:
        self._burst = options.burst or max(1, math.floor(options.per_minute))
        self._seconds = self._burst * MINUTE / options.per_minute
        self._by = frozenset(options.by)
        self._clock = means.clock
        self._buckets = TokenBuckets[tuple[object, ...]](MOST_KEYS)

    def concerns(self, key: MessageKey) -> bool:
        """An answer is never too much."""
        return key.root != RESPONSE

    async def look(self, view: MessageView) -> Verdict:
        """Count the message, or refuse it at the limit."""
        caller = view.envelope.context.caller
        # Without a session one caller must not use up what another may.
        session = view.session or ("" if caller is None else caller.account_id)
        key = (
            view.key.direction,
            session if "session" in self._by else "",
            view.tool if "tool" in self._by else "",
        )
        wait = self._buckets.take(key, self._burst, self._seconds, self._clock.monotonic())
        return Block(rate_limited("Rate limit exceeded.", wait)) if wait else CONTINUE


class SizeOptions(Options, frozen=True, kw_only=True):
    """How many bytes a message may have."""

    bytes: Annotated[int, Meta(ge=1)]


class SizeLimit(Guard):
    """Stops messages that have more bytes than they may."""

    def __init__(self, options: SizeOptions, _means: Means) -> None:
        self._most = options.bytes

    def check(self, view: MessageView) -> Verdict:
        """Whether the message is small enough."""
        message = view.message
        size = len(message.raw if isinstance(message, McpxMessage) else encode_message(message))
        if size <= self._most:
            return CONTINUE
        what = f" ({truncated(view.key.method)})" if view.key.method else ""
        return Block(
            e.MessageTooLarge(
                f"The message{what} has {size:,} bytes; at most {self._most:,} are allowed."
            )
        )
