"""The audit log as a table: what gets there, how it is read, and how it is kept small."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from folkmoot import audit
from folkmoot.audit import AuditQuery, AuditTable, Entry, Line
from folkmoot.core import errors as e
from folkmoot.core.message import Request
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.ports import Tx
from folkmoot.gateway.audit import CallAudit
from folkmoot.store import SqliteStore
from folkmoot.telemetry.logs import REQUEST, PlainRecord, RequestInfo
from tests.clocks import StillClock
from tests.conftest import settings_of

LOGGER = logging.getLogger("folkmoot.audit")
DAY = 86_400
CALL = "mcp.request.tools/call"


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def table(
    store: SqliteStore, clock: StillClock, request: pytest.FixtureRequest
) -> AsyncIterator[AuditTable]:
    """Where lines of the audit log become rows, meanwhile."""
    limits = {"keep_days": 90, "keep_lines": 1_000_000, **settings_of(request)}
    made = AuditTable(store, clock, **limits)
    made.attach()
    yield made
    await made.detach()


async def lines(store: SqliteStore, **wanted: object) -> list[Entry]:
    return await store.read(lambda tx: audit.read(tx, AuditQuery(**wanted)))  # type: ignore[arg-type]


async def test_what_is_logged_is_a_row_whatever_the_level_of_the_log(table, store, caplog):
    caplog.set_level(logging.ERROR)
    detail = {"capabilities": ["chat.*"], "token": "hush"}
    grant = {"room": "square", "by": "ada", "account": "a1", "about": "bob"}
    LOGGER.info("capability.grant", extra={**grant, "detail": detail})
    call = {"by": "bob", "about": f"{CALL}:x", "outcome": "ok", "seconds": 0.5}
    LOGGER.handle(PlainRecord(LOGGER.name, logging.INFO, "backend.call", call))
    await table.drain()
    newest, oldest = await lines(store)
    assert (newest.action, newest.by, newest.outcome) == ("backend.call", "bob", "ok")
    assert (newest.seconds, newest.detail) == (0.5, {})
    assert {name: getattr(oldest, name) for name in grant} == grant
    assert oldest.detail["capabilities"] == ["chat.*"]
    assert "hush" not in str(oldest.detail)


async def test_what_waits_is_written_when_the_hub_stops(table, store):
    LOGGER.info("room.kick", extra={"by": "ada", "about": "bob"})
    await table.detach()
    LOGGER.info("room.kick", extra={"by": "nobody", "about": "nothing"})
    assert [entry.by for entry in await lines(store)] == ["ada"]


async def test_what_is_logged_during_a_write_is_gathered_for_the_next_one(table, store):
    LOGGER.info("room.kick", extra={"by": "ada", "about": "bob"})
    writing = asyncio.create_task(table.drain())
    await asyncio.sleep(0)
    LOGGER.info("room.kick", extra={"by": "cy", "about": "bob"})
    await writing
    assert [entry.by for entry in await lines(store)] == ["ada"]
    await table.drain()
    assert [entry.by for entry in await lines(store)] == ["cy", "ada"]


async def test_rows_are_found_by_who_what_where_and_when(store):
    rows = [
        (float(at), action, by, about, "{}", "calls", None, outcome, room, *[None] * 4)
        for at, action, by, about, room, outcome in (
            (10, "room.kick", "ada", "bob", "square", None),
            (20, "backend.call", "ada", f"{CALL}:files:read_file", None, "ok"),
            (30, "backend.call", "bob", f"{CALL}:files:drop_100%", None, "timeout"),
        )
    ]
    await store.write(lambda tx: audit.insert(tx, rows))
    assert [it.id for it in await lines(store)] == [3, 2, 1]
    assert [it.id for it in await lines(store, limit=1)] == [3]
    assert [it.id for it in await lines(store, before=3)] == [2, 1]
    assert [it.id for it in await lines(store, since=20.0)] == [3, 2]
    assert [it.id for it in await lines(store, by="ada")] == [2, 1]
    assert [it.id for it in await lines(store, action="backend.*")] == [3, 2]
    assert [it.id for it in await lines(store, room="square")] == [1]
    assert [it.id for it in await lines(store, about="*100%")] == [3]
    assert [it.id for it in await lines(store, about="*read_f*")] == [2]
    assert await lines(store, about="*readXf*") == []
    assert [it.id for it in await lines(store, until=20.0)] == [1]
    assert [it.id for it in await lines(store, after=1)] == [2, 3]
    assert [it.id for it in await lines(store, outcome="error")] == [3]
    assert [it.id for it in await lines(store, outcome="o*")] == [2]
    assert [it.id for it in await lines(store, text="squ")] == [1]
    assert [it.id for it in await lines(store, text="100%")] == [3]
    assert await lines(store, text="1_0") == []


@pytest.mark.settings(keep_lines=1000)
async def test_old_lines_go_and_so_do_the_oldest_of_too_many(store, table, clock):
    old, new = clock.now() - 91 * DAY, clock.now() - 89 * DAY
    rows = [
        (old if n < 1_200 else new, "x", "ada", "", "{}", "calls", *[None] * len(audit.OWN))
        for n in range(2_500)
    ]
    await store.write(lambda tx: audit.insert(tx, rows))
    await table.tidy()
    count = await store.read(lambda tx: tx.fetch_one("SELECT COUNT(*), MIN(id) FROM audit"))
    assert count == (1_000, 1_501)
    clock.seconds += 2 * DAY
    await table.tidy()
    assert await lines(store) == []


async def test_an_operators_line_is_stored_with_its_change_and_logged_once(store, table, caplog):
    caplog.set_level(logging.INFO, "folkmoot.audit")
    why = "It loops. DB_PASS=hunter22"
    line = Line("account.suspended", audit.OPERATOR, "bob", "b1", why, 1_000)

    async def fails(tx: Tx) -> None:
        await audit.record(tx, [line], 5.0)
        raise LookupError("The change did not work.")

    with pytest.raises(LookupError):
        await store.write(fails)
    assert await lines(store) == []
    await store.write(lambda tx: audit.record(tx, [line], 5.0, offline=True))
    await audit.log_kept(store)
    await audit.log_kept(store)
    await table.drain()
    (entry,) = await lines(store)
    assert (entry.at, entry.by, entry.detail) == (
        1_000,
        "operator",
        {"detail": "It loops. DB_PASS=[redacted]"},
    )
    assert [record.message for record in caplog.records if record.name == "folkmoot.audit"] == [
        "account.suspended"
    ]


async def test_a_database_that_is_too_slow_costs_rows_never_time(store, table, monkeypatch, caplog):
    monkeypatch.setattr(audit, "MOST_WAITING", 3)
    for number in range(5):
        LOGGER.info(audit.BACKEND_CALL, extra={"by": str(number)})
    # Calls that fill the queue leave room for the rest.
    LOGGER.info("token.created", extra={"by": "ada"})
    await table.drain()
    assert [entry.by for entry in await lines(store)] == ["ada", "2", "1", "0"]
    told = [it for it in caplog.records if it.message == "audit lines are in the log alone"]
    assert [vars(record)["lines"] for record in told] == [2]


async def test_a_store_that_refuses_every_line_is_told_of_once_and_not_for_ever(
    store, table, caplog
):
    await store.close()
    LOGGER.info("capability.grant", extra={"by": "ada"})
    await table.drain()
    told = [it.message for it in caplog.records if "stored" in it.message]
    assert told == ["audit lines were not stored"]


async def test_what_someone_is_denied_again_and_again_is_one_summary_a_minute(table, store, clock):
    calls, mallory = CallAudit(b"key"), Principal("m", "mallory", PrincipalType.PERSON)

    def denied(tool: str) -> None:
        request = Request(id=1, method="tools/call", params={"name": tool, "arguments": {}})
        calls.refused(mallory, request, e.CapabilityDenied("No."))

    for _ in range(2_000):
        denied("demo:echo")
        audit.record_refusal(mallory, "room.kick", e.CapabilityDenied("No."), "square")
    for number in range(500):
        denied(f"demo:other{number}")
    LOGGER.info(audit.REFUSED, extra={"by": "ada", "account": "a", "about": "x"})
    await table.drain()
    # What is new is told at once, but of each only the first, and of many only some.
    told = await lines(store, by="mallory", limit=500)
    assert len(told) == audit.DENIALS_TOLD
    assert [one.about for one in told[-2:]] == ["room.kick", "mcp.request.tools/call:demo:echo"]
    assert len(await lines(store, by="ada")) == 1
    clock.seconds += 61
    table.summarise()
    await table.drain()
    summary, *before = await lines(store, by="mallory", limit=500)
    assert before == told
    assert (summary.action, summary.outcome) == (audit.REFUSED, "capability_denied")
    assert summary.detail["denied"] == 4_500 - audit.DENIALS_TOLD
    assert summary.about == "mcp.request.tools/call:demo:echo"
    assert summary.detail["kinds"]["room.kick"] == 1_999
    assert len(summary.detail["kinds"]) <= audit.KINDS_TOLD
    # Nothing more was denied, so nothing more is told; and the next minute begins anew.
    clock.seconds += 61
    table.summarise()
    denied("demo:echo")
    await table.drain()
    newest, second, *_ = await lines(store, by="mallory")
    assert newest.action == audit.BACKEND_CALL
    assert second == summary


@pytest.mark.settings(keep_lines=1000)
async def test_calls_push_no_line_out_that_an_operator_a_credential_or_a_grant_left(
    store, table, clock
):
    line = Line("account.suspended", audit.OPERATOR, "eve", "e")
    await store.write(lambda tx: audit.record(tx, [line], clock.now()))
    LOGGER.info("token.created", extra={"by": "ada", "account": "a", "about": "c_1"})
    LOGGER.info("capability.grant", extra={"by": "ada", "account": "a", "about": "bob"})
    calls = (audit.BACKEND_CALL, "hub.call", "proposal.open", "participant.pause")
    for number in range(3_000):
        LOGGER.info(calls[number % 4], extra={"by": "ada", "account": "a", "about": "x"})
    # Nor does someone who makes one token after the other push an operator's out.
    for _ in range(1_500):
        LOGGER.info("token.created", extra={"by": "eve", "account": "e", "about": "c_2"})
    await table.drain()
    await table.tidy()
    left = await store.read(
        lambda tx: tx.fetch("SELECT lane, COUNT(*) FROM audit GROUP BY lane ORDER BY lane")
    )
    assert left == [("calls", 1_000), ("operators", 1), ("people", 1_000)]
    [kept_line] = await lines(store, by=audit.OPERATOR)
    assert kept_line.action == "account.suspended"
    # All of them are read together, in the order they came.
    ids = [one.id for one in await lines(store, limit=500)]
    assert ids == sorted(ids, reverse=True)


async def test_a_call_tells_its_server_its_credential_and_its_request(table, store):
    ann = Principal("a1", "ann", PrincipalType.PERSON)
    calls = CallAudit(b"k" * 32)
    info = RequestInfo("r1")
    info.account_id, info.credential_id = "a1", "c_1"
    REQUEST.set(info)
    calls.note(ann, f"{CALL}:files:read", {"path": "x"}, "ok", 0.25)
    calls.note(ann, "mcp.request.resources/read:docs://a", {}, "ok", 0.25)
    # Something that is done for another in the same task is not done with this credential.
    bob = Principal("b1", "bob", PrincipalType.PERSON)
    calls.note(bob, "mcp.request.tools/list", {}, "ok", 0.0)
    REQUEST.set(None)
    calls.note(ann, f"{CALL}:files:read", {}, "ok", 0.25)
    await table.drain()
    told = [
        (it.by, it.server, it.credential_id, it.request)
        for it in (await lines(store, limit=4))[::-1]
    ]
    assert told == [
        ("ann", "files", "c_1", "r1"),
        ("ann", "docs", "c_1", "r1"),
        ("bob", None, None, None),
        ("ann", "files", None, None),
    ]


async def test_an_account_that_is_deleted_leaves_no_name_in_the_lines(table, store):
    LOGGER.info("room.kick", extra={"by": "ada", "account": "a1", "about": "bob"})
    LOGGER.info("room.kick", extra={"by": "bob", "account": "b1", "about": "ada"})
    LOGGER.info("backend.call", extra={"by": "bob", "account": "b1", "arguments": "bob"})
    await table.drain()
    LOGGER.info("backend.call", extra={"by": "bob", "account": "b1", "arguments": "late"})

    async def unit(tx: Tx) -> None:
        await audit.forget(tx, "b1", "bob")
        await audit.record(tx, [Line("account.removed", audit.OPERATOR, "bob", "b1")], 9.0)
        tx.publish("account.b1", {"change": "deleted"})

    await store.write(unit)
    await table.drain()
    found = await lines(store)
    removed = found.pop(1)
    assert (removed.action, removed.about) == ("account.removed", "bob")
    assert "bob" not in str(found)
    assert "late" not in str(found)
    assert [(it.by, it.account) for it in found] == [
        (audit.DELETED, "b1"),
        (audit.DELETED, "b1"),
        (audit.DELETED, "b1"),
        ("ada", "a1"),
    ]
