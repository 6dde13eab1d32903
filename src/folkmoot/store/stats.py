"""What the store has done so far, in numbers."""

from __future__ import annotations

from bisect import bisect_left

from msgspec import Struct

BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Upper bounds of the buckets in which the sizes of committed batches are counted."""


class StoreStats(Struct, frozen=True):
    """A snapshot for metrics; everything but the depths and the write-ahead log only grows."""

    units: int
    failed_units: int
    commits: int
    failed_commits: int
    commit_seconds: float
    batch_sizes: tuple[int, ...]
    reads: int
    failed_reads: int
    loop_reads: int
    given_up_reads: int
    checkpoints: int
    failed_checkpoints: int
    wal_pages: int
    write_queue_depth: int
    read_queue_depth: int


class WriterCounts:
    """The writer's own counts; only its thread changes them."""

    def __init__(self) -> None:
        self.units = 0
        self.failed_units = 0
        self.commits = 0
        self.failed_commits = 0
        self.commit_seconds = 0.0
        self.batch_sizes = [0] * len(BATCH_BOUNDS)
        self.checkpoints = 0
        self.failed_checkpoints = 0
        self.wal_pages = 0

    def committed(self, units: int, seconds: float) -> None:
        """Count one commit and the units it held."""
        self.commits += 1
        self.units += units
        self.commit_seconds += seconds
        self.batch_sizes[bisect_left(BATCH_BOUNDS, units)] += 1
