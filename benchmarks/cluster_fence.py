"""What the fence of a room adds to storing its messages on PostgreSQL.

Two rooms get the same batches in turns, one with its fence and one without. Counted is the
processor's time of this process and of the server.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from folkmoot.core.ports import Tx
from folkmoot.rooms import queries, queries_messages
from folkmoot.rooms.fence import Fence, take
from folkmoot.rooms.machine import Append
from folkmoot.rooms.model import RoomPolicy, RoomRecord
from folkmoot.store.postgres import HubNode, PostgresStore
from tests import postgres

GOAL: Final = 1.1
BATCHES: Final = 200
"""Batches of one room in a row."""
AT_ONCE: Final = 16
"""Messages of a batch, as many senders make it under load."""
DATA: Final = b'{"protocol":"mcpx/v1","kind":"chat.message","payload":{"text":"%s"}}' % (b"x" * 200)
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Subject(NamedTuple):
    """A room that gets messages, with a fence or without one."""

    room_id: int
    fence: Fence | None


def server_seconds(server: postgres.PostgresServer) -> float:
    """The processor's time of a server and of all that it started."""
    leader = server._child.pid
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(entry.name) == leader or int(fields[1]) == leader:
                ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


async def append(store: PostgresStore, subject: Subject, first: int) -> None:
    """Store a batch of messages."""
    room_id, fence = subject
    last = first + AT_ONCE - 1
    said = [
        Append(seq, f"m{seq}", 1.8e9, "chat.message", DATA, f"a{seq % 8}")
        for seq in range(first, last + 1)
    ]
    step = None if fence is None else fence.step(last)

    async def unit(tx: Tx) -> bool:
        return await queries_messages.insert(tx, room_id, said, step)

    assert await store.write(unit, single=True)
    if fence is not None:
        fence.seq = last


async def make_room(store: PostgresStore, name: str) -> int:
    wanted = RoomRecord(
        id=0, name=name, epoch="e", access="open", durable=True, capabilities=None, grants={},
        policy=RoomPolicy(), first_seq=1, created_by=None, created_at=1, updated_at=1,
    )  # fmt: skip
    made = await store.write(partial(queries.insert_room, room=wanted))
    assert made is not None
    return made.id


async def fenced_cost(server: postgres.PostgresServer, folder: Path, rounds: int) -> float:
    """The processor's time of an append with the fence, as a multiple of one without."""
    node = HubNode("bench", secrets.token_hex(16))
    url = await postgres.schema_of(folder, given=server.url)
    store = await PostgresStore.open(url, node=node)
    try:
        with_fence, without = await make_room(store, "with"), await make_room(store, "without")
        fence = await take(store.room_owners, with_fence)
        subjects = (Subject(with_fence, fence), Subject(without, None))
        ratios: list[float] = []
        for number in range(rounds + 1):
            first = 1 + number * BATCHES * AT_ONCE
            spent = [await timed(server, store, each, first) for each in turned(subjects, number)]
            ratios.append(spent[number % 2] / spent[1 - number % 2])
        # The first round also prepares the statements.
        return median(ratios[1:])
    finally:
        await store.close()


def turned(subjects: Sequence[Subject], number: int) -> Sequence[Subject]:
    """Each goes first every second time."""
    return subjects if number % 2 == 0 else subjects[::-1]


async def timed(
    server: postgres.PostgresServer, store: PostgresStore, subject: Subject, first: int
) -> float:
    """The processor's time of some batches."""
    before = time.process_time() + server_seconds(server)
    for number in range(BATCHES):
        await append(store, subject, first + number * AT_ONCE)
    return time.process_time() + server_seconds(server) - before
