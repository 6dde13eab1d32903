"""The OpenAPI document, made from the table: what it does not say is not served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from folkmoot.core.errors import (
    ERRORS,
    AuthenticationRequired,
    BatchRefused,
    BodyTimeout,
    BodyTooLarge,
    CapabilityDenied,
    DatabaseLocked,
    DatabaseUnwritable,
    DiskFailed,
    DiskFull,
    DuplicateKey,
    FolkmootError,
    HostNotAllowed,
    HubStopping,
    InternalError,
    InvalidJson,
    InvalidUtf8,
    LoneSurrogate,
    MediaTypeUnsupported,
    MessageTooLarge,
    NestingTooDeep,
    NotAnObject,
    NumberOutOfRange,
    OriginNotAllowed,
    QueryInvalid,
    RoomForbidden,
    RoomNotFound,
    RoomUnavailable,
    StoreClosed,
    StoreOverloaded,
    TokenInvalid,
    TokensDiffer,
)
from folkmoot.transports.rest.model import Operation, Schema
from folkmoot.transports.rest.rows import COMPONENTS
from folkmoot.transports.rest.shapes import ref
from folkmoot.transports.rest.table import OPERATIONS, path_of

VERSION: Final = "3.1.0"
JSON: Final = "application/json"

ALWAYS: Final = (
    QueryInvalid,
    TokensDiffer,
    OriginNotAllowed,
    HostNotAllowed,
    InternalError,
    HubStopping,
    DatabaseLocked,
    DatabaseUnwritable,
    DiskFailed,
    DiskFull,
    StoreClosed,
    StoreOverloaded,
)
"""What any request may be refused with."""
WITH_TOKEN: Final = (AuthenticationRequired, TokenInvalid, CapabilityDenied)
IN_ROOM: Final = (RoomForbidden, RoomUnavailable)
WITH_BODY: Final = (
    InvalidUtf8,
    InvalidJson,
    LoneSurrogate,
    DuplicateKey,
    NestingTooDeep,
    NumberOutOfRange,
    BatchRefused,
    NotAnObject,
    MessageTooLarge,
    BodyTooLarge,
    BodyTimeout,
    MediaTypeUnsupported,
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
    for operation in OPERATIONS:
        item = paths.setdefault(operation.path, _item(operation))
        item[operation.method.lower()] = described(operation)
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


def _item(operation: Operation) -> dict[str, Any]:
    parameters = [
        _parameter("path", each.name, each.schema, each.description, required=True)
        for each in path_of(operation)
    ]
    return {"parameters": parameters} if parameters else {}


def described(operation: Operation) -> dict[str, Any]:
    """One operation."""
    told: dict[str, Any] = {"operationId": operation.id, "summary": operation.summary}
    if operation.description:
        told["description"] = operation.description
    if operation.public:
        told["security"] = []
    if operation.query:
        told["parameters"] = [
            _parameter("query", each.name, each.schema, each.description, required=each.required)
            for each in operation.query
        ]
    if operation.body is not None:
        content = {"schema": ref(operation.body.schema), "example": operation.body.example}
        told["requestBody"] = {"required": True, "content": {JSON: content}}
    told["responses"] = dict(_responses(operation))
    return told


def _parameter(
    place: str, name: str, schema: Schema, description: str, *, required: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required,
        "schema": schema,
        "description": description,
    }


def _responses(operation: Operation) -> Iterator[tuple[str, Any]]:
    reply = operation.reply
    good: dict[str, Any] = {"description": reply.description}
    if reply.schema is not None:
        good["content"] = {JSON: {"schema": ref(reply.schema)}}
    if reply.headers:
        good["headers"] = {
            name: {"schema": {"type": "string"}, "required": True, "description": text}
            for name, text in reply.headers.items()
        }
    yield str(reply.status), good
    for status, errors in sorted(refusals(operation).items()):
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


def refusals(operation: Operation) -> dict[int, list[type[FolkmootError]]]:
    """The errors an operation may answer, by status."""
    named: list[type[FolkmootError]] = [*operation.errors, *ALWAYS]
    if operation.in_room:
        named.append(RoomNotFound)
    if not operation.public:
        named += WITH_TOKEN
        named += IN_ROOM if operation.in_room else ()
    if operation.body is not None:
        named += WITH_BODY
    found: dict[int, list[type[FolkmootError]]] = {}
    for error in _leaves(named):
        found.setdefault(error.http, []).append(error)
    return found


def _leaves(named: Iterable[type[FolkmootError]]) -> Iterator[type[FolkmootError]]:
    """The errors of these branches of the tree that have a code, in the order of the tree."""
    branches = tuple(named)
    return (error for error in ERRORS.values() if issubclass(error, branches))
