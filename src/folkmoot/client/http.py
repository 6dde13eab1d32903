"""The addresses of a hub, what it refuses, and the call of a tool in one request."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.mcp.wire import (
    ACCEPT_BOTH,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    METHOD_HEADER,
    NAME_HEADER,
    TOKEN_KEY,
    TOOLS_CALL,
    VERSION_HEADER,
    VERSION_KEY,
)

JSON: Final = "application/json"
_TOLD: Final = frozenset(("error", "message"))


def refusal(payload: dict[str, Any]) -> e.FolkmootError:
    """The error of an error answer, as the exception with its code."""
    words = payload.get("message")
    message = words if isinstance(words, str) else "The hub refused the message."
    data = {name: value for name, value in payload.items() if name not in _TOLD}
    code = payload.get("error")
    known = e.ERRORS.get(code, e.MessageRefused) if isinstance(code, str) else e.MessageRefused
    error = known.__new__(known)
    # Some leaves ask for more than the hub tells.
    e.FolkmootError.__init__(error, message, **data)
    return error


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


PROTOCOL: Final = "2026-07-28"
REQUEST_ID: Final = 1


def tool_request(
    program: str, tool: str, arguments: dict[str, Any], token: str, *, progress: bool = False
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a call to a tool on the stateless wire, one request each."""
    meta: dict[str, Any] = {
        VERSION_KEY: PROTOCOL,
        CLIENT_KEY: {"name": program, "version": __version__},
        CAPABILITIES_KEY: {},
    }
    if progress:
        meta[TOKEN_KEY] = REQUEST_ID
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    headers = {
        "accept": ACCEPT_BOTH,
        "content-type": JSON,
        VERSION_HEADER: PROTOCOL,
        METHOD_HEADER: TOOLS_CALL,
        NAME_HEADER: tool,
        "user-agent": f"folkmoot/{__version__}",
    }
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = {"jsonrpc": "2.0", "id": REQUEST_ID, "method": TOOLS_CALL, "params": params}
    return msgspec.json.encode(request), headers


def tool_result(answer: Any) -> tuple[dict[str, Any], str | None]:
    """The result of a tool call, and its refusal; `ValueError` for any other answer."""
    try:
        error = answer.get("error")
        if error is not None:
            return {}, str(error["message"])
        result = answer["result"]
        payload = json.loads(result["content"][0]["text"])
        failed = result.get("isError", False)
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError) as problem:
        raise ValueError("the hub's answer cannot be understood") from problem
    if not isinstance(payload, dict):
        raise ValueError("the hub's answer cannot be understood")  # noqa: TRY004
    reason = str(payload.get("error", "The hub refused without a reason.")) if failed else None
    return payload, reason
