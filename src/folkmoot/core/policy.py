"""Policy: principal, rights and message in; allow, deny or propose out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import islice
from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kindcheck import check, kind_of
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.limits import MAX_CAPABILITIES_TOLD
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import ProtocolMessage, members
from folkmoot.core.scopes import ALL


class PrincipalType(Enum):
    """Who acts: a person, an agent, a guest of one room, a backend in one, or the gateway."""

    PERSON = "person"
    AGENT = "agent"
    GUEST = "guest"
    BACKEND = "backend"
    GATEWAY = "gateway"


class Principal(msgspec.Struct, frozen=True, gc=False):
    """Someone who may do things. Rights belong to the account, whatever the handle is today."""

    account_id: str
    name: str
    type: PrincipalType = PrincipalType.PERSON
    scope: str = ALL
    """That of the credential they came with, which narrows the rights of the account."""

    @property
    def whole(self) -> Principal:
        """The same principal with all rights of its account, not only its credential's scope."""
        return self if self.scope == ALL else Principal(self.account_id, self.name, self.type)


class Decision(Enum):
    """The three things policy can say."""

    ALLOW = "allow"
    DENY = "deny"
    PROPOSE = "propose"


# Seen by the garbage collector, as all that holds an error must be: an error holds the frames that
# it passed, and they hold this.
class Verdict(msgspec.Struct, frozen=True):
    """What policy says of a message, and the effective kind it was judged by.

    A plain MCP response has no kind. The error tells whoever was refused what they may do.
    """

    decision: Decision
    kind: Kind | None = None
    error: e.PolicyError | None = None


# To look a member of an enumeration up costs more than the decision itself.
_GATEWAY: Final = PrincipalType.GATEWAY
_ALLOW: Final = Decision.ALLOW

NOBODY: Final = Principal("", "", PrincipalType.GUEST)
"""Whoever has no account."""
ALLOWED: Final = Verdict(_ALLOW)
"""Says yes to what has no kind, or to what is judged elsewhere."""


def decide(principal: Principal, rights: Rights, message: ProtocolMessage | McpxMessage) -> Verdict:
    """Judge a whole message: its kind is checked against its payload first.

    A kind that does not fit is a `KindError`. What the gateway itself sends is not checked. The
    answer to a plain MCP request has no kind of its own: whoever tracks the requests decides.
    """
    if type(message) is McpxMessage:
        if principal.type is _GATEWAY:
            return Verdict(_ALLOW, message.kind)
        kind = check(message.kind, message.payload, message.to, message.correlation_id)
        return judge(principal, rights, kind, message.payload, message.to)
    effective = kind_of(message)
    if effective is None:
        return ALLOWED
    if rights.by_kind_alone and rights.allows(effective):
        return Verdict(_ALLOW, effective)
    return judge(principal, rights, effective, members(message))


def judge(
    principal: Principal,
    rights: Rights,
    kind: Kind,
    payload: Any = None,
    to: Sequence[str] = (),
) -> Verdict:
    """Judge a message by its effective kind, as `kindcheck` answered it.

    The gateway may do everything. An open request is the right to answer it, so a response needs
    no capability. Whoever may propose what they may not do is told so.
    """
    if principal.type is _GATEWAY or rights.allows(kind, payload, to):
        return Verdict(_ALLOW, kind)
    if missing := rights.missing(kind, payload):
        return Verdict(Decision.DENY, kind, out_of_scope(principal, kind, missing))
    if kind.protocol == "mcp":
        if kind.operation == "response" and not rights.denies(kind, payload, to):
            return Verdict(Decision.ALLOW, kind)
        if kind.operation == "request" and rights.allows(_proposed(kind), payload, to):
            sentence = f"You have no permission for {kind}, but you can propose it."
            error: e.PolicyError = e.ProposalRequired(sentence, **_details(rights, kind))
            return Verdict(Decision.PROPOSE, kind, error)
    denied = rights.denies(kind, payload, to)
    sentence = f"{kind} is denied to you." if denied else f"You have no permission for {kind}."
    return Verdict(Decision.DENY, kind, e.CapabilityDenied(sentence, **_details(rights, kind)))


def out_of_scope(principal: Principal, kind: Kind, missing: str) -> e.ScopeMissing:
    """The refusal of what the scope of someone's credential has not."""
    return e.ScopeMissing(
        f"Your token lacks the scope {missing}.",
        attempted_kind=str(kind),
        scope_needed=missing,
        your_scope=principal.scope,
    )


def _proposed(request: Kind) -> Kind:
    return parse(f"mcp.proposal{str(request).removeprefix('mcp.request')}")


def _details(rights: Rights, kind: Kind) -> dict[str, Any]:
    """What a refusal tells; a very long list of capabilities is cut, and its length told."""
    details: dict[str, Any] = {
        "attempted_kind": str(kind),
        "your_capabilities": list(islice(rights, MAX_CAPABILITIES_TOLD)),
    }
    if len(rights.capabilities) > MAX_CAPABILITIES_TOLD:
        details["capabilities_held"] = len(rights.capabilities)
    return details
