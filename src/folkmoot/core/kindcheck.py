"""Checks a kind against its payload: a message cannot claim one thing and do another.

Everything that can be told from the message alone is checked here, in one pass, before anyone else
sees it; what depends on who is in the room and which requests are open is the room's to check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.kinds import (
    KNOWN_KINDS,
    OPEN_PROTOCOLS,
    Kind,
    is_reserved,
    parse,
)
from folkmoot.core.message import (
    JSONRPC,
    ProtocolMessage,
    Request,
    Response,
    is_message_id,
)

Payload: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Kind, Payload, Sequence[str], Sequence[str]], Kind]

NOTIFICATIONS: Final = "notifications/"
ABOUT_A_REQUEST: Final = frozenset(("notifications/cancelled", "notifications/progress"))
"""Notifications that belong to an open request and must name it."""


def check(
    kind: Kind,
    payload: Payload | None,
    to: Sequence[str] = (),
    correlation_id: Sequence[str] = (),
) -> Kind:
    """Check a participant's message against its kind and answer its effective kind."""
    rule = _RULES.get(kind.root)
    if rule is None:
        if is_reserved(kind):
            raise e.ReservedKind(f"{kind.base} belongs to the gateway.", attempted_kind=str(kind))
        if kind.protocol in _INTERPRETED:
            raise e.UnknownOperation(
                f"The protocol {kind.protocol} has no operation {kind.operation}.",
                attempted_kind=str(kind),
            )
        return kind
    if type(payload) is not dict:
        if payload is None and rule in _WITHOUT_PAYLOAD:
            return rule(kind, {}, to, correlation_id)
        raise e.PayloadMissing(f"A message of kind {kind.base} needs an object as its payload.")
    return rule(kind, payload, to, correlation_id)


def effective(kind: Kind, payload: Payload) -> Kind:
    """The kind with the context its payload has, whether or not the sender wrote one.

    A context that disagrees with the payload, or that the method does not take, is refused.
    """
    context_of = CONTEXTS.get(kind.method or "")
    if context_of is None:
        if kind.context is not None:
            raise e.ContextNotAllowed(f"The method {kind.method} takes no context.")
        return kind
    context = context_of(payload.get("params"))
    if context == kind.context:
        return kind
    if kind.context is not None:
        raise e.ContextMismatch(
            "The kind and the payload name different tools, prompts or resources.",
            attempted_kind=str(kind),
        )
    try:
        return parse(f"{kind.base}:{context}")
    except e.KindError as error:
        raise _unnameable(error) from None


def _unnameable(error: e.KindError) -> e.PayloadInvalid:
    return e.PayloadInvalid(f"What the payload names cannot be part of a kind: {error}")


def kind_of(message: ProtocolMessage) -> Kind | None:
    """The effective kind of a plain MCP message; a response's is its request's, so it has none."""
    if type(message) is Response:
        return None
    method = message.method
    if type(message) is Request and (context_of := CONTEXTS.get(method)) is not None:
        context = context_of(message.params)
        try:
            return parse(f"mcp.request.{method}:{context}")
        except e.KindError as error:
            raise _unnameable(error) from None
    operation = "request" if type(message) is Request else "notification"
    kind = parse(f"mcp.{operation}.{method}")
    if kind.context is not None:
        raise e.KindSyntax("A method has no colon.")
    _check_operation(operation, method)
    return kind


def _request(kind: Kind, payload: Payload, to: Sequence[str], _about: Sequence[str]) -> Kind:
    if payload.get("jsonrpc") != JSONRPC:
        raise e.PayloadInvalid('"payload.jsonrpc" must be "2.0".')
    if not is_message_id(payload.get("id")):
        raise e.PayloadIdInvalid('"payload.id" must be a string or an integer.')
    if len(to) != 1:
        raise e.RecipientRequired("A request must name exactly one recipient in its 'to'.")
    return _call(kind, payload)


