"""The audit log: who did what, and the outcome, as lines of the log and rows of a table.

Everything that is logged by `folkmoot.audit` also becomes a row, soon after: an `AuditTable` takes
the records while a hub runs. What an operator does is different: its row is written in the same
transaction as the change itself, whether a hub runs or not, and the line follows. A hub that starts
logs what was done while none ran; a line may be logged twice after a crash, but is never lost.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.events import ACCOUNTS, AUDIT
from folkmoot.core.events import about as about_of
from folkmoot.ratelimits import MINUTE
from folkmoot.store import meta
from folkmoot.taskgroups import uninterrupted
from folkmoot.telemetry.logs import PlainRecord, cleaned, request_fields
from folkmoot.telemetry.redaction import clean

if TYPE_CHECKING:
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Clock, Event, RoomOwners, Row, SqlValue, Store, Tx

audit_logger = logging.getLogger("folkmoot.audit")
logger = logging.getLogger("folkmoot.audit_table")
"""Not below the audit log: what is said of a line that was not stored would be the next line."""

OPERATOR: Final = "operator"
DELETED: Final = "(deleted)"
"""In place of the handle of someone who is gone; no handle looks like it."""
REFUSED: Final = "policy.refused"
BACKEND_CALL: Final = "backend.call"
DENIED: Final = "audit_denied"
"""The attribute of a record of a call that was denied."""
BLOCKED: Final = "room.blocked"
"""The action of a message that a rule stopped."""
CALLS: Final = frozenset((BACKEND_CALL, "hub.call", REFUSED, BLOCKED))
"""Actions of which everyone can make as many lines as they like; and see `lane_of`."""
LANES: Final = ("calls", "people", "operators")
"""Lines of which none push those of another lane out."""
SERVER: Final = re.compile("[^:]+:([^:]+):")
"""The namespace in the kind of a call of a backend's tool, or of a request for its resource."""
KEY: Final = "audit_pending"
STORED: Final = "audit_stored"
"""The attribute of a record whose row is written already."""

DAY: Final = 86_400
GATHER_SECONDS: Final = 0.2
"""How long rows are gathered before they are written together."""
MOST_WAITING: Final = 20_000
MOST_AT_ONCE: Final = 2_000
"""Rows that wait for the database, and rows that one transaction writes."""
DENIALS_TOLD: Final = 5
"""Different things of those that one account is denied in a minute that have rows of their own."""
KINDS_TOLD: Final = 10
"""Different things that the summary of the rest names."""
PRUNE_SECONDS: Final = 600.0
PRUNED_AT_ONCE: Final = 500
MOST_READ: Final = 500

OWN: Final = ("account", "outcome", "room", "server", "credential_id", "request", "seconds")
"""Columns whose values may be missing, as records name them."""
COLUMNS: Final = ("at", "action", "actor", "about", "detail", "lane", *OWN)
MARKS: Final = f"({', '.join(['?'] * (len(COLUMNS) + 1))})"
INSERTS: Final = [
    (
        rows,
        f"INSERT INTO audit (id, {', '.join(COLUMNS)}) VALUES "  # noqa: S608
        + ", ".join([MARKS] * rows),
    )
    for rows in (50, 5, 1)
]
"""Statements that insert so many rows, the largest first."""
TEXT: Final = " || ' ' || ".join(
    ("action", "actor", "about", "COALESCE(room, '')", "COALESCE(outcome, '')", "detail")
)
ABOUT_PEOPLE: Final = (
    "action <> 'backend.call' AND action <> 'hub.call' AND action <> 'policy.refused'"
)
"""Which lines may be about a person, in the words of the index of those."""
MOST_DELETED: Final = 1_000
"""Deleted accounts that are remembered, for lines about what they had begun before."""


