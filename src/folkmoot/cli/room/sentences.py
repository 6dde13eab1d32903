"""Sentences for messages: one small function for each kind, and the table of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.kinds import Kind
from folkmoot.mcp.wire import TOOLS_CALL, TOOLS_LIST

if TYPE_CHECKING:
    from folkmoot.rooms.model import RoomView

Payload: TypeAlias = dict[str, Any]

LACKING: Final = frozenset(
    error.code for error in (e.CapabilityDenied, e.GrantExceedsRights, e.ProposalRequired)
)
"""Refusals for want of a right: what one holds explains them."""
CONTEXT_MEMBERS: Final = ("name", "uri")
"""The members of `params` that a kind's context repeats."""
BARE: Final = re.compile(r"[\w./@+-]+")
"""Strings that are shown without quotes."""
LITERAL: Final = re.compile(r"true|false|null|[-+]?[\d.]+(?:[eE][-+]?\d+)?")
"""Those that would then look like another value."""


class Sentence(NamedTuple):
    """What a message says; `chip` is empty for talk, which needs no label.

    `words` say it as a sentence that begins with the sender's name, and `brief` is what comes after
    the sentence; where they are None, the chip and the text are shown. In `words`, `{to}`,
    `{about}`, `{origin}`, `{number}` and `{what}` are filled in; what is in brackets is left out
    where there is nothing to fill in.
    """

    text: str
    chip: str = ""
    aside: bool = False
    failed: bool = False
    mentions: Any = None
    words: str | None = None
    what: str = ""
    brief: str | None = None
    nameless: bool = False
    """Whether the sentence does not begin with the sender's name."""
    repeats: bool = False
    """Whether the message it correlates says the same, so that one of them is enough."""


Teller: TypeAlias = Callable[[Kind, Payload], Sentence]


def sentence_for(kind: Kind | None, payload: Payload) -> Sentence:
    """The sentence for a message; an unknown kind shows its payload."""
    if kind is None:
        return Sentence(spelled(payload), "unknown kind")
    near = f"{kind.protocol}.{kind.operation}"
    base = f"{near}.{kind.method}" if kind.method else near
    teller = TELLERS.get(base) or TELLERS.get(near) or TELLERS.get(kind.protocol) or _other
    return teller(kind, payload)


def spelled(value: Any) -> str:
    """A value as JSON in one line, with spaces where it may wrap."""
    return _value(value) if value not in ({}, None) else ""


def named(kind: Kind) -> str:
    """The short name of a kind, without the word `mcp`."""
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


def call_name(kind: Kind) -> str:
    """What is called: a tool by its name alone, anything else by its method."""
    if kind.method == TOOLS_CALL and kind.context is not None:
        return kind.context
    method = kind.method or kind.operation
    return method if kind.context is None else f"{method}:{kind.context}"


def called(kind: Kind, payload: Payload) -> str:
    """A call in one line: `high_water harbour=Rye`."""
    given = details(kind, payload)
    if type(given) is not dict:
        return f"{call_name(kind)} {spelled(given)}".strip()
    parts = (f"{_name(name)}={_bare(value)}" for name, value in given.items())
    return " ".join([call_name(kind), *parts])


def _bare(value: Any) -> str:
    plain = type(value) is str and BARE.fullmatch(value) and not LITERAL.fullmatch(value)
    return str(value) if plain else _value(value)


def _chat(_: Kind, payload: Payload) -> Sentence:
    text, mentions = str(payload.get("text", "")), payload.get("mentions")
    if chat.REPLACES not in payload:
        return Sentence(text, mentions=mentions, words="")
    if chat.DELETED in payload:
        return Sentence(text, words="deleted a message[, {about}]", brief="", aside=True)
    return Sentence(text, mentions=mentions, words="edited a message[, {about}]")


def _notified_chat(kind: Kind, payload: Payload) -> Sentence:
    params = payload.get("params")
    return _chat(kind, params if type(params) is dict else {})


def _call(kind: Kind, payload: Payload) -> Sentence:
    return Sentence(spelled(details(kind, payload)), named(kind))


def _request(kind: Kind, payload: Payload) -> Sentence:
    if kind.method == TOOLS_LIST:
        text = spelled(details(kind, payload))
        return Sentence(text, named(kind), aside=True, words="asked {to} for its tools", brief="")
    return Sentence(
        spelled(details(kind, payload)),
        named(kind),
        words="asked {to}",
        brief=called(kind, payload),
    )


def _name(name: str) -> str:
    # A line end in a name would let one argument pass for two.
    return _value(name)[1:-1]


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _proposal(kind: Kind, payload: Payload) -> Sentence:
    asked = details(kind, payload)
    if type(asked) is dict and asked:
        text = "\n".join(f"{_name(name)}: {_value(it)}" for name, it in asked.items())
    else:
        text = spelled(asked)
    if type(reason := payload.get("reason")) is str and reason.strip():
        # Quoted, and without the colon that follows the name of an argument.
        text = f"{text}\nbecause {_value(reason)}".lstrip("\n")
    words = "proposes {number}[ to {to}]: {what}"
    return Sentence(text, named(kind), words=words, what=call_name(kind))


