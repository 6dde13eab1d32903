"""server-filesystem behind the hub."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mcp_harness import ERAS
from tests.peers.clients import client_of
from tests.peers.gateway import (
    Through,
    as_own,
    backend,
    check_tools,
    fronted,
    guest,
    token_of,
)
from tests.peers.script import files_used
from tests.peers.servers import Place, filesystem_command


@contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """Leave the folder as empty as it was."""
    try:
        yield
    finally:
        shutil.rmtree(folder)
        folder.mkdir()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.requirement(
    "gateway.routes-by-namespace", "gateway.backends-own-name", "gateway.tools-aggregated"
)
async def test_clients_of_both_eras_get_of_server_filesystem_what_they_get_without_the_hub(
    tmp_path,
):
    folder = tmp_path / "files"
    folder.mkdir()
    server = Place("stdio", filesystem_command(folder))
    with emptied(folder):
        async with client_of(server) as client:
            own_tools, *own = await files_used(client, folder)
    assert "denied" in str(own)
    async with fronted(tmp_path / "hub", backend("files", server)) as there:
        token = await token_of(there, "ada")
        for era in ERAS:
            with emptied(folder):
                async with guest(there, token, era=era) as client:
                    tools, *did = await files_used(Through(client, "files"), folder)
            assert as_own(did, "files") == as_own(own, "files")
            check_tools(own_tools["tools"], tools["tools"], "files")
