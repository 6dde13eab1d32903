"""Operations: what can be asked of the hub, each judged by one kind whichever way it is asked.

A tool, a REST request, a WebSocket and a message in a room that do the same thing are one
operation, and policy judges all of them as the call of a tool of that name:

    room/say    the tool, POST /v1/rooms/NAME/messages, and chat on a WebSocket
    room/call   the tool, and a request to call a tool on either
    room/join   the tool, and opening a WebSocket

So what an account is denied at the hub it is denied everywhere. Inside a room the hub's denies hold
as well, by the effective kind of each message; what the hub allows widens no room's rights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from folkmoot.audit import record_refusal
from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.entity import Entity
from folkmoot.core.kindcheck import check, kind_of
from folkmoot.core.kinds import parse
from folkmoot.core.message import Request, members
from folkmoot.core.policy import ALLOWED, PrincipalType, decide, out_of_scope
from folkmoot.gateway.rights import SAME_AS_TOOL
from folkmoot.mcp.wire import TOOLS_CALL

if TYPE_CHECKING:
    from folkmoot.core.kinds import Kind
    from folkmoot.core.mcpx import McpxMessage
    from folkmoot.core.policy import Principal, Verdict
    from folkmoot.gateway.rights import HubRights

SAY: Final = "room/say"
PROPOSE: Final = "room/propose"
DECIDE: Final = "room/decide"
TOOLS: Final = "room/tools"
CALL_TOOL: Final = "room/call"
RESPOND: Final = "room/respond"
CONTROL: Final = "room/control"
"""To tell other participants what to do: no tool does that, only messages do."""
POST: Final = "room/post"
"""Any message in a room that no other operation stands for."""
ALSO_POSTED: Final = frozenset((TOOLS, CALL_TOOL, RESPOND, CONTROL))
"""Operations that a deny of `room/post` stops too."""

OPERATIONS: Final[Mapping[str, str]] = {
    "chat": SAY,
    f"mcp.notification.{chat.METHOD}": SAY,
    f"mcp.request.tools/call:{chat.TOOL}": SAY,
    "mcp.request.tools/list": TOOLS,
    "mcp.request.tools/call": CALL_TOOL,
    "mcp.response": RESPOND,
    "mcp.proposal": PROPOSE,
    "mcpx.withdraw": DECIDE,
    "mcpx.reject": DECIDE,
    "room.invite": "room/invite",
    "room.kick": "room/kick",
    "capability.grant": "room/grant",
    "capability.revoke": "room/revoke",
    "participant.pause": CONTROL,
    "participant.resume": CONTROL,
    "participant.forget": CONTROL,
    "participant.compact": CONTROL,
    "participant.clear": CONTROL,
    "participant.restart": CONTROL,
    "participant.shutdown": CONTROL,
}
"""The operation that a message in a room is, by its kind or the beginning of it."""

KINDS: Final[Mapping[str, Kind]] = {
    name: parse(f"mcp.request.{TOOLS_CALL}:{name}") for name in (*OPERATIONS.values(), POST)
}
"""What each of these operations is judged as."""
PUBLIC: Final = "room/"
"""What every account may do unless it is denied begins so."""
NO_RIGHTS: Final = Rights()
"""Given where rights are looked up."""

# To look a member of an enumeration up, or to hash it, costs more than the decision itself.
_PERSON: Final = PrincipalType.PERSON
_AGENT: Final = PrincipalType.AGENT


class HubPolicy(Entity):
    """The hub's rights, asked in the same words by every way in."""

    rights: HubRights

    def decide(self, principal: Principal, _: Rights, message: Any) -> Verdict:
        """Judge a call by the rights of this moment: it may have been held since it came.

        A guest has one room and nothing at the hub that could be denied.
        """
        if principal.type is not _PERSON and principal.type is not _AGENT:
            return ALLOWED
        rights = self.rights.of_principal(principal)
        if not rights.has_denies and type(message) is Request and message.method == TOOLS_CALL:
            params: Any = message.params
            if type(params) is dict and str(params.get("name")).startswith(PUBLIC):
                return ALLOWED
        return decide(principal, rights, message)

    def check(
        self,
        principal: Principal,
        operation: str,
        arguments: dict[str, Any],
        *,
        attempted: bool = True,
    ) -> None:
        """Raise a `PolicyError` if someone may do an operation no longer that was admitted.

        What was `attempted` is in the audit log then.
        """
        error = self.decide(principal, NO_RIGHTS, call_of(operation, arguments)).error
        if error is not None:
            if attempted:
                about = f"mcp.request.{TOOLS_CALL}:{operation}"
                record_refusal(principal, about, error, str(arguments.get("room", "")))
            raise error

    def permits(
        self, principal: Principal, operation: str, arguments: dict[str, Any] | None = None
    ) -> bool:
        """Whether someone may do an operation; what they may not is in no log."""
        try:
            self.check(principal, operation, arguments or {}, attempted=False)
        except e.PolicyError:
            return False
        return True

    def permits_request(self, principal: Principal, request: Request) -> bool:
        """Whether someone may make a request to a backend; what they may not is in no log."""
        try:
            kind = kind_of(request)
        except e.KindError:
            return False
        rights = self.rights.of_principal(principal)
        return kind is not None and rights.allows(kind, members(request))

    def check_request(self, principal: Principal, method: str, params: dict[str, Any]) -> None:
        """Raise `CapabilityDenied` if an MCP request for something of the hub's own is denied.

        Lists and resources of the hub's are for everyone who is not denied them. A resource that
        says what a tool says is denied with the tool.
        """
        rights = self.rights.of_principal(principal)
        if not rights.has_denies:
            return
        try:
            check_denies(principal, rights, Request(id=0, method=method, params=params))
            if params.get("uri") in SAME_AS_TOOL:
                check_denies(principal, rights, call_of(SAME_AS_TOOL[params["uri"]], {}))
        except e.CapabilityDenied as error:
            record_refusal(principal, str(error.data["attempted_kind"]), error)
            raise

    def message_check(
        self, principal: Principal
    ) -> Callable[[Principal, str, Kind, McpxMessage], None] | None:
        """How to check what someone says in rooms; None where nothing can be denied them."""
        if principal.type is not _PERSON and principal.type is not _AGENT:
            return None
        return self.check_message if self.rights.of_principal(principal).has_denies else None

    def denied_in(self, principal: Principal, room: str) -> list[str]:
        """What the hub denies someone to say in a room, as denies of kinds."""
        if self.message_check(principal) is None:
            return []
        return [
            f"!{kind}" if "." in kind else f"!{kind}.*"
            for kind, operation in OPERATIONS.items()
            # Of what is decided, the kind says which.
            if not self.permits(
                principal, operation, {"room": room, "decision": kind.partition(".")[2]}
            )
        ]

    def check_message(
        self, principal: Principal, room: str, kind: Kind, message: McpxMessage
    ) -> None:
        """Raise `CapabilityDenied` if the hub denies someone what they say in a room."""
        if principal.type is not _PERSON and principal.type is not _AGENT:
            return
        rights = self.rights.of_principal(principal)
        if not rights.has_denies:
            return
        if rights.denies(kind, message.payload):
            raise denied(kind, kind)
        operation = operation_of(kind, message)
        for name in (operation, POST) if operation in ALSO_POSTED else (operation,):
            if rights.may_deny(KINDS[name]):
                asked = call_of(name, arguments_of(name, room, message))
                check_denies(principal, rights, asked, kind)


