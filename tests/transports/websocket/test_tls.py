"""WebSockets over TLS: the link does not care what its transport is."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from pathlib import Path

import uvicorn
from websockets.asyncio.client import connect

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.accept import TurnedAway
from folkmoot.transports.answers import Answers
from folkmoot.transports.connections import OpenConnections
from folkmoot.transports.guard import Hosts
from folkmoot.transports.listen import listen
from folkmoot.transports.protocol import HubProtocol
from folkmoot.transports.websocket import LinkLimits, WebSocketEndpoint
from folkmoot.web.pages import Pages
from tests.certificates import certificate
from tests.transports.websocket.support import Party
from tests.transports.websocket.test_client import code_of


async def test_links_work_over_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(cert))
    party = Party()
    answers = Answers(Pages(version="0", public_url="").error_page)
    limits = LinkLimits(max_message_bytes=2_000_000)
    endpoint = WebSocketEndpoint(party, hosts=Hosts("127.0.0.1"), answers=answers, limits=limits)
    config = uvicorn.Config(
        endpoint,
        http=partial(HubProtocol, house=OpenConnections(10, TurnedAway())),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    sockets = listen("127.0.0.1", 0)
    url = f"wss://127.0.0.1:{sockets[0].getsockname()[1]}/"
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server._serve(sockets))
        async with connect(url, ssl=trusting, max_size=None, compression=None) as ann:
            for said in ("hello", "x" * 1_500_000, "again"):
                await ann.send(said)
                assert await ann.recv() == said
            server.should_exit = True
            code = await code_of(ann)
    assert code == CloseCode.RESTARTING