class Line(Struct, frozen=True):
    """One audit line of an operator's: what was done, about whom, and when."""

    action: str
    by: str
    about: str
    account: str | None = None
    detail: str | None = None
    at: int | None = None
    """Seconds since the epoch; None for a line that is logged at once."""

    def log(self) -> None:
        """Write it to the log; its row is written already."""
        extra: dict[str, Any] = {
            "by": self.by,
            "account": self.account,
            "about": self.about,
            "detail": self.detail,
        }
        if self.at is not None:
            extra["at"] = datetime.fromtimestamp(self.at, UTC).isoformat().replace("+00:00", "Z")
        if audit_logger.isEnabledFor(logging.INFO):
            record = PlainRecord(audit_logger.name, logging.INFO, self.action, extra)
            setattr(record, STORED, True)
            audit_logger.handle(record)


class Operator(Protocol):
    """An operator who has an account."""

    @property
    def id(self) -> str:
        """Of the account."""

    @property
    def handle(self) -> str:
        """Of the account."""


def by_operator(
    action: str,
    by: Operator | None,
    about: str,
    account: str | None = None,
    detail: str | None = None,
    at: int | None = None,
) -> Line:
    """What an operator did about an `account`: one at the hub's own machine, or a named one.

    A named one's line has their own account's id, as all lines have of what somebody did.
    """
    if by is None:
        return Line(action, OPERATOR, about, account, detail, at)
    return Line(action, by.handle, about, by.id, detail, at)


def record_refusal(
    principal: Principal, about: str, error: e.FolkmootError, room: str = ""
) -> None:
    """Have in the log what policy refused an account; what is refused to nobody is not."""
    if principal.account_id:
        extra = {
            "by": principal.name,
            "account": principal.account_id,
            "about": about,
            "outcome": error.code,
            **request_fields(principal.account_id),
        }
        audit_logger.info(REFUSED, extra={**extra, "room": room} if room else extra)


class Entry(Struct, frozen=True, omit_defaults=True):
    """One row of the table."""

    id: int
    at: float
    action: str
    by: str
    about: str
    detail: dict[str, Any] = {}
    account: str | None = None
    outcome: str | None = None
    """`ok`, or the code of an error; what an operator did has none."""
    room: str | None = None
    server: str | None = None
    credential_id: str | None = None
    """The id of the credential that it was done with."""
    request: str | None = None
    """The `x-request-id` of the HTTP request that it was done in."""
    seconds: float | None = None


class AuditQuery(Struct, frozen=True):
    """Which rows to read: the newest that fit, or the first after an id."""

    limit: int = 50
    before: int | None = None
    after: int | None = None
    """Those after this id, the oldest first."""
    since: float | None = None
    until: float | None = None
    by: str | None = None
    account: str | None = None
    """What this account did; what an operator did about it is not among it."""
    credential_id: str | None = None
    action: str | None = None
    room: str | None = None
    server: str | None = None
    about: str | None = None
    outcome: str | None = None
    """`error` for every outcome but `ok`; may have a `*`."""
    text: str | None = None
    """Somewhere in a row."""


async def record(tx: Tx, lines: Sequence[Line], now: float, *, offline: bool = False) -> None:
    """Within a unit: store an operator's lines with the change they tell of.

    Where no hub runs (`offline`) they also wait for the next one, which logs them.
    """
    lines = [replace(each, about=clean(each.about), detail=_clean(each.detail)) for each in lines]
    await insert(tx, [_row(line, now) for line in lines])
    if offline and lines:
        waiting = [*await _kept(tx), *lines]
        await meta.put(tx, KEY, msgspec.json.encode(waiting).decode())


async def log_kept(store: Store) -> None:
    """Log what was done while no hub ran."""
    kept = await store.read(_kept)
    if not kept:
        return
    for line in kept:
        line.log()

    async def unit(tx: Tx) -> None:
        await meta.remove(tx, KEY)

    await store.write(unit)


