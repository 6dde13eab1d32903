"""The page of the REST interface, from the table its routes are made from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from docs.pages.markdown import code, document, table
from folkmoot.operations.components import name_of
from folkmoot.operations.openapi import ALWAYS, WITH_BODY, refusals
from folkmoot.operations.routes import COMPONENTS as SCHEMAS
from folkmoot.operations.routes import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.operations.routes import Endpoint
    from folkmoot.operations.schema import Schema

INTRODUCTION = """\
Mail, people, accounts and rooms, for programs; and what [operators](operations.md) do. The hub
describes all of this by itself, in OpenAPI 3.1, at `/v1/openapi.json`; the page and that document
are made from the same table.

What is a [tool](tools.md) as well does the same here as there, with the same arguments, rights and
limits. `GET` changes nothing: messages that it returns stay unread until they are marked.

A request carries the token of an account, or the credential of a guest, as `Authorization: Bearer`
(or as `?token=` in its URL, which is easier to give away by mistake). Bodies are JSON objects of
the type `application/json`; answers are JSON, and no cache keeps them. A member or a query
parameter that nobody knows is refused, and so is one of the wrong form: the error names it.

```console
$ curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
    -d '{"protocol": "mcpx/v1", "kind": "chat.message", "payload": {"text": "Good morning!"}}' \\
    http://127.0.0.1:8420/v1/rooms/planning/messages
```"""

ERRORS = """\
## Errors

What cannot be done is answered with the status of the [error](errors.md), and always in one shape:

```json
{"error": {"code": "room_not_found", "message": "There is no such room."}}
```

`code` does not change, `message` is for people. An error may have more members: `field` or
`parameter` names what was wrong, `retry_after` says in how many seconds it may be tried again (so
does the header `Retry-After`), and where a message was refused `attempted_kind` and, if that was a
matter of rights, `your_capabilities` are what `system.error` would say on a WebSocket. With 401
comes `WWW-Authenticate: Bearer`, with 405 `Allow`.

A room that is not yours to know of and one that does not exist are answered alike.

Beside the errors listed with an operation, every request may be answered `query_invalid`,
`tokens_differ`, `origin_not_allowed`, `host_not_allowed` or, when the hub itself is in trouble,
something from 500 on. A request with a body may also be answered `media_type_unsupported`,
`body_too_large`, `message_too_large`, `body_timeout` or as [messages](messages.md) says of JSON
that is not strict."""

PROGRESS = """\
A request with `Accept: text/event-stream` is answered with events: `progress`, each {}, and at the
end `result` or `error`."""

GENERAL = frozenset(error.code for error in (*ALWAYS, *WITH_BODY))
"""The codes that are told of once for all operations."""
FAILED = 500

TAKEN = frozenset({"PolicyChange", *(each.body for each in ENDPOINTS if each.body)})
"""The objects that requests bring."""

LISTS = """\
## Lists

A list has at most `limit` entries. `next_cursor` is `null` when nothing follows; otherwise the next
page is asked for with it as `cursor`, and nothing else changed. Messages are paged by `seq`: go on
with `after` the last one you have, or with `before` the first."""

OBJECTS = "## Objects"
NEEDS = {"operator": "for operators"}
"""Whom an operation is for, where a token of any account is not enough."""


SUBJECTS: dict[str, str] = {
    "Your account": "accounts accounts/recover me me/handle me/export me/activity",
    "Tokens and signing in": "session* me/codes me/credentials* me/passkeys* authorization "
    "device-authorization",
    "Mail": "messages* threads* digest",
    "People": "contacts* people people/{handle} blocks*",
    "Invitations": "invites me/invites*",
    "Rooms": "rooms*",
    "Decisions": "asks decisions",
    "Servers and tools": "me/servers* tools/call me/connections*",
    "Events and the description of this interface": "events openapi.json",
    "For operators: people and rights": "accounts* people* invites* grants hub/rooms",
    "For operators: servers": "servers* server-history server-tests pins* held*",
    "For operators: tapes": "tapes*",
    "For operators: the hub": "status check settings* nodes* audit backup key*",
    "Other": "",
}
"""The headings of the page, each with the paths below `/v1/` that are its subject."""
OPERATORS = "For operators"
OTHER = "Other"


def page() -> str:
    """The whole page."""
    subjects: dict[str, list[Endpoint]] = {name: [] for name in SUBJECTS}
    for each in ENDPOINTS:
        subjects[subject(each)].append(each)
    names = [*filter(subjects.get, subjects), "Lists", "Errors", "Objects"]
    contents = "\n".join(f"- [{name}](#{anchor(name)})" for name in names)
    parts = (part for name, found in subjects.items() if found for part in chapter(name, found))
    return document("# REST", INTRODUCTION, contents, *parts, LISTS, ERRORS, OBJECTS, *objects())


def subject(operation: Endpoint) -> str:
    """The heading that an operation belongs under."""
    path = operation.path.removeprefix("/v1/")
    for name, patterns in SUBJECTS.items():
        for each in patterns.split():
            fits = path.startswith(each[:-1]) if each.endswith("*") else path == each
            if fits and (operation.row.who == "operator") == name.startswith(OPERATORS):
                return name
    return f"{OPERATORS}: the hub" if operation.row.who == "operator" else OTHER


def chapter(name: str, operations: list[Endpoint]) -> Iterator[str]:
    """One subject: its operations in a table, and each of them."""
    yield f"## {name}"
    yield table(["Operation", "It …", "Needs a token"], map(row, operations))
    yield from sections(operations)


def title(operation: Endpoint) -> str:
    """The operation as requests name it."""
    return f"{operation.method} {operation.path}"


def anchor(heading: str) -> str:
    """Where a section is, as renderers of Markdown name it."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def row(operation: Endpoint) -> list[str]:
    """One operation in the index."""
    return [
        f"[`{title(operation)}`](#{anchor(title(operation))})",
        operation.route.summary[0].lower() + operation.route.summary[1:],
        "no" if operation.public else NEEDS.get(operation.row.who, "yes"),
    ]