def _response(kind: Kind, payload: Payload) -> Sentence:
    error = payload.get("error")
    if type(error) is dict:
        text = str(error.get("message") or spelled(error))
        return Sentence(text, named(kind), failed=True, words=FAILED)
    result = payload.get("result")
    if type(result) is not dict:
        return Sentence(spelled(result), named(kind), words="")
    if kind.method == TOOLS_LIST and type(listed := result.get("tools")) is list:
        names = [str(it.get("name")) for it in listed if type(it) is dict]
        text, brief = spelled(result), ", ".join(names) or "no tools"
        return Sentence(text, named(kind), aside=True, words="offers", brief=brief)
    failed = bool(result.get("isError"))
    text = content_of(result) or spelled(result)
    return Sentence(text, named(kind), failed=failed, words=FAILED if failed else "")


def content_of(result: Payload) -> str:
    """The texts of a tool's result; nothing unless it is texts alone."""
    content = result.get("content")
    if type(content) is not list:
        return ""
    texts = [it.get("text") for it in content if type(it) is dict and it.get("type") == "text"]
    whole = len(texts) == len(content) and all(type(text) is str for text in texts)
    return "\n".join(map(str, texts)) if whole else ""


FAILED: Final = "failed"


def _progress(_: Kind, payload: Payload) -> Sentence:
    params = payload.get("params")
    params = params if type(params) is dict else {}
    done = "/".join(str(params[name]) for name in ("progress", "total") if name in params)
    text = f"{done} {params.get('message', '')}".strip()
    return Sentence(text, "progress", aside=True, words="")


def _cancelled(_: Kind, payload: Payload) -> Sentence:
    params = payload.get("params")
    reason = params.get("reason", "") if type(params) is dict else ""
    return Sentence(str(reason), "cancelled", aside=True, words="cancelled {origin}")


def _begun(_: Kind, __: Payload) -> Sentence:
    return Sentence("", "began", aside=True, words="began {origin}")


def _reasoned(chip: str, words: str) -> Teller:
    return lambda _, payload: Sentence(str(payload.get("reason", "")), chip, words=words)


def _presence(kind: Kind, payload: Payload) -> Sentence:
    who = payload.get("participant")
    who = who if type(who) is dict else {}
    type_ = who.get("type")
    what = f" ({type_})" if type_ not in (None, "person") else ""
    happened = {"join": "joined", "leave": "left"}.get(kind.method or "", kind.method)
    text = f"{who.get('id', 'someone')}{what} {happened}"
    return Sentence(text, aside=True, words="", nameless=True)


def _serving(_: Kind, payload: Payload) -> Sentence:
    which = "this connection runs" if payload.get("you") else "another connection of yours runs"
    return Sentence(f"{which} what you are asked", aside=True, words="", nameless=True)


def _error(_: Kind, payload: Payload) -> Sentence:
    said = [str(payload.get("message") or payload.get("error", ""))]
    if attempted := payload.get("attempted_kind"):
        said.append(f"you tried: {attempted}")
    said += may_instead(payload.get("error"), payload)
    if type(after := payload.get("retry_after")) in (int, float):
        said.append(f"try again in {after:g} seconds")
    return Sentence("\n".join(said), "refused", failed=True, words="refused", nameless=True)


def may_instead(code: Any, told: Mapping[str, Any]) -> list[str]:
    """The rights someone has, to show beside a refusal for a missing one."""
    if code not in LACKING or "your_capabilities" not in told:
        return []
    return [f"you can: {allowed(told['your_capabilities'])}"]


def allowed(capabilities: Any) -> str:
    if type(capabilities) is not list or not capabilities:
        return "nothing"
    return ", ".join(it if type(it) is str else spelled(it) for it in capabilities)


def _welcome(_: Kind, payload: Payload) -> Sentence:
    you = payload.get("you")
    you = you if type(you) is dict else {}
    text = f"you can: {allowed(you.get('capabilities'))}"
    return Sentence(text, aside=True, words="", nameless=True)


def _rights(chip: str, some: str, everything: str) -> Teller:
    def told(_: Kind, payload: Payload) -> Sentence:
        what = allowed(payload["capabilities"]) if payload.get("capabilities") else ""
        whom = payload.get("recipient") or payload.get("grant_id") or ""
        text = f"{whom}: {what}" if what else f"{whom}"
        words = some if what else everything
        return Sentence(text, chip, words=words, what=str(whom), brief=what)

    return told


