"""Other ways to run the store's work, to measure ours against: in the loop, wholly or in part."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from folkmoot.core.ports import Unit
from folkmoot.store.sqlite import connect, make_private
from folkmoot.store.tx import BEGIN, BEGIN_WRITING, COMMIT, KEEP, SAVE, SqliteTx, drive

Waiting = tuple[Unit[Any], "asyncio.Future[Any]"]


class LoopWriter:
    """Statements and commit in the loop: whoever else lives there waits for the disk."""

    def __init__(self, path: Path) -> None:
        make_private(path)
        self._loop = asyncio.get_running_loop()
        self._connection = connect(path)
        self._tx = SqliteTx(self._connection)
        self._waiting: deque[Waiting] = deque()
        self._due = False

    async def write(self, unit: Unit[Any]) -> Any:
        """Commit a unit with all that wait."""
        caller = self._loop.create_future()
        self._waiting.append((unit, caller))
        if not self._due:
            self._due = True
            self._loop.call_soon(self._flush)
        return await caller

    async def read(self, query: Unit[Any]) -> Any:
        """Run a query, and let others have a turn."""
        await asyncio.sleep(0)
        self._connection.execute(BEGIN)
        try:
            return drive(query, self._tx)
        finally:
            self._connection.execute(COMMIT)

    def _run_batch(self) -> list[tuple[asyncio.Future[Any], Any]]:
        answers = []
        self._connection.execute(BEGIN_WRITING)
        while self._waiting:
            unit, caller = self._waiting.popleft()
            self._connection.execute(SAVE)
            answers.append((caller, drive(unit, self._tx)))
            self._connection.execute(KEEP)
        return answers

    def _flush(self) -> None:
        answers = self._run_batch()
        self._connection.execute(COMMIT)
        self._due = False
        self._answer(answers)

    def _answer(self, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        for caller, result in answers:
            caller.set_result(result)

    async def close(self) -> None:
        """Let go of the files."""
        self._connection.close()


class CommitThreadWriter(LoopWriter):
    """Statements in the loop, only the commit in a thread."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._thread = ThreadPoolExecutor(1)

    def _flush(self) -> None:
        self._thread.submit(self._commit, self._run_batch())

    def _commit(self, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        self._connection.execute(COMMIT)
        self._loop.call_soon_threadsafe(self._committed, answers)

    def _committed(self, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        self._answer(answers)
        if self._waiting:
            self._flush()
        else:
            self._due = False

    async def close(self) -> None:
        """Let go of the files."""
        self._thread.shutdown()
        await super().close()
