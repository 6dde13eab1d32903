"""Ports for programs that are told which to use, or come back to theirs."""

from __future__ import annotations

import os
import secrets
import socket
from collections import deque
from contextlib import suppress
from pathlib import Path

# So many ports are kept for tests, each of which uses a few.
KEPT = 256

_kept: deque[int] = deque()


def free_port() -> int:
    """A port that the system gives to nobody by chance, and that no other test gets meanwhile.

    A socket here keeps it. It does not listen, and so lets a server do that.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    below = int(given.read_text().split()[0]) if given.exists() else 32_768
    while True:
        port = secrets.choice(range(10_000, below))
        with suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            # Had it been set before, others could keep the same port.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _kept.append(found.detach())
            if len(_kept) > KEPT:
                os.close(_kept.popleft())
            return port
