"""Kinds: `protocol.operation[.method[:context]]`, the grammar and the table of known kinds.

The context is cut off at the first `:`, then the rest is split at the first two dots. Dots are for
hierarchy, the colon for context; a slash stays inside a method, as MCP writes it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_CONTEXT_BYTES, MAX_KIND_BYTES, MAX_KIND_NAME, MAX_METHOD

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_METHOD = re.compile(r"[!-9;-~]+")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What a message is. Made by `parse` or `make`, which keep the texts true to the parts."""

    protocol: str
    operation: str
    method: str | None
    context: str | None
    root: str
    """Protocol and operation: what tables are looked up by."""
    base: str
    text: str

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def parse(text: str) -> Kind:
    """Read a kind; whatever is wrong with it is a `KindError`."""
    if len(text) > MAX_KIND_BYTES:
        raise e.KindTooLong(f"A kind has at most {MAX_KIND_BYTES:,} bytes.")
    base, colon, context = text.partition(":")
    kind = _parse_base(base)
    if not colon:
        return kind
    if kind.method is None:
        raise e.KindSyntax("Only a kind with a method can have a context.")
    check_context(context)
    return Kind(kind.protocol, kind.operation, kind.method, context, kind.root, base, text)


def make(
    protocol: str, operation: str, method: str | None = None, context: str | None = None
) -> Kind:
    """A kind from its parts, held to the same grammar as one that is read."""
    base = f"{protocol}.{operation}" if method is None else f"{protocol}.{operation}.{method}"
    kind = parse(base if context is None else f"{base}:{context}")
    if (kind.protocol, kind.operation, kind.method) != (protocol, operation, method):
        raise e.KindSyntax("A part of a kind holds a separator that belongs between parts.")
    return kind


def check_context(context: str) -> None:
    """Refuse a context that is empty, too long or holds control characters."""
    if context.isascii() and context.isprintable():
        if 0 < len(context) <= MAX_CONTEXT_BYTES:
            return
    elif CONTROL.search(context):
        raise e.KindSyntax("A context has no control characters.")
    if not context:
        raise e.KindSyntax("A context must not be empty.")
    if len(context.encode()) > MAX_CONTEXT_BYTES:
        raise e.KindTooLong(f"A context has at most {MAX_CONTEXT_BYTES:,} bytes.")


def _parse_base(base: str) -> Kind:
    protocol, *rest = base.split(".", 2)
    if not rest:
        raise e.KindSyntax("A kind needs a protocol and an operation: protocol.operation.")
    operation = rest[0]
    for name in (protocol, operation):
        if not _NAME.fullmatch(name):
            raise e.KindSyntax(
                "Protocol and operation are lower-case letters, digits and hyphens, "
                "and begin with a letter."
            )
        if len(name) > MAX_KIND_NAME:
            raise e.KindTooLong(f"Protocol and operation have at most {MAX_KIND_NAME} characters.")
    method = rest[1] if len(rest) > 1 else None
    if method is not None:
        if not _METHOD.fullmatch(method):
            raise e.KindSyntax("A method is printable ASCII without spaces, and not empty.")
        if len(method) > MAX_METHOD:
            raise e.KindTooLong(f"A method has at most {MAX_METHOD} characters.")
    elif protocol == "mcp":
        raise e.KindNeedsMethod("A kind of the protocol mcp needs a method: mcp.operation.method.")
    return Kind(protocol, operation, method, None, f"{protocol}.{operation}", base, base)


class KnownKind(msgspec.Struct, frozen=True):
    """One row of the table: a kind, or the beginning of one, that the gateway interprets."""

    kind: str
    meaning: str
    sender: Literal["participant", "gateway"] = "participant"