def _granted(_: Kind, payload: Payload) -> Sentence:
    whom = payload.get("recipient", "")
    text = f"{whom} can now: {allowed(payload.get('capabilities'))}"
    return Sentence(text, aside=True, words="", nameless=True)


def _about(chip: str, *members: str) -> Teller:
    def told(_: Kind, payload: Payload) -> Sentence:
        whom = next((str(payload[it]) for it in members if payload.get(it)), "")
        reason = payload.get("reason")
        brief = reason if type(reason) is str else ""
        return Sentence(whom, chip, words=f"{chip} {{what}}", what=whom, brief=brief)

    return told


def _expired(_: Kind, __: Payload) -> Sentence:
    text = "nobody decided in time"
    return Sentence(text, "expired", aside=True, words="{about} expired", nameless=True)


def _kicked_proposal(_: Kind, payload: Payload) -> Sentence:
    text = f"its proposer was {payload.get('reason', 'kicked')}"
    return Sentence(text, "withdrawn", aside=True, words="{about} closed", nameless=True)


def _held(kind: Kind, payload: Payload) -> Sentence:
    who, by = payload.get("participant", "someone"), payload.get("by")
    whose = "" if by in (None, "gateway") else f" by {by}"
    if kind.method == "resumed":
        text = f"{who} is resumed{whose}"
    else:
        why = f": {payload['reason']}" if payload.get("reason") else ""
        text = f"{who} is paused{whose}{why}"
    return Sentence(text, aside=True, words="", nameless=True, repeats=bool(whose))


def _thinking(kind: Kind, payload: Payload) -> Sentence:
    said = next((payload[it] for it in ("text", "thought", "message") if it in payload), payload)
    text = said if type(said) is str else spelled(said)
    return Sentence(text, named(kind), aside=True, words=THOUGHTS.get(kind.operation))


THOUGHTS: Final[dict[str, str]] = {
    "start": "starts thinking",
    "thought": "thinks",
    "conclusion": "concludes",
    "cancel": "stops thinking",
}


def _to_participant(kind: Kind, payload: Payload) -> Sentence:
    words = CONTROLS.get(kind.operation)
    return Sentence(spelled(payload), named(kind), aside=True, words=words)


CONTROLS: Final[dict[str, str]] = {
    "pause": "pauses {to}",
    "resume": "resumes {to}",
    "request-status": "asks {to} for its status",
    "status": "reports its status",
    "forget": "asks {to} to forget",
    "compact": "asks {to} to compact its memory",
    "compact-done": "compacted its memory",
    "clear": "asks {to} to clear its memory",
    "restart": "asks {to} to restart",
    "shutdown": "asks {to} to shut down",
}
"""What the messages that steer participants say."""


def _marked(chip: str) -> Teller:
    return lambda _, payload: Sentence(
        spelled(payload), chip, aside=True, words=f"{chip} {{about}}", brief=""
    )


def _other(kind: Kind, payload: Payload) -> Sentence:
    return Sentence(spelled(payload), named(kind))


TELLERS: Final[dict[str, Teller]] = {
    "chat.message": _chat,
    f"mcp.notification.{chat.METHOD}": _notified_chat,
    "mcp.notification.notifications/progress": _progress,
    "mcp.notification.notifications/cancelled": _cancelled,
    "mcp.notification": _call,
    "mcp.request": _request,
    "mcp.proposal": _proposal,
    "mcp.response": _response,
    "mcpx.begin": _begun,
    "mcpx.reject": _reasoned("rejected", "rejected {about}"),
    "mcpx.withdraw": _reasoned("withdrawn", "withdrew {about}"),
    "system.proposal.expired": _expired,
    "system.proposal.withdrawn": _kicked_proposal,
    "system.participant": _held,
    "system.presence": _presence,
    "system.error": _error,
    "system.serving": _serving,
    "system.welcome": _welcome,
    "capability.grant": _rights("grant", "granted {what}", "granted {what}"),
    "capability.revoke": _rights("revoke", "revoked from {what}", "revoked the grants of {what}"),
    "capability.grant-ack": _granted,
    "room.invite": _about("invited", "handle", "guest"),
    "room.kick": _about("kicked", "participant"),
    "chat.acknowledge": _marked("acknowledged"),
    "chat.cancel": _marked("cancelled"),
    "participant.pause": _reasoned("pause", "paused {to}"),
    "participant.resume": _reasoned("resume", "resumed {to}"),
    "participant": _to_participant,
    "reasoning": _thinking,
}
"""By the whole kind without its context, by protocol and operation, or by protocol."""


def new_in(room: RoomView) -> str:
    """What is new in a room for the reader, in a few words."""
    if room.invited:
        return "invited"
    mentions = f"@{room.mentions}" if room.mentions else ""
    unread = f"{room.unread} unread" if room.unread else ""
    return " ".join(filter(None, (mentions, unread)))
