"""The library inside a server made with the official SDK, as its users would see it."""

from __future__ import annotations

import logging

import pytest
from mcp import Client
from mcp.server import MCPServer

from folkmoot.names import Namespace, deprecated

ours = Namespace("myproject")


def build() -> MCPServer:
    """A small server whose names are all made by the library."""
    server = MCPServer("myproject")

    @server.tool(name=ours.make_tool_name("create_task"))
    async def create_task(title: str, urgent: bool = False) -> dict[str, str]:
        """Create a new task."""
        return {"title": title, "urgent": str(urgent)}

    @server.tool(name=ours.make_tool_name("process_data"))
    @deprecated(since="1.4.0", removed_in="1.6.0", use="process_data_v2", version="1.5.0")
    async def process_data(legacy: str, times: int = 2) -> str:
        """Legacy format."""
        return legacy * times

    @server.tool(name=ours.make_tool_name("old_report"))
    @deprecated(since="1.4.0", removed_in="1.6.0", version="1.4.0")
    def old_report(day: int) -> int:
        """Report."""
        return day

    @server.resource(ours.make_resource_uri("templates", "daily-report.md"))
    async def template() -> str:
        return "# Report"

    @server.resource(ours.make_resource_template("tasks", "{task_id}"))
    async def task(task_id: str) -> str:
        return f"task {task_id}"

    @server.prompt(name=ours.make_tool_name("plan_day"))
    def plan_day(mood: str) -> str:
        """Plan a day."""
        return f"A {mood} day."

    return server


@pytest.mark.requirement(
    "names.make-tool-name", "names.make-resource-uri", "names.deprecation-n-plus-1"
)
async def test_a_server_of_the_official_sdk_lists_and_serves_names_made_by_the_library(caplog):
    async with Client(build()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            "myproject:create_task",
            "myproject:process_data",
            "myproject:old_report",
        }
        for name in tools:
            ours.validate_tool_name(name)
        assert tools["myproject:process_data"].description == "Legacy format."
        schema = tools["myproject:process_data"].input_schema
        assert {name: kind["type"] for name, kind in schema["properties"].items()} == {
            "legacy": "string",
            "times": "integer",
        }
        assert schema["required"] == ["legacy"]

        made = await client.call_tool("myproject:create_task", {"title": "x"})
        assert made.structured_content == {"title": "x", "urgent": "False"}
        old = await client.call_tool("myproject:process_data", {"legacy": "ab"})
        assert old.structured_content == {"result": "abab"}
        older = await client.call_tool("myproject:old_report", {"day": 3})
        assert older.structured_content == {"result": 3}

        [listed] = (await client.list_resources()).resources
        ours.validate_resource_uri(str(listed.uri))
        [shape] = (await client.list_resource_templates()).resource_templates
        ours.validate_resource_template(shape.uri_template)
        read = await client.read_resource(ours.make_resource_uri("tasks", "t-1"))
        assert [part.text for part in read.contents] == ["task t-1"]  # type: ignore[union-attr]
        [prompt] = (await client.list_prompts()).prompts
        ours.validate_tool_name(prompt.name)
    said = [
        (record.levelno, record.getMessage().split(" is ")[0])
        for record in caplog.records
        if record.name == __name__
    ]
    assert said == [(logging.ERROR, "process_data"), (logging.WARNING, "old_report")]
