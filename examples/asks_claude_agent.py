"""An agent of the Claude Agent SDK that asks a person before it calls a tool.

    FOLKMOOT_TOKEN=sk_… ANTHROPIC_API_KEY=… python asks_claude_agent.py --to ada "Deploy 1.2."

The SDK calls `can_use_tool` before each tool that no setting allows, and waits for it. The tool
gets the arguments that the person approved, which they may have edited, or the model reads why not.
Needs `pip install claude-agent-sdk`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any

from claude_agent_sdk import (
    CanUseTool,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    create_sdk_mcp_server,
    tool,
)

from folkmoot.client import Asks


def asking(asks: Asks, why: str, to: str | None) -> CanUseTool:
    """A `can_use_tool` with which a person decides about each call."""

    async def can_use_tool(
        name: str, arguments: dict[str, Any], _: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        said = await asks.ask(name, arguments, why=why, to=to, edits=True)
        if said.state == "approved":
            return PermissionResultAllow(updated_input=said.arguments)
        reason = said.reason or f"The call was not approved: {said.state}."
        return PermissionResultDeny(message=reason)

    return can_use_tool


@tool("deploy", "Deploy a version to staging or production.", {"version": str, "place": str})
async def deploy(arguments: dict[str, Any]) -> dict[str, Any]:
    version, place = arguments["version"], arguments["place"]
    print(f"Deploying {version} to {place}.")
    return {"content": [{"type": "text", "text": f"{version} runs in {place}."}]}


async def run(model: str | None, task: str, asks: Asks, to: str | None) -> str | None:
    """Run a task to its end, and ask about each call."""
    options = ClaudeAgentOptions(
        model=model,
        can_use_tool=asking(asks, task, to),
        mcp_servers={"work": create_sdk_mcp_server("work", tools=[deploy])},
        tools=[],  # none of Claude Code's own
        setting_sources=[],  # whose rules could allow calls without asking
    )
    async with ClaudeSDKClient(options) as client:
        await client.query(task)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                return message.result
    return None


def main() -> None:
    """Read the options and do what is asked for."""
    parser = argparse.ArgumentParser(description="An agent that asks before it deploys.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--to", help="who is asked; without it, you")
    parser.add_argument("--model", help="by default the SDK's")
    parser.add_argument("task", help='what to do, such as "Deploy 1.2 to production."')
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the agent's token")
    asks = Asks(options.url, token)
    print(asyncio.run(run(options.model, options.task, asks, options.to)))


if __name__ == "__main__":
    main()