def _notification(kind: Kind, payload: Payload, _to: Sequence[str], about: Sequence[str]) -> Kind:
    if payload.get("jsonrpc") != JSONRPC:
        raise e.PayloadInvalid('"payload.jsonrpc" must be "2.0".')
    if "id" in payload:
        raise e.PayloadIdForbidden("A notification has no id.")
    if kind.method in ABOUT_A_REQUEST and not about:
        raise e.CorrelationRequired("It must name the request it is about in 'correlation_id'.")
    checked = _call(kind, payload)
    if kind.method == chat.METHOD:
        chat.check_body(payload.get("params"))
    return checked


def _proposal(kind: Kind, payload: Payload, _to: Sequence[str], about: Sequence[str]) -> Kind:
    if payload.get("jsonrpc", JSONRPC) != JSONRPC:
        raise e.PayloadInvalid('"payload.jsonrpc" must be "2.0".')
    if "id" in payload and not is_message_id(payload["id"]):
        raise e.PayloadIdInvalid('"payload.id" must be a string or an integer.')
    if type(payload.get("reason", "")) is not str:
        raise e.PayloadInvalid('"payload.reason" must be a string.')
    if about:
        raise e.CorrelationForbidden("A proposal must not have a 'correlation_id'.")
    return _call(kind, payload)


def _call(kind: Kind, payload: Payload) -> Kind:
    """What every message that names a method has in common."""
    method: str = kind.method  # type: ignore[assignment]  # a kind of mcp has one
    if payload.get("method") != method:
        raise e.MethodMismatch(
            "The kind and the payload name different methods.", attempted_kind=str(kind)
        )
    _check_operation(kind.operation, method)
    if "result" in payload or "error" in payload:
        raise e.PayloadInvalid("A call has no result and no error.")
    if type(payload.get("params", _NO_PARAMS)) is not dict:
        raise e.PayloadInvalid('"payload.params" must be an object.')
    return effective(kind, payload)


def _check_operation(operation: str, method: str) -> None:
    if (operation == "notification") is not method.startswith(NOTIFICATIONS):
        raise e.WrongOperation(f"The method {method} is not valid for a {operation}.")


_NO_PARAMS: Final[Payload] = {}


def _response(kind: Kind, payload: Payload, to: Sequence[str], about: Sequence[str]) -> Kind:
    if payload.get("jsonrpc") != JSONRPC:
        raise e.PayloadInvalid('"payload.jsonrpc" must be "2.0".')
    if not is_message_id(payload.get("id")):
        raise e.PayloadIdInvalid('"payload.id" must be a string or an integer.')
    if ("result" in payload) is ("error" in payload):
        raise e.ResultXorError("A response has either a result or an error.")
    if "method" in payload:
        raise e.PayloadInvalid("A response has no method.")
    if "error" in payload:
        error = payload["error"]
        if (
            type(error) is not dict
            or type(error.get("code")) is not int
            or type(error.get("message")) is not str
        ):
            raise e.PayloadInvalid(
                '"payload.error" needs an integer "code" and a string "message".'
            )
    if not about:
        raise e.CorrelationRequired("A response must name its request in 'correlation_id'.")
    if not to:
        raise e.RecipientRequired("A response must name the requester in its 'to'.")
    if kind.context is not None and kind.method not in CONTEXTS:
        raise e.ContextNotAllowed(f"The method {kind.method} takes no context.")
    return kind


def _begin(kind: Kind, _payload: Payload, _to: Sequence[str], about: Sequence[str]) -> Kind:
    return _about_one(kind, "request", about)


def _withdraw(kind: Kind, _payload: Payload, _to: Sequence[str], about: Sequence[str]) -> Kind:
    return _about_one(kind, "proposal", about)


def _reject(kind: Kind, payload: Payload, _to: Sequence[str], about: Sequence[str]) -> Kind:
    reason = payload.get("reason")
    if type(reason) is not str or not reason.strip():
        raise e.ReasonRequired("A rejection must say why, in 'payload.reason'.")
    return _about_one(kind, "proposal", about)


