"""WebSockets over TLS: the link does not care what its transport is."""

from __future__ import annotations

import ssl

from websockets.asyncio.client import connect

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.answers import Answers
from folkmoot.transports.guard import Hosts
from folkmoot.transports.websocket import LinkLimits, WebSocketEndpoint
from folkmoot.web.pages import Pages
from tests.certificates import certificate
from tests.harness import served
from tests.transports.rooms.support import ending
from tests.transports.websocket.support import Party


async def test_links_work_over_tls(tmp_path):
    cert, key = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(cert))
    party = Party()
    answers = Answers(Pages(version="0", public_url="").error_page)
    limits = LinkLimits(max_message_bytes=2_000_000)
    endpoint = WebSocketEndpoint(party, hosts=Hosts("127.0.0.1"), answers=answers, limits=limits)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(cert, key)
    async with served(endpoint, shutdown_seconds=5, tls=serving) as hub:
        url = f"wss://127.0.0.1:{hub.port}/"
        async with connect(url, ssl=trusting, max_size=None, compression=None) as ann:
            for said in ("hello", "x" * 1_500_000, "again"):
                await ann.send(said)
                assert await ann.recv() == said
            hub.server.stop()
            assert (await ending(ann)).code == CloseCode.RESTARTING
