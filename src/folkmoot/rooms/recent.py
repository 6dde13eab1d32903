"""The latest messages of a room in memory, in order and without a gap."""

from __future__ import annotations


class Recent:
    """Bounded by count and by bytes; the oldest go first, some at a time.

    What is kept is found by its `seq` without a search, so reading costs what it returns.
    """

    __slots__ = ("_bytes", "_messages", "_most_bytes", "first_seq", "most")

    def __init__(self, most: int, most_bytes: int, *, first_seq: int = 1) -> None:
        self.first_seq = first_seq
        """The `seq` of the oldest message here, or of the next one while there is none."""
        self.most = most
        self._most_bytes = most_bytes
        self._messages: list[bytes] = []
        self._bytes = 0

    @property
    def last_seq(self) -> int:
        """The `seq` of the newest message, here or gone."""
        return self.first_seq + len(self._messages) - 1

    def extend(self, messages: list[bytes]) -> None:
        """Keep the next messages."""
        self._messages += messages
        self._bytes += sum(map(len, messages))
        if len(self._messages) > self.most or self._bytes > self._most_bytes:
            self._drop()

    def _drop(self) -> None:
        """Make room, a tenth more than need be: to cut a list costs as much as what remains."""
        messages, count = self._messages, 0
        most, most_bytes = self.most - self.most // 10, self._most_bytes - self._most_bytes // 10
        while len(messages) - count > most or (self._bytes > most_bytes and count < len(messages)):
            self._bytes -= len(messages[count])
            count += 1
        self.drop_before(self.first_seq + count, counted=True)

    def drop_before(self, seq: int, *, counted: bool = False) -> None:
        """Forget what came before a `seq`."""
        count = min(seq - self.first_seq, len(self._messages))
        if count <= 0:
            return
        if not counted:
            self._bytes -= sum(map(len, self._messages[:count]))
        del self._messages[:count]
        self.first_seq += count

    def reaches(self, after: int) -> bool:
        """Whether everything after a `seq` is still here."""
        return after >= self.first_seq - 1

    def slice(self, after: int, before: int) -> list[bytes]:
        """What lies strictly between two `seq`s."""
        start = max(after + 1 - self.first_seq, 0)
        return self._messages[start : max(before - self.first_seq, 0)]
