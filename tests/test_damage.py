"""A database whose pages are damaged while the hub uses it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from folkmoot.app import Hub
from folkmoot.cli.doctor_data import check_data
from folkmoot.core import errors as e
from tests.clocks import Later
from tests.harness import ask
from tests.mcp_harness import Meeting, meeting, settings
from tests.operator import ask_socket

DAMAGED = "The database is damaged: nothing is written until it is restored and the hub restarted."


def overwrite_root(folder: Path, table: str, content: bytes = b"") -> bytes:
    """Put something where a table begins, or garbage, and answer what was there."""
    database = folder / "folkmoot.db"
    with sqlite3.connect(database) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    connection.close()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        before = file.read(size)
        file.seek((page - 1) * size)
        file.write(content or b"\xff" * size)
    return before


async def prepared(folder: Path) -> str:
    """The token of someone on a hub that has stopped."""
    async with Hub(settings(folder)).running() as hub:
        made = await hub.accounts.register("alice")
        other = await hub.accounts.register("bob")
        await hub.accounts.add_contact(made.account, "bob", "Bobby")
        await hub.accounts.add_contact(other.account, "alice")
    return made.token


async def test_what_finds_damage_stops_all_writing_until_a_restart(tmp_path):
    token, clock = await prepared(tmp_path), Later()
    overwrite_root(tmp_path, "members_by_activity")
    async with meeting(tmp_path, clock=clock) as there:
        alice = await there.returning(token)
        assert (await ask(there.port, "/health/ready")).status == 200
        await alice.call("msg/set_profile", bio="Written before anyone looked")
        await alice.refused("msg/threads")
        clock.ahead += 1
        await assert_stopped(there, tmp_path)
        for tool, arguments in (
            ("msg/set_profile", {"bio": "Not written"}),
            ("msg/send", {"to": "bob", "body": "Not sent"}),
        ):
            assert await alice.refused(tool, **arguments) == DAMAGED
        assert (await alice.call("msg/lookup", handle="bob"))["handle"] == "bob"
        assert (await alice.call("msg/whoami"))["bio"] == "Written before anyone looked"
        assert (await ask(there.port, "/health")).status == 200


@pytest.mark.requirement("operator.audited")
async def test_a_backup_is_made_even_where_its_audit_line_cannot_be_stored(tmp_path, caplog):
    folder, copy = tmp_path / "data", tmp_path / "copy.db"
    token = await prepared(folder)
    whole = (folder / "folkmoot.db").read_bytes()
    overwrite_root(folder, "members_by_activity")
    async with meeting(folder) as there:
        await (await there.returning(token)).refused("msg/threads")
        # The disk is well again; the hub writes nothing until it is restarted.
        with (folder / "folkmoot.db").open("r+b") as file:
            file.write(whole)
        socket = folder / "control.sock"
        made = await asyncio.to_thread(ask_socket, socket, "folkmoot/backup", {"path": str(copy)})
        assert made["path"] == str(copy)
    assert "an audit line was not stored" in caplog.text
    assert copy.exists()


async def assert_stopped(there: Meeting, folder: Path) -> None:
    ready = await ask(there.port, "/health/ready")
    assert ready.status == 503
    assert ready.json()["checks"]["database"]["error"] == "database_damaged"
    assert str(folder) not in ready.text
    findings = await asyncio.to_thread(lambda: list(check_data(there.hub.settings)))
    (control,) = [finding for finding in findings if finding.subject == "control"]
    assert control.level == "problem"
    assert "database_damaged" in control.text


async def test_a_write_that_finds_damage_stops_writing_too(tmp_path):
    await prepared(tmp_path)
    before = overwrite_root(tmp_path, "invites")
    async with Hub(settings(tmp_path)).running() as hub:
        with pytest.raises(Exception, match="database"):
            await hub.accounts.create_invite(None)
        with pytest.raises(e.DatabaseDamaged):
            await hub.store.ready()
        with pytest.raises(e.DatabaseDamaged):
            await hub.accounts.register("carol")
        assert await hub.accounts.count() == 2
    overwrite_root(tmp_path, "invites", before)
    async with Hub(settings(tmp_path)).running() as hub:
        await hub.store.ready()
        await hub.accounts.register("carol")