def _about_one(kind: Kind, what: str, about: Sequence[str]) -> Kind:
    if kind.method != what:
        raise e.UnknownOperation(f"{kind} is not a known kind; {kind.operation} takes a {what}.")
    if kind.context is not None:
        raise e.ContextNotAllowed(f"{kind.base} takes no context.")
    if len(about) != 1:
        raise e.CorrelationRequired(f"Exactly one {what} must be named in 'correlation_id'.")
    return kind


def _chat(kind: Kind, payload: Payload, _to: Sequence[str], _about: Sequence[str]) -> Kind:
    if "jsonrpc" in payload:
        raise _disguised(kind)
    said = chat.check_body(payload)
    if kind.context is not None:
        raise e.ContextNotAllowed("A chat message takes no context.")
    if kind.method is None:
        return kind if said is None else chat.SHORT[said]
    if kind.method not in chat.FORMATS:
        raise e.UnknownOperation(f"There is no chat format {kind.method}.")
    if said is not None and chat.FORMATS[said] != chat.FORMATS[kind.method]:
        raise e.FormatMismatch("The kind and the payload name different formats.")
    return kind


def _carry(kind: Kind, payload: Payload, _to: Sequence[str], _about: Sequence[str]) -> Kind:
    """Nothing more is asked than that the kind is the table's and the payload no MCP message."""
    if "jsonrpc" in payload:
        raise _disguised(kind)
    if kind.method is not None:
        raise e.UnknownOperation(f"{kind} is not a known kind; {kind.operation} takes no method.")
    return kind


def _mark(kind: Kind, payload: Payload, to: Sequence[str], about: Sequence[str]) -> Kind:
    if len(about) != 1:
        raise e.CorrelationRequired("Exactly one chat message must be named in 'correlation_id'.")
    return _carry(kind, payload, to, about)


def _disguised(kind: Kind) -> e.PayloadInvalid:
    return e.PayloadInvalid(f"An MCP message cannot travel as {kind.base}.")


def _named(params: Any) -> str:
    name = params.get("name") if type(params) is dict else None
    if type(name) is not str:
        raise e.PayloadInvalid('"params.name" must be a string.')
    return name


def _located(params: Any) -> str:
    uri = params.get("uri") if type(params) is dict else None
    if type(uri) is not str:
        raise e.PayloadInvalid('"params.uri" must be a string.')
    return uri


def _referenced(params: Any) -> str:
    ref = params.get("ref") if type(params) is dict else None
    if type(ref) is not dict or ("name" in ref) is ("uri" in ref):
        raise e.PayloadInvalid('"params.ref" must be an object with either a name or a uri.')
    return _named(ref) if "name" in ref else _located(ref)


CONTEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "tools/call": _named,
    "prompts/get": _named,
    "resources/read": _located,
    "resources/subscribe": _located,
    "resources/unsubscribe": _located,
    "completion/complete": _referenced,
}
"""Where the context of a method stands in its params; a method that is not here takes none."""

_MADE_FOR: Final[dict[str, Rule]] = {
    "mcp.request": _request,
    "mcp.response": _response,
    "mcp.notification": _notification,
    "mcp.proposal": _proposal,
    "mcpx.begin": _begin,
    "mcpx.withdraw": _withdraw,
    "mcpx.reject": _reject,
    "chat.message": _chat,
    "chat.acknowledge": _mark,
    "chat.cancel": _mark,
}

_RULES: Final[dict[str, Rule]] = {
    root: _MADE_FOR.get(root, _carry)
    for known in KNOWN_KINDS
    if known.sender == "participant"
    for root in [".".join(known.kind.split(".")[:2])]
}
_WITHOUT_PAYLOAD: Final = (_carry, _mark, _begin, _withdraw)
_INTERPRETED: Final = frozenset(root.split(".")[0] for root in _RULES) - OPEN_PROTOCOLS
