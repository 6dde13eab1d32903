"""Rate limits: what is counted by which key, and what is said to whoever is over a limit.

A `Limit` of `RateLimits` counts in windows, so that the time to wait is always known. What counts
for an hour or longer outlives a restart: it is stored now and then, in one bounded text, so that a
flood of attempts is no flood of writes. A `Rate` lets ten seconds' worth pass at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_RATE_KEYS
from folkmoot.core.tokenbuckets import ROUNDING, Bucket, TokenBuckets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from folkmoot.core.ports import Clock, RateCounts, Store, Tx

logger = logging.getLogger("folkmoot.ratelimits")

MINUTE, HOUR, DAY = 60, 3_600, 86_400
SLOWED_SECONDS: Final = 2.0
"""How long an attempt waits that a limit slows; many wait at the same time, so nobody queues."""

BURST_SECONDS: Final = 10
"""So many seconds' worth of a rate may come at once."""

KEPT_KEYS: Final = 2_000
"""Keys whose counts are stored, those counted last."""
SAVE_SECONDS: Final = 10.0
"""How often counts are stored; a crash forgets no more than was counted since."""
STORED_AS: Final = "rate_counts"
NONE_STORED: Final = "[]"

UNITS: Final = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second"))


class Limit(Struct, frozen=True):
    """A number of times within a number of seconds."""

    most: int
    seconds: int
    slows: bool = False
    """Whether what comes beyond is only slowed, so that it locks nobody out."""
    setting: str = ""
    """The setting that it comes from, which its error names."""


