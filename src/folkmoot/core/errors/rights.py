"""What is wrong with a capability, and what policy refuses."""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import INVALID_PARAMS, NOT_ALLOWED, FolkmootError


class CapabilityError(FolkmootError, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST):
    """A capability pattern cannot be compiled or granted."""


class PatternSyntax(CapabilityError, code="pattern_syntax"):
    """The pattern is not a kind pattern."""


class ConstraintSyntax(CapabilityError, code="constraint_syntax"):
    """The payload constraint is not an object of exact values, wildcards and alternatives."""


class CapabilityReserved(CapabilityError, code="capability_reserved", http=403):
    """The pattern names `system.*`, which nobody but the gateway can hold."""


class TooManyCapabilities(CapabilityError, code="too_many_capabilities"):
    """More capabilities are held than one principal can have."""


class GrantExceedsRights(CapabilityError, code="grant_exceeds_rights", http=403):
    """The granter does not hold everything the granted pattern allows."""


class PolicyError(FolkmootError, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED):
    """The message is well formed, but not allowed."""


class CapabilityDenied(PolicyError, code="capability_denied"):
    """No capability of the sender covers the message, or a deny does."""


class ScopeMissing(CapabilityDenied, code="scope_missing"):
    """The credential that was used has a scope, and the message is outside it."""


class ProposalRequired(PolicyError, code="proposal_required"):
    """The sender may not do this, but may propose it."""


class BlockedByInterceptor(PolicyError, code="blocked"):
    """An interceptor stopped the message."""


class RewriteRefused(PolicyError, code="rewrite_refused", http=500):
    """An interceptor changed what may be stopped but not rewritten, such as a room's message."""
