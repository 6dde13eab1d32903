"""`core.ports.Store` on SQLite: the writer, the readers, and what an operator asks of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias, TypeVar

import apsw
from msgspec.structs import asdict

from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.core.ports import (
    BackendHomes,
    Backup,
    Bus,
    DatabaseIdentity,
    Progress,
    RateCounts,
    RoomOwners,
    Row,
    SessionHomes,
    StoreStats,
    Unit,
)
from folkmoot.store import meta
from folkmoot.store.backup import copy_database, sync
from folkmoot.store.erasure import PageCleaner
from folkmoot.store.inspection import (
    DatabaseInfo,
    find_faults,
    inspect_database,
    look_into,
    write_ahead_log,
)
from folkmoot.store.jobs import JobQueue
from folkmoot.store.loop_reader import TURN_SECONDS, GivenUp, LoopReader
from folkmoot.store.readers import Readers
from folkmoot.store.schema import check_schema, load_schema, migrate
from folkmoot.store.sqlite import Synchronous, connect, empty_log, make_private, translate
from folkmoot.store.threads import LongWork, start
from folkmoot.store.tx import emit
from folkmoot.store.writer import BATCH_BOUNDS, EMPTY_LOG_SECONDS, Writer

T = TypeVar("T")

LOG = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0001
"""Seconds a thread may keep the interpreter from another that asks for it.

With Python's own 5 ms, our threads wait for as long as the loop is never idle.
"""


FileNumber: TypeAlias = tuple[int, int] | None


class Connections(NamedTuple):
    """One writing connection, one for reads in the loop, and those of reading threads."""

    writer: apsw.Connection
    loop_reader: apsw.Connection
    readers: list[apsw.Connection]
    cleaner: PageCleaner | None
    """What cleans the file of deleted content; nothing in a virtual file system."""


class SqliteStore:
    """The database of one hub. Open it with `SqliteStore.open`, in the loop that will use it."""

    identity: DatabaseIdentity
    rates: RateCounts | None = None
    """One hub alone uses the file, and counts in memory."""
    room_owners: RoomOwners | None = None
    session_homes: SessionHomes | None = None
    backend_homes: BackendHomes | None = None
    sole_writer = True

    def __init__(
        self,
        path: Path,
        connections: Connections,
        *,
        queue: int,
        vfs: str | None,
        empty_log_seconds: float,
        bus: Bus | None = None,
    ) -> None:
        self.path = path
        self.bus = bus or MemoryBus()
        self._vfs = vfs
        self._files: list[FileNumber] = []
        self._looking: asyncio.Future[list[FileNumber]] | None = None
        self._opening = secrets.token_hex(8)
        self._probes = count(1)
        self._damaged = False
        self._long = LongWork()
        self._checking = asyncio.Lock()
        self._readers_count = len(connections.readers)
        self._writes = JobQueue(queue, "writes", partial(emit, self.bus))
        self._reads = JobQueue(queue, "reads")
        self._writer = Writer(
            connections.writer,
            self._writes,
            connections.cleaner,
            empty_log_seconds=empty_log_seconds,
        )
        self._loop_reader = LoopReader(connections.loop_reader)
        self._readers = Readers(connections.readers, self._reads)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        synchronous: Synchronous = "full",
        readers: int = 2,
        queue: int = 10_000,
        empty_log_seconds: float = EMPTY_LOG_SECONDS,
        vfs: str | None = None,
        bus: Bus | None = None,
    ) -> SqliteStore:
        """Open a database, made and brought to the newest schema if need be.

        Units publish on `bus`, or on one of its own. `queue` bounds how many writes, and how many
        reads, may wait; what was deleted leaves the write-ahead log after `empty_log_seconds`;
        `vfs` names a registered virtual file system to keep the files in.
        """
        sys.setswitchinterval(min(SWITCH_INTERVAL, sys.getswitchinterval()))
        connections = await asyncio.to_thread(open_connections, path, synchronous, readers, vfs)
        store = cls(
            path,
            connections,
            queue=queue,
            vfs=vfs,
            empty_log_seconds=empty_log_seconds,
            bus=bus,
        )
        try:
            settle = meta.settle_identity(secrets.token_hex(16), secrets.token_hex(8), now())
            store.identity = await store.write(settle)
            # Only now, since the write-ahead log is made when it is first written to.
            store._files = await start(partial(file_numbers, path))
        except BaseException:
            await store.close()
            raise
        return store

    async def write(
        self,
        unit: Unit[T],
        *,
        single: bool = False,  # noqa: ARG002 - of the port
        any_order: bool = False,  # noqa: ARG002
    ) -> T:
        """Run a unit and answer when it is committed; if it raises, it alone is undone.

        Units are committed in the order in which they came. Whoever is cancelled while waiting
        may find the unit committed or not.
        """
        if self._damaged or self._writer.damage is not None:
            self._require_whole()
        try:
            return await self._writes.ask(unit)
        except e.DatabaseCorrupt as error:
            self._note_damage(error)
            raise

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        """Run a query on one consistent view of what is committed.

        It begins in the loop, and runs anew in a thread if it is not short; one known to be `long`
        goes there at once.
        """
        try:
            reader = self._loop_reader
            if not long and reader.is_free():
                if reader.spent >= TURN_SECONDS:
                    # Others have their turn first.
                    await asyncio.sleep(0)
                if self._reads.closed:
                    self._reads.require_open()
                try:
                    return reader.read(query)
                except GivenUp:
                    pass
            return await self._reads.ask(query)
        except e.DatabaseCorrupt as error:
            self._note_damage(error)
            raise

    async def look_up(self, sql: str, key: str) -> Row | None:
        """The row that a statement finds by a key."""
        return await self.read(lambda tx: tx.fetch_one(sql, (key,)))

    def _require_whole(self) -> None:
        """Refuse to write to a database that was found damaged: it could become worse."""
        if self._writer.damage is not None:
            self._note_damage(self._writer.damage)
        if self._damaged:
            raise e.DatabaseDamaged(f"{self.path}: is damaged, so nothing is written to it.")

    def _note_damage(self, error: e.StoreError) -> None:
        """Stop writing, from now until the hub is started again."""
        if not self._damaged:
            self._damaged = True
            LOG.error(
                "the database is damaged: nothing is written to it until the hub is restarted",
                extra={"error": error.message},
            )

    async def ready(self) -> None:
        """Write a mark and read it back; raises a `StoreError` when the database does not work."""
        self._writes.require_open()
        self._require_whole()
        # A look that a failing disk holds up is shared by all who ask meanwhile.
        if self._looking is None or self._looking.done():
            self._looking = start(partial(file_numbers, self.path))
        if await asyncio.shield(self._looking) != self._files:
            raise e.DatabaseCorrupt(f"{self.path}: was removed or replaced while the hub runs.")
        probe = meta.Probe(self._opening, next(self._probes))
        await self.write(meta.write_probe(probe))
        if not probe.seen(await self.read(meta.read_probe)):
            raise e.DatabaseCorrupt(f"{self.path}: what was written cannot be read back.")

    async def sync(self) -> None:
        """Have all that is committed on the disk, also where `synchronous` is normal."""
        try:
            # What a checkpoint has taken out of the log, it has synced itself.
            await start(partial(sync, write_ahead_log(self.path)))
        except OSError as error:
            raise e.DiskFailed(f"{self.path}: cannot be synced: {error.strerror}.") from error

    async def backup(
        self, target: Path | str, *, overwrite: bool = False, progress: Progress | None = None
    ) -> Backup:
        """Copy the database into one file while it is in use; being cancelled stops it."""
        loop = asyncio.get_running_loop()

        def tell(copied: int, pages: int) -> None:
            if progress is not None:
                loop.call_soon_threadsafe(progress, copied, pages)

        def work(stop: Event) -> Backup:
            return copy_database(
                self.path,
                Path(target),
                overwrite=overwrite,
                progress=tell,
                vfs=self._vfs,
                stop=stop,
            )

        return await self._long.run(work)

    async def check(self) -> list[str]:
        """Read the whole database and answer what is wrong with it: nothing, if it is whole.

        One check runs at a time; being cancelled stops it.
        """
        async with self._checking:
            return await self._long.run(
                lambda stop: find_faults(self.path, vfs=self._vfs, stop=stop)
            )

    async def info(self) -> DatabaseInfo:
        """What can be told of the database file."""
        return await start(partial(inspect_database, self.path, vfs=self._vfs))

    def stats(self) -> StoreStats:
        """The store's counters since it was opened."""
        counts = asdict(self._writer.counts)
        return StoreStats(
            **{**counts, "batch_sizes": tuple(counts["batch_sizes"])},
            batch_bounds=BATCH_BOUNDS,
            reads=self._readers.reads + self._loop_reader.reads,
            failed_reads=self._readers.failed + self._loop_reader.failed,
            loop_reads=self._loop_reader.reads,
            given_up_reads=self._loop_reader.given_up,
            write_queue_depth=self._writes.depth,
            read_queue_depth=self._reads.depth,
        )

    async def close(self) -> None:
        """Refuse what comes now, finish what was accepted, and close; safe to call again."""
        self._reads.refuse()
        self._writes.refuse()
        await self._long.stop()
        # The writer is last to leave, so that the write-ahead log is copied when it closes.
        self._reads.end(self._readers_count)
        await start(self._readers.join)
        await start(self._loop_reader.close)
        self._writes.end()
        await start(self._writer.join)


