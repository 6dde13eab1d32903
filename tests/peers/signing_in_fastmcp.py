"""A client of FastMCP that signs in by itself; it runs in an environment that has FastMCP.

For each line it reads, it calls `msg_whoami` and writes a line with the answer. The number on the
line is how many seconds its clock is ahead: this client renews its token by the clock alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from fastmcp import Client
from fastmcp.client.auth import OAuth

clock = time.time


async def main(url: str) -> None:
    auth = OAuth()
    while line := await asyncio.to_thread(sys.stdin.readline):
        ahead = float(line)
        time.time = lambda: clock() + ahead  # noqa: B023
        try:
            async with Client(url, auth=auth) as client:
                told = (await client.call_tool("msg_whoami", {})).content[0].text
        except Exception as error:  # noqa: BLE001 - told
            told = f"failed: {error!r}"
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


asyncio.run(main(sys.argv[1]))
