"""What a request with a wrong or dead token is answered: only registering and recovering work.

Nobody with such a token is treated as if they had none. The stateless era is answered 401. In the
handshake era a session opens, so that its user can be told in a result and can recover there. Both
may list the tools that still work: clients do that around a call, and would lose a fresh token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot.core.errors import AccountSuspended, TokenInvalid, TokenRefused
from folkmoot.mcp.wire import INITIALIZE, PING, TOOLS_CALL, TOOLS_LIST
from folkmoot.operations.dispatch import failure
from folkmoot.operations.finder import CALL_TOOL
from folkmoot.transports.answers import JsonResponse, challenge

if TYPE_CHECKING:
    from starlette.responses import Response

    from folkmoot.names import NameStyle
    from folkmoot.operations import Catalogue
    from folkmoot.transports.mcp.arrivals import Exchange

PASSED: Final = frozenset({INITIALIZE, PING})
"""Requests of a session that tell nothing of anyone."""
UNCACHED: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the stateless era adds to a list."""


class Named(Struct):
    """A call, as far as its name goes."""

    name: str = ""
    arguments: Raw = Raw(b"{}")


class Asked(Struct):
    """A message, as far as it decides what is answered."""

    method: str = ""
    id: str | int | UnsetType = UNSET
    params: Raw = Raw(b"{}")


_asked: msgspec.json.Decoder[Asked] = msgspec.json.Decoder(Asked)
_named: msgspec.json.Decoder[Named] = msgspec.json.Decoder(Named)


def answer_invalid(exchange: Exchange, body: bytes | None, catalogue: Catalogue) -> Response | None:
    """The answer to a request whose token is not valid; None where it may go on regardless."""
    if exchange.scope["method"] == "DELETE":
        return None
    asked = read_message(body or b"")
    error = AccountSuspended() if exchange.suspended else TokenInvalid()
    if asked is None:
        return unauthorized(None, error)
    if asked.method == TOOLS_CALL and is_public(asked.params, catalogue):
        return None
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.id}
    if asked.method == TOOLS_LIST and asked.id is not UNSET:
        listed = {"tools": public_tools(catalogue, exchange.names, error)}
        told["result"] = listed if exchange.handshake else {**UNCACHED, **listed}
        return JsonResponse(told)
    if not exchange.handshake or (exchange.session is None and asked.method != INITIALIZE):
        return unauthorized(asked.id, error)
    if asked.method in PASSED or not asked.method or asked.id is UNSET:
        return None
    if asked.method == TOOLS_CALL:
        text = failure(error).text()
        told["result"] = {"content": [{"type": "text", "text": text}], "isError": True}
    else:
        told["error"] = error.as_jsonrpc()
    return JsonResponse(told)


def unauthorized(message_id: str | int | UnsetType | None, error: TokenRefused) -> Response:
    """The refusal of a request that no session has opened a way for."""
    told = {
        "jsonrpc": "2.0",
        "id": None if message_id is UNSET else message_id,
        "error": error.as_jsonrpc(),
    }
    return JsonResponse(told, error.http, {"www-authenticate": challenge(error)})


def read_message(body: bytes) -> Asked | None:
    """The message in a body; None where there is none."""
    try:
        return _asked.decode(body)
    except (ValueError, RecursionError):
        return None


def is_public(params: Raw, catalogue: Catalogue) -> bool:
    """Whether a call, or the call inside it, is of a tool that works without an account."""
    try:
        named = _named.decode(params)
        tool = catalogue.find(named.name)
        if tool is not None and tool.name == CALL_TOOL:
            tool = catalogue.find(_named.decode(named.arguments).name)
    except (ValueError, RecursionError):
        return False
    return tool is not None and tool.public and not tool.finder


def public_tools(
    catalogue: Catalogue, style: NameStyle, error: TokenRefused
) -> list[dict[str, Any]]:
    """The tools that work without an account, each saying why it is one of the few listed."""
    return [
        {**shown, "description": f"{error.message} {shown['description']}"}
        for shown in (
            catalogue.listed(tool, style)
            for tool in catalogue.tools
            if tool.public and not tool.finder
        )
    ]
