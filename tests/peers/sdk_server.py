"""A server made with the official SDK, in which every part of MCP can be used.

python -m tests.peers.sdk_server        on standard input and output
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from tests.harness import serving
from tests.peers.notebook import STATELESS, fill, led_to


class Name(BaseModel):
    """Who someone is."""

    name: str


async def who() -> Elicit[Name]:
    """Ask the person."""
    return Elicit("Who are you?", Name)


async def rhyme(asked: Annotated[Name, Resolve(who)]) -> Sample:
    """Ask the model, once the person has answered."""
    said = types.TextContent(type="text", text=f"Rhyme on {asked.name}.")
    return Sample([types.SamplingMessage(role="user", content=said)], max_tokens=50)


class Notebook:
    """What the server has seen."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.headers: list[dict[str, str]] = []
        # Set once someone waits for what never comes.
        self.hanging = anyio.Event()
        # Set once that was cancelled.
        self.over = anyio.Event()


def notebook(book: Notebook) -> MCPServer:
    """The server, which notes what it sees in a book."""
    server = MCPServer("notebook", version="3", instructions="Take notes.", log_level="ERROR")

    fill(server, types.ToolAnnotations(read_only_hint=True), ToolError)

    @server.tool()
    async def work(ctx: Context[Any, Any], steps: int) -> str:
        """Say how it goes."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await ctx.log("info", f"did {step + 1}")
        return "done"

    @server.tool()
    async def hang() -> str:
        """Wait for ever."""
        book.hanging.set()
        try:
            await anyio.sleep_forever()
        finally:
            book.happened.append("cancelled")
            book.over.set()
        return "never"

    @server.tool()
    async def greet(
        asked: Annotated[Name, Resolve(who)],
        poem: Annotated[types.CreateMessageResult, Resolve(rhyme)],
    ) -> str:
        """Greet whoever answers with what a model makes of it."""
        said = poem.content.text if isinstance(poem.content, types.TextContent) else "?"
        return f"Hello, {asked.name}: {said}"

    @server.tool()
    async def visit(ctx: Context[Any, Any], url: str) -> Any:
        """Lead someone to a page."""
        if ctx.protocol_version != STATELESS:
            return (await ctx.elicit_url("Please look.", url, "theirs")).action
        return led_to(url, ctx)

    @server.tool()
    async def learn(ctx: Context[Any, Any], name: str) -> str:
        """Have one tool more from now on."""

        async def learned() -> str:
            return name

        server.add_tool(learned, name=name)
        await ctx.notify_tools_changed()
        with suppress(MCPError):
            await ctx.session.send_tool_list_changed()
        return name

    @server.tool()
    async def touch(ctx: Context[Any, Any], name: str) -> str:
        """Have a note change."""
        await ctx.notify_resource_updated(f"note://{name}")
        return name

    @server.tool()
    async def note_headers(ctx: Context[Any, Any]) -> str:
        """Note what came with the request."""
        book.headers.append(dict(ctx.headers or {}))
        return "noted"

    return server


@asynccontextmanager
async def notebook_http(book: Notebook, **options: Any) -> AsyncIterator[str]:
    """The server over HTTP, in this process; the answer is its address."""
    manager = StreamableHTTPSessionManager(notebook(book)._lowlevel_server, **options)
    endpoints = {"/mcp": manager.handle_request}
    async with manager.run(), serving(endpoints=endpoints, max_body_bytes=2**20) as there:
        yield f"http://127.0.0.1:{there.port}/mcp"


if __name__ == "__main__":
    notebook(Notebook()).run()
