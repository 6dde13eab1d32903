"""What a recorded server answers now: made to fit the live request, or refused to the other era."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    replace,
    same_id,
)
from folkmoot.core.session import Era, ProtocolVersion
from folkmoot.mcp.wire import (
    CANCELLED,
    COMPLETE,
    DISCOVER,
    INITIALIZE,
    PROGRESS,
    RESULT_TYPE,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
    meta_of,
)
from folkmoot.proxy.replay.script import Script


class Voice(Entity):
    """Speaks the beats of one call: ids and tokens of the tape become those that live ones have."""

    live: Request | None = None
    _fresh: dict[tuple[type, MessageId], MessageId] = {}

    def say(self, message: ProtocolMessage, fresh_id: MessageId) -> ProtocolMessage | None:
        """The live message; None where nobody asked for it. A request gets the fresh id."""
        if isinstance(message, Response):
            return self._answer(message)
        if isinstance(message, Request):
            self._fresh[type(message.id), message.id] = fresh_id
            return replace(message, id=fresh_id)
        if message.method == PROGRESS:
            return self._progress(message)
        if message.method == CANCELLED:
            return self._cancelled(message)
        return self._subscribed(message)

    def _answer(self, message: Response) -> ProtocolMessage | None:
        if self.live is None or same_id(message.id, self.live.id):
            return message
        return self._subscribed(replace(message, id=self.live.id))

    def _progress(self, message: Notification) -> ProtocolMessage | None:
        if self.live is None or not isinstance(message.params, dict):
            return None
        token = meta_of(self.live).get("progressToken")
        if token is None:
            return None
        return replace(message, params={**message.params, "progressToken": token})

    def _cancelled(self, message: Notification) -> ProtocolMessage | None:
        params = message.params if isinstance(message.params, dict) else {}
        identity = params.get("requestId")
        fresh = self._fresh.get((type(identity), identity)) if identity is not None else None
        return None if fresh is None else replace(message, params={**params, "requestId": fresh})

    def _subscribed(self, message: Notification | Response) -> ProtocolMessage | None:
        """A message of a subscription names the request that opened it."""
        value: Any = message.result if isinstance(message, Response) else message.params
        meta = value.get("_meta") if isinstance(value, dict) else None
        if not isinstance(meta, dict) or SUBSCRIPTION_KEY not in meta:
            return message
        if self.live is None:
            return None
        value = {**value, "_meta": {**meta, SUBSCRIPTION_KEY: self.live.id}}
        if isinstance(message, Response):
            return replace(message, result=value)
        return replace(message, params=value)


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


def discovery(request: Request, script: Script) -> Response | None:
    """The answer to `server/discover` that a stateless tape does not have, by what is on it."""
    version = script.versions.get(Era.STATELESS)
    if version is None or script.asked_discovery or request.method != DISCOVER:
        return None
    asked = {call.message.method.partition("/")[0] for call in script.calls}
    offered = [name for name in ("prompts", "resources", "tools") if name in asked]
    return Response(
        id=request.id,
        result={
            RESULT_TYPE: COMPLETE,
            "supportedVersions": [version],
            "capabilities": {name: {} for name in offered},
            "ttlMs": 0,
            "cacheScope": "private",
        },
    )