class RateLimits:
    """Counts by limit and key. A limit that is not named here does not exist.

    They are counted in memory, or where several hubs share a database by that.
    """

    def __init__(
        self, clock: Clock, limits: Mapping[str, Limit], *, max_keys: int = MAX_RATE_KEYS
    ) -> None:
        self._clock = clock
        self._limits = {
            name: (limit, TokenBuckets[str](max_keys, at_once=True))
            for name, limit in limits.items()
        }
        self.shared: RateCounts | None = None
        """Counts for all hubs; set before the first one is counted."""
        self._counted_last: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._stored = NONE_STORED

    async def take(self, name: str, key: str) -> float:
        """Count one use, or raise `RateLimited` at the limit.

        Answers how many seconds it has to wait, for a limit that only slows.
        """
        if name not in self._limits:
            return 0.0
        limit, buckets = self._limits[name]
        if self.shared is None:
            key, now = hashed(key), self._clock.monotonic()
            if limit.seconds >= HOUR:
                self._note(name, key)
            wait = buckets.take(key, limit.most, limit.seconds, now, overdraw=limit.slows)
        else:
            wait = await self.shared.take(
                f"{name} {key}", limit.most, limit.seconds, overdraw=limit.slows
            )
        if wait and not limit.slows:
            raise rate_limited("Rate limit exceeded.", wait, limit.setting)
        return SLOWED_SECONDS if wait else 0.0

    async def give_back(self, name: str, key: str) -> None:
        """Take one back that turned out not to count.

        One too many does less harm than an error after something was done: it may be the only
        time that its answer is told.
        """
        if name not in self._limits:
            return
        if self.shared is None:
            limit, buckets = self._limits[name]
            buckets.give_back(hashed(key), limit.most)
            return
        try:
            await self.shared.give_back(f"{name} {key}")
        except e.StoreError as error:
            logger.warning("a rate was counted once too often", extra={"why": error.code})

    @asynccontextmanager
    async def guessing(
        self, name: str, key: str, wrong: type[e.FolkmootError]
    ) -> AsyncIterator[None]:
        """Around an attempt that counts only if it fails with this error."""
        # Counted before, so that attempts at the same moment cannot all pass below the limit.
        await self.take(name, key)
        counts = False
        try:
            yield
        except wrong:
            counts = True
            raise
        finally:
            if not counts:
                await self.give_back(name, key)

    async def restore(self, store: Store) -> None:
        """Go on with what was stored before the hub stopped."""
        if self.shared is not None:
            return

        async def read(tx: Tx) -> str:
            row = await tx.fetch_one("SELECT value FROM meta WHERE key = ?", (STORED_AS,))
            return NONE_STORED if row is None else str(row[0])

        self._stored = await store.read(read)
        try:
            rows = msgspec.json.decode(self._stored, type=list[tuple[str, str, int, int]])
        except msgspec.MsgspecError:
            rows = []
        now, moment = self._clock.now(), self._clock.monotonic()
        for name, key, taken, opened in sorted(rows, key=lambda row: row[3]):
            # A clock that was set back makes no window longer.
            age = max(now - opened, 0.0)
            if name in self._limits and age < self._limits[name][0].seconds:
                limit, buckets = self._limits[name]
                buckets.restore(key, Bucket(limit.most - taken, moment - age))
                self._note(name, key)

    async def save(self, store: Store) -> None:
        """Store what counts for an hour or longer, if it changed."""
        text = self._to_store()
        if self.shared is not None or text == self._stored:
            return

        async def write(tx: Tx) -> None:
            await tx.execute(
                "INSERT INTO meta (key, value) VALUES (?, ?) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (STORED_AS, text),
            )

        try:
            await store.write(write)
            self._stored = text
        except e.StoreError as error:
            logger.warning("the counts of rate limits are not stored", extra={"why": error.code})

    async def run(self, store: Store) -> None:
        """Store the counts now and then, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save(store)

    def _note(self, name: str, key: str) -> None:
        self._counted_last[name, key] = None
        self._counted_last.move_to_end((name, key))
        if len(self._counted_last) > KEPT_KEYS:
            self._counted_last.popitem(last=False)

    def _to_store(self) -> str:
        since_epoch = self._clock.now() - self._clock.monotonic()
        rows = []
        for name, key in list(self._counted_last):
            limit, buckets = self._limits[name]
            bucket = buckets.find(key)
            if bucket is None or self._clock.monotonic() - bucket.at >= limit.seconds:
                del self._counted_last[name, key]
            else:
                opened = round(since_epoch + bucket.at)
                rows.append((name, key, round(limit.most - bucket.level), opened))
        return msgspec.json.encode(sorted(rows)).decode()

    def keys(self, name: str) -> int:
        """How many keys a limit remembers."""
        return len(self._limits[name][1]) if name in self._limits else 0


class Rate(Struct, frozen=True):
    """So many messages and so many bytes a second."""

    messages: int
    bytes: int
    settings: tuple[str, str] = ("", "")
    """The settings that the two come from, which their errors name."""


class AccountRates:
    """How much each account sent lately: a bucket of messages and one of bytes."""

    __slots__ = ("_bytes", "_messages")

    def __init__(self) -> None:
        self._messages = TokenBuckets[str]()
        self._bytes = TokenBuckets[str]()

    def take(self, account: str, rate: Rate, size: int, now: float) -> None:
        """Count a message of so many bytes, or raise `RateLimited` with the time to wait."""
        messages, amount = rate.messages * BURST_SECONDS, rate.bytes * BURST_SECONDS
        wait = self._messages.take(account, messages, BURST_SECONDS, now)
        wait_for_bytes = self._bytes.take(account, amount, BURST_SECONDS, now, size)
        if not wait and not wait_for_bytes:
            return
        if not wait:
            self._messages.give_back(account, messages)
        elif not wait_for_bytes:
            self._bytes.give_back(account, amount, size)
        setting = rate.settings[0 if wait else 1]
        sentence = "You are sending too much too fast."
        raise rate_limited(sentence, max(wait, wait_for_bytes), setting)

    def take_whole(self, account: str, rate: Rate, count: int, size: int, now: float) -> bool:
        """Count messages of so many bytes together, if none of them exceeds the rate."""
        messages, amount = rate.messages * BURST_SECONDS, rate.bytes * BURST_SECONDS
        if not self._messages.take_whole(account, messages, BURST_SECONDS, now, count):
            return False
        if self._bytes.take_whole(account, amount, BURST_SECONDS, now, size):
            return True
        self._messages.give_back(account, messages, count)
        return False


def hashed(key: str) -> str:
    """What a key is counted under: no address or name of a person is stored."""
    return blake2b(key.encode(), digest_size=8).hexdigest()


def rate_limited(sentence: str, wait: float, setting: str = "") -> e.RateLimited:
    """The error that says what is too much and when to try again; its data names the setting."""
    seconds = max(1, math.ceil(wait - ROUNDING))
    named = {"setting": setting} if setting else {}
    told = f"{sentence} Try again in {in_words(seconds)}."
    return e.RateLimited(told, retry_after=seconds, **named)


def in_words(seconds: int) -> str:
    """A time to wait, as people say it: never less than it is."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= 2 * size or size == 1)
    count = math.ceil(seconds / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
