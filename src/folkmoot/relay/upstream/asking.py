"""What is wanted of a server as a request of the stateless era, in the hub's name."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from folkmoot import __version__
from folkmoot.core.message import Request
from folkmoot.gateway.ports import Wanted
from folkmoot.mcp.eras.shapes import without_tasks
from folkmoot.mcp.wire import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVER,
    LEVEL_KEY,
    LISTEN,
    STATELESS_VERSION,
    VERSION_KEY,
)

CLIENT: Final = {"name": "folkmoot", "version": __version__}
NEVER_OFFERED: Final = "roots"
"""The folders of someone's machine are not the hub's to tell."""

Offer: TypeAlias = tuple[str, ...]
"""What a handshake tells a server that can be asked of everyone who shares the link."""
EVERYTHING: Final[Offer] = ("elicitation.form", "elicitation.url", "sampling")
"""What the first link offers, which serves all callers that have no other."""
SAMPLING: Final = ("context", "tools")


def _meta(capabilities: dict[str, Any]) -> dict[str, Any]:
    return {
        VERSION_KEY: STATELESS_VERSION,
        CLIENT_KEY: CLIENT,
        CAPABILITIES_KEY: capabilities,
    }


def request_of(wanted: Wanted, message_id: int) -> Request:
    """The request; what a caller's `_meta` says of itself stays, but nothing of the protocol's."""
    meta = _meta(offered(wanted.capabilities))
    if wanted.log_level is not None:
        meta[LEVEL_KEY] = wanted.log_level
    if wanted.progress:
        meta["progressToken"] = message_id
    own = wanted.params.get("_meta")
    if type(own) is dict:
        meta = own | meta
        if not wanted.progress:
            meta.pop("progressToken", None)
        if wanted.log_level is None:
            meta.pop(LEVEL_KEY, None)
    return Request(id=message_id, method=wanted.method, params={**wanted.params, "_meta": meta})


def offered(capabilities: dict[str, Any]) -> dict[str, Any]:
    """What a caller's client can be asked for through the hub."""
    if not capabilities:
        return capabilities
    kept = without_tasks(capabilities)
    kept.pop(NEVER_OFFERED, None)
    return kept


def offer_of(capabilities: dict[str, Any]) -> Offer:
    """The offer to make for callers with these capabilities."""
    found = []
    elicitation, sampling = capabilities.get("elicitation"), capabilities.get("sampling")
    if type(elicitation) is dict:
        # Before there were pages to lead to, a form was all there was.
        modes = elicitation if "url" in elicitation else {"form": {}}
        found += [f"elicitation.{mode}" for mode in ("form", "url") if mode in modes]
    if type(sampling) is dict:
        found += ["sampling", *(f"sampling.{each}" for each in SAMPLING if each in sampling)]
    return tuple(found)


def offering(offer: Offer) -> dict[str, Any]:
    """An offer as the capabilities of a client."""
    told: dict[str, Any] = {}
    for name, _, mode in (each.partition(".") for each in offer):
        told.setdefault(name, {}).update({mode: {}} if mode else {})
    return told


def discover(message_id: int, offer: Offer = EVERYTHING) -> Request:
    """The question what a server is, by someone who can be asked this."""
    return Request(id=message_id, method=DISCOVER, params={"_meta": _meta(offering(offer))})


def listen(message_id: int, notifications: dict[str, Any]) -> Request:
    """The wish to hear of changes."""
    params = {"notifications": notifications, "_meta": _meta({})}
    return Request(id=message_id, method=LISTEN, params=params)
