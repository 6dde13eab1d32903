"""Policy: principal, rights and message in; allow, deny or propose out."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

from folkmoot.core.capability import Rights
from folkmoot.core.errors import CapabilityDenied, PolicyError, ProposalRequired
from folkmoot.core.kindcheck import check, kind_of, spellings_of_chat
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import ProtocolMessage, members


class PrincipalType(Enum):
    """Who acts: a person, an agent, a guest of one room, or the gateway itself."""

    PERSON = "person"
    AGENT = "agent"
    GUEST = "guest"
    GATEWAY = "gateway"


class Principal(msgspec.Struct, frozen=True, gc=False):
    """Someone who may do things. Rights belong to the account, whatever the handle is today."""

    account_id: str
    name: str
    type: PrincipalType = PrincipalType.PERSON


class Decision(Enum):
    """The three things policy can say."""

    ALLOW = "allow"
    DENY = "deny"
    PROPOSE = "propose"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What policy says of a message; the error tells whoever was refused what they may do."""

    decision: Decision
    error: PolicyError | None = None


ALLOWED: Final = Verdict(Decision.ALLOW)


def decide(principal: Principal, rights: Rights, message: ProtocolMessage | McpxMessage) -> Verdict:
    """Judge a whole message: its kind is checked against its payload first.

    A kind that does not fit is a `KindError`. The answer to a plain MCP request has no kind of its
    own: whoever tracks the requests lets it through or not.
    """
    if isinstance(message, McpxMessage):
        kind = check(message.kind, message.payload, message.to, message.correlation_id)
        return judge(principal, rights, kind, message.payload)
    effective = kind_of(message)
    return ALLOWED if effective is None else judge(principal, rights, effective, members(message))


def judge(principal: Principal, rights: Rights, kind: Kind, payload: Any = None) -> Verdict:
    """Judge a message by its effective kind, as `kindcheck` answered it.

    The gateway may do everything. An open request is the right to answer it, so a response needs
    no capability. Whoever may propose what they may not do is told so.
    """
    if principal.type is PrincipalType.GATEWAY:
        return ALLOWED
    if rights.allows(kind, payload) and not _chat_is_denied(rights, kind, payload):
        return ALLOWED
    if kind.protocol == "mcp":
        if kind.operation == "response" and not rights.denies(kind, payload):
            return ALLOWED
        if kind.operation == "request" and rights.allows(_proposed(kind), payload):
            return Verdict(
                Decision.PROPOSE,
                ProposalRequired(
                    f"{kind} is not yours to do, but you may propose it.", **_details(rights, kind)
                ),
            )
    return _denied(rights, kind)


def _chat_is_denied(rights: Rights, kind: Kind, payload: Any) -> bool:
    spellings = spellings_of_chat(kind, payload or {})
    return bool(spellings) and any(rights.denies(spelling, payload) for spelling in spellings)


def _proposed(request: Kind) -> Kind:
    return parse(f"mcp.proposal{str(request).removeprefix('mcp.request')}")


def _denied(rights: Rights, kind: Kind) -> Verdict:
    return Verdict(
        Decision.DENY,
        CapabilityDenied(f"None of your capabilities covers {kind}.", **_details(rights, kind)),
    )


def _details(rights: Rights, kind: Kind) -> dict[str, Any]:
    return {"attempted_kind": str(kind), "your_capabilities": list(rights)}
