"""Protocols that other parts implement: what the core needs from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.errors import FolkmootError, PolicyError
    from folkmoot.core.kinds import Kind
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.transport import TransportContext
    from folkmoot.core.verdict import Hold, Verdict

T = TypeVar("T")

SqlValue: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = tuple[Any, ...]


class Clock(Protocol):
    """The two times: one for people, one for durations."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""
        ...


class Transport(Protocol):
    """The plain transport: messages out, messages in, and nothing said about them."""

    async def receive(self) -> ProtocolMessage:
        """The next message."""
        ...

    async def send(self, message: ProtocolMessage) -> None:
        """Send a message."""
        ...


@runtime_checkable
class TransportWithContext(Transport, Protocol):
    """A transport whose messages keep their context."""

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message with full context."""
        ...

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send a message with its context preserved, as far as the transport can."""
        ...

    def current_context(self) -> TransportContext:
        """What the transport can say of itself now."""
        ...


class NewRows(msgspec.Struct, frozen=True, gc=False):
    """Rows for a table; `conflict` begins with ON CONFLICT and says what of a row that exists."""

    table: str
    columns: tuple[str, ...]
    values: Sequence[Sequence[SqlValue]]
    conflict: str = ""


class SqlStatement(NamedTuple):
    """A statement that may change rows."""

    sql: str
    params: Sequence[SqlValue] = ()


class Tx(Protocol):
    """One transaction. Statements are written with `?`; an engine may spell them differently."""

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
        ...

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""
        ...

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        ...

    async def insert(self, *tables: NewRows, after: SqlStatement | None = None) -> bool:
        """Insert rows into different tables, with as few statements as the engine can: one.

        Where an UPDATE comes before it (`after`) that changes no row, nothing is inserted; returns
        whether something was.
        """
        ...

    async def together(self, *statements: SqlStatement) -> list[list[Row]]:
        """Run statements on different tables at once; the rows that each of them RETURNs.

        None sees what another of them changes.
        """
        ...

    async def fetch_numbered(
        self, name: str, sql: str, params: Sequence[SqlValue] = ()
    ) -> Row | None:
        """Run a statement that ends with RETURNING and changes one row, or none.

        The row has the next number of a sequence behind it, which was taken while it was held.
        """
        ...

    async def next_sequence(self, name: str, count: int = 1) -> int:
        """The next number of a sequence, or the last of so many; none is ever given twice.

        Numbers of units that were undone may be missing. Those of two units that wait for one
        another, because both change one row before they ask, are in the order of their commits.
        """
        ...

    def publish(self, subject: str, event: Any = None) -> None:
        """Have an event published once this unit is committed, before its caller is answered.

        A unit that is undone publishes nothing, and whoever asked for it may have gone.
        """
        ...


Unit: TypeAlias = Callable[[Tx], Awaitable[T]]
"""One user-visible action: everything it does with its `Tx` happens, or none of it.

A unit awaits nothing but its `Tx`, since an engine may drive it from a thread without a loop, and
changes nothing else, since it may be run again when its transaction was lost to no fault of its
own. A unit that catches the error of a statement must still end with one.
"""


class Store(Protocol):
    """Durable state. `write` answers after its own commit; `read` sees only what is committed."""

    @property
    def bus(self) -> Bus:
        """Where the events of its units are published."""
        ...

    @property
    def sole_writer(self) -> bool:
        """Whether only this process writes, so that its events tell of every change."""
        ...

    async def write(self, unit: Unit[T], *, single: bool = False, any_order: bool = False) -> T:
        """Run a unit and answer when it is committed; if it raises, it alone is undone.

        A `single` one does nothing but one call of its `Tx`, which holds whatever others do then,
        and publishes nothing.
        One that holds in `any_order` of its statements and those of others need not be isolated.
        """
        ...

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        """Run a query on one consistent view of what is committed; say `long` if it reads much."""
        ...

    async def look_up(self, sql: str, key: str) -> Row | None:
        """The row that a statement finds by a key: its end is `= ?`, its first column the key.

        An engine may look up the keys of several callers at once.
        """
        ...


class RateCounts(Protocol):
    """Counts by key in windows of time, for all hubs that share a database."""

    async def take(self, key: str, most: int, seconds: int, *, overdraw: bool = False) -> float:
        """Count one more and answer 0, or answer in how many seconds the window ends.

        With `overdraw` it is counted in any case.
        """
        ...

    async def give_back(self, key: str) -> None:
        """Take one back that turned out not to count."""
        ...


class DatabaseIdentity(msgspec.Struct, frozen=True):
    """Who a database is; `master_key_id` is empty until it has a vault.

    A restored backup is the same database in a new `epoch`: what came after it may be gone.
    """

    database_id: str
    epoch: str
    created_at: int
    master_key_id: str | None


