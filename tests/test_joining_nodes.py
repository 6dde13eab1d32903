"""A node that joins a hub: what it is refused for, in one line, and what it is warned of."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.ports import ListedNode
from folkmoot.settings import load
from tests import nats, postgres
from tests.harness import ask
from tests.mcp_harness import until
from tests.nats import NatsProcess
from tests.nodes import port
from tests.process import environment, ran, serving

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

KEY, OTHER_KEY = "ab" * 32, "cd" * 32
HERE = "http://127.0.0.1:8421"


def node(folder: Path, **variables: str) -> Hub:
    """A node whose settings come from variables, as those of `folkmoot serve` may."""
    given = {
        "PORT": "0",
        "DATA": str(folder),
        "MASTER_KEY": KEY,
        "CLUSTER_ADDRESS": f"http://{folder.name}:8420",
        "CLUSTER_LEASE_SECONDS": "20",
        **variables,
    }
    loaded = load(environ={f"FOLKMOOT_{name}": value for name, value in given.items() if value})
    return Hub(loaded.settings, loaded=loaded)


async def refusal(folder: Path, **variables: str) -> str:
    """What a node that may not join is told; it leaves nothing behind."""
    with pytest.raises(e.FolkmootError) as refused:
        async with node(folder, **variables).running():
            pass
    assert not os.path.exists(folder)  # noqa: PTH110 - a look, in a test
    assert "\n" not in refused.value.message
    assert "hush" not in refused.value.message
    return refused.value.message


async def listed(hub: Hub) -> list[ListedNode]:
    return await hub.store.room_owners.list_nodes()


async def test_a_node_that_may_not_join_is_told_why_and_leaves_nothing(tmp_path):
    url, secret = (await postgres.schema_of(tmp_path), NatsProcess("--user", "hub", "--pass", "x"))
    here = {"STORE_URL": url, "BUS_URL": nats.SHARED[0].url}
    new = tmp_path / "new"
    with closing(secret):
        async with node(tmp_path / "one", **here, CLUSTER_ADDRESS=HERE).running() as hub:
            login = secret.url.replace("//", "//hub:hush@")
            for bus, words in {
                "nats://hub:hush@127.0.0.1:1": "nats://127.0.0.1:1: Connection refused",
                "nats://hush@bus.invalid": "nats://bus.invalid:4222: ",
                login: f"{secret.url}: it refuses this login",
                login.replace("nats:", "tls:"): "the server offers no TLS",
                f"{login},nats://127.0.0.1:1": "refuses this login; nats://127.0.0.1:1: ",
            }.items():
                told = await refusal(new, **{**here, "BUS_URL": bus})
                assert told.startswith("No server of the bus can be used. ")
                assert words in told
            told = await refusal(new, **here, CLUSTER_ADDRESS=HERE)
            assert f"another node has the address {HERE}" in told
            told = await refusal(new, STORE_URL=url, CLUSTER_ADDRESS="")
            assert f"the node {HERE} uses this database. Set bus.url" in told
            told = await refusal(new, **here, MASTER_KEY=OTHER_KEY)
            assert "is not the one that opens this database" in told
            assert "folkmoot keys create" in await refusal(new, **here, MASTER_KEY="")
            assert [each.address for each in await listed(hub)] == [HERE]
        async with node(tmp_path / "one", STORE_URL=url, CLUSTER_ADDRESS="").running():
            told = await refusal(new, **here)
            assert "a hub without bus.url uses this database" in told


async def test_a_bus_that_cannot_be_used_leaves_a_new_database_empty(tmp_path):
    import asyncpg

    url = await postgres.schema_of(tmp_path)
    await refusal(tmp_path / "new", STORE_URL=url, BUS_URL="nats://127.0.0.1:1")
    connection = await asyncpg.connect(url)
    query = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"
    tables = await connection.fetchval(query)
    await connection.close()
    assert tables == 0


def test_the_command_says_it_in_one_line_without_the_password(tmp_path):
    variables = {
        "MASTER_KEY": KEY,
        "STORE_URL": "postgresql://hub:hush@127.0.0.1:1/x",
        "BUS_URL": "nats://hub:hush@127.0.0.1:1",
        "CLUSTER_ADDRESS": HERE,
    }
    env = environment(**{f"FOLKMOOT_{name}": value for name, value in variables.items()})
    done = ran(sys.executable, "-m", "folkmoot", *serving(tmp_path / "n"), env=env)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "folkmoot: error: No server of the bus can be used. nats://127.0.0.1:1: Connection "
        "refused.\n"
    )
    assert not (tmp_path / "n").exists()


async def test_settings_that_differ_are_warned_of_and_shown(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "folkmoot.storage"):
        here = {"STORE_URL": await postgres.schema_of(tmp_path), "BUS_URL": nats.SHARED[0].url}
        async with (
            node(tmp_path / "one", **here).running() as hub,
            node(tmp_path / "two", **here, LOG_LEVEL="debug").running(),
            node(tmp_path / "three", **here, RATES_SEND_PER_MINUTE="7").running(),
        ):
            differing = [each.differing for each in await listed(hub)]
            assert differing == [(), (), ("rates.send_per_minute",)]
    told = [each.__dict__["settings"] for each in caplog.records if "differ" in each.message]
    assert told == ["rates.send_per_minute"]


async def ready(hub: Hub) -> tuple[int, dict[str, bool]]:
    answer = await ask(port(hub), "/health/ready")
    return answer.status, {name: found["ok"] for name, found in answer.json()["checks"].items()}


async def test_a_node_is_ready_with_its_database_its_lease_and_a_bus_that_others_reach(tmp_path):
    url, server, other = await postgres.schema_of(tmp_path), NatsProcess(), NatsProcess()
    with closing(server), closing(other):
        # Two servers that are not connected stand for a network that is cut for one node.
        async with (
            node(tmp_path / "one", STORE_URL=url, BUS_URL=server.url).running(),
            node(tmp_path / "two", STORE_URL=url, BUS_URL=other.url).running() as cut,
        ):
            well = {"database": True, "lease": True, "bus": True, "accepting": True}
            assert await ready(cut) == (200, well)
            other.kill()
            await until(lambda: ready(cut), (503, {**well, "bus": False}))
            other.start()
            await until(lambda: ready(cut), (200, well))
