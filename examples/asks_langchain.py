"""A LangChain agent that asks a person before it calls a tool.

    FOLKMOOT_TOKEN=sk_… OPENAI_API_KEY=… python asks_langchain.py --to ada "Deploy 1.2."

`HumanInTheLoopMiddleware` interrupts the agent before some tools. The person is asked about each
call, and the agent is resumed with their decisions: the tool gets the arguments that they approved,
which they may have edited, or the model reads why not.
Needs `pip install langchain langchain-openai`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from folkmoot.client import Asks


async def decide(asks: Asks, action: dict[str, Any], why: str, to: str | None) -> dict[str, Any]:
    """What the person decides about one call."""
    tool, arguments = action["name"], action["args"]
    said = await asks.ask(tool, arguments, why=why, to=to, edits=True)
    if said.state != "approved":
        reason = said.reason or f"The call was not approved: {said.state}."
        return {"type": "reject", "message": reason}
    if said.arguments == arguments:
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": tool, "args": said.arguments}}


async def run(agent: CompiledStateGraph, task: str, asks: Asks, to: str | None) -> str:
    """Run a task to its end, and ask about each call that has to be approved."""
    thread = {"configurable": {"thread_id": uuid4().hex}}
    state = await agent.ainvoke({"messages": [{"role": "user", "content": task}]}, thread)
    while "__interrupt__" in state:
        (paused,) = state["__interrupt__"]
        actions = paused.value["action_requests"]
        decisions = await asyncio.gather(*(decide(asks, each, task, to) for each in actions))
        state = await agent.ainvoke(Command(resume={"decisions": decisions}), thread)
    return state["messages"][-1].text


def deploy(version: str, place: str) -> str:
    """Deploy a version to staging or production."""
    print(f"Deploying {version} to {place}.")
    return f"{version} runs in {place}."


def agent_of(model: BaseChatModel | str) -> CompiledStateGraph:
    """An agent with a tool that it only calls once a person has approved."""
    return create_agent(
        model,
        [deploy],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"deploy": True})],
        checkpointer=InMemorySaver(),
    )


def main() -> None:
    """Read the options and do what is asked for."""
    parser = argparse.ArgumentParser(description="An agent that asks before it deploys.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--to", help="who is asked; without it, you")
    parser.add_argument("--model", default="openai:gpt-5.5", help="as LangChain names it")
    parser.add_argument("task", help='what to do, such as "Deploy 1.2 to production."')
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the agent's token")
    asks = Asks(options.url, token)
    print(asyncio.run(run(agent_of(options.model), options.task, asks, options.to)))


if __name__ == "__main__":
    main()
