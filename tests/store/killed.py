"""A program to be killed: writes pairs of rows and tells each number once it is acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from folkmoot.core.ports import Tx, Unit
from folkmoot.store import SqliteStore

WRITERS = 8


def pair(number: int) -> Unit[None]:
    async def unit(tx: Tx) -> None:
        for half in ("a", "b"):
            await tx.execute("INSERT INTO pairs (number, half) VALUES (?, ?)", (number, half))

    return unit


async def make_table(tx: Tx) -> int:
    await tx.execute("CREATE TABLE IF NOT EXISTS pairs (number BIGINT, half TEXT)")
    row = await tx.fetch_one("SELECT coalesce(max(number), 0) FROM pairs")
    return int(row[0]) if row else 0


async def main(path: Path) -> None:
    store = await SqliteStore.open(path)
    start = await store.write(make_table) + 1

    async def write(first: int) -> None:
        number = first
        while True:
            await store.write(pair(number))
            os.write(sys.stdout.fileno(), f"{number}\n".encode())
            number += WRITERS

    async with asyncio.TaskGroup() as tasks:
        for writer in range(WRITERS):
            tasks.create_task(write(start + writer))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