class Backup(msgspec.Struct, frozen=True):
    """A backup that was made. It never holds the master key, without which it cannot be read."""

    path: str
    size: int
    master_key_id: str | None


Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much of something is done, and how much there is."""


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a store has done so far, for metrics; the depths and the log are what they are now.

    `batch_bounds` are the upper bounds of the buckets in `batch_sizes`: how many units the commits
    held. What an engine does not have is 0.
    """

    units: int
    failed_units: int
    commits: int
    failed_commits: int
    commit_seconds: float
    batch_bounds: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    reads: int
    failed_reads: int
    write_queue_depth: int
    read_queue_depth: int
    loop_reads: int = 0
    given_up_reads: int = 0
    checkpoints: int = 0
    failed_checkpoints: int = 0
    wal_pages: int = 0


class RoomOwner(msgspec.Struct, frozen=True):
    """The process that has a room loaded, since it took the room over for the `epoch`th time."""

    process: str
    epoch: int
    last_seq: int = 0
    """The last message that was stored when it took the room."""
    address: str = ""
    """Where other nodes reach it."""


class ListedNode(msgspec.Struct, frozen=True):
    """A node as an operator sees it."""

    name: str
    process: str
    address: str
    version: str
    started_at: float
    lease_seconds: float
    """How long its lease still holds; less than 0 if it is over."""
    rooms: int
    """How many rooms it has loaded."""
    draining: bool = False
    """Whether it takes no rooms any more, and is about to be stopped."""
    drained: bool = False
    """Whether others have its rooms by now."""
    differing: tuple[str, ...] = ()
    """The settings that differ from those of the running node that started first."""


class RoomOwners(Protocol):
    """Which process owns which room, where several use one database."""

    @property
    def process(self) -> str:
        """What this process is called; it is another name at each start."""
        ...

    def lease(self) -> Callable[[], bool]:
        """Tells whether the lease has held from now on, without a break that another could use."""
        ...

    async def take(self, room_id: int) -> RoomOwner | None:
        """Take a room, unless a living process has it: who owns it now; None without such a room.

        Each take-over raises the epoch, also one by the same process, and what was begun under an
        earlier epoch can no longer be stored.
        """
        ...

    async def owners_of(self, room_ids: Sequence[int]) -> dict[int, RoomOwner]:
        """Which of these rooms living processes have."""
        ...

    async def release(self, room_id: int, epoch: int, to: str | None = None) -> bool:
        """Leave a room to a process, or to whoever takes it first; whether it was still ours."""
        ...

    async def release_all(self) -> None:
        """Leave every room of this process to whoever takes it first."""
        ...

    async def drain(self, process: str) -> bool:
        """Have a process give its rooms away; it notices when it renews its lease.

        False if there is no other that could take them.
        """
        ...

    async def until_draining(self) -> None:
        """Wait until this process is to give its rooms away."""
        ...

    async def drained(self) -> None:
        """Say that this process has given its rooms away."""
        ...

    async def is_first(self) -> bool:
        """Whether this process removes what is too old, which one does for all."""
        ...

    async def is_bus_reached(self, seconds: float) -> bool:
        """Whether another process said within the last seconds that it reaches the bus."""
        ...

    async def list_nodes(self) -> list[ListedNode]:
        """The nodes of the database, also those that ended without saying so."""
        ...


class SessionHome(msgspec.Struct, frozen=True):
    """The process that has a client's session, and where other nodes reach it."""

    process: str
    address: str


class SessionHomes(Protocol):
    """Which process has which session of a client, where several use one database."""

    @property
    def process(self) -> str:
        """What this process is called; it is another name at each start."""
        ...

    async def find(self, id_hash: str, opened_by: str) -> SessionHome | None:
        """The living process that has a session; None if there is none."""
        ...

    async def take(self, id_hash: str, opened_by: str, gone: str = "") -> bool:
        """Take a session over, unless a living process has it that is not the one thought gone.

        Every node hears of it, so that no other goes on with the session.
        """
        ...

    async def leave(self, id_hash: str) -> None:
        """A session that was taken over has ended here."""
        ...

    async def report(self, key: str, number: int) -> int:
        """Say how many sessions of a key this process has; how many other processes have."""
        ...

    async def end_one(self, key: str, account_id: str) -> bool:
        """Ask the process with most sessions of an account to end one; False if no other has any.

        `key` is what they are counted by.
        """
        ...

    async def forget(self) -> None:
        """Remove what is known of processes that are gone."""
        ...


class Database(Store, Protocol):
    """An opened store: its identity, health, statistics and closing, beside its transactions."""

    @property
    def session_homes(self) -> SessionHomes | None:
        """Who has which session; nothing where no other process can use the database."""
        ...

    @property
    def room_owners(self) -> RoomOwners | None:
        """Who owns which room; nothing where no other process can use the database."""
        ...

    @property
    def identity(self) -> DatabaseIdentity:
        """Who the database is."""
        ...

    @property
    def rates(self) -> RateCounts | None:
        """Where rate limits are counted that several hubs share; None where one hub counts."""
        ...

    async def ready(self) -> None:
        """Raise a `StoreError` unless something can be written and read back."""
        ...

    async def sync(self) -> None:
        """Have all that is committed survive a loss of power, whatever the settings say."""
        ...

    async def check(self) -> list[str]:
        """Read everything and answer what is wrong with it: nothing, if it is whole."""
        ...

    async def backup(
        self, target: str, *, overwrite: bool = False, progress: Progress | None = None
    ) -> Backup:
        """Copy the database into the file of this name while it is in use; cancelling stops it."""
        ...

    def stats(self) -> StoreStats:
        """Counters of the store since it was opened."""
        ...

    async def close(self) -> None:
        """Refuse what comes now, finish what was accepted, and close; safe to call again."""
        ...


