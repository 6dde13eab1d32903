"""The SDK's own client and server, each held to one era, with the bridge between them.

Every message crosses the bridge as bytes, as it would on a pipe.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import _serve_modern_stream, serve_loop
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from folkmoot.core.message import decode_message, encode_message
from folkmoot.mcp.eras import EraBridge, Step, ToServer

Reading = MemoryObjectReceiveStream[SessionMessage | Exception]
Writing = MemoryObjectSendStream[SessionMessage]
Serve = Callable[[Server[Any], Reading, Writing], Coroutine[Any, Any, None]]


async def serve_handshake(server: Server[Any], reading: Reading, writing: Writing) -> None:
    """A server that knows the handshake era alone."""
    async with server.lifespan(server) as state:
        told = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        options = server.create_initialization_options(told)
        await serve_loop(server, reading, writing, lifespan_state=state, init_options=options)


async def serve_stateless(server: Server[Any], reading: Reading, writing: Writing) -> None:
    """A server that knows the stateless era alone."""
    async with server.lifespan(server) as state:
        await _serve_modern_stream(
            server, reading, writing, lifespan_state=state, raise_exceptions=False
        )


@asynccontextmanager
async def between(
    server: Server[Any], serve: Serve, bridge: EraBridge
) -> AsyncIterator[tuple[Reading, Writing]]:
    """A way for a client to a server, over a bridge."""
    to_client, client_reads = anyio.create_memory_object_stream[Any](math.inf)
    client_writes, from_client = anyio.create_memory_object_stream[Any](math.inf)
    to_server, server_reads = anyio.create_memory_object_stream[Any](math.inf)
    server_writes, from_server = anyio.create_memory_object_stream[Any](math.inf)

    async def pump(source: Reading, hear: Callable[[Any], list[Step]]) -> None:
        async for item in source:
            assert isinstance(item, SessionMessage)
            raw = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            for step in hear(decode_message(raw)):
                there = to_server if isinstance(step, ToServer) else to_client
                message = jsonrpc_message_adapter.validate_json(encode_message(step.message))
                there.send_nowait(SessionMessage(message))

    streams = (to_client, client_reads, client_writes, from_client)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pump, from_client, bridge.from_client)
        tasks.start_soon(pump, from_server, bridge.from_server)
        tasks.start_soon(serve, server, server_reads, server_writes)
        try:
            yield client_reads, client_writes
        finally:
            tasks.cancel_scope.cancel()
    for stream in (*streams, to_server, server_reads, server_writes, from_server):
        stream.close()
