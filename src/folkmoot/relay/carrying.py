"""One conversation from its beginning to its end, whichever carriers it has."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from folkmoot.core.errors import FolkmootError, ServerUnreachable, TransportClosed
from folkmoot.core.message import Request
from folkmoot.core.verdict import Block
from folkmoot.mcp.carrier import Carrier, Connect
from folkmoot.mcp.eras import EraBridge
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.conversation import Conversation
from folkmoot.relay.pump import DRAIN_SECONDS, Pump
from folkmoot.relay.steps import Steps, answer_of


async def carry(
    client: Carrier,
    connect: Connect,
    steps: Steps,
    sessions: SessionManager,
    *,
    key: str,
    named: bool = True,
    eras: bool = True,
    discoverable: bool = False,
) -> bool:
    """Carry one conversation until it ends; `key` is what its session is known by.

    With `eras` clients and servers of different eras are bridged; unless the server is to be
    `discoverable`, it answers `server/discover` itself.

    The answer says whether it was the server that ended it, and not the client.
    """
    session = sessions.open(key, named=named, lasting=client.shared)
    try:
        async with connect() as server:
            pump = Pump(
                client,
                server,
                Conversation(session),
                steps,
                eras=EraBridge(
                    one_client=not client.shared,
                    discoverable=discoverable,
                    listening=False,
                    transparent=not eras,
                ),
                used=partial(sessions.use, session),
            )
            session.end = pump.end
            session.attended = lambda: client.attended
            await pump.run()
            return pump.deserted
    except ServerUnreachable as error:
        await refuse(client, error)
        raise
    finally:
        sessions.close(session)
        await client.close()


async def refuse(client: Carrier, error: FolkmootError) -> None:
    """Answer the first thing a client asks of a server that cannot be had."""
    with suppress(TransportClosed, TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            message = await client.receive()
            if isinstance(message, Request):
                await client.send(answer_of(Block(error), message.id))
