"""A server made with FastMCP that wants its own sign-in, and lets everyone in who asks.

It runs in an environment that has FastMCP, and says on standard error on which port it listens.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions


async def main() -> None:
    """Listen until we are ended."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        auth = InMemoryOAuthProvider(
            base_url=f"http://127.0.0.1:{port}",
            client_registration_options=ClientRegistrationOptions(enabled=True),
            revocation_options=RevocationOptions(enabled=True),
        )
        server: FastMCP = FastMCP("diary", auth=auth)

        @server.tool
        async def whose() -> str:
            """The token that was shown, and how many are good."""
            token = get_access_token()
            return f"{token and token.token[-8:]} of {len(auth.access_tokens)}"

        sys.stderr.write(f"listens on {port} now\n")
        await server.run_http_async(show_banner=False, sockets=[listener], log_level="error")


asyncio.run(main())
