"""The audit log of calls: who called which backend, and the outcome.

Of the arguments it holds a keyed hash, so that equal ones are seen to be equal and none is told;
or the arguments themselves, or nothing, as the settings say.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.audit import BACKEND_CALL, DENIED
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kindcheck import kind_of
from folkmoot.gateway.limits import MAX_AUDITED_ARGUMENTS
from folkmoot.telemetry.logs import PlainRecord, request_fields

if TYPE_CHECKING:
    from folkmoot.core.message import Request
    from folkmoot.core.policy import Principal

ArgumentsPolicy: TypeAlias = Literal["hash", "record", "none"]

audit_logger = logging.getLogger("folkmoot.audit")

OWN: Final = "hub.call"
"""The action of a call of a tool of the hub's own."""
HASH_BYTES: Final = 16

_encode = msgspec.json.Encoder(order="deterministic").encode


class CallAudit(Entity):
    """Writes the lines; a line costs the same whatever is stored."""

    key: bytes
    arguments: ArgumentsPolicy = "hash"

    def note(
        self,
        principal: Principal,
        what: str,
        arguments: Any,
        outcome: str,
        seconds: float,
        room: str = "",
        action: str = BACKEND_CALL,
        *,
        denied: bool = False,
    ) -> None:
        """Tell of one call; `what` is its effective kind, `room` where it was made if in a room.

        Of what is `denied` again and again, the audit table has a summary.
        """
        if not audit_logger.isEnabledFor(logging.INFO):
            return
        account = principal.account_id
        extra = {"by": principal.name, "account": account, "about": what, "outcome": outcome}
        if room:
            extra["room"] = room
        made: dict[str, Any] = {"seconds": round(seconds, 6), **request_fields(account)}
        if self.arguments != "none":
            encoded = _encode(arguments)
            if self.arguments == "record" and len(encoded) <= MAX_AUDITED_ARGUMENTS:
                extra["arguments"] = encoded.decode()
            else:
                digest = blake2b(encoded, key=self.key, digest_size=HASH_BYTES)
                made["arguments_hash"] = digest.hexdigest()
        record = PlainRecord(audit_logger.name, logging.INFO, action, extra, made)
        if denied:
            setattr(record, DENIED, True)
        audit_logger.handle(record)

    def refused(
        self, principal: Principal, request: Request, error: e.FolkmootError, room: str = ""
    ) -> None:
        """Tell of a request that policy let nobody see; those of nobody are not worth a line."""
        if principal.account_id:
            params = request.params if isinstance(request.params, dict) else {}
            arguments = params.get("arguments", params)
            what = str(kind_of(request))
            self.note(principal, what, arguments, error.code, 0.0, room, denied=True)

    def stopped(
        self, principal: Principal, request: Request, outcome: str, *, own: bool = False
    ) -> None:
        """Tell of a call that a rule stopped, or whose answer it kept back; `own` of the hub's."""
        if principal.account_id:
            params = request.params if isinstance(request.params, dict) else {}
            try:
                what = str(kind_of(request))
            except e.KindError:
                what = f"mcp.request.{request.method}"
            arguments = params.get("arguments", params)
            action = OWN if own else BACKEND_CALL
            self.note(principal, what, arguments, outcome, 0.0, action=action, denied=True)
