"""How much of what was asked for goes into one page: its boxes have a bound, not only its entries.

Whoever asks and does not read leaves the whole answer in memory, and a hundred long bodies would
be an answer of forty megabytes.
"""

from __future__ import annotations

from typing import TypeVar

from folkmoot.core.ports import Tx
from folkmoot.mail.queries_pages import CopyRow, ThreadRow, box_within

PAGE_BYTES = 1 << 20
"""What the boxes of a page of messages add up to at most, unless its first alone is longer."""
LIST_BYTES = 4 << 20
"""The same for a list of threads, of whose last messages only the beginnings are shown."""

ANY_SIZE = 1 << 62

R = TypeVar("R", CopyRow, ThreadRow)


async def fitting(tx: Tx, rows: list[R], most: int) -> list[R]:
    """The first of these rows whose boxes fit, at least one, each with its box however long."""
    # What came with its row is so short that a hundred of them always fit.
    if None not in [row.ciphertext for row in rows]:
        return rows
    shown: list[R] = []
    room = most
    for row in rows:
        whole = row
        if row.ciphertext is None and row.mode is not None:
            box = await box_within(tx, row.seq, room if shown else ANY_SIZE)
            if box is None:
                break
            whole = row._replace(ciphertext=box)
        room -= len(whole.ciphertext or "")
        if room < 0 and shown:
            break
        shown.append(whole)
    return shown
