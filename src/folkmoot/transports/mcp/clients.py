"""Clients whose word the SDK has accepted: what they said, and what they can do."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Struct

MOST_CLIENTS = 1_024
MOST_BYTES = 4_096
"""Whoever says more of himself is asked by the SDK every time."""


class Client(Struct, frozen=True):
    """What is known of a client that was accepted."""

    apps: bool
    """Whether it shows apps."""
    capabilities: dict[str, Any]
    """What it can be asked for."""


class KnownClients:
    """The clients of the stateless era seen last, by what they say of themselves.

    Such a client sends the same bytes with every request; checked once, they need no second look.
    """

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._clients: OrderedDict[bytes, Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clients)

    def learn(self, claims: bytes, client: Client) -> None:
        """Remember what was accepted."""
        if not claims or len(claims) > MOST_BYTES:
            return
        self._clients[claims] = client
        self._clients.move_to_end(claims)
        if len(self._clients) > self._most:
            self._clients.popitem(last=False)

    def known(self, claims: bytes) -> Client | None:
        """The client that says this of itself, if it was accepted."""
        return self._clients.get(claims)
