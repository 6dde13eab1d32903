"""What each kind of message says, in words: one small function each, and the table of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from folkmoot.core import chat
from folkmoot.core.errors import CapabilityDenied, GrantExceedsRights, ProposalRequired
from folkmoot.core.kinds import Kind

Payload: TypeAlias = dict[str, Any]

LACKING: Final = frozenset(
    error.code for error in (CapabilityDenied, GrantExceedsRights, ProposalRequired)
)
"""Refusals for want of a right: what one holds explains them."""
CONTEXT_MEMBERS: Final = ("name", "uri")
"""The members of `params` that a kind's context repeats."""


class Told(NamedTuple):
    """What a message says; `chip` is empty for talk, which needs no label."""

    text: str
    chip: str = ""
    aside: bool = False
    failed: bool = False
    mentions: Any = None


Teller: TypeAlias = Callable[[Kind, Payload], Told]


def tell(kind: Kind | None, payload: Payload) -> Told:
    """What a message says; one of a kind that is not known says its payload."""
    if kind is None:
        return Told(spelled(payload), "unknown kind")
    near = f"{kind.protocol}.{kind.operation}"
    base = f"{near}.{kind.method}" if kind.method else near
    teller = TELLERS.get(base) or TELLERS.get(near) or TELLERS.get(kind.protocol) or _other
    return teller(kind, payload)


def spelled(value: Any) -> str:
    """A value as JSON in one line, with room between its parts to break it."""
    return _value(value) if value not in ({}, None) else ""


def named(kind: Kind) -> str:
    """A kind as its chip says it; that MCP is spoken goes without saying."""
    parts = [kind.operation] if kind.protocol == "mcp" else [kind.protocol, kind.operation]
    if kind.method:
        parts.append(kind.method if kind.context is None else f"{kind.method}:{kind.context}")
    return " ".join(parts)


def details(kind: Kind, payload: Payload) -> Any:
    """What a call says beyond its kind: the arguments alone, where there is nothing else."""
    params = payload.get("params")
    if type(params) is not dict:
        return params
    rest = {
        name: value
        for name, value in params.items()
        if not (name in CONTEXT_MEMBERS and value == kind.context)
    }
    return rest["arguments"] if list(rest) == ["arguments"] else rest


def _chat(_: Kind, payload: Payload) -> Told:
    return Told(str(payload.get("text", "")), mentions=payload.get("mentions"))


def _notified_chat(kind: Kind, payload: Payload) -> Told:
    params = payload.get("params")
    return _chat(kind, params if type(params) is dict else {})


def _call(kind: Kind, payload: Payload) -> Told:
    return Told(spelled(details(kind, payload)), named(kind))


def _name(name: str) -> str:
    # A line end in a name would let one argument pass for two.
    return _value(name)[1:-1]


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _proposal(kind: Kind, payload: Payload) -> Told:
    asked = details(kind, payload)
    if type(asked) is dict and asked:
        text = "\n".join(f"{_name(name)}: {_value(it)}" for name, it in asked.items())
    else:
        text = spelled(asked)
    return Told(text, named(kind))


def _response(kind: Kind, payload: Payload) -> Told:
    error = payload.get("error")
    if type(error) is dict:
        return Told(str(error.get("message") or spelled(error)), named(kind), failed=True)
    result = payload.get("result")
    if type(result) is not dict:
        return Told(spelled(result), named(kind))
    return Told(
        content_of(result) or spelled(result), named(kind), failed=bool(result.get("isError"))
    )


def content_of(result: Payload) -> str:
    """The texts of a tool's result; nothing unless it is texts alone."""
    content = result.get("content")
    if type(content) is not list:
        return ""
    texts = [it.get("text") for it in content if type(it) is dict and it.get("type") == "text"]
    whole = len(texts) == len(content) and all(type(text) is str for text in texts)
    return "\n".join(map(str, texts)) if whole else ""


def _progress(_: Kind, payload: Payload) -> Told:
    params = payload.get("params")
    params = params if type(params) is dict else {}
    done = "/".join(str(params[name]) for name in ("progress", "total") if name in params)
    return Told(f"{done} {params.get('message', '')}".strip(), "progress", aside=True)


