"""What an event costs: of a mailbox that nobody follows, that one stream follows, and that one
follows while thousands of others do; and what an audit line costs the call that it is about.

The floor is the event that nobody follows: encoding it, and a look at the index of the bus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from benchmarks.measure import Row, best, table
from folkmoot.audit import MOST_WAITING, AuditTable, audit_logger
from folkmoot.bus import MemoryBus
from folkmoot.clock import SystemClock
from folkmoot.core.policy import Principal
from folkmoot.gateway.audit import CallAudit
from folkmoot.telemetry.logs import REQUEST, RequestInfo
from folkmoot.transports.events import EventStreams, Following

FEW, MANY = 10, 10_000
MOST_GROWTH = 1.2
MAIL = {"seq": 1, "id": "m1", "thread_id": "t1", "urgent": False, "muted": False}
ARGUMENTS = {"path": "notes/today.md", "encoding": "utf-8"}


def followed(count: int) -> tuple[MemoryBus, Callable[[], None]]:
    """A bus on which so many follow events, and what publishes one for the first of them.

    It is read at once, as by a client that keeps up.
    """
    bus = MemoryBus()
    streams = EventStreams(bus, most=2 * MANY, most_each=1, resume_seconds=60, most_bytes=1 << 30)
    readers = []
    for number in range(count):
        who = Principal(f"account{number}", f"person{number}")
        following = Following(principal=who, id=who.account_id, credential_id=f"c_{number}")
        readers.append(streams.follow(following))
    follower = readers[0][0]
    stream = follower.stream

    def told() -> None:
        bus.emit("mail.account0", MAIL)
        stream.sent(stream.fresh())

    return bus, told


def call_line(audit: CallAudit) -> Callable[[], None]:
    """The line of one call of a backend's tool."""
    ann = Principal("account1", "ann")
    what = "mcp.request.tools/call:files:read_note"
    return lambda: audit.note(ann, what, ARGUMENTS, "ok", 0.001)


class Store:
    """Nothing is stored: what is measured is what the call waits for."""

    bus = MemoryBus()

    async def write(self, _: Any, **how: bool) -> None:
        """Nothing."""


async def measure() -> None:
    """Print both tables."""
    empty = MemoryBus()
    few, many = followed(FEW), followed(MANY)
    nobody, one, one_of_many = best(lambda: empty.emit("mail.account0", MAIL), few[1], many[1])
    table(
        f"an event of a mailbox ({FEW} and {MANY:,} streams)",
        Row("nobody follows it", nobody),
        [
            Row(f"one of {FEW} follows it, and reads it", one),
            Row(f"one of {MANY:,} follows it, and reads it", one_of_many),
        ],
    )
    table(
        "the same, by how many follow other mailboxes",
        Row(f"{FEW} streams", one),
        [Row(f"{MANY:,} streams", one_of_many, MOST_GROWTH)],
    )
    audit = CallAudit(b"k" * 32)
    line = call_line(audit)
    audit_logger.setLevel(logging.INFO)
    audit_logger.propagate = False
    stored = AuditTable(Store(), SystemClock(), keep_days=90, keep_lines=1_000_000)  # type: ignore[arg-type]

    info = RequestInfo("0011223344556677")
    info.account_id, info.credential_id = "account1", "c_0"

    def noted(handler: logging.Handler, request: RequestInfo | None) -> Callable[[], None]:
        def note() -> None:
            audit_logger.handlers = [handler]
            REQUEST.set(request)
            line()
            if len(stored._waiting) >= MOST_WAITING // 2:
                stored._waiting.clear()

        return note

    nowhere = logging.NullHandler()
    alone, kept, with_request = best(noted(nowhere, None), noted(stored, None), noted(stored, info))
    audit_logger.handlers = []
    table(
        "the audit line of a call, as far as the call waits for it",
        Row("made, and stored nowhere", alone),
        [Row("gathered for the table", kept), Row("with request and credential", with_request)],
    )


def main() -> None:
    """Run it."""
    asyncio.run(measure())


if __name__ == "__main__":
    main()
