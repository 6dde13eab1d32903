"""Where a room is: the address of its hub, and the address of one connection to it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode, urlsplit

SCHEMES: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def rooms_url(url: str) -> str:
    """The address at which a hub takes connections to its rooms, from the hub's own.

    Raises `ValueError`, with a sentence, for what is not the address of a hub.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise ValueError("The hub's address is not a URL.") from None
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ValueError("The hub's address must be a URL such as http://127.0.0.1:8420.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("The hub's address must hold no user name, password, query or fragment.")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/ws"


def joining(
    url: str,
    *,
    room: str,
    conn: str,
    after: int | None = None,
    epoch: str | None = None,
    serve: bool = False,
) -> str:
    """The address of one connection; no token is ever part of it."""
    asked: dict[str, str] = {"room": room, "conn": conn}
    if after is not None:
        asked["after"] = str(after)
    if epoch is not None:
        asked["epoch"] = epoch
    if serve:
        asked["serve"] = "1"
    return f"{url}?{urlencode(asked)}"
