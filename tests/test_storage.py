"""The name of a hub among those at one database."""

from __future__ import annotations

import secrets
import socket

import pytest

from folkmoot import storage
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths
from tests import postgres


@pytest.fixture(autouse=True)
def _same_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "hub")


def test_a_hub_that_restarts_in_its_folder_has_the_name_it_had(tmp_path):
    before = storage.node_name(Paths(tmp_path))
    (tmp_path / "master.key").write_text("made meanwhile")
    assert storage.node_name(Paths(tmp_path)) == before


def test_hubs_with_one_host_name_and_one_path_differ_by_their_disk(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    one = storage.node_name(Paths(folder))
    folder.rename(tmp_path / "of-another-machine")
    folder.mkdir()
    assert storage.node_name(Paths(folder)) != one


def test_hubs_with_one_host_name_and_one_path_differ_by_their_machine(tmp_path, monkeypatch):
    names = set()
    for number in ("1" * 32, "2" * 32):
        machine = tmp_path / number
        machine.write_text(f"{number}\n")
        monkeypatch.setattr(storage, "MACHINE_ID", machine)
        names.add(storage.node_name(Paths(tmp_path)))
    monkeypatch.setattr(storage, "MACHINE_ID", tmp_path / "none")
    names.add(storage.node_name(Paths(tmp_path)))
    assert len(names) == 3


@pytest.mark.parametrize("_server", [pytest.param(None, id="18", marks=postgres.NEEDED)])
async def test_a_machine_made_alike_is_refused_and_a_hub_that_was_killed_is_not(tmp_path, _server):
    from folkmoot.store.postgres import HubNode, PostgresStore

    folder = tmp_path / "data"
    folder.mkdir()
    url = await postgres.schema_of(tmp_path)

    async def start() -> PostgresStore:
        named = HubNode(storage.node_name(Paths(folder)), secrets.token_hex(8))
        return await PostgresStore.open(url, node=named)

    killed, again = await start(), await start()
    folder.rename(tmp_path / "of-another-machine")
    folder.mkdir()
    with pytest.raises(e.DatabaseInUse):
        await start()
    await again.ready()
    await killed.close()
    await again.close()
