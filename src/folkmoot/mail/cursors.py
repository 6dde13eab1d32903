"""Places in a list, handed out sealed: a cursor tells nothing, and works for its owner alone."""

from __future__ import annotations

from folkmoot.accounts import Account, Sealer
from folkmoot.core.errors import ArgumentInvalid, SealBroken

PURPOSE = "cursor"
LONGEST = 256

END = 2**62
"""Beyond the newest of everything."""


class Cursors:
    """Makes and reads cursors. What is listed goes into the seal, so that lists do not mix."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def make(self, reader: Account, listed: str, seq: int) -> str:
        """The cursor of what comes after this place."""
        return self._sealer.seal(PURPOSE, f"{reader.id} {listed}", str(seq).encode())

    def read(self, reader: Account, listed: str, cursor: str | None) -> int:
        """The place of a cursor; the beginning where none was given."""
        if cursor is None:
            return END
        try:
            # Whoever sends a long one has not got it from us; it need not be decoded.
            return int(self._sealer.open(PURPOSE, f"{reader.id} {listed}", cursor[:LONGEST]))
        except SealBroken:
            raise ArgumentInvalid(
                "cursor must be the next_cursor of an earlier answer to the same question.",
                field="cursor",
            ) from None
