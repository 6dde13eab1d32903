"""Checks before a request is served: its params, its declarations, and its token.

A client may declare anything under `capabilities` and `clientInfo`, and a session keeps it for as
long as it is open. Declarations of usual size pass as they are; of longer ones only the members
remain that the hub or a backend acts on.

Nobody with a wrong or dead token is treated as if they had none: only registering and recovering
work. The stateless era is answered 401, but for what a client asks to connect: without an answer
to that some clients could not even recover. In the handshake era a session opens, so that its user
can be told in a result and can recover there. Both may list the tools that still work: clients do
that around a call, and would lose a fresh token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.oauth import challenges, scopes
from folkmoot.core.oauth.metadata import resource_metadata_url
from folkmoot.mcp.wire import (
    APPS_EXTENSION,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVER,
    INITIALIZE,
    PING,
    PROMPTS_LIST,
    RESOURCES_LIST,
    TEMPLATES_LIST,
    TOOLS_CALL,
    TOOLS_LIST,
    UNCACHED,
)
from folkmoot.operations.dispatch import failure
from folkmoot.operations.finder import CALL_TOOL
from folkmoot.transports.answers import JsonResponse
from folkmoot.transports.limits import MAX_DECLARATION_BYTES, MAX_DECLARED_MEMBER

if TYPE_CHECKING:
    from starlette.responses import Response

    from folkmoot.names import NameStyle
    from folkmoot.operations import ToolCatalogue
    from folkmoot.transports.mcp.arrivals import Exchange


def text_in(params: dict[str, Any], name: str) -> str:
    """A member that must be a string."""
    value = params.get(name)
    if type(value) is not str:
        raise e.ParamsInvalid(f"{name} must be a string.")
    return value


def object_in(params: dict[str, Any], name: str) -> dict[str, Any] | None:
    """A member that is an object where it is given."""
    value = params.get(name)
    if value is not None and type(value) is not dict:
        raise e.ParamsInvalid(f"{name} must be an object.")
    return value


def texts_in(params: dict[str, Any], name: str) -> dict[str, str] | None:
    """A member that is an object of strings where it is given."""
    value = object_in(params, name)
    if value is not None and any(type(each) is not str for each in value.values()):
        raise e.ParamsInvalid(f"Every member of {name} must be a string.")
    return value


def check_completion(params: dict[str, Any]) -> None:
    """Refuse a wish for a completion that does not say of what."""
    ref, argument = object_in(params, "ref") or {}, object_in(params, "argument") or {}
    kinds = {"ref/prompt": "name", "ref/resource": "uri"}
    kind = ref.get("type")
    if type(kind) is not str or kind not in kinds:
        raise e.ParamsInvalid("ref must name a prompt or a resource.")
    text_in(ref, kinds[kind])
    text_in(argument, "name")
    text_in(argument, "value")
    texts_in(object_in(params, "context") or {}, "arguments")


FLAGS: Final = ("elicitation", "roots", "sampling", "tasks")
"""The capabilities that somebody may ask a client for."""
NAMES: Final = ("name", "title", "version")
OPENING: Final = ("protocolVersion", "capabilities", "clientInfo")
EMPTY: Final = Raw(b"{}")


class _Call(Struct):
    method: Any = None
    params: Raw = Raw(b"null")


_call = msgspec.json.Decoder(_Call).decode
_whole = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def reduce_declared(body: bytes) -> bytes:
    """A message with long declarations cut short; any other unchanged."""
    if len(body) <= MAX_DECLARATION_BYTES:
        return body
    try:
        call = _call(body)
        params = _whole(call.params)
        if call.method == INITIALIZE:
            return _with_params(body, _opening(params))
        meta = _whole(params.get("_meta", EMPTY))
    except msgspec.ValidationError:
        # Whoever reads it next refuses it: what is declared stands in objects.
        return body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise e.InvalidJson("The message is not valid JSON.") from None
    if _size(meta, (CAPABILITIES_KEY, CLIENT_KEY)) <= MAX_DECLARATION_BYTES:
        return body
    reduced = _reduced(meta, CAPABILITIES_KEY, CLIENT_KEY)
    return _with_params(body, {**params, "_meta": Raw(_encode(reduced))})


def _opening(params: dict[str, Raw]) -> dict[str, Raw]:
    """The params of `initialize`; a session keeps nothing else of them."""
    known: dict[str, Raw] = {name: params[name] for name in OPENING if name in params}
    if _size(known, OPENING) > MAX_DECLARATION_BYTES:
        known = _reduced(known, "capabilities", "clientInfo")
    if _size(known, OPENING) > MAX_DECLARATION_BYTES:
        raise e.BodyTooLarge(
            f"What a client declares of itself may have at most {MAX_DECLARATION_BYTES:,} bytes.",
            limit=MAX_DECLARATION_BYTES,
        )
    return known


def _size(members: dict[str, Raw], names: tuple[str, ...]) -> int:
    return sum(len(bytes(members[name])) for name in names if name in members)


def _reduced(members: dict[str, Raw], capabilities: str, client: str) -> dict[str, Raw]:
    changed = dict(members)
    if capabilities in members:
        declared = _whole(members[capabilities])
        kept: dict[str, Raw] = {
            name: _short(declared[name], EMPTY) for name in FLAGS if name in declared
        }
        apps = _whole(declared.get("extensions", EMPTY)).get(APPS_EXTENSION)
        if apps is not None:
            kept["extensions"] = Raw(_encode({APPS_EXTENSION: _short(apps, EMPTY)}))
        changed[capabilities] = Raw(_encode(kept))
    if client in members:
        info = _whole(members[client])
        named = {name: _short(info[name], Raw(b'""')) for name in NAMES if name in info}
        changed[client] = Raw(_encode(named))
    return changed


def _short(raw: Raw, otherwise: Raw) -> Raw:
    return raw if len(bytes(raw)) <= MAX_DECLARED_MEMBER else otherwise


def _with_params(body: bytes, params: dict[str, Raw]) -> bytes:
    return _encode({**_whole(body), "params": Raw(_encode(params))})


PASSED: Final = frozenset({INITIALIZE, PING})
"""Requests of a session that tell nothing of anyone."""
CONNECTING: Final = frozenset({DISCOVER, RESOURCES_LIST, TEMPLATES_LIST, PROMPTS_LIST})
"""Requests of the stateless era that a dead token of the hub gets answered as no token would. Of
any other token it is a 401 that tells a client to sign in.
"""


class NamedCall(Struct):
    """The name of a call, without the rest."""

    name: str = ""
    arguments: Raw = Raw(b"{}")


class PartialMessage(Struct):
    """The members of a message that decide how it is served."""

    method: str = ""
    id: str | int | UnsetType = UNSET
    params: Raw = Raw(b"{}")


_asked: msgspec.json.Decoder[PartialMessage] = msgspec.json.Decoder(PartialMessage)
_named: msgspec.json.Decoder[NamedCall] = msgspec.json.Decoder(NamedCall)


def answer_invalid(
    exchange: Exchange, body: bytes | None, catalogue: ToolCatalogue
) -> Response | None:
    """The answer to a request whose token is not valid; None where it may go on regardless."""
    if exchange.scope["method"] == "DELETE":
        return None
    asked = read_message(body or b"")
    error = exchange.refusal
    if asked is None:
        return unauthorized(None, error, exchange.caller.base_url)
    if asked.method == TOOLS_CALL and is_public(asked.params, catalogue):
        return None
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.id}
    if asked.method == TOOLS_LIST and asked.id is not UNSET:
        listed = {"tools": public_tools(catalogue, exchange.names, error)}
        told["result"] = listed if exchange.handshake else {**UNCACHED, **listed}
        return JsonResponse(told)
    if not exchange.handshake and exchange.own_token and asked.method in CONNECTING:
        return None
    if not exchange.handshake or (exchange.session is None and asked.method != INITIALIZE):
        return unauthorized(asked.id, error, exchange.caller.base_url)
    if asked.method in PASSED or not asked.method or asked.id is UNSET:
        return None
    if asked.method == TOOLS_CALL:
        text = failure(error).text()
        told["result"] = {"content": [{"type": "text", "text": text}], "isError": True}
    else:
        told["error"] = error.as_jsonrpc()
    return JsonResponse(told)


def answer_stranger(
    exchange: Exchange, body: bytes | None, catalogue: ToolCatalogue, *, always: bool
) -> Response | None:
    """The answer to a request without a token that asks its client to sign in; None for none.

    Clients look for that where a stream would begin. Where that is `always` so, everything is
    refused but what makes them an account.
    """
    base = exchange.caller.base_url
    if exchange.scope["method"] != "POST":
        listens = exchange.listens and exchange.session is None
        return unauthorized(None, e.AuthenticationRequired(), base) if listens else None
    asked = read_message(body or b"") if always else None
    if asked is None or (asked.method == TOOLS_CALL and is_public(asked.params, catalogue)):
        return None
    return unauthorized(asked.id, e.AuthenticationRequired(), base)


def unauthorized(
    message_id: str | int | UnsetType | None, error: e.FolkmootError, base: str
) -> Response:
    """The refusal of a request that no session has opened a way for, and where to sign in."""
    told = {
        "jsonrpc": "2.0",
        "id": None if message_id is UNSET else message_id,
        "error": error.as_jsonrpc(),
    }
    challenge = challenges.challenge(
        resource_metadata_url(f"{base}/mcp"),
        " ".join(scopes.DEFAULT),
        challenges.INVALID_TOKEN if isinstance(error, e.TokenRefused) else "",
    )
    return JsonResponse(told, error.http, {"www-authenticate": challenge})


def read_message(body: bytes) -> PartialMessage | None:
    """The message in a body; None where there is none."""
    try:
        return _asked.decode(body)
    except (ValueError, RecursionError):
        return None


def is_public(params: Raw, catalogue: ToolCatalogue) -> bool:
    """Whether a call, or the call inside it, is of a tool that works without an account."""
    try:
        named = _named.decode(params)
        tool = catalogue.find(named.name)
        if tool is not None and tool.name == CALL_TOOL:
            tool = catalogue.find(_named.decode(named.arguments).name)
    except (ValueError, RecursionError):
        return False
    return tool is not None and tool.public and not tool.finder


def public_tools(
    catalogue: ToolCatalogue, style: NameStyle, error: e.TokenRefused
) -> list[dict[str, Any]]:
    """The tools that work without an account, each saying why it is one of the few listed."""
    return [
        {**shown, "description": f"{error.message} {shown['description']}"}
        for shown in (
            catalogue.listed(tool, style)
            for tool in catalogue.tools
            if tool.public and not tool.finder
        )
    ]
