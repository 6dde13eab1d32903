"""The fixtures of the conformance suite: where they are, and above all where they are not."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.harness import run
from tests.mcp_harness import Meeting, both_eras, meeting
from tests.process import environment

FIXTURES: dict[str, Any] = {"mcp": {"conformance_fixtures": True}}


async def shown(there: Meeting) -> tuple[list[str], list[str]]:
    """The tools and resources that someone with an account sees."""
    someone = await there.person("someone")
    tools = (await someone.client.list_tools()).tools
    resources = (await someone.client.list_resources()).resources
    return [tool.name for tool in tools], [str(each.uri) for each in resources]


@both_eras
def test_without_the_setting_a_hub_shows_only_its_own(era: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path, era) as there:
            tools, resources = await shown(there)
            assert tools
            assert all(name.startswith(("msg_", "room_")) for name in tools)
            assert resources == ["mmp://mailboxes/inbox", "ui://mmp-inbox"]
            stranger = await there.stranger()
            assert (await stranger.client.list_prompts()).prompts == []
            with pytest.raises(MCPError, match="Unknown tool"):
                await stranger.client.call_tool("test_simple_text", {})

    run(main())


@both_eras
def test_with_the_setting_they_stand_beside_the_hubs_own(era: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path / "plain", era) as there:
            own_tools, own_resources = await shown(there)
        async with meeting(tmp_path / "mounted", era, **FIXTURES) as there:
            tools, resources = await shown(there)
            assert tools[: len(own_tools)] == own_tools
            assert "test_simple_text" in tools[len(own_tools) :]
            assert resources[: len(own_resources)] == own_resources
            assert "test://static-text" in resources[len(own_resources) :]
            alice, bob = await there.people("alice", "bob")
            await alice.call("msg_send", to="bob", body="Hello")
            assert len((await bob.call("msg_inbox"))["messages"]) == 1
            result = await bob.client.call_tool("test_simple_text", {})
            assert getattr(result.content[0], "text", "").startswith("This is a simple text")

    run(main())


@both_eras
def test_only_someone_with_an_account_can_call_them(era: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path, era, **FIXTURES) as there:
            stranger = await there.stranger()
            with pytest.raises(MCPError, match="Authentication required"):
                await stranger.client.call_tool("test_simple_text", {})

    run(main())


def test_a_hub_says_in_its_log_that_they_are_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with meeting(tmp_path / "plain"):
            pass
        assert "conformance" not in caplog.text
        async with meeting(tmp_path / "mounted", **FIXTURES):
            pass

    run(main())
    (record,) = [each for each in caplog.records if "conformance" in each.getMessage()]
    assert record.levelno == logging.WARNING


def test_a_hub_without_them_does_not_even_import_them(tmp_path: Path) -> None:
    program = (
        "import sys, folkmoot.app; print('folkmoot.transports.mcp.conformance' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert done.stdout.strip() == "False"


def test_a_hub_that_stops_ends_the_streams_of_those_who_listen(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(
            tmp_path, "stateless", http={"shutdown_seconds": 60}, **FIXTURES
        ) as there:
            alice = await there.person("alice")
            async with alice.client.listen(tools_list_changed=True) as events:
                await alice.client.call_tool("test_trigger_tool_change", {})
                assert await anext(aiter(events)) is not None
                there.hub.stop()
                assert [event async for event in events] == []

    run(main(), seconds=30)


def test_what_an_era_does_not_know_is_refused_in_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path, **FIXTURES) as there:
            alice = await there.person("alice")
            with pytest.raises(MCPError, match="came with MCP 2026-07-28"):
                await alice.client.call_tool("test_input_required_result_elicitation", {})

    run(main())
