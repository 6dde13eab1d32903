"""How a recorded server receives a client of the other era: as a live one would, by refusing it.

So a client that tries both eras finds the one on the tape, and whoever bridges them can.
"""

from __future__ import annotations

from typing import Final

from folkmoot.core.message import ErrorObject, Request, Response
from folkmoot.core.session import Era, ProtocolVersion
from folkmoot.mcp.wire import INITIALIZE, VERSION_KEY
from folkmoot.proxy.replay.script import Script
from folkmoot.proxy.replay.subject import meta_of

UNSUPPORTED_VERSION: Final = -32022
"""The error of MCP for a version that the server does not speak."""


def other_era(request: Request, script: Script) -> Response | None:
    """The refusal of a request whose era is not on the tape; None where it is, or has none."""
    spoken = _version_of(request)
    if spoken is None or not script.versions or ProtocolVersion(spoken).era in script.versions:
        return None
    error = ErrorObject(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version: the tape holds a conversation of the other era.",
        {"supported": sorted(script.versions.values()), "requested": spoken},
    )
    return Response(id=request.id, error=error)


def _version_of(request: Request) -> str | None:
    if request.method == INITIALIZE:
        params = request.params if isinstance(request.params, dict) else {}
        version = params.get("protocolVersion")
        shaken = isinstance(version, str) and ProtocolVersion(version).era is Era.HANDSHAKE
        return version if shaken else ProtocolVersion().value
    version = meta_of(request).get(VERSION_KEY)
    return version if isinstance(version, str) else None