class Event(msgspec.Struct, frozen=True):
    """Something that was published, as plain JSON values."""

    subject: str
    data: Any


class Missed(msgspec.Struct, frozen=True):
    """Events were dropped at this place in the order: re-read the store from the last cursor.

    They are as many as `count`, or more where they were lost between processes.
    """

    count: int


class Subscription(Protocol):
    """The events of one subscriber, in order, through a bounded queue.

    When the queue is full the oldest event is dropped, and one `Missed` stands for the gap.
    """

    def __aiter__(self) -> AsyncIterator[Event | Missed]:
        """What was published since, one after the other, until subscription or bus is closed."""
        ...

    async def close(self) -> None:
        """Stop receiving; what waits in the queue is dropped and the iteration ends."""
        ...


Listener: TypeAlias = Callable[[Event], None]
"""Called with an event before its publisher goes on: it forgets, marks or closes, and never waits.

What it raises is logged, and is not the publisher's.
"""

MissedListener: TypeAlias = Callable[[], None]
"""Called when events of other processes were lost, or may have been."""
LoggedChange: TypeAlias = tuple[int, str, bytes]
"""A change in a log: its number, its subject and its event as JSON."""


class Bus(Protocol):
    """Wakes and fans out. What it loses costs latency, never data: cursors re-read the store."""

    def emit(self, subject: str, event: Any, *, change: int = 0) -> None:
        """Publish without waiting; every listener has been called when it returns.

        An event with the number of a `change` can also be read from a log of changes.
        """
        ...

    def has_audience(self, subject: str) -> bool:
        """Whether anyone may receive what is published there; a bus that cannot tell says yes."""
        ...

    def listen(self, pattern: str, listener: Listener) -> Callable[[], None]:
        """Have a listener called with each event, in the order of listening; the answer ends it."""
        ...

    def listen_missed(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when events were lost on their way; the answer ends it."""
        ...

    def listen_doubt(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when all that was read before may be outdated."""
        ...

    async def publish(self, subject: str, event: Any) -> None:
        """Carry an event to everyone who subscribed to its subject, after the commit."""
        ...

    async def subscribe(self, pattern: str) -> Subscription:
        """Receive what is published from now on; `*` stands for one token, `>` for the rest."""
        ...

    async def close(self) -> None:
        """Close every subscription; whoever publishes or subscribes afterwards is refused."""
        ...


MessageHandler: TypeAlias = Callable[[str, bytes], None]
"""Called with the id of the node that sent a message, and the message."""


class NodeBus(Bus, Protocol):
    """A bus that several processes share, each of them a node."""

    @property
    def node(self) -> str:
        """The id of this process; no other process has it, nor this one after a restart."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether other nodes can be reached, as far as is known."""
        ...

    def send(self, node: str, message: bytes) -> bool:
        """Send a message to one node; False if it was not sent, and it may be lost if it was.

        Messages between two nodes arrive in their order and at most once.
        """
        ...

    def receive(self, handler: MessageHandler) -> None:
        """Have a handler called with each message that other nodes send to this one."""
        ...

    def replay(self, changes: Sequence[LoggedChange]) -> None:
        """Give this process's listeners what they have not heard of a log of changes."""
        ...

    def doubt(self) -> None:
        """Call those who `listen_doubt`."""
        ...


class Admitted(msgspec.Struct, frozen=True, gc=False):
    """A message that passed the policy, with its sender and the sender's rights."""

    envelope: MessageEnvelope[Any]
    principal: Principal
    rights: Rights
    kind: Kind | None
    """The effective kind; a plain MCP response has none, nor what is judged by its service."""
    ruling: Any = None
    """What the interceptors said of it; None where there are none."""


class Interceptor(Protocol):
    """Sees every envelope before policy does, in the order the interceptors are listed."""

    @property
    def name(self) -> str:
        """The name of the interceptor in logs and tapes."""
        ...

    @property
    def guards(self) -> bool:
        """Whether it only checks: what a later interceptor changed is then shown to it again."""
        ...

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        """What is to become of the message."""
        ...


class Holding(Protocol):
    """Keeps messages until someone decides."""

    async def hold(self, envelope: MessageEnvelope[Any], by: str, hold: Hold) -> Any:
        """Return when the message is released; raise `MessageDropped` when it is dropped.

        What is returned goes on in its place, if whoever released it edited it; else None.
        """
        ...


class Service(Protocol):
    """Does what a message asks, and answers with data; it writes to no socket.

    What it tells others is published by itself, after the commit.
    """

    def perform(self, admitted: Admitted) -> Awaitable[Any]:
        """Do it; the answer comes once it is committed."""
        ...

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: PolicyError
    ) -> FolkmootError:
        """Note what policy refused, where it is to be noted; what its sender is told."""
        ...