async def insert(tx: Tx, rows: Sequence[Row]) -> None:
    """Within a unit: store rows, many with one statement."""
    if not rows:
        return
    last = await tx.next_sequence("audit_id", len(rows))
    first = last - len(rows) + 1
    tx.publish(AUDIT, {"id": last})
    numbered: list[Sequence[SqlValue]] = [(first + n, *row) for n, row in enumerate(rows)]
    at = 0
    for count, sql in INSERTS:
        while len(numbered) - at >= count:
            await tx.execute(sql, list(chain.from_iterable(numbered[at : at + count])))
            at += count


async def read(tx: Tx, wanted: AuditQuery) -> list[Entry]:
    """Within a read: the newest rows that fit, the newest first; `after` an id the oldest first."""
    failed = wanted.outcome == "error"
    text = None if wanted.text is None else like(f"*{wanted.text}*")
    tests: list[tuple[str, SqlValue]] = [
        ("id < ?", wanted.before),
        ("id > ?", wanted.after),
        ("at >= ?", wanted.since),
        ("at < ?", wanted.until),
        ("actor = ?", wanted.by),
        ("account = ?", wanted.account),
        ("actor <> ?", None if wanted.account is None else OPERATOR),
        ("credential_id = ?", wanted.credential_id),
        ("LOWER(action) LIKE LOWER(?) ESCAPE '\\'", like(wanted.action)),
        ("room = ?", wanted.room),
        ("server = ?", wanted.server),
        ("LOWER(about) LIKE LOWER(?) ESCAPE '\\'", like(wanted.about)),
        ("outcome <> ?" if failed else "LOWER(outcome) LIKE LOWER(?) ESCAPE '\\'",
         "ok" if failed else like(wanted.outcome)),
        (f"LOWER({TEXT}) LIKE LOWER(?) ESCAPE '\\'", text),
    ]  # fmt: skip
    given = [(test, value) for test, value in tests if value is not None]
    where = f"WHERE {' AND '.join(test for test, _ in given)} " if given else ""
    order = "DESC" if wanted.after is None else "ASC"
    rows = await tx.fetch(
        f"SELECT id, {', '.join(COLUMNS)} FROM audit {where}ORDER BY id {order} LIMIT ?",  # noqa: S608
        (*(value for _, value in given), min(wanted.limit, MOST_READ)),
    )
    return [
        Entry(id_, at, action, actor, about, msgspec.json.decode(detail), *own)
        for id_, at, action, actor, about, detail, _, *own in rows
    ]


async def forget(tx: Tx, account_id: str, handle: str) -> None:
    """Within a unit: take the name of someone whose account is deleted out of the lines.

    What was done stays, under the account's id, which leads to nobody any more.
    """
    await tx.execute(
        "UPDATE audit SET actor = ?, detail = '{}' WHERE account = ? AND actor <> ?",
        (DELETED, account_id, OPERATOR),
    )
    await tx.execute(
        f"UPDATE audit SET about = ? WHERE about = ? AND {ABOUT_PEOPLE}",  # noqa: S608
        (DELETED, handle),
    )


def like(pattern: str | None) -> str | None:
    """A glob in the words of SQL: `*` stands for anything, every other character for itself."""
    if pattern is None:
        return None
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, f"\\{special}")
    return pattern.replace("*", "%")


async def beyond(tx: Tx, keep: int) -> dict[str, int]:
    """Within a read: the newest row of each lane that is beyond its newest so many."""
    found = {}
    for lane in LANES:
        row = await tx.fetch_one(
            "SELECT id FROM audit WHERE lane = ? ORDER BY id DESC LIMIT 1 OFFSET ?", (lane, keep)
        )
        if row is not None:
            found[lane] = row[0]
    return found


async def prune(tx: Tx, before: float, last: Mapping[str, int]) -> int:
    """Within a unit: remove some rows that are older than a time, or up to the `last` of a lane.

    A time of 0 removes nothing.
    """
    removed = await tx.execute(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
        (before, PRUNED_AT_ONCE),
    )
    for lane, id_ in last.items():
        removed += await tx.execute(
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE lane = ? AND id <= ? "
            "ORDER BY id LIMIT ?)",
            (lane, id_, PRUNED_AT_ONCE),
        )
    return removed


