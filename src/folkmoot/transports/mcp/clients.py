"""Clients whose word the SDK has accepted: what they said, and what they can do."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mcp.server.apps import EXTENSION_ID
from msgspec import Struct

from folkmoot.tools.app_tools import APP_TYPES

MOST_CLIENTS = 1_024
MOST_BYTES = 4_096
"""Whoever says more of himself is asked by the SDK every time."""


class Client(Struct, frozen=True):
    """What is known of a client that was accepted."""

    capabilities: dict[str, Any]
    """What it can be asked for."""
    app_type: str = ""
    """The type under which it shows apps; empty if it shows none."""

    @property
    def apps(self) -> bool:
        """Whether it shows apps."""
        return bool(self.app_type)


def app_type(capabilities: dict[str, Any]) -> str:
    """The first of our types of apps that a client declares; empty if it declares none."""
    settings = (capabilities.get("extensions") or {}).get(EXTENSION_ID)
    declared = settings.get("mimeTypes") if isinstance(settings, dict) else None
    if not isinstance(declared, list):
        return ""
    return next((known for known in APP_TYPES if known in declared), "")


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