def open_connections(
    path: Path, synchronous: Synchronous, readers: int, vfs: str | None
) -> Connections:
    """Open the database, with the newest schema; blocks."""
    make_private(path)
    texts = load_schema()
    was_killed = write_ahead_log(path).exists()
    # Opened before SQLite has the file, and closed after: see there.
    cleaner = PageCleaner(path) if vfs is None else None
    opened: list[apsw.Connection] = []
    try:
        if path.stat().st_size:
            # One that is refused stays as it is: to connect may change how it is kept.
            with closing(look_into(path, vfs)) as reader:
                check_schema(reader, texts)
        writer = connect(path, synchronous=synchronous, vfs=vfs)
        opened.append(writer)
        migrate(writer, texts)
        # What a killed hub had deleted may be in its log, and nobody reads it yet.
        empty_log(writer, wait_ms=0)
        if was_killed and cleaner is not None:
            cleaner.all_pages()
        opened.extend(connect(path, read_only=True, vfs=vfs) for _ in range(1 + readers))
    except (apsw.Error, e.StoreError) as error:
        close_all(opened, cleaner)
        if isinstance(error, apsw.Error):
            raise translate(error, path) from error
        raise
    return Connections(writer, opened[1], opened[2:], cleaner)


def close_all(connections: list[apsw.Connection], cleaner: PageCleaner | None) -> None:
    """Close what was opened before something failed."""
    for connection in connections:
        connection.close(force=True)
    if cleaner is not None:
        cleaner.close()


def file_numbers(path: Path) -> list[FileNumber]:
    """The device and inode of a database and its log, to notice replaced files."""
    return [file_number(path), file_number(write_ahead_log(path))]


def file_number(path: Path) -> FileNumber:
    """The device and inode of a file, to notice that it was replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def now() -> int:
    """Seconds since the epoch."""
    return int(time.time())