class Denials(Struct):
    """What one account was denied since its last summary."""

    by: str
    since: float
    told: set[tuple[str, ...]] = set()
    """What had a row of its own."""
    more: int = 0
    kinds: dict[str, int] = {}
    """Of the rest: how often each, for some."""
    outcome: str = ""


class AuditTable(logging.Handler):
    """Takes the records of `folkmoot.audit` and writes them into the table, some at a time.

    Whoever logs never waits for the database. When it is too slow rows are dropped; they are in the
    log, which says how many there were.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        keep_days: int,
        keep_lines: int,
        owners: RoomOwners | None = None,
    ) -> None:
        super().__init__()
        self._store = store
        self._owners = owners
        self._clock = clock
        self._keep_days = keep_days
        self._keep_lines = keep_lines
        self._waiting: deque[logging.LogRecord] = deque()
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lost = 0
        self._pruned = float("-inf")
        self._deleted: dict[str, None] = {}
        self._unlisten = store.bus.listen(ACCOUNTS, self._account_changed)
        self._denials: dict[str, Denials] = {}

    def _account_changed(self, event: Event) -> None:
        if event.data["change"] == "deleted":
            self._deleted[about_of(event)] = None
            if len(self._deleted) > MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]

    def attach(self) -> None:
        """From now on take what is logged, whatever the level of the log is."""
        audit_logger.addHandler(self)
        audit_logger.setLevel(logging.INFO)

    async def detach(self) -> None:
        """Take no more, and write what waits."""
        self._unlisten()
        audit_logger.removeHandler(self)
        self.summarise(all_of_them=True)
        if not audit_logger.handlers:
            audit_logger.setLevel(logging.NOTSET)
        await self.drain()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record written soon."""
        if getattr(record, STORED, False):
            return
        denied = record.msg in (REFUSED, BLOCKED) or getattr(record, DENIED, False)
        if denied and not self._has_own_row(record):
            return
        self._queue(record)

    def _queue(self, record: logging.LogRecord) -> None:
        calls = lane_of(record.getMessage()) == "calls"
        # Where calls fill the queue, there is still room for the rest.
        if len(self._waiting) >= (MOST_WAITING if calls else 2 * MOST_WAITING):
            self._lost += 1
            return
        self._waiting.append(record)
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._woken.set)

    def _has_own_row(self, record: logging.LogRecord) -> bool:
        """Whether what someone is denied is told by itself; else it counts in their summary."""
        given = vars(record)
        by, account, about, room = (
            str(given.get(name) or "") for name in ("by", "account", "about", "room")
        )
        now = self._clock.monotonic()
        self.summarise()
        denials = self._denials.setdefault(account, Denials(by, now))
        what = (record.getMessage(), about, room)
        if what not in denials.told and len(denials.told) < DENIALS_TOLD:
            denials.told.add(what)
            return True
        denials.more += 1
        denials.outcome = denials.outcome or str(given.get("outcome") or "")
        if about in denials.kinds or len(denials.kinds) < KINDS_TOLD:
            denials.kinds[about] = denials.kinds.get(about, 0) + 1
        return False

    def summarise(self, *, all_of_them: bool = False) -> None:
        """Have one line for all that an account was denied in a minute beside what was told."""
        now = self._clock.monotonic()
        self.acquire()
        try:
            # The oldest come first.
            while self._denials:
                account, denials = next(iter(self._denials.items()))
                if not all_of_them and now - denials.since < MINUTE:
                    return
                del self._denials[account]
                if denials.more:
                    self._queue(_summary(account, denials))
        finally:
            self.release()

    async def run(self) -> None:
        """Write what comes, and remove what is too old, until cancelled."""
        while True:
            await self.tidy()
            self.summarise()
            try:
                async with asyncio.timeout(MINUTE):
                    await self._woken.wait()
            except TimeoutError:
                continue
            self._woken.clear()
            await asyncio.sleep(GATHER_SECONDS)
            await self.drain()

    async def drain(self) -> None:
        """Write the lines queued now; those logged meanwhile are gathered for the next time."""
        left = len(self._waiting)
        while count := min(left, len(self._waiting), MOST_AT_ONCE):
            left -= count
            gone = self._deleted
            await self._write([row_of(self._waiting.popleft(), gone) for _ in range(count)])
        if self._waiting:
            self._woken.set()
        if self._lost:
            logger.warning("audit lines are in the log alone", extra={"lines": self._lost})
            self._lost = 0

    async def _write(self, rows: Sequence[Row]) -> None:
        try:
            # Whoever is cancelled meanwhile has taken the rows off the queue already.
            await uninterrupted(self._store.write(lambda tx: insert(tx, rows)))
        except e.FolkmootError as error:
            self._lost += len(rows)
            logger.warning("audit lines were not stored", extra={"why": error.code})

    async def tidy(self) -> None:
        """Remove what is too old or too much, at most once in a while."""
        now = self._clock.monotonic()
        if now - self._pruned < PRUNE_SECONDS:
            return
        self._pruned = now
        before = self._clock.now() - self._keep_days * DAY if self._keep_days else 0.0
        try:
            if self._owners is not None and not await self._owners.is_first():
                return
            last = await self._store.read(lambda tx: beyond(tx, self._keep_lines), long=True)
            while await self._store.write(lambda tx: prune(tx, before, last)):
                pass
        except e.FolkmootError as error:
            # The lines stay a while longer; the next look tries again.
            logger.warning("old audit lines were not removed", extra={"why": error.code})


