"""Where a hub and its rooms are, and the address of one connection to a room."""

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


def hub_url(given: str) -> str:
    """The hub's address in one spelling: without `/mcp`, query or a slash at the end.

    Raises `ValueError`, with a sentence, for what is not the address of a hub.
    """
    try:
        parts = urlsplit(given.strip())
        _ = parts.port
    except ValueError:
        raise ValueError(f"{given!r} is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"must be a URL such as http://127.0.0.1:8420, not {given!r}")
    if "@" in parts.netloc:
        raise ValueError("must not contain a user name or password")
    path = parts.path.rstrip("/").removesuffix("/mcp").rstrip("/")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


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
