"""A Pydantic AI agent that asks a person before it calls a tool.

    FOLKMOOT_TOKEN=sk_… OPENAI_API_KEY=… python asks_pydantic_ai.py --to ada "Deploy 1.2."

A run in which a tool has to be approved ends with `DeferredToolRequests`. The person is asked about
each call, and the run goes on with their decisions: the tool gets the arguments that they approved,
which they may have edited, or the model reads why not.
Needs `pip install pydantic-ai-slim[openai]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model

from folkmoot.client import Asks


async def decide(
    asks: Asks, call: ToolCallPart, why: str, to: str | None
) -> ToolApproved | ToolDenied:
    """What the person decides about one call."""
    said = await asks.ask(call.tool_name, call.args_as_dict(), why=why, to=to, edits=True)
    if said.state == "approved":
        return ToolApproved(override_args=said.arguments)
    return ToolDenied(said.reason or f"The call was not approved: {said.state}.")


async def run(agent: Agent, task: str, asks: Asks, to: str | None) -> str:
    """Run a task to its end, and ask about each call that has to be approved."""
    result = await agent.run(task)
    while isinstance(result.output, DeferredToolRequests):
        calls = result.output.approvals
        decisions = await asyncio.gather(*(decide(asks, call, task, to) for call in calls))
        ids = [call.tool_call_id for call in calls]
        approvals = dict(zip(ids, decisions, strict=True))
        result = await agent.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals=approvals),
        )
    return result.output


def agent_of(model: Model | str) -> Agent:
    """An agent with a tool that it only calls once a person has approved."""
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def deploy(version: str, place: str) -> str:
        """Deploy a version to staging or production."""
        print(f"Deploying {version} to {place}.")
        return f"{version} runs in {place}."

    return agent


def main() -> None:
    """Read the options and do what is asked for."""
    parser = argparse.ArgumentParser(description="An agent that asks before it deploys.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--to", help="who is asked; without it, you")
    parser.add_argument("--model", default="openai:gpt-5.5", help="as Pydantic AI names it")
    parser.add_argument("task", help='what to do, such as "Deploy 1.2 to production."')
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the agent's token")
    asks = Asks(options.url, token)
    print(asyncio.run(run(agent_of(options.model), options.task, asks, options.to)))


if __name__ == "__main__":
    main()