def row_of(record: logging.LogRecord, deleted: Container[Any] = ()) -> Row:
    """The row of a record that was logged; every text in it is clean and bounded.

    Of a `deleted` account it does not tell the name.
    """
    told = dict(cleaned(record))
    inner = told.get("detail")
    if inner is None or isinstance(inner, dict):
        told = {**(inner or {}), **told}
        told.pop("detail", None)
    by, about = str(told.pop("by", None) or ""), str(told.pop("about", None) or "")
    action = record.getMessage()
    if action == BACKEND_CALL and (match := SERVER.match(about)) is not None:
        told["server"] = match[1]
    own = [told.pop(name, None) for name in OWN]
    if own[0] in deleted:
        by, told = DELETED, {}
    return (record.created, action, by, about, _json(told), lane_of(action), *own)


def _clean(detail: str | None) -> str | None:
    return None if detail is None else clean(detail)


def _row(line: Line, now: float) -> Row:
    detail = {} if line.detail is None else {"detail": line.detail}
    at = now if line.at is None else line.at
    missing = [None] * (len(OWN) - 1)
    lane = "operators"
    return (at, line.action, line.by, line.about, _json(detail), lane, line.account, *missing)


def lane_of(action: str) -> str:
    """Which lines a line of someone's may push out when there are too many."""
    if action in CALLS or action.startswith(("proposal.", "participant.")):
        return "calls"
    people = action.startswith(("token.", "browser.", "passkey.", "app.", "capability.", "room."))
    return "people" if people else "operators"


def _summary(account: str, denials: Denials) -> logging.LogRecord:
    kinds = sorted(denials.kinds.items(), key=lambda one: -one[1])
    values: dict[str, Any] = {
        "by": denials.by,
        "account": account,
        "about": kinds[0][0],
        "outcome": denials.outcome,
        "denied": denials.more,
    }
    if len(kinds) > 1:
        values["kinds"] = dict(kinds)
    return PlainRecord(audit_logger.name, logging.INFO, REFUSED, values)


def _json(detail: dict[str, Any]) -> str:
    return msgspec.json.encode(detail).decode()


async def _kept(tx: Tx) -> list[Line]:
    text = await meta.get(tx, KEY)
    return [] if text is None else msgspec.json.decode(text, type=list[Line])
