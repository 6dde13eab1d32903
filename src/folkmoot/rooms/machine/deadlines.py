"""What is due when: a heap that forgets lazily, so that taking something off costs nothing."""

from __future__ import annotations

import heapq
import math
from typing import Final, Literal, TypeAlias

Event: TypeAlias = Literal["proposal", "request", "ghost", "begun", "pause"]
"""What happens by itself: a proposal expires, a request times out, someone did not come back, the
connection that had begun a request did not, or a pause is over.
"""

_SLACK: Final = 64


class Deadlines:
    """Moments by event and name. What is set again or dropped leaves a dead entry for a while.

    Dead entries never outnumber the live ones by more than a little.
    """

    __slots__ = ("_heap", "_live", "next")

    def __init__(self) -> None:
        self._heap: list[tuple[float, Event, str]] = []
        self._live: dict[tuple[Event, str], float] = {}
        self.next = math.inf
        """No later than the first moment; infinity when there is nothing to come."""

    def set(self, event: Event, name: str, at: float) -> None:
        """Let something happen at a moment."""
        self._live[event, name] = at
        heapq.heappush(self._heap, (at, event, name))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [(moment, *live) for live, moment in self._live.items()]
            heapq.heapify(self._heap)
        self.next = self._heap[0][0]

    def drop(self, event: Event, name: str) -> None:
        """Let it not happen."""
        self._live.pop((event, name), None)

    def pop_due(self, now: float) -> list[tuple[Event, str]]:
        """What is due, in the order of the moments, each once."""
        due: list[tuple[Event, str]] = []
        heap = self._heap
        while heap and (heap[0][0] <= now or not self._is_live(heap[0])):
            entry = heapq.heappop(heap)
            if self._is_live(entry):
                due.append(entry[1:])
                del self._live[entry[1:]]
        self.next = heap[0][0] if heap else math.inf
        return due

    def _is_live(self, entry: tuple[float, Event, str]) -> bool:
        return self._live.get(entry[1:]) == entry[0]
