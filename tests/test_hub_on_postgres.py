"""A hub whose database is at a PostgreSQL server, from outside."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

import asyncpg

from folkmoot.accounts import Accounts, Pair
from folkmoot.clock import SystemClock
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault
from tests import postgres
from tests.apps import TABLES, connect, fill
from tests.harness import ask
from tests.ports import free_port
from tests.process import Process, environment, ran

pytestmark = postgres.NEEDED
KEY = "ab" * 32


def folkmoot(*arguments: str, **variables: str) -> CompletedProcess[str]:
    return ran(sys.executable, "-m", "folkmoot", *arguments, env=environment(**variables))


async def app_of(data: Path, handle: str) -> Pair:
    """The tokens of an app that someone has connected; the hub is stopped."""
    store = await SqliteStore.open(data / "folkmoot.db")
    try:
        accounts = Accounts(store, SystemClock(), Vault(bytes(32), "test"), policy="open")
        account = await accounts.named(handle)
        await store.write(lambda tx: fill(tx, account.id))
        return await connect(accounts, account, scope="account.read")
    finally:
        await store.close()


async def empty_tables(url: str) -> list[str]:
    """Those of signing in that have no row at a server."""
    connection = await asyncpg.connect(url)
    try:
        counts = [await connection.fetchval(f"SELECT count(*) FROM {name}") for name in TABLES]
    finally:
        await connection.close()
    return [name for name, count in zip(TABLES, counts, strict=True) if not count]


def test_a_hub_moves_to_a_server_and_has_all_that_it_had(tmp_path):
    data, saved = tmp_path / "data", str(tmp_path / "accounts.json")
    url = asyncio.run(postgres.schema_of(tmp_path))

    def as_person(hub: Process, *arguments: str) -> str:
        ran = folkmoot(
            *arguments, "--url", f"http://127.0.0.1:{hub.port}", FOLKMOOT_CREDENTIALS=saved
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    port = free_port()
    with Process(data, port=port) as hub:
        as_person(hub, "register", "ada")
        as_person(hub, "register", "bob")
        as_person(hub, "send", "bob", "The boat is ready.", "--as", "ada")
        hub.stop()
    pair = asyncio.run(app_of(data, "ada"))
    refused = folkmoot("store", "copy", "--to", f"{url}&nonsense=1", "--data", str(data))
    assert refused.returncode != 0
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "the address has a parameter that the server refuses: unrecognized" in refused.stderr
    copied = folkmoot("store", "copy", "--to", url, "--data", str(data))
    assert copied.returncode == 0, copied.stderr
    assert "compared them" in copied.stdout
    assert asyncio.run(empty_tables(url)) == []
    again = folkmoot("store", "copy", "--to", url, "--data", str(data))
    assert "Use an empty database" in again.stderr
    with Process(data, port=port, FOLKMOOT_STORE_URL=url) as hub:
        assert "The boat is ready." in as_person(hub, "inbox", "--as", "bob")
        signed = {"authorization": f"Bearer {pair.access_token}"}
        assert asyncio.run(ask(port, "/v1/me", headers=signed)).status == 200
        as_person(hub, "send", "ada", "Thank you.", "--as", "bob")
        as_person(hub, "room", "create", "square", "--as", "ada")
        as_person(hub, "room", "say", "square", "Hello.", "--as", "ada")
        status = folkmoot("status", "--data", str(data), FOLKMOOT_STORE_URL=url)
        assert status.returncode == 0, status.stderr
        nodes = folkmoot("nodes", "--json", "--data", str(data), FOLKMOOT_STORE_URL=url)
        [node] = json.loads(nodes.stdout)["nodes"]
        assert (node["rooms"], node["lease_seconds"] > 0) == (1, True)
        # The address is in the environment of the hub alone: the hub is asked.
        assert "running" in folkmoot("nodes", "--data", str(data)).stdout
        second = folkmoot(
            "serve", "--port", "0", "--data", str(tmp_path / "other"),
            FOLKMOOT_STORE_URL=url, FOLKMOOT_MASTER_KEY=KEY,
        )  # fmt: skip
        assert "another hub uses this database" in second.stderr
        hub.stop()
    nodes = folkmoot("nodes", "--data", str(data), FOLKMOOT_STORE_URL=url)
    assert "No hub uses the database." in nodes.stdout + nodes.stderr
    doctor = folkmoot("doctor", "--data", str(data), FOLKMOOT_STORE_URL=url)
    assert "PostgreSQL" in doctor.stdout
    assert doctor.returncode == 0, doctor.stdout
    assert "ada" in folkmoot("people", "--data", str(data), FOLKMOOT_STORE_URL=url).stdout
    backup = folkmoot("backup", str(tmp_path / "b.db"), "--data", str(data), FOLKMOOT_STORE_URL=url)
    assert "pg_dump" in backup.stderr
    with Process(data, port=port, FOLKMOOT_STORE_URL=url) as hub:
        assert "Hello." in as_person(hub, "room", "history", "square", "--as", "ada")
        hub.stop()


def test_no_master_key_is_made_silently_for_a_server(tmp_path):
    url = asyncio.run(postgres.schema_of(tmp_path))
    data = str(tmp_path / "data")
    without = folkmoot("serve", "--port", "0", "--data", data, FOLKMOOT_STORE_URL=url)
    assert "folkmoot keys create" in without.stderr
    made = folkmoot("keys", "create", "--data", data)
    assert made.returncode == 0, made.stderr
    with Process(tmp_path / "data", FOLKMOOT_STORE_URL=url) as hub:
        hub.stop()
    other = folkmoot(
        "serve", "--port", "0", "--data", data, FOLKMOOT_STORE_URL=url, FOLKMOOT_MASTER_KEY=KEY
    )
    assert (other.returncode, "Traceback" in other.stderr) == (4, False)
    assert "master key" in other.stderr


def test_a_database_that_cannot_be_used_is_told_in_one_line_and_nothing_is_left(tmp_path):
    data = tmp_path / "data"
    url = asyncio.run(postgres.schema_of(tmp_path))
    made = folkmoot("keys", "create", "--data", str(data))
    assert made.returncode == 0, made.stderr
    assert "already exists" in folkmoot("keys", "create", "--data", str(data)).stderr
    before = files(data)
    wrong = {
        "mysql://hub:geheim@db/x": "must be empty, or an address such as postgresql://",
        "postgresql://hub:ge@heim@db/x": "FOLKMOOT_STORE_URL",
        "postgresql://hub:geheim@127.0.0.1:1/x": "cannot be reached: Connection refused.",
        "postgresql://hub:geheim@db.invalid/x": "The server cannot be reached:",
        url.replace("/postgres?", "/absent?"): "There is no such database:",
        url.replace("//hub@", "//eve:geheim@"): "The server refuses the connection:",
        f"{url}&default_transaction_read_only=on": "the server accepts no writes.",
        f"{url}&nonsense=1": "store.url has a parameter that the server refuses: unrecognized",
    }
    for address, words in wrong.items():
        ran = folkmoot("serve", "--port", "0", "--data", str(data), FOLKMOOT_STORE_URL=address)
        assert words in ran.stderr, ran.stderr
        assert ran.returncode != 0
        assert ran.stderr.count("\n") == 1, ran.stderr
        assert "geheim" not in ran.stderr + ran.stdout
        assert files(data) == before
        shown = folkmoot("doctor", "--data", str(data), FOLKMOOT_STORE_URL=address)
        assert "geheim" not in shown.stdout + shown.stderr
        assert "Traceback" not in shown.stderr
    asked = folkmoot(
        "config", "show", "--data", str(data),
        FOLKMOOT_STORE_URL="postgresql://hub:geheim@db/folkmoot",
    )  # fmt: skip
    assert "postgresql://hub@db/folkmoot" in asked.stdout
    assert "geheim" not in asked.stdout + asked.stderr


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
