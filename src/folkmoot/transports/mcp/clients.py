"""Clients whose word the SDK has accepted: what they said, and whether they show apps."""

from __future__ import annotations

from collections import OrderedDict

MOST_CLIENTS = 1_024
MOST_BYTES = 4_096
"""Whoever says more of himself is asked by the SDK every time."""


class KnownClients:
    """The clients of the stateless era seen last, by what they say of themselves.

    Such a client sends the same bytes with every request; checked once, they need no second look.
    """

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._apps: OrderedDict[bytes, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._apps)

    def learn(self, claims: bytes, *, apps: bool) -> None:
        """Remember what was accepted, and whether this client shows apps."""
        if not claims or len(claims) > MOST_BYTES:
            return
        self._apps[claims] = apps
        self._apps.move_to_end(claims)
        if len(self._apps) > self._most:
            self._apps.popitem(last=False)

    def apps(self, claims: bytes) -> bool | None:
        """Whether the client shows apps; None when it is not known."""
        return self._apps.get(claims)
