"""WebSockets over TLS: the link does not care what its transport is."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.asyncio.client import connect

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.answers import Answers
from folkmoot.transports.guard import Hosts
from folkmoot.transports.listen import listen
from folkmoot.transports.websocket import LinkLimits, WebSocketEndpoint
from folkmoot.transports.websocket.upgrade import UpgradingProtocol
from folkmoot.web.pages import Pages
from tests.harness import run
from tests.transports.websocket.support import Party
from tests.transports.websocket.test_client import code_of


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_links_work_over_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(cert))

    async def main() -> int | None:
        party = Party()
        answers = Answers(Pages(version="0", public_url="", metrics=True).error_page)
        limits = LinkLimits(max_message_bytes=2_000_000)
        endpoint = WebSocketEndpoint(
            party, hosts=Hosts("127.0.0.1"), answers=answers, limits=limits
        )
        config = uvicorn.Config(
            endpoint,
            http=UpgradingProtocol,
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
        return code

    assert run(main()) == CloseCode.RESTARTING
