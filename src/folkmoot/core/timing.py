"""TimingContext: when a message was received, processed and sent."""

from __future__ import annotations

import msgspec

from folkmoot.core import defaults


class TimingContext(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Moments on a monotonic clock, in seconds, and the wall-clock time of the first of them."""

    created_at: float
    system_time: float
    processing_started: float | None = None
    processing_completed: float | None = None
    sent_at: float | None = None

    @classmethod
    def now(cls) -> TimingContext:
        """The timing of a message that was created just now."""
        return cls(defaults.monotonic(), defaults.now())

    def start_processing(self, at: float | None = None) -> TimingContext:
        """The same timing, with work begun, just now if no moment is given."""
        return msgspec.structs.replace(self, processing_started=_moment(at))

    def complete_processing(self, at: float | None = None) -> TimingContext:
        """The same timing, with work done."""
        return msgspec.structs.replace(self, processing_completed=_moment(at))

    def mark_sent(self, at: float | None = None) -> TimingContext:
        """The same timing, with the message gone."""
        return msgspec.structs.replace(self, sent_at=_moment(at))

    def waiting_duration(self) -> float | None:
        """From creation to the beginning of work."""
        return _between(self.created_at, self.processing_started)

    def processing_duration(self) -> float | None:
        """From the beginning of work to its end."""
        return _between(self.processing_started, self.processing_completed)

    def total_duration(self) -> float | None:
        """From creation to sending."""
        return _between(self.created_at, self.sent_at)


def _moment(at: float | None) -> float:
    return defaults.monotonic() if at is None else at


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start
