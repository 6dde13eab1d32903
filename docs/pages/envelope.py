"""The tables of `reference/envelope.md`, from the parts of `folkmoot.core.envelope`."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from docs.pages.markdown import code, table
from folkmoot.core.envelope import MessageContext, MessageDirection
from folkmoot.core.session import KNOWN_VERSIONS, TRANSITIONS, ProtocolVersion, SessionState
from folkmoot.core.transport import ConnectionInfo, TlsInfo, TransportMetadata, TransportType

CONTEXT: Final = {
    "timing": ("When the message came, was worked on and left.", "has to be given"),
    "direction": ("Which way it flows.", "unknown"),
    "session": ("The MCP session it belongs to.", "anonymous: no id, uninitialized"),
    "transport": ("What it travelled over.", "unknown"),
    "extensions": (
        "Anything else that was said about it, by name. Shared, so never changed in place.",
        "none",
    ),
    "caller": (
        "Who asks, once authenticated; also beside what goes to them. Not written on tapes.",
        "not known",
    ),
    "notes": (
        "What interceptors remember of a request, also beside its answer. Not written on tapes.",
        "none",
    ),
}

DIRECTIONS: Final = {
    MessageDirection.CLIENT_TO_SERVER: "A client's request, notification or answer.",
    MessageDirection.SERVER_TO_CLIENT: "A server's request, notification or answer.",
    MessageDirection.INTERNAL: "Made inside the hub, by an interceptor for example.",
    MessageDirection.UNKNOWN: "Nobody has said yet; also any value that is not known.",
}

STATES: Final = {
    SessionState.UNINITIALIZED: "Nothing was said yet.",
    SessionState.INITIALIZING: "The handshake has begun.",
    SessionState.ACTIVE: "Messages flow.",
    SessionState.CLOSING: "No new work is begun.",
    SessionState.CLOSED: "Over; nothing leads out of it.",
}


def context() -> str:
    """What a context holds, and what it is when nobody has said."""
    rows = (
        [code(field.name), *CONTEXT[field.name]] for field in msgspec.structs.fields(MessageContext)
    )
    return table(["Part", "Meaning", "When nobody has said"], rows)


def directions() -> str:
    """Every direction, and what it decides."""
    rows = (
        [
            code(way.value),
            DIRECTIONS[way],
            yes(way.should_forward_to_server()),
            yes(way.should_send_to_client()),
            code(way.reverse().value),
        ]
        for way in MessageDirection
    )
    return table(["Direction", "Meaning", "To the server", "To the client", "Reversed"], rows)


def states() -> str:
    """Every session state, and where it may lead."""
    rows = (
        [code(state.value), STATES[state], leads_to(state) or "nowhere"] for state in SessionState
    )
    return table(["State", "Meaning", "May become"], rows)


def leads_to(state: SessionState) -> str:
    """The states one may go to, in the order of their definition."""
    return ", ".join(code(other.value) for other in SessionState if other in TRANSITIONS[state])


def versions() -> str:
    """The protocol versions that were published, and their era."""
    default = ProtocolVersion()
    rows = (
        [code(value), ProtocolVersion(value).era.value, "yes" if value == default.value else ""]
        for value in KNOWN_VERSIONS
    )
    return table(["Version", "Era", "Default"], rows)


def transports() -> str:
    """Every transport with the metadata its messages carry."""
    kinds: dict[str, Any] = {
        kind.__struct_config__.tag: kind for kind in get_args(TransportMetadata)
    }
    rows = []
    for transport in TransportType:
        kind = kinds.get(transport.value)
        if kind is None:
            rows.append([code(transport.value), "Nothing is known.", ""])
        else:
            rows.append([code(transport.value), meaning(kind), names(kind)])
    return table(["Transport", "One message is", "Metadata"], rows)


def connections() -> str:
    """What is known of a connection, and of its encryption."""
    rows = ([code(kind.__name__), meaning(kind), names(kind)] for kind in (ConnectionInfo, TlsInfo))
    return table(["Type", "Meaning", "Fields"], rows)


def names(kind: Any) -> str:
    """The fields of a structure; those that may be absent have a question mark."""
    return ", ".join(
        code(field.name + ("?" if field.default is None else ""))
        for field in msgspec.structs.fields(kind)
    )


def meaning(kind: Any) -> str:
    """What a class says of itself, on one line."""
    return " ".join((kind.__doc__ or "").split())


def yes(answer: bool) -> str:  # noqa: FBT001
    return "yes" if answer else "no"


BLOCKS = {
    "envelope-context": context,
    "envelope-directions": directions,
    "session-states": states,
    "protocol-versions": versions,
    "transports": transports,
    "connections": connections,
}
