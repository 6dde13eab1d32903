"""`python -m tests.conformance.serve FOLDER`: a hub with the fixtures on it.

It prints the URL of an account's endpoint, and stops when its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
import uvloop

from folkmoot.app import Hub
from folkmoot.settings import Settings
from tests.conformance.mount import mount


async def serve(folder: str) -> None:
    values = {"port": 0, "data": folder, "rate_limits": "off"}
    async with Hub(msgspec.convert(values, Settings)).running() as hub:
        mount(hub)
        made = await hub.accounts.register("suite", also=hub.mail.welcome)
        sys.stdout.write(f"{hub.base_url}/mcp?token={made.token}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
