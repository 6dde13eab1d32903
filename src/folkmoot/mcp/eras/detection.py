"""What the answer to a client's first words tells about the era that its server speaks."""

from __future__ import annotations

from enum import Enum
from typing import Any

from folkmoot.core.message import ErrorObject, Response
from folkmoot.mcp import wire
from folkmoot.mcp.wire import is_stateless, members_of

STATELESS_CODES = frozenset((wire.HEADER_MISMATCH, wire.CAPABILITY_MISSING))
"""Errors that only a server of the stateless era knows."""


class Evidence(Enum):
    """What is known of a server."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"
    NONE = "none"


def answer_to_initialize(answer: Response) -> Evidence:
    """A result shows the handshake era, and so does a server that names versions of it."""
    if not isinstance(answer.error, ErrorObject):
        return Evidence.HANDSHAKE
    named = supported_versions(answer.error)
    return Evidence.HANDSHAKE if wire.HANDSHAKE_VERSIONS.intersection(named) else Evidence.NONE


def answer_to_discover(answer: Response) -> Evidence:
    """Every server of the stateless era answers this; what is no such answer shows the other."""
    if isinstance(answer.error, ErrorObject):
        shown = _shown_by(answer.error)
        return Evidence.HANDSHAKE if shown is Evidence.NONE else shown
    versions = strings(members_of(answer.result).get("supportedVersions"))
    return Evidence.STATELESS if any(map(is_stateless, versions)) else Evidence.HANDSHAKE


def answer_to_stateless(answer: Response) -> Evidence:
    """A result says its type in the stateless era; without it, a lenient server gave it.

    Most errors show nothing: a server that was not initialised says the same as one that does not
    know the method or does not like the params.
    """
    if isinstance(answer.error, ErrorObject):
        return _shown_by(answer.error)
    typed = "resultType" in members_of(answer.result)
    return Evidence.STATELESS if typed else Evidence.HANDSHAKE


def supported_versions(error: ErrorObject) -> list[str]:
    """The versions that a server names when it refuses one."""
    if error.code != wire.VERSION_UNSUPPORTED:
        return []
    return strings(members_of(error.data).get("supported"))


def strings(value: Any) -> list[str]:
    """The strings of a list, if it is one."""
    return [item for item in value if type(item) is str] if type(value) is list else []


def _shown_by(error: ErrorObject) -> Evidence:
    if error.code in STATELESS_CODES:
        return Evidence.STATELESS
    if error.code != wire.VERSION_UNSUPPORTED:
        return Evidence.NONE
    named = supported_versions(error)
    return Evidence.STATELESS if any(map(is_stateless, named)) else Evidence.HANDSHAKE
