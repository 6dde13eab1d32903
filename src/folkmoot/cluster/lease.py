"""The lease of a node: whether it may still act, by its own clock, and what its caches are worth.

A lease is a row with a time by the database's clock. The node measures from *before* it sent the
renewing statement, on a clock that also runs while the machine sleeps, so its own view of the lease
ends before that of everybody else. Times here are seconds on that clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from folkmoot.cluster.limits import LEASE_MARGIN, RENEW_SECONDS, TRUST_SECONDS


class Lease:
    """What a node knows of its own lease."""

    def __init__(self, seconds: float, margin: float = LEASE_MARGIN) -> None:
        self._seconds = seconds - margin
        self._until = -math.inf
        self._sent = -math.inf
        self.term = 0
        """Rises when the lease may have lapsed: what was owned before may be another's now."""

    def holds(self, now: float, term: int | None = None) -> bool:
        """Whether the node surely may act; with a term, whether it could ever since."""
        return now < self._until and term in (None, self.term)

    @property
    def until(self) -> float:
        """When it ends, if it is not renewed."""
        return self._until

    def is_due(self, now: float) -> bool:
        """Whether it is time to send the next renewal."""
        return now - self._sent >= RENEW_SECONDS

    def renewing(self, now: float) -> float:
        """The renewing statement is about to be sent; the answer belongs to `renewed`."""
        self._sent = now
        return now

    def renewed(self, sent: float, now: float) -> None:
        """The statement that was about to be sent at a time was answered."""
        if now >= self._until:
            # Whether the database had it in time is not known.
            self.term += 1
        self._until = max(self._until, sent + self._seconds)

    def ended(self) -> None:
        """The database says that the lease is over."""
        self._until = -math.inf


class Freshness:
    """Whether caches may be trusted, by change counters that are read with each renewal."""

    def __init__(self, seconds: float = TRUST_SECONDS) -> None:
        self._seconds = seconds
        self._read_at = -math.inf
        self._counters: dict[str, int] = {}

    def trusts(self, now: float) -> bool:
        """Whether the counters are young enough: else nothing cached is to be believed."""
        return now - self._read_at < self._seconds

    def read(self, counters: Mapping[str, int], sent: float) -> frozenset[str]:
        """The counters that have changed, by an answer to a statement sent at a time."""
        if sent < self._read_at:
            return frozenset()
        known, self._counters = self._counters, dict(counters)
        self._read_at = sent
        return frozenset(topic for topic, count in counters.items() if known.get(topic, 0) != count)
