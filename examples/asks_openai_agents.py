"""An agent of the OpenAI Agents SDK that asks a person before it calls a tool.

    FOLKMOOT_TOKEN=sk_… OPENAI_API_KEY=… python asks_openai_agents.py --to ada "Deploy 1.2."

A run stops at each tool with `needs_approval`, and lists the calls in `interruptions`. The person
is asked about each, and the run goes on with their decisions. The SDK cannot change the arguments
of a call: if the person edits them, the model reads what was approved and calls the tool again,
which is not asked about then. Needs `pip install openai-agents`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from typing import Any

from agents import Agent, Model, Runner, RunState, ToolApprovalItem, function_tool

from folkmoot.client import Asks

Call = tuple[str, dict[str, Any]]


async def decide(
    asks: Asks,
    state: RunState,
    item: ToolApprovalItem,
    edited: list[Call],
    why: str,
    to: str | None,
) -> None:
    """Let a person decide about one call; `edited` are those that they approved instead."""
    tool, arguments = call = item.tool_name, json.loads(item.arguments)
    if call in edited:
        edited.remove(call)
        state.approve(item)
        return
    said = await asks.ask(tool, arguments, why=why, to=to, edits=True)
    if said.state != "approved":
        reason = said.reason or f"The call was not approved: {said.state}."
        state.reject(item, rejection_message=reason)
    elif said.arguments == arguments:
        state.approve(item)
    else:
        edited.append((tool, said.arguments))
        approved = json.dumps(said.arguments)
        state.reject(item, rejection_message=f"Approved with these arguments only: {approved}")


async def run(agent: Agent, task: str, asks: Asks, to: str | None) -> str:
    """Run a task to its end, and ask about each call that has to be approved."""
    edited: list[Call] = []
    result = await Runner.run(agent, task)
    while result.interruptions:
        state = result.to_state()
        await asyncio.gather(
            *(decide(asks, state, item, edited, task, to) for item in result.interruptions)
        )
        result = await Runner.run(agent, state)
    return result.final_output


@function_tool(needs_approval=True)
def deploy(version: str, place: str) -> str:
    """Deploy a version to staging or production."""
    print(f"Deploying {version} to {place}.")
    return f"{version} runs in {place}."


def agent_of(model: Model | str | None) -> Agent:
    """An agent with a tool that it only calls once a person has approved."""
    return Agent(name="Deployer", model=model, tools=[deploy])


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
    print(asyncio.run(run(agent_of(options.model), options.task, asks, options.to)))


if __name__ == "__main__":
    main()
