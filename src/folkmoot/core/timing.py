"""TimingContext: when a message was received, processed and sent."""

from __future__ import annotations

import msgspec


class TimingContext(msgspec.Struct, frozen=True, gc=False):
    """Moments on a monotonic clock, in seconds, and the wall-clock time of the first of them."""

    created_at: float
    system_time: float
    processing_started: float | None = None
    processing_completed: float | None = None
    sent_at: float | None = None

    def start_processing(self, at: float) -> TimingContext:
        """The same timing, with work begun."""
        return msgspec.structs.replace(self, processing_started=at)

    def complete_processing(self, at: float) -> TimingContext:
        """The same timing, with work done."""
        return msgspec.structs.replace(self, processing_completed=at)

    def mark_sent(self, at: float) -> TimingContext:
        """The same timing, with the message gone."""
        return msgspec.structs.replace(self, sent_at=at)

    def waiting_duration(self) -> float | None:
        """From creation to the beginning of work."""
        return _between(self.created_at, self.processing_started)

    def processing_duration(self) -> float | None:
        """From the beginning of work to its end."""
        return _between(self.processing_started, self.processing_completed)

    def total_duration(self) -> float | None:
        """From creation to sending."""
        return _between(self.created_at, self.sent_at)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start
