"""A client for the conformance suite: it signs in to a server through the proxy.

python -m tests.peers.signing_client URL
"""

from __future__ import annotations

import asyncio
import sys

from tests.relay.standing import before
from tests.relay.test_signin import Browser, signed_in


async def main(url: str) -> None:
    async with before(url) as proxy, signed_in(proxy, Browser(), "auto") as client:
        await client.list_tools()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
