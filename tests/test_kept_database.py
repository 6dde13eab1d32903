"""A database of a hub before it had credentials: it is migrated, and nothing of it is lost.

`store/kept/014.sql` is what such a hub left behind: three accounts, mail, a room with a guest who
came and one who did not, a grant, and two open sessions.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from folkmoot.clock import SystemClock
from tests.harness import ask
from tests.interaction.test_mail_sessions import call, told
from tests.mcp_harness import Meeting, meeting, rpc

DUMP = Path(__file__).parent / "store" / "kept" / "014.sql"
KEY = "ab" * 32
THEN = 1_794_809_230
ANN = "sk_3e8df6e421e5596ac560726c3c2e0382b0663c2bc41bbaefc95e1257dfdce460"
ANNS_CODE = "9RR2-3W9S-EHH5"
BOB = "sk_dbf31a1d587b0caa161a1f0fb248afbba3b8c5b3c0706ddaff2d15de79fcbe56"
CLEO = "sk_dd1d6ff7ab23a8c7bb275365591033e11030b0e1d1c3f2caa2ccc163a9d6c86f"
GUEST = "gk_2a2f07ba2aedec3a97f13f0f55f527aa52b7f0f505bd9f271b9454ca026572f8"
INVITATION = "gi_39cfad0946f9fe6c310b27a9c2c53e6ee98dff844e982e81b780c9640f227670"
CLEOS_SESSION = (
    "xq0LYvWxeasBcpi0Dq3bDZEzWcvoZs0UJhbhWOsF0wku5MH7IX1JL3AGhqyZ9IA1_ud79zHA99qcGAZw16HgFBIeAN8ml2"
    "9TPQ"
)
"""Opened without a token; cleo registered in it."""
BOBS_SESSION = (
    "g60zuFp-ozMVXGivk3zA6A3D0n5BqMmsp1pFTZdkyqI4eMNrkFyXcXHqoNy6YX6xsEmGwxxC5fRatpoKIhoF8fYu-hDBGi"
    "yIxFnW0l1s_7Fv5zGV_bUOc10BufZrVxflc_zXT_Gf-Q8C"
)


class Then(SystemClock):
    """A clock of an hour after that hub stopped."""

    def __init__(self) -> None:
        self._ahead = THEN + 3600 - super().now()

    def now(self) -> float:
        return super().now() + self._ahead


def kept(folder: Path) -> Path:
    """The database as that hub left it."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    path = folder / "folkmoot.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(DUMP.read_text())
    connection.close()
    path.chmod(0o600)
    return path


def counts(path: Path) -> dict[str, int]:
    connection = sqlite3.connect(path)
    try:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {
            name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names
        }
    finally:
        connection.close()


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


async def rest(there: Meeting, token: str, path: str = "/v1/rooms/square/messages") -> int:
    headers = {"authorization": f"Bearer {token}"}
    return (await ask(there.port, path, headers=headers)).status


@pytest.mark.requirement("credentials.migrated")
async def test_a_database_without_credentials_is_migrated_and_loses_no_row(tmp_path: Path) -> None:
    path = kept(tmp_path)
    before = counts(path)
    assert before["users"] == 3
    async with meeting(tmp_path, "stateless", Then(), master_key=KEY) as there:
        for token, handle in ((ANN, "ann"), (BOB, "bob"), (CLEO, "cleo")):
            account = await there.hub.accounts.authenticate(token)
            assert account is not None
            assert account.handle == handle
            found = await there.hub.accounts.authentication.list(account)
            assert [(each.kind, each.label) for each in found] == [("token", "first token")]
        assert [await rest(there, token) for token in (ANN, BOB, GUEST)] == [200] * 3
        bob = await there.returning(BOB)
        [message] = (await bob.call("msg/inbox", peek=True))["messages"]
        assert message["body"] == "Tea at four?"
    after = counts(path)
    assert after.pop("credentials") == 4
    added = ("browser_codes", "room_proposals", "room_grants", "decisions", "nodes", "room_owners")
    for table in added:
        assert after.pop(table) == 0
    assert rows(path, "SELECT copies_left FROM messages") == [(2,)]
    changed = {"schema_migrations": after["schema_migrations"], "audit": after["audit"]}
    assert changed["schema_migrations"] > before["schema_migrations"]
    assert {**after, **changed} == {**before, **changed}


@pytest.mark.requirement("credentials.migrated")
async def test_the_sessions_invitations_and_recovery_codes_of_before_still_work(
    tmp_path: Path,
) -> None:
    kept(tmp_path)
    body: Any = b'{"token": "' + INVITATION.encode() + b'"}'
    json = {"content-type": "application/json"}
    async with meeting(tmp_path, clock=Then(), master_key=KEY) as there:
        assert told(await call(there, CLEOS_SESSION))["handle"] == "cleo"
        assert told(await call(there, CLEOS_SESSION, f"?token={CLEO}"))["handle"] == "cleo"
        assert told(await call(there, BOBS_SESSION, f"?token={BOB}"))["handle"] == "bob"
        assert (await call(there, BOBS_SESSION)).status == 404
        came = await ask(
            there.port, "/v1/rooms/square/guests", method="POST", headers=json, body=body
        )
        assert await rest(there, came.json()["credential"]) == 200
        back = await there.hub.accounts.recover("ann", ANNS_CODE)
        assert await rest(there, ANN) == 401
        assert await rest(there, back.token) == 200
    # The session was given a row of its own, and goes on after another restart.
    async with meeting(tmp_path, clock=Then(), master_key=KEY) as there:
        assert told(await call(there, CLEOS_SESSION))["handle"] == "cleo"
        cleo = await there.hub.accounts.authenticate(CLEO)
        assert cleo is not None
        [token] = await there.hub.accounts.authentication.list(cleo)
        await there.hub.accounts.authentication.revoke(cleo, token.id)
        again = await call(there, CLEOS_SESSION, message=rpc("tools/list"))
        assert again.status in {200, 401, 404}
        assert b"handle" not in (await call(there, CLEOS_SESSION)).body
