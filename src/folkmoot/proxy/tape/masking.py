"""Keeps secrets out of the contexts of messages: sessions and what transports said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from folkmoot.core.transport import Headers
from folkmoot.proxy.redaction.places import RedactedPlace
from folkmoot.proxy.tape.lines import HttpPart, SessionPart, SsePart, TransportPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.proxy.redaction import Redactor

P = TypeVar("P", bound=msgspec.Struct)
Places = tuple[RedactedPlace, ...]


def masked_session(part: SessionPart, redactor: Redactor) -> tuple[SessionPart, Places]:
    """A session whose id opens nothing."""
    return _masked(part, "session", {"id": redactor.session_id, "correlation": redactor.text})


def masked_transport(part: TransportPart, redactor: Redactor) -> tuple[TransportPart, Places]:
    """A transport without the headers, addresses and ids that would open something."""
    if isinstance(part, HttpPart):
        headers = redactor.headers(Headers(part.headers)).pairs
        places = tuple(
            RedactedPlace(f"$.headers.{name}", "header", "transport")
            for (name, before), (_, after) in zip(part.headers, headers, strict=True)
            if before != after
        )
        part = msgspec.structs.replace(part, headers=headers)
        part, in_uri = _masked(part, "transport", {"uri": redactor.uri})
        return part, places + in_uri
    if isinstance(part, SsePart):
        names = ("stream_id", "event_id", "event_type", "last_event_id")
        return _masked(part, "transport", dict.fromkeys(names, redactor.text))
    return part, ()


def within(part: str, places: Places) -> Places:
    """The same places, told of another part of the line."""
    return tuple(msgspec.structs.replace(place, part=part) for place in places)


def _masked(part: P, of: str, how: dict[str, Callable[[str], str]]) -> tuple[P, Places]:
    changes: dict[str, Any] = {}
    for name, mask in how.items():
        value = getattr(part, name)
        if value is not None and (masked := mask(value)) != value:
            changes[name] = masked
    if not changes:
        return part, ()
    places = tuple(RedactedPlace(f"$.{name}", "context", of) for name in changes)
    return msgspec.structs.replace(part, **changes), places
