"""Where in the room's history this program is: what it knows of, and what its author has read.

Two places are kept. The client itself must hear everything as it comes, or answers would wait
behind an author who is busy. The author may be slower: when the buffer is full the author falls
*behind*, and what did not fit is fetched again from the history once it is wanted.
"""

from __future__ import annotations

from msgspec import Struct

from folkmoot.client.model import Gap, HistoryBounds, Welcome, make_gap


class Beginning(Struct, frozen=True):
    """How a connection begins: perhaps with a gap, and perhaps better begun again behind it."""

    gap: Gap | None = None
    again: bool = False


class Position:
    """Numbers only; nothing is read or written here."""

    def __init__(self) -> None:
        self.epoch: str | None = None
        self.heard = 0
        """The last message the client knows of."""
        self.kept = 0
        """The last message that went to the author's buffer; less than `heard` when behind."""
        self.behind = False
        self._at = 0
        self._through = 0

    @property
    def is_live(self) -> bool:
        """Whether this connection has replayed all that was missed."""
        return self._at >= self._through

    def resume_after(self, *, hungry: bool) -> int | None:
        """Where the next connection is to go on; None for one that is the first."""
        if self.epoch is None:
            return None
        return self.kept if hungry or not self.behind else self.heard

    def begin(self, welcome: Welcome, after: int | None) -> Beginning:
        """Take the welcome of a connection that was to go on after a message."""
        history, resume = welcome.history, welcome.resume
        self._through = history.last_seq
        fresh = self.epoch is None
        if after is None or resume is None or resume.complete:
            self.epoch = welcome.epoch
            if fresh or after is None:
                self.heard = self.kept = self._at = history.last_seq
                return Beginning()
            self._at = after
            self.behind = self.behind and after > self.kept
            return Beginning()
        return self._lost(welcome.epoch, history, after, resume.reason or "seq_unknown")

    def _lost(self, epoch: str, history: HistoryBounds, after: int, reason: str) -> Beginning:
        """What is between where we were and where the history begins, or now, is gone."""
        self.epoch = epoch
        last = history.last_seq
        again = (
            reason == "history_gone" and history.enabled and after < history.first_seq - 1 <= last
        )
        if again:
            last = history.first_seq - 1
        gap = make_gap(self.kept, last, reason)
        # The old numbers mean nothing in a new epoch.
        self.heard = max(self.heard, last) if reason == "history_gone" else last
        self.kept = self._at = last
        self.behind = self.kept < self.heard
        return Beginning(gap, again)

    def skipped(self, seq: int) -> Gap | None:
        """The gap in front of a message that does not follow the one before."""
        if seq <= self._at + 1:
            return None
        gap = make_gap(self._at, seq - 1, "skipped")
        self.heard = max(self.heard, seq - 1)
        if not self.behind:
            self.kept = seq - 1
        self._at = seq - 1
        return gap

    def is_known(self, seq: int) -> bool:
        """Whether this connection brought a message before."""
        return seq <= self._at

    def advance(self, seq: int) -> bool:
        """Take the next message; whether the client hears it for the first time."""
        self._at = seq
        if seq <= self.heard:
            return False
        self.heard = seq
        return True

    def keep(self, seq: int, *, fits: bool) -> None:
        """A message went to the author's buffer, or did not fit in."""
        if fits:
            self.kept = seq
        else:
            self.behind = True