def check_denies(
    principal: Principal, rights: Rights, request: Request, attempted: Kind | None = None
) -> None:
    """Raise `CapabilityDenied` if a request is denied, or outside the scope of a credential.

    With `attempted`, that is what was tried by it.
    """
    try:
        kind = kind_of(request)
    except e.KindError:
        # What no right can speak of is refused elsewhere, in words of its own.
        return
    if kind is None:
        return
    said = members(request)
    if missing := rights.missing(kind, said):
        raise out_of_scope(principal, attempted or kind, missing)
    if rights.denies(kind, said):
        raise denied(kind, attempted or kind)


def denied(kind: Kind, attempted: Kind) -> e.CapabilityDenied:
    """The refusal of what a deny at the hub covers."""
    return e.CapabilityDenied(f"A deny at the hub covers {kind}.", attempted_kind=str(attempted))


def call_of(operation: str, arguments: dict[str, Any]) -> Request:
    """An operation as a tool call, which the policy judges."""
    return Request(id=0, method=TOOLS_CALL, params={"name": operation, "arguments": arguments})


def call_in_room(room: str, message: McpxMessage) -> tuple[str, dict[str, Any]] | None:
    """The operation that a message in a room is, and its arguments.

    None if kind and payload of the message do not fit: its room says so.
    """
    try:
        kind = check(message.kind, message.payload, message.to, message.correlation_id)
    except e.KindError:
        return None
    operation = operation_of(kind, message)
    return operation, arguments_of(operation, room, message)


def operation_of(kind: Kind, message: McpxMessage) -> str:
    """The operation that a message in a room is, by its effective kind.

    A request that names what it correlates with fulfils a proposal.
    """
    if kind.root == "mcp.request" and message.correlation_id and kind.text not in OPERATIONS:
        return DECIDE
    for name in (kind.text, kind.base, kind.root, kind.protocol):
        if name in OPERATIONS:
            return OPERATIONS[name]
    return POST


def arguments_of(operation: str, room: str, message: McpxMessage) -> dict[str, Any]:
    """A message in a room as the arguments of its operation's tool."""
    payload = message.payload if type(message.payload) is dict else {}
    made = ARGUMENTS.get(operation)
    return {**(payload if made is None else made(message, payload)), "room": room}


def _chat_arguments(message: McpxMessage, payload: dict[str, Any]) -> dict[str, Any]:
    spelled = chat.spellings(message.kind, payload)
    return dict(spelled[0][1]["params"]) if spelled else payload


def _proposed(message: McpxMessage, payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "to": message.to[0]} if message.to else payload


def _called(message: McpxMessage, payload: dict[str, Any]) -> dict[str, Any]:
    params = payload.get("params")
    given = params if type(params) is dict else {}
    called = {"tool": given.get("name"), "arguments": given.get("arguments", {})}
    return {**called, "to": message.to[0]} if message.to else called


def _listed(message: McpxMessage, _: dict[str, Any]) -> dict[str, Any]:
    return {"to": message.to[0]} if message.to else {}


def _decided(message: McpxMessage, payload: dict[str, Any]) -> dict[str, Any]:
    decision = {"withdraw": "withdraw", "reject": "reject"}.get(message.kind.operation, "fulfil")
    proposal = message.correlation_id[0] if message.correlation_id else ""
    return {**_proposed(message, payload), "proposal": proposal, "decision": decision}


ARGUMENTS: Final[Mapping[str, Callable[[McpxMessage, dict[str, Any]], dict[str, Any]]]] = {
    SAY: _chat_arguments,
    PROPOSE: _proposed,
    DECIDE: _decided,
    CALL_TOOL: _called,
    TOOLS: _listed,
}