KNOWN_KINDS: Final[tuple[KnownKind, ...]] = (
    KnownKind("mcp.request", "An MCP request to exactly one participant."),
    KnownKind("mcp.response", "The answer to an open request, from the one who was asked."),
    KnownKind("mcp.notification", "An MCP notification; may be broadcast."),
    KnownKind("mcp.proposal", "Proposes a request, for someone with the right to make it."),
    KnownKind("mcpx.begin.request", "Begins the work on a request."),
    KnownKind("mcpx.withdraw.proposal", "Withdraws one's own open proposal."),
    KnownKind("mcpx.reject.proposal", "Rejects someone else's open proposal, with a reason."),
    KnownKind(
        "system.welcome", "First message on a connection, and after a change of rights.", "gateway"
    ),
    KnownKind(
        "system.serving", "Which of one's connections serves; goes to one's own alone.", "gateway"
    ),
    KnownKind("system.presence", "Someone came or went: `.join`, `.leave`.", "gateway"),
    KnownKind("system.error", "A message was refused; goes to its sender alone.", "gateway"),
    KnownKind(
        "system.proposal",
        "A proposal ended without a decision: `.expired`, or `.withdrawn` when its proposer was "
        "kicked.",
        "gateway",
    ),
    KnownKind(
        "system.participant",
        "A participant was paused or resumed: `.paused`, `.resumed`.",
        "gateway",
    ),
    KnownKind("chat.message", "Room chat in its short form; the method may name the format."),
    KnownKind("chat.acknowledge", "A chat message was seen."),
    KnownKind("chat.cancel", "A chat message no longer needs an answer."),
    KnownKind("capability.grant", "Gives a participant capabilities the sender holds."),
    KnownKind("capability.revoke", "Revokes granted capabilities."),
    KnownKind("capability.grant-ack", "The gateway carried a grant out.", "gateway"),
    KnownKind("room.invite", "Invites someone into the room."),
    KnownKind(
        "room.invite-ack", "The gateway's answer to an invitation, to its sender alone.", "gateway"
    ),
    KnownKind("room.kick", "Removes a participant from the room."),
    KnownKind("reasoning.start", "A participant begins to share its reasoning."),
    KnownKind("reasoning.thought", "One thought."),
    KnownKind("reasoning.conclusion", "The result of the thinking."),
    KnownKind("reasoning.cancel", "The thinking was cancelled."),
    KnownKind("participant.pause", "Pauses participants; the hub enforces it."),
    KnownKind("participant.resume", "Lets paused participants continue."),
    KnownKind("participant.request-status", "Asks a participant for its status."),
    KnownKind("participant.status", "Reports a participant's status."),
    KnownKind("participant.forget", "Asks a participant to forget part of its memory."),
    KnownKind("participant.compact", "Asks a participant to compact its memory."),
    KnownKind("participant.compact-done", "The memory was compacted."),
    KnownKind("participant.clear", "Asks a participant to forget everything."),
    KnownKind("participant.restart", "Asks a participant to restart."),
    KnownKind("participant.shutdown", "Asks a participant to shut down."),
    KnownKind("stream.open", "The gateway opened a stream.", "gateway"),
)

OPEN_PROTOCOLS: Final = frozenset(("stream",))
"""Protocols of which we know only a part; what else they have is carried like any other."""


def is_reserved(kind: Kind) -> bool:
    """Whether only the gateway may send it: `system.*`, every `*-ack` and what the table says."""
    return (
        kind.protocol == "system" or kind.operation.endswith("-ack") or kind.root in _GATEWAY_KINDS
    )


_GATEWAY_KINDS: Final = frozenset(known.kind for known in KNOWN_KINDS if known.sender == "gateway")


_OLD_WHOLE: Final = {
    "chat": "chat.message",
    "proposal/withdraw": "mcpx.withdraw.proposal",
    "proposal/reject": "mcpx.reject.proposal",
    "mcp/proposal:withdraw": "mcpx.withdraw.proposal",
    "mcp/proposal:reject": "mcpx.reject.proposal",
    "system/welcome": "system.welcome",
    "system/presence": "system.presence",
    "system/error": "system.error",
}
_OLD_MCP: Final = re.compile(r"mcp/(request|response|notification|proposal):(.+)", re.DOTALL)
_OLD_PATTERNS: Final = {
    "mcp/*": "mcp.*",
    "mcp/request:*": "mcp.request.*",
    "mcp/response:*": "mcp.response.*",
    "mcp/proposal:*": "mcp.proposal.*",
    "proposal/*": "mcpx.*",
    "system/*": "system.*",
}


def migrate(text: str) -> str:
    """The present spelling of a kind or capability pattern of the older specification.

    What is spelled the present way already stays as it is, so migrating twice changes nothing.
    """
    if text in _OLD_WHOLE:
        return _OLD_WHOLE[text]
    if text in _OLD_PATTERNS:
        return _OLD_PATTERNS[text]
    old = _OLD_MCP.fullmatch(text)
    return f"mcp.{old[1]}.{old[2]}" if old else text
