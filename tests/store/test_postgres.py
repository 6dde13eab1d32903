"""What PostgreSQL does that SQLite does not: races, several hubs, servers that are away."""

from __future__ import annotations

import asyncio
import gc
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from folkmoot import clock as clock_module
from folkmoot.bus.nats import NatsBus
from folkmoot.bus.nats_client import parse_servers
from folkmoot.clock import ServerClock
from folkmoot.core import errors as e
from folkmoot.core.ports import NewRows, Row, Tx
from folkmoot.store.postgres import HubNode, PostgresStore, inspect_server, nodes, schema
from folkmoot.store.postgres import store as store_module
from folkmoot.store.postgres.tx import SecondStatement, spelled, storable
from tests import postgres
from tests.harness import reached
from tests.store.support import OpenStore, rows, statement

pytestmark = postgres.NEEDED


@pytest.fixture
async def store(open_store: OpenStore) -> PostgresStore:
    """A store with a count."""
    made: PostgresStore = await open_store()
    await made.write(make_counts)
    return made


@pytest.fixture
def server() -> Iterator[postgres.PostgresServer]:
    """A server that a test may end."""
    made = postgres.PostgresServer()
    yield made
    made.remove()


async def make_counts(tx: Tx) -> None:
    await tx.execute("CREATE TABLE counts (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
    await tx.execute("INSERT INTO counts (name, value) VALUES ('a', 0)")


async def value(tx: Tx) -> int:
    row = await tx.fetch_one("SELECT value FROM counts WHERE name = 'a'")
    return int(row[0])


async def read_then_write(tx: Tx) -> int:
    """A unit that only holds because it is run again when it loses a race."""
    now = await value(tx)
    await tx.execute("UPDATE counts SET value = ? WHERE name = 'a'", (now + 1,))
    return now + 1


def node(name: str, **more: Any) -> HubNode:
    """A process of a node."""
    return HubNode(name, secrets.token_hex(8), **more)


async def test_a_parameter_in_the_address_that_the_server_refuses_is_a_wrong_setting(url):
    for attempt in (PostgresStore.open, inspect_server):
        with pytest.raises(e.SettingsError, match=r"store\.url has .*nonsense") as caught:
            await attempt(f"{url}&nonsense=sesame")
        assert "sesame" not in caught.value.message


async def test_units_that_read_and_then_write_lose_nothing_on_two_hubs(stores):
    first, second = stores
    await first.write(make_counts)
    answers = await asyncio.gather(*(each.write(read_then_write) for each in stores * 20))
    assert sorted(answers) == list(range(1, 41))
    assert await second.read(value) == 40
    assert first.stats().failed_commits + second.stats().failed_commits > 0


async def test_single_statements_of_two_hubs_count_everything_and_take_no_place_twice(stores):
    """What opts out of running SERIALIZABLE: see `Store.write`."""
    more = "ON CONFLICT (name) DO UPDATE SET value = counts.value + excluded.value"

    def put(place: int) -> Callable[[Tx], Awaitable[None]]:
        async def unit(tx: Tx) -> None:
            await tx.insert(
                NewRows("places", ("id",), [(place,)]),
                NewRows("counts", ("name", "value"), [("a", 1), ("b", 1)], more),
            )

        return unit

    first, second = stores
    await first.write(make_counts)
    await first.write(statement("CREATE TABLE places (id BIGINT PRIMARY KEY)"))
    units = [store.write(put(place), single=True) for place in range(40) for store in stores]
    answers = await asyncio.gather(*units, return_exceptions=True)
    assert Counter(map(type, answers)) == {e.ConstraintViolated: 40, type(None): 40}
    assert await second.read(value) == 40
    with pytest.raises(SecondStatement):
        await first.write(read_then_write, single=True)

    async def tell(tx: Tx) -> None:
        tx.publish("accounts.ann", {})

    # It would be logged by a second statement, without which no other node may hear of it.
    with pytest.raises(e.StatementFailed, match="publishes nothing"):
        await first.write(tell, single=True)


SLOW_COMMIT = """CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'"""
AT_COMMIT = """CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON counts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION dawdle()"""
END_SLEEPER = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE wait_event = 'PgSleep' AND pid IN
    (SELECT pid FROM pg_locks WHERE relation = 'counts'::regclass)"""


@pytest.mark.parametrize("single", [False, True])
async def test_a_commit_whose_answer_is_lost_is_not_repeated(store, connection, single):
    attempts: list[int] = []

    async def slow(tx: Tx) -> None:
        attempts.append(1)
        await tx.execute("UPDATE counts SET value = value + 1")

    await connection.execute(f"{SLOW_COMMIT}; {AT_COMMIT}")
    waiting = asyncio.create_task(store.write(slow, single=single))
    async with asyncio.timeout(60):
        while not await connection.fetchval(END_SLEEPER):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.05)
    with pytest.raises(e.DatabaseUnreachable, match="It may have been done"):
        await waiting
    assert (attempts, await store.read(value)) == ([1], 0)


async def test_whoever_inserts_second_sees_what_the_first_did(store):
    async def take(tx: Tx) -> bool:
        if await tx.fetch_one("SELECT 1 FROM counts WHERE name = 'b'"):
            return False
        await tx.execute("INSERT INTO counts (name, value) VALUES ('b', 1)")
        return True

    taken = await asyncio.gather(*(store.write(take) for _ in range(10)))
    assert sum(taken) == 1


async def test_a_caller_who_leaves_cuts_no_unit_in_half(open_store, store):
    reached = asyncio.Event()

    async def unit(tx: Tx) -> None:
        await tx.execute("UPDATE counts SET value = 1")
        reached.set()
        await tx.execute("SELECT pg_sleep(0.1)")
        await tx.execute("UPDATE counts SET value = 2")

    caller = asyncio.create_task(store.write(unit))
    await reached.wait()
    caller.cancel()
    await store.close()
    again = await open_store()
    assert await again.read(value) == 2


async def test_a_failure_of_work_whose_caller_has_left_is_no_error_of_asyncio(open_store):
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    store, goes_on = await open_store(), asyncio.Event()

    async def query(_: Tx) -> None:
        await goes_on.wait()
        raise e.StatementFailed("This cannot be done.")

    reading = asyncio.create_task(store.read(query))
    await asyncio.sleep(0.1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    goes_on.set()
    await store.close()
    gc.collect()
    assert told == []


async def test_a_second_hub_is_refused_until_the_first_has_ended(open_store):
    first = await open_store(node=node("one"))
    with pytest.raises(e.DatabaseInUse, match="another hub uses this database"):
        await open_store(node=node("two"))
    again = await open_store(node=node("one"))
    await again.close()
    await first.close()
    await (await open_store(node=node("two"))).close()


async def test_of_hubs_that_start_at_one_moment_one_goes_on(open_store):
    opening = (open_store(node=node(f"node {n}")) for n in range(5))
    opened = await asyncio.gather(*opening, return_exceptions=True)
    assert Counter(map(type, opened)) == {PostgresStore: 1, e.DatabaseInUse: 4}


async def test_a_hub_whose_lease_ran_out_stores_nothing_once_another_has_the_database(
    open_store, connection
):
    # It would be renewed meanwhile, were it shorter.
    first = await open_store(node=node("one", lease_seconds=600))
    await first.write(make_counts)
    await connection.execute("UPDATE nodes SET until = 0")
    second = await open_store(node=node("two"))
    first._lease._lease.ended()
    for attempt in (first.write(read_then_write), first.read(value)):
        with pytest.raises(e.DatabaseInUse, match="has taken this database over"):
            await attempt
    assert await second.read(value) == 0
    await first.close()
    with pytest.raises(e.DatabaseInUse):
        await open_store(node=node("three"))


async def test_a_lease_that_ran_out_while_nobody_came_is_taken_again(open_store, connection):
    store = await open_store(node=node("one"))
    await store.write(make_counts)
    await connection.execute("UPDATE nodes SET until = 0")
    store._lease._lease.ended()
    assert await store.write(read_then_write) == 1
    with pytest.raises(e.DatabaseInUse):
        await open_store(node=node("two"))


async def test_a_hub_has_the_time_of_its_server_whatever_its_machine_says(open_store, monkeypatch):
    """The machine's clock is an hour off here, and is set to another time later."""
    here, off = time.time, 3_600.0
    monkeypatch.setattr(time, "time", lambda: here() + off)
    clock = ServerClock()
    assert clock.now() - here() > 3_000
    store = await open_store(node=HubNode("one", "1"), hear_time=clock.hear)
    assert abs(clock.now() - here()) < 60
    off = -86_400.0
    assert abs(clock.now() - here()) < 60
    await renew(store)
    assert abs(clock.now() - here()) < 60


def test_a_machine_that_slept_knows_the_time_at_once(monkeypatch):
    clock = ServerClock()
    before, here = clock.now(), clock_module.boot_time
    monkeypatch.setattr(clock_module, "boot_time", lambda: here() + 3_600.0)
    assert clock.now() - before >= 3_600.0


async def test_a_renewal_that_comes_after_the_end_of_a_lease_renews_nothing(open_store):
    store = await open_store(node=node("one"))
    lease = store._lease
    async with store._pool.acquire() as connection:
        await lease.release(connection)
        with pytest.raises(e.DatabaseInUse):
            await lease.renew(connection)
        assert await connection.fetchval("SELECT COUNT(*) FROM nodes") == 0


async def test_a_process_that_was_replaced_by_its_own_node_stores_nothing_more(open_store):
    first = await open_store(node=node("one"))
    second = await open_store(node=node("one"))
    first._lease._lease.ended()
    with pytest.raises(e.DatabaseInUse, match="has taken this database over"):
        await first.ready()
    await second.ready()
    await first.close()
    second._lease._lease.ended()
    await second.ready()


def test_a_time_that_may_be_the_present_one_does_not_move_the_clock():
    clock = ServerClock()

    def difference() -> float:
        # Now and then the process has to wait between the two.
        return max(clock.now() - clock.monotonic() for _ in range(100))

    ahead = difference()
    clock.hear(1_000.5 + ahead, 1_000.0, 1_001.0)
    assert difference() == pytest.approx(ahead, abs=1e-2)
    clock.hear(1_011.0 + ahead, 1_000.0, 1_001.0)
    assert difference() == pytest.approx(ahead + 10.5, abs=1e-2)


async def test_a_lease_is_measured_from_before_the_database_was_asked(open_store, monkeypatch):
    store = await open_store(node=node("one"))
    lease, later = store._lease, 0.0
    asked, here = lease._ask, nodes.boot_time

    async def ask_slowly(*given: Any, **how: Any) -> Any:
        nonlocal later
        later += nodes.LEASE_SECONDS
        return await asked(*given, **how)

    monkeypatch.setattr(nodes, "boot_time", lambda: here() + later)
    monkeypatch.setattr(lease, "_ask", ask_slowly)
    await renew(store)
    assert not lease.holds


async def renew(store: PostgresStore) -> None:
    async with store._pool.acquire() as connection:
        await store._lease.renew(connection)


async def renewed(lease: nodes.NodeLease) -> None:
    """Wait until the lease is renewed."""
    until = lease._lease.until
    async with asyncio.timeout(60):
        await reached(lambda: lease._lease.until > until)


@pytest.mark.parametrize(
    "lock",
    [f"SELECT pg_advisory_xact_lock({schema.LOCK})", nodes.LOCK_LEASES],
    ids=["another migrates the database", "a paused node has the lock of leases"],
)
async def test_a_lease_that_holds_is_renewed_while_another_holds_a_lock(
    open_store, connection, lock
):
    store = await open_store(node=node("one"))
    async with connection.transaction(), asyncio.timeout(60):
        await connection.execute(lock)
        await renew(store)
    # One that is over by the server's clock is taken again under the lock.
    await connection.execute("UPDATE nodes SET until = 0")
    await renew(store)
    assert await connection.fetchval("SELECT until FROM nodes") > 0


async def test_a_node_is_drained_only_if_another_could_take_its_rooms(open_store):
    # A bus is checked before the first lease, and started after it.
    buses = [NatsBus(parse_servers("nats://127.0.0.1:1")) for _ in range(2)]
    stores = [
        await open_store(
            node=node(bus.node, shared=True, lease_seconds=60, address=f"http://{bus.node}"),
            shared=bus,
        )
        for bus in buses
    ]
    first = stores[0].room_owners
    reaches = [True, True]
    for number, store in enumerate(stores):
        store._lease._is_connected = partial(reaches.__getitem__, number)

    async def drained(*reached: bool) -> bool:
        reaches[:] = reached
        for store in stores:
            await renew(store)
        done = await first.drain(first.process)
        await stores[0].write(statement("UPDATE nodes SET draining = 0"))
        return done

    assert await stores[0].read(rows("SELECT shared FROM nodes")) == [(nodes.SHARED,)] * 2
    assert await drained(True, True)
    assert await drained(False, True)
    assert not await drained(True, False), "one that is cut off takes no room"
    assert await drained(False, False), "if all are, each goes on"
    await stores[1].close()
    assert not await first.drain(first.process)


async def test_transactions_of_a_node_may_not_be_idle_and_leave_nothing_on_their_connection(
    open_store,
):
    store = await open_store(connections=1, node=node("one", lease_seconds=7))

    async def idle(tx: Tx) -> list[Row | None]:
        asked = "SELECT current_setting('idle_in_transaction_session_timeout')"
        return [await tx.fetch_one(asked), await tx.fetch_one(asked)]

    assert await store.write(idle) == await store.write(idle, any_order=True) == [("7s",)] * 2
    assert await store.read(idle) == [("7s",)] * 2
    async with store._pool.acquire() as connection:
        shown = await connection.fetchval("SHOW idle_in_transaction_session_timeout")
    assert shown == "0"


@pytest.mark.parametrize("prepare", [True, False])
async def test_what_a_node_locked_is_free_again_when_it_is_paused_amid_a_unit(open_store, prepare):
    paused_node = node("one", shared=True, lease_seconds=2)
    store = await open_store(node=paused_node, prepare=prepare)
    other = await open_store(node=node("two", shared=True))
    await store.write(make_counts)
    attempts: list[int] = []
    begun, free = asyncio.Event(), asyncio.Event()
    more = statement("UPDATE counts SET value = value + 1")

    async def paused(tx: Tx) -> None:
        attempts.append(1)
        await more(tx)
        begun.set()
        if len(attempts) == 1:
            await free.wait()
        await more(tx)

    pausing = asyncio.ensure_future(store.write(paused))
    await begun.wait()
    async with asyncio.timeout(60):
        await other.write(statement("UPDATE counts SET value = value + 10"))
    free.set()
    # When it goes on, its unit is run again from its start.
    await pausing
    assert (await other.read(value), len(attempts)) == (12, 2)


async def test_a_lease_is_renewed_while_all_connections_are_in_use(open_store):
    store = await open_store(connections=2, node=node("one", lease_seconds=3))
    async with store._pool.acquire(), store._pool.acquire():
        for _ in range(2):
            await renewed(store._lease)


async def test_the_connection_of_the_lease_is_replaced_when_it_is_lost(open_store):
    store = await open_store(node=node("one", lease_seconds=3))
    for _ in range(2):
        await renewed(store._lease)
        async with store._lease_pool.acquire() as connection:
            pid = connection.get_server_pid()
        async with store._pool.acquire() as connection:
            await connection.execute("SELECT pg_terminate_backend($1)", pid)
    await renewed(store._lease)


async def test_nodes_on_a_bus_share_a_database_but_no_address(open_store):
    here, there = "http://node1.internal:8420", "http://node2.internal:8420"
    first = await open_store(node=node("one", shared=True, address=here))
    second = await open_store(node=node("two", shared=True, address=there))
    with pytest.raises(e.DatabaseInUse, match=f"another node has the address {here}"):
        await open_store(node=node("three", shared=True, address=here))
    with pytest.raises(e.DatabaseInUse, match=f"the node {here} uses this database"):
        await open_store(node=node("three"))
    owners = [store.room_owners for store in (first, second)]
    assert [await each.is_first() for each in owners if each] == [True, False]
    await first.close()
    assert [await each.is_first() for each in owners[1:] if each] == [True]
    await second.close()
    await open_store(node=node("three"))
    with pytest.raises(e.DatabaseInUse, match=r"a hub without bus\.url uses this database"):
        await open_store(node=node("one", shared=True, address=here))


async def test_a_clock_that_is_off_is_warned_of_once(open_store, monkeypatch, caplog):
    real = time.time
    monkeypatch.setattr(nodes.time, "time", lambda: real() + 600)
    store = await open_store(node=node("one"))
    await renew(store)
    await store.close()
    warned = [each for each in caplog.records if "clock of this machine" in each.message]
    assert [each.__dict__["seconds"] for each in warned] == [pytest.approx(600, abs=60)]


async def test_a_value_that_does_not_fit_fails_at_once_and_is_not_repeated(store):
    with pytest.raises(e.StatementFailed) as failed:
        await store.write(statement("UPDATE counts SET value = ?", "geheim"))
    assert "geheim" not in failed.value.message
    assert store.stats().failed_units == 1


async def test_nul_is_found_nowhere_and_stored_nowhere(store):
    assert await store.read(rows("SELECT 1 FROM counts WHERE name = ?", "a\0")) == []
    change = statement("UPDATE counts SET value = ? WHERE name = ?", 2, "a\0")
    assert await store.write(change) == 0
    with pytest.raises(e.TextUnstorable):
        await store.write(statement("INSERT INTO counts (name, value) VALUES (?, 1)", "b\0"))


@pytest.mark.parametrize(
    ("sql", "stored"),
    [
        ("UPDATE t SET a = (SELECT b FROM c WHERE d = ?), e = ? WHERE f = ?", 2),
        ("UPDATE t SET a = ?", 1),
        ("INSERT INTO t VALUES (?, ?)", 2),
        ("SELECT a FROM t WHERE b = ?", 0),
        ("DELETE FROM t WHERE b = ?", 0),
    ],
)
def test_nul_is_refused_wherever_a_statement_would_store_it(sql, stored):
    statement = spelled(sql)
    for place in range(statement.parameters):
        params = ["x"] * statement.parameters
        params[place] = "a\0"
        if place < stored:
            with pytest.raises(e.TextUnstorable):
                storable(statement, params)
        else:
            assert "\0" not in "".join(map(str, storable(statement, params)))


DELETED = (
    "SELECT n_dead_tup {} FROM pg_stat_user_tables "
    "WHERE relname = 'counts' AND schemaname = current_schema()"
)


async def test_deleted_rows_leave_the_table_when_it_is_cleaned(store, connection):
    await store.write(statement("DELETE FROM counts"))
    dead = DELETED.format("")
    while not await connection.fetchval(dead):
        await asyncio.sleep(0.05)
        await connection.execute("SELECT pg_stat_clear_snapshot()")
    # What other hubs of the server read at this moment keeps them for a while.
    while await connection.fetchval(dead):
        await store.vacuum()
        await asyncio.sleep(0.05)
        await connection.execute("SELECT pg_stat_clear_snapshot()")


async def test_a_hub_has_deleted_rows_removed_without_being_asked_also_when_a_dump_kept_them(
    open_store, url, monkeypatch
):
    monkeypatch.setattr(store_module, "VACUUM_SECONDS", 0.5)
    store = await open_store()
    await store.write(make_counts)
    dumping, looking = await asyncpg.connect(url), await asyncpg.connect(url)
    dump = dumping.transaction(isolation="repeatable_read")
    await dump.start()
    await dumping.fetch("SELECT 1 FROM counts")

    async def until(wanted: str) -> None:
        async with asyncio.timeout(250):
            while not await looking.fetchval(DELETED.format(wanted)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    await store.write(statement("DELETE FROM counts"))
    await until("> 0")
    # The server tells of deleted rows only after a while; a hub waits longer than that.
    await store.write(statement("UPDATE health SET id = id"))
    await until("> 0 AND vacuum_count > 0")
    await dump.rollback()
    await until("= 0")
    for connection in (dumping, looking):
        await connection.close()


async def test_a_closed_store_refuses_and_a_backup_names_pg_dump(open_store):
    store = await open_store()
    with pytest.raises(e.BackupFailed, match="pg_dump"):
        await store.backup("x")
    await store.ready()
    await store.close()
    await store.close()
    for attempt in (store.write, store.read):
        with pytest.raises(e.StoreClosed):
            await attempt(value)


async def test_what_cannot_be_opened_says_why_in_one_line_without_the_password(
    open_store, connection, url
):
    away = "postgresql://hub@127.0.0.1:1/x: The server cannot be reached: Connection refused."
    for wrong, why in {
        "postgresql://hub:geheim@127.0.0.1:1/x?password=geheim": away,
        "postgresql://hub:geheim@/x?host=/nowhere": "be reached: No such file or directory.",
        url.replace("/postgres?", "/absent?"): 'database: database "absent" does not exist.',
        url.replace("//hub@", "//eve:geheim@"): 'the connection: role "eve" does not exist.',
        f"{url}&default_transaction_read_only=on": "the server accepts no writes.",
    }.items():
        with pytest.raises(e.FolkmootError) as error:
            await PostgresStore.open(wrong)
        assert error.value.message.endswith(why)
        assert "\n" not in error.value.message
        assert "geheim" not in error.value.message
    await connection.execute("CREATE TABLE other (id BIGINT)")
    with pytest.raises(e.DatabaseCorrupt, match="not a Folkmoot database"):
        await open_store()
    await connection.execute("DROP TABLE other")
    await (await open_store()).close()
    await connection.execute("INSERT INTO schema_migrations VALUES (9999, 'x')")
    with pytest.raises(e.DatabaseVersion, match=r"another version.*an empty database"):
        await open_store()


async def test_a_server_that_is_too_old_is_refused(open_store, monkeypatch):
    monkeypatch.setattr(schema, "OLDEST_VERSION", 990_000)
    with pytest.raises(e.DatabaseTooOld, match="99 or later is needed"):
        await open_store()


async def test_a_server_that_ends_and_comes_back_is_used_again(server):
    store = await PostgresStore.open(server.url)
    await store.write(make_counts)
    server.kill()
    waiting = asyncio.create_task(store.write(read_then_write))
    await asyncio.to_thread(server.start)
    assert await waiting == 1
    assert await store.read(value) == 1
    await store.close()


async def test_a_server_that_is_away_is_told_of_once_and_so_is_its_return(server, caplog):
    caplog.set_level("INFO", "folkmoot.store.postgres.store")
    lost, back = "was not renewed: The server", "is renewed again"

    def lines() -> list[str]:
        return [line.message for line in caplog.records if "the lease at" in line.message]

    store = await PostgresStore.open(server.url, node=node("hub", lease_seconds=2))
    server.kill()
    async with asyncio.timeout(250):
        await reached(lambda: bool(lines()) and lost in lines()[-1])
        # Longer than several attempts.
        await asyncio.sleep(3)
        await asyncio.to_thread(server.start)
        await reached(lambda: back in lines()[-1])
    await store.close()
    assert all((lost in one) != (lost in next_one) for one, next_one in pairwise(lines()))


async def test_a_replica_that_was_reached_before_it_took_over_is_found_out(server):
    store = await PostgresStore.open(server.url)
    await store.write(make_counts)
    server.kill()
    (server.data / "standby.signal").touch()
    await asyncio.to_thread(server.start)
    reading = asyncio.ensure_future(store.read(value))
    # A connection to it that was kept would still be used below.
    await asyncio.wait([reading], timeout=1)
    await asyncio.to_thread(server.promote)
    with pytest.raises(e.DatabaseFailedOver):
        await store.write(read_then_write)
    await asyncio.wait([reading])
    assert isinstance(reading.exception(), e.FolkmootError)
    await store.close()


async def test_a_server_that_took_over_begins_a_new_epoch_unless_it_has_everything(server):
    first = await PostgresStore.open(server.url)
    second = await PostgresStore.open(server.url, synchronous_replica=True)
    await first.write(make_counts)
    before = first.identity
    await asyncio.to_thread(server.fail_over)
    assert await second.write(read_then_write) == 1
    await second.close()
    with pytest.raises(e.DatabaseFailedOver, match="Restart the hub"):
        await first.write(read_then_write)
    await first.close()
    again = await PostgresStore.open(server.url)
    assert (again.identity.database_id, await again.read(value)) == (before.database_id, 1)
    epoch = again.identity.epoch
    assert epoch != before.epoch
    await again.close()
    await asyncio.to_thread(server.fail_over)
    trusting = await PostgresStore.open(server.url, synchronous_replica=True)
    assert trusting.identity.epoch == epoch
    await trusting.close()
