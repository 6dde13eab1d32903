"""The fixtures of the conformance suite: a hub has none, and the tests can put them on one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from tests.conformance.mount import mount
from tests.mcp_harness import Meeting, Person, both_eras, meeting


async def shown(there: Meeting, handle: str) -> tuple[list[str], list[str]]:
    """The tools and resources that someone with an account sees."""
    someone = await there.person(handle)
    tools = (await someone.client.list_tools()).tools
    resources = (await someone.client.list_resources()).resources
    return [tool.name for tool in tools], [str(each.uri) for each in resources]


@both_eras
async def test_a_hub_shows_only_its_own(era: str, tmp_path: Path) -> None:
    async with meeting(tmp_path, era) as there:
        tools, resources = await shown(there, "someone")
        assert tools
        assert all(name.startswith(("msg_", "room_", "folkmoot_")) for name in tools)
        assert resources == ["mmp://mailboxes/inbox", "ui://mmp-inbox"]
        stranger = await there.stranger()
        assert (await stranger.client.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="Unknown tool"):
            await stranger.client.call_tool("test_simple_text", {})


@both_eras
async def test_mounted_they_stand_beside_the_hubs_own_for_whoever_has_an_account(
    era: str, tmp_path: Path
) -> None:
    async with meeting(tmp_path, era) as there:
        own_tools, own_resources = await shown(there, "before")
        mount(there.hub)
        tools, resources = await shown(there, "after")
        assert tools[: len(own_tools)] == own_tools
        assert "test_simple_text" in tools[len(own_tools) :]
        assert resources[: len(own_resources)] == own_resources
        assert "test://static-text" in resources[len(own_resources) :]
        alice, bob = await there.people("alice", "bob")
        await alice.call("msg_send", to="bob", body="Hello")
        assert len((await bob.call("msg_inbox"))["messages"]) == 1
        result = await bob.client.call_tool("test_simple_text", {})
        assert getattr(result.content[0], "text", "").startswith("This is a simple text")
        assert "Authentication required" in await refused(await there.stranger())


async def refused(someone: Person) -> str:
    """What someone is told who may not call a fixture, as an error of either kind."""
    try:
        result = await someone.client.call_tool("test_simple_text", {})
    except MCPError as error:
        return error.error.message
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))
