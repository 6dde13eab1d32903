"""SQLite's own count of the instructions it ran: exact, whatever the machine is doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import apsw

Action: TypeAlias = Callable[[], Awaitable[object]]


class Meter:
    """Watches every statement of every connection that is opened while it is in place."""

    def __init__(self) -> None:
        self.steps = 0
        self.statements: dict[str, int] = {}
        """Each statement that ran, and the steps in which it scanned a table from end to end."""

    def watch(self, connection: apsw.Connection) -> None:
        """Be told of every statement that has run."""
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self.count, id=self)

    def count(self, event: dict[str, Any]) -> None:
        """Add what a statement took."""
        status = event["stmt_status"]
        self.steps += status["SQLITE_STMTSTATUS_VM_STEP"]
        scanned = status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
        self.statements[event["sql"]] = self.statements.get(event["sql"], 0) + scanned

    async def measure(self, action: Action) -> int:
        """The steps of an action that has been done once before, so that nothing is prepared."""
        await action()
        before = self.steps
        await action()
        return self.steps - before


@contextmanager
def metered() -> Iterator[Meter]:
    """A meter in place."""
    meter = Meter()
    apsw.connection_hooks.append(meter.watch)
    try:
        yield meter
    finally:
        apsw.connection_hooks.remove(meter.watch)
