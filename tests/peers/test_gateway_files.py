"""server-filesystem behind the hub."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.backends import operator
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

READ_ONLY = ("mcp.request.tools/call:files:read_*", "mcp.request.tools/call:files:list_*")


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
    tmp_path: Path,
) -> None:
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
                    through: Any = Through(client, "files")
                    tools, *did = await files_used(through, folder)
            assert as_own(did, "files") == as_own(own, "files")
            check_tools(own_tools["tools"], tools["tools"], "files")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.requirement("gateway.rights-by-effective-kind")
async def test_someone_who_may_only_read_files_cannot_write_any(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("here")
    place = Place("stdio", filesystem_command(folder))
    spec = backend("files", place, everyone=False)
    async with fronted(tmp_path / "hub", spec, grants={"gina": READ_ONLY}) as there:
        invited = await operator(there.hub, "folkmoot/invite_for", handle="gina")
        made = await there.hub.accounts.register("gina", invite_code=invited["invite_code"])
        async with guest(there, made.token) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            shown = {name for name in names if name.startswith("files_")}
            assert "files_read_text_file" in shown
            assert all(name.startswith(("files_read_", "files_list_")) for name in shown)
            path = {"path": str(folder / "a.txt")}
            read = await client.call_tool("files_read_text_file", path)
            assert read.content[0].text == "here"
            for name in ("files_write_file", "files:write_file"):
                refused = await client.call_tool(name, {**path, "content": "gone"})
                assert refused.is_error
                assert json.loads(refused.content[0].text)["code"] == "capability_denied"
    assert (folder / "a.txt").read_text() == "here"
