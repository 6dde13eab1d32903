"""A server made with FastMCP, which takes notes; run by an environment of FastMCP's own.

It listens on a free port of this machine, and says on standard error on which.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from notebook import STATELESS, fill, led_to

RHYME = types.TextContent(type="text", text="Rhyme.")


@dataclass
class Name:
    """Who someone is."""

    name: str


server: FastMCP[Any] = FastMCP("notebook", version="4", instructions="Take notes.")


fill(server, {"readOnlyHint": True}, ToolError)


@server.tool
async def work(ctx: Context, steps: int) -> str:
    """Say how it goes."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await ctx.info(f"did {step + 1}")
    return "done"


@server.tool
async def greet(ctx: Context) -> Any:
    """Greet whoever answers with what a model makes of it."""
    if ctx.session.protocol_version != STATELESS:
        who = await ctx.elicit("Who are you?", Name)
        told = await ctx.session.create_message(
            [types.SamplingMessage(role="user", content=RHYME)],
            max_tokens=50,
            related_request_id=ctx.request_id,
        )
        return f"Hello, {who.data.name}: {told.content.text}"
    answers = ctx.input_responses or {}
    if "who" not in answers:
        form = types.ElicitRequestFormParams(
            message="Who are you?",
            requested_schema={"type": "object", "properties": {"name": {"type": "string"}}},
        )
        rhyme = types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=RHYME)], max_tokens=50
        )
        return types.InputRequiredResult(
            input_requests={
                "who": types.ElicitRequest(params=form),
                "rhyme": types.CreateMessageRequest(params=rhyme),
            },
            request_state="greeting",
        )
    name = answers["who"].content["name"]
    return f"{ctx.request_state}: Hello, {name}: {answers['rhyme'].content.text}"


@server.tool
async def visit(ctx: Context, url: str) -> Any:
    """Lead someone to a page."""
    if ctx.session.protocol_version != STATELESS:
        return (await ctx.session.elicit_url("Please look.", url, "theirs", ctx.request_id)).action
    return led_to(url, ctx)


async def main() -> None:
    """Listen until we are ended."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stderr.write(f"listens on {listener.getsockname()[1]} now\n")
        await server.run_http_async(show_banner=False, sockets=[listener], log_level="error")


if __name__ == "__main__":
    asyncio.run(main())