def sections(operations: list[Endpoint]) -> Iterator[str]:
    """Each operation with what it takes and answers."""
    for operation in operations:
        yield f"### `{title(operation)}`"
        yield f"{operation.route.summary}. {operation.description}".strip()
        parameters = [*operation.path_parameters, *operation.query]
        if parameters:
            rows = [[f"`{p.name}`", kind(p.schema), p.description] for p in parameters]
            yield table(["Parameter", "Type", "Meaning"], rows)
        if operation.body:
            yield f"It takes {link(operation.body)}, for example:"
            yield f"```json\n{json.dumps(operation.route.example, ensure_ascii=False)}\n```"
        yield answer(operation)
        if told := list(errors(operation)):
            yield table(["Status", "Errors"], told)


def answer(operation: Endpoint) -> str:
    """What an operation answers when it succeeds."""
    route = operation.route
    what = link(operation.reply) if operation.reply else "nothing more"
    if route.media:
        what = f"`{route.media}`"
    if operation.row.events is not None:
        what = f"events, each {what}"
    where = " `Location`: where it is." if route.location else ""
    told = f"It answers {route.status} and {what}. {route.answer}{where}"
    if operation.row.progress is not None:
        told += f" {PROGRESS.format(link(name_of(operation.row.progress)))}"
    return told


def errors(operation: Endpoint) -> Iterator[list[str]]:
    """What is particular to an operation among its errors."""
    for status, found in sorted(refusals(operation).items()):
        codes = [error.code for error in found if error.code not in GENERAL]
        if codes and status < FAILED:
            yield [str(status), ", ".join(f"`{each}`" for each in codes)]


def objects() -> Iterator[str]:
    """Every object that goes in or out, with its members."""
    for name, schema in SCHEMAS.items():
        if "properties" not in schema or name == "Error":
            continue
        yield f"### {name}"
        if "description" in schema:
            yield schema["description"]
        mark = ", required" if name in TAKEN else ", may be missing"
        rows = [
            [
                f"`{member}`",
                kind(inner) + (mark if (member in schema["required"]) == (name in TAKEN) else ""),
                inner.get("description", ""),
            ]
            for member, inner in schema["properties"].items()
        ]
        yield table(["Member", "Type", "Meaning"], rows)
    yield "### Capability"
    yield (
        "A [pattern over kinds](capabilities.md) as a string, or an object with `kind`, the "
        "pattern, and `payload`, what the payload must be like."
    )


def link(name: str) -> str:
    """An object by name, with where it is described."""
    if "properties" not in SCHEMAS[name] and name != "Capability":
        return "an object"
    return f"[{name}](#{name.lower()})"


def kind(schema: Schema) -> str:
    """The type of a value in words."""
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        noun = " or ".join(code(json.dumps(each).strip('"')) for each in schema["enum"])
        return f"{noun}; `{schema['default']}` if left out" if "default" in schema else noun
    if "const" in schema:
        return code(schema["const"])
    if "type" not in schema:
        return "anything"
    types: Any = schema["type"]
    noun, *others = [types] if isinstance(types, str) else types
    if noun == "array":
        noun = f"list of {kind(schema['items'])}"
    elif schema.get("format") == "date-time":
        noun = "time (RFC 3339)"
    elif "pattern" in schema:
        noun = f"string like {code(schema['pattern'])}"
    elif "maximum" in schema:
        noun = f"{noun}, {schema['minimum']} to {schema['maximum']:.0f}"
    elif "maxLength" in schema:
        noun = f"{noun}, {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    if others:
        noun = f"{noun}, or null"
    if "default" in schema:
        noun = f"{noun}; {json.dumps(schema['default'])} if left out"
    return str(noun)
