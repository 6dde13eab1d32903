"""The OpenAPI document, made from the rows: what it does not say is not served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_STREAM
from folkmoot.operations.components import name_of
from folkmoot.operations.routes import COMPONENTS, ENDPOINTS, Endpoint, Parameter
from folkmoot.operations.schema import Schema
from folkmoot.rooms.model import ref

VERSION: Final = "3.1.0"
JSON: Final = "application/json"

ALWAYS: Final = (
    e.QueryInvalid,
    e.TokensDiffer,
    e.OriginNotAllowed,
    e.HostNotAllowed,
    e.InternalError,
    e.HubStopping,
    e.DatabaseLocked,
    e.DatabaseUnwritable,
    e.DiskFailed,
    e.DiskFull,
    e.StoreClosed,
    e.StoreOverloaded,
)
WITH_TOKEN: Final = (e.AuthenticationRequired, e.TokenInvalid, e.CapabilityDenied)
IN_ROOM: Final = (e.RoomForbidden, e.RoomUnavailable)
WITH_BODY: Final = (
    e.InvalidUtf8,
    e.InvalidJson,
    e.LoneSurrogate,
    e.DuplicateKey,
    e.NestingTooDeep,
    e.NumberOutOfRange,
    e.BatchRefused,
    e.NotAnObject,
    e.MessageTooLarge,
    e.BodyTooLarge,
    e.BodyTimeout,
    e.MediaTypeUnsupported,
)

PHRASES: Final = {413: "Content Too Large", 422: "Unprocessable Content"}
"""What RFC 9110 calls them, and Python only since 3.13."""
INTRODUCTION: Final = (
    "Mail, people, accounts and their tokens, and rooms for programs that have no WebSocket. The "
    "token of an account opens everything its owner may see, the credential of a guest one room."
)

HEADERS: Final[dict[int, tuple[str, str]]] = {
    401: (
        "WWW-Authenticate",
        '`Bearer`, with `error="invalid_token"` where the token is not valid.',
    ),
    429: ("Retry-After", "Seconds after which to try again, if known."),
}
"""The header that an error of a status has."""


def document(*, version: str, url: str = "") -> dict[str, Any]:
    """The whole document; `url` is what clients reach the hub at, where that is known."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        item = paths.setdefault(each.path, _item(each))
        item[each.method.lower()] = described(each)
    return {
        "openapi": VERSION,
        "info": {"title": "Folkmoot", "version": version, "description": INTRODUCTION},
        "servers": [{"url": url.rstrip("/") or "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of an account, or the credential of a guest.",
                }
            },
        },
    }


@cache
def encoded_document(version: str, url: str) -> msgspec.Raw:
    """The document as it is sent; made when it is first asked for, since few hubs are asked."""
    return msgspec.Raw(msgspec.json.encode(document(version=version, url=url)))


def _item(each: Endpoint) -> dict[str, Any]:
    parameters = [_parameter("path", it) for it in each.path_parameters]
    return {"parameters": parameters} if parameters else {}


def described(each: Endpoint) -> dict[str, Any]:
    route = each.route
    told: dict[str, Any] = {"operationId": route.id, "summary": route.summary}
    if each.description:
        told["description"] = each.description
    if each.public:
        told["security"] = []
    parameters = [_parameter("query", it) for it in each.query]
    for header, name in route.headers.items():
        schema = each.row.schema["properties"][name]
        it = Parameter(header, {"type": schema["type"]}, schema["description"])
        parameters.append(_parameter("header", it))
    if parameters:
        told["parameters"] = parameters
    if each.body:
        content = {"schema": ref(each.body), "example": route.example}
        told["requestBody"] = {"required": True, "content": {JSON: content}}
    told["responses"] = dict(_responses(each))
    return told


def _parameter(place: str, it: Parameter) -> dict[str, Any]:
    return {
        "name": it.name,
        "in": place,
        "required": it.required,
        "schema": it.schema,
        "description": it.description,
    }


def _content(each: Endpoint) -> dict[str, Any]:
    """The content of an answer: an object, a stream of events, or a file."""
    if each.route.media:
        return {each.route.media: {"schema": {"type": "string", "format": "binary"}}}
    if each.row.events is not None:
        return {EVENT_STREAM: {"schema": _events(each.reply)}}
    answer: dict[str, Any] = {JSON: {"schema": ref(each.reply)}}
    if each.row.progress is not None:
        answer[EVENT_STREAM] = {"schema": _events(name_of(each.row.progress))}
    return answer


def _events(name: str) -> dict[str, Any]:
    """The schema of a stream whose events carry JSON of the named schema."""
    return {"type": "string", "contentMediaType": JSON, "contentSchema": ref(name)}


def _responses(each: Endpoint) -> Iterator[tuple[str, Any]]:
    route = each.route
    good: dict[str, Any] = {"description": route.answer}
    if each.reply or route.media:
        good["content"] = _content(each)
    if route.location:
        text = "Where it is."
        head = {"schema": {"type": "string"}, "required": True, "description": text}
        good["headers"] = {"Location": head}
    yield str(route.status), good
    for status, errors in sorted(refusals(each).items()):
        codes = [error.code for error in errors]
        phrase = PHRASES.get(status) or HTTPStatus(status).phrase
        bad: dict[str, Any] = {
            "description": f"{phrase}: {', '.join(f'`{c}`' for c in codes)}.",
            "content": {JSON: {"schema": _refused(codes)}},
        }
        if status in HEADERS:
            name, text = HEADERS[status]
            bad["headers"] = {name: {"schema": {"type": "string"}, "description": text}}
        yield str(status), bad


def _refused(codes: list[str]) -> Schema:
    one_of = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    return {"allOf": [ref("Error"), one_of]}


def refusals(each: Endpoint) -> dict[int, list[type[e.FolkmootError]]]:
    """The errors an endpoint may answer, by status."""
    named: list[type[e.FolkmootError]] = [*each.errors, *ALWAYS]
    if each.in_room:
        named.append(e.RoomNotFound)
    if not each.public:
        named += WITH_TOKEN
        named += IN_ROOM if each.in_room else ()
    if each.body:
        named += WITH_BODY
    found: dict[int, list[type[e.FolkmootError]]] = {}
    for error in _leaves(named):
        found.setdefault(error.http, []).append(error)
    return found


def _leaves(named: Iterable[type[e.FolkmootError]]) -> Iterator[type[e.FolkmootError]]:
    """The errors of these branches of the tree that have a code, in the order of the tree."""
    branches = tuple(named)
    return (error for error in e.ERRORS.values() if issubclass(error, branches))
