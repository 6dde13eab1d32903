"""The commands with which the page of the data folder operates a hub."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from asyncio.subprocess import PIPE

import pytest

from tests.docs.pages import ROOT
from tests.mcp_harness import meeting

PAGE = ROOT / "docs/operations/data-folder.md"


def commands() -> list[list[str]]:
    """What the page says to type."""
    (block,) = re.findall(r"```sh\n(curl .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.requirement("operator.socket")
@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_curl_operates_a_hub_as_the_page_says(tmp_path):
    data, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()

    async def typed(words: list[str]) -> str:
        given = [it.replace(".folkmoot", str(data)).replace("/srv/backups", str(backups))
                 for it in words]  # fmt: skip
        child = await asyncio.create_subprocess_exec(
            given[0], "--silent", *given[1:], stdout=PIPE, stderr=PIPE
        )
        out, err = await child.communicate()
        assert child.returncode == 0, err
        return out.decode()

    async with meeting(data) as there:
        await there.people("alice")
        status, accounts, granted, backup = [await typed(words) for words in commands()]
        assert json.loads(status)["url"] == there.hub.base_url
        assert json.loads(accounts) == {"people": [], "next": None}
        assert json.loads(granted)["granted"] == ["mcp.request.tools/call:files:read_*"]
        events = re.findall(r"^event: (\w+)$", backup, re.MULTILINE)
        assert (set(events[:-1]), events[-1]) == ({"progress"}, "result")
        assert (backups / "folkmoot.db").is_file()
