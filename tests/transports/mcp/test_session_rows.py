from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.ports import Tx
from folkmoot.transports.mcp import stored_sessions
from folkmoot.transports.mcp.stored_sessions import SessionRecord, SessionRows
from folkmoot.vault import Vault

STATE = SessionRecord("2025-11-25", {"roots": {}}, "debug", ("mmp://mailboxes/inbox",))


@pytest.fixture
async def rows(store: Any) -> SessionRows:
    return SessionRows(store, Vault(b"k" * 32, "mk"))


async def stored(store: Any) -> list[tuple[Any, ...]]:
    async def query(tx: Tx) -> list[tuple[Any, ...]]:
        return await tx.fetch("SELECT id_hash, user_id, state, until FROM mcp_sessions")

    rows: list[tuple[Any, ...]] = await store.read(query)
    return rows


async def test_a_state_is_found_again_and_a_closed_session_stays_closed(store, rows):
    assert await rows.read("secret-id") == (None, False)
    await rows.put("secret-id", "nobody", STATE, 0, 100)
    assert await rows.read("secret-id") == (STATE, False)
    [row] = await stored(store)
    assert "secret-id" not in str(row)
    assert "inbox" not in str(row)
    await rows.close("secret-id", "", 0, 100)
    await rows.put("secret-id", "", STATE, 0, 100)
    assert await rows.read("secret-id") == (None, True)


async def test_a_state_that_was_changed_or_moved_opens_nothing(store, rows):
    await rows.put("mine", "", STATE, 0, 100)
    await rows.put("theirs", "", SessionRecord("2025-11-25", {}), 0, 100)

    async def move(tx: Tx) -> None:
        await tx.execute(
            "UPDATE mcp_sessions SET state = (SELECT state FROM mcp_sessions WHERE id_hash = ?)",
            (stored_sessions.full_hash("mine"),),
        )

    await store.write(move)
    assert await rows.read("theirs") == (None, True)
    assert await rows.read("mine") == (STATE, False)


async def test_rows_are_bounded_and_go_with_age(store, rows, monkeypatch):
    monkeypatch.setattr(stored_sessions, "MAX_SESSION_ROWS", 3)
    for number in range(10):
        await rows.close(f"id{number}", "", 0, 100 + number)
    assert {row[3] for row in await stored(store)} == {107, 108, 109}
    await rows.close("later", "", 108, 200)
    assert {row[3] for row in await stored(store)} == {109, 200}


async def test_too_many_subscriptions_are_not_stored(rows):
    many = tuple(f"demo://{number}/{'x' * 100}" for number in range(100))
    await rows.put("id", "", SessionRecord("2025-11-25", {}, "debug", many), 0, 100)
    state, _ = await rows.read("id")
    assert state == SessionRecord("2025-11-25", {}, "debug")
