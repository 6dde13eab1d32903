"""The limits of `datafolder`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

PROXY_SECONDS: Final = 2.0
"""How long a proxy on this machine may take to answer the hub."""
MAX_PROXIES_ASKED: Final = 32
"""Proxies that are asked at once; further ones are left out."""
MAX_PROXY_ANSWER: Final = 8 * 1024 * 1024
"""The largest answer of a proxy, in bytes."""
MAX_RECORDINGS: Final = 200
"""Places of tapes that are remembered; the last used are kept."""
MAX_SOCKET_ADDRESS: Final = 103
"""The longest path that every system accepts as a socket's address."""
