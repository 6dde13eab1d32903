"""A NATS server with TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.certificates import certificate
from tests.nats import NatsProcess


class Secured(NamedTuple):
    """A server with TLS, and whoever trusts its certificate."""

    process: NatsProcess
    trusting: ssl.SSLContext
    chain: Path

    @property
    def url(self) -> str:
        return self.process.url.replace("nats://", "tls://")


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    chain, key = certificate(tmp_path)
    server = NatsProcess("--tls", "--tlscert", str(chain), "--tlskey", str(key))
    yield Secured(server, ssl.create_default_context(cafile=str(chain)), chain)
    server.kill()
