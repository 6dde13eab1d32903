"""Requests between nodes over TLS."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

from folkmoot.clock import SystemClock
from folkmoot.cluster.forwarding import Marks
from folkmoot.core.ports import NodeHome
from folkmoot.mcp.client.connection import HttpFailure
from folkmoot.settings.model import ClusterSettings, TlsSettings
from folkmoot.transports.address import Addresses
from folkmoot.transports.listen import load_ca, load_tls
from folkmoot.transports.mcp.forwarding import NO_CONTENT, PROBE, Forwarding
from tests.certificates import certificate
from tests.harness import served

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


KEY, PROCESS = secrets.token_bytes(32), secrets.token_hex(16)


def forwarding(process: str = "", **more: Any) -> Forwarding:
    marks = Marks(KEY, process or secrets.token_hex(16))
    return Forwarding(marks, SystemClock(), Addresses(), body_bytes=1, total_bytes=1, **more)


async def nothing(_: Scope, __: Receive, ___: Send) -> None:
    raise AssertionError("it is no request of a client")


async def test_other_nodes_are_trusted_by_the_ca_of_the_settings(tmp_path):
    chain, key = certificate(tmp_path)
    trusting = forwarding(tls=load_ca(ClusterSettings(ca_file=str(chain))))
    tls = load_tls(TlsSettings(certificate=str(chain), key=str(key)))
    async with served(forwarding(PROCESS).receiver(nothing), tls=tls) as node:
        home = NodeHome(PROCESS, f"https://127.0.0.1:{node.port}")
        async with trusting.running():
            answer = await trusting._ask(home, PROBE)
            assert answer.status == NO_CONTENT
            answer.close()
        async with (other := forwarding()).running():
            with pytest.raises(HttpFailure, match="certificate"):
                await other._ask(home, PROBE)