def _cancelled(_: Kind, payload: Payload) -> Told:
    params = payload.get("params")
    reason = params.get("reason", "") if type(params) is dict else ""
    return Told(str(reason), "cancelled", aside=True)


def _begun(_: Kind, __: Payload) -> Told:
    return Told("", "began", aside=True)


def _reasoned(chip: str) -> Teller:
    return lambda _, payload: Told(str(payload.get("reason", "")), chip)


def _presence(kind: Kind, payload: Payload) -> Told:
    who = payload.get("participant")
    who = who if type(who) is dict else {}
    type_ = who.get("type")
    what = f" ({type_})" if type_ not in (None, "person") else ""
    happened = {"join": "joined", "leave": "left"}.get(kind.method or "", kind.method)
    return Told(f"{who.get('id', 'someone')}{what} {happened}", aside=True)


def _error(_: Kind, payload: Payload) -> Told:
    said = [str(payload.get("message") or payload.get("error", ""))]
    if attempted := payload.get("attempted_kind"):
        said.append(f"you tried: {attempted}")
    said += may_instead(payload.get("error"), payload)
    if type(after := payload.get("retry_after")) in (int, float):
        said.append(f"try again in {after:g} seconds")
    return Told("\n".join(said), "refused", failed=True)


def may_instead(code: Any, told: Mapping[str, Any]) -> list[str]:
    """What someone may do, where it was a right that they lacked."""
    if code not in LACKING or "your_capabilities" not in told:
        return []
    return [f"you may: {allowed(told['your_capabilities'])}"]


def allowed(capabilities: Any) -> str:
    """What someone may do, in a line."""
    if type(capabilities) is not list or not capabilities:
        return "nothing"
    return ", ".join(it if type(it) is str else spelled(it) for it in capabilities)


def _welcome(_: Kind, payload: Payload) -> Told:
    you = payload.get("you")
    you = you if type(you) is dict else {}
    return Told(f"you may: {allowed(you.get('capabilities'))}", aside=True)


def _rights(chip: str) -> Teller:
    def told(_: Kind, payload: Payload) -> Told:
        what = f": {allowed(payload['capabilities'])}" if payload.get("capabilities") else ""
        whom = payload.get("recipient") or payload.get("grant_id") or ""
        return Told(f"{whom}{what}", chip)

    return told


def _granted(_: Kind, payload: Payload) -> Told:
    whom = payload.get("recipient", "")
    return Told(f"{whom} may now: {allowed(payload.get('capabilities'))}", aside=True)


def _about(chip: str, *members: str) -> Teller:
    def told(_: Kind, payload: Payload) -> Told:
        return Told(next((str(payload[it]) for it in members if payload.get(it)), ""), chip)

    return told


def _expired(_: Kind, __: Payload) -> Told:
    return Told("nobody decided in time", "expired", aside=True)


def _thinking(kind: Kind, payload: Payload) -> Told:
    said = next((payload[it] for it in ("text", "thought", "message") if it in payload), payload)
    return Told(said if type(said) is str else spelled(said), named(kind), aside=True)


def _other(kind: Kind, payload: Payload) -> Told:
    return Told(spelled(payload), named(kind))


TELLERS: Final[dict[str, Teller]] = {
    "chat.message": _chat,
    f"mcp.notification.{chat.METHOD}": _notified_chat,
    "mcp.notification.notifications/progress": _progress,
    "mcp.notification.notifications/cancelled": _cancelled,
    "mcp.notification": _call,
    "mcp.request": _call,
    "mcp.proposal": _proposal,
    "mcp.response": _response,
    "mcpx.begin": _begun,
    "mcpx.reject": _reasoned("rejected"),
    "mcpx.withdraw": _reasoned("withdrawn"),
    "system.proposal.expired": _expired,
    "system.presence": _presence,
    "system.error": _error,
    "system.welcome": _welcome,
    "capability.grant": _rights("grant"),
    "capability.revoke": _rights("revoke"),
    "capability.grant-ack": _granted,
    "room.invite": _about("invited", "handle", "guest"),
    "room.kick": _about("kicked", "participant"),
    "reasoning": _thinking,
}
"""By the whole kind without its context, by protocol and operation, or by protocol."""
