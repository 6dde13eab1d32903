"""Where the hub answers otherwise than the SDK's server, and why."""

from __future__ import annotations

import sys
from typing import NamedTuple

from tests.mcp.oracle.corpus import Era


class Deviation(NamedTuple):
    """What each of them answers to some requests, and why the hub does not do the same."""

    cases: tuple[str, ...]
    answers: str
    """What the hub answers, and what the SDK does."""
    reason: str


TOO_MUCH = Deviation(
    ("bytes: number of 5,000 digits", "bytes: id of 5,000 digits", "bytes: 100,000 lists"),
    "413 -32600, not 400 -32700",
    "It is JSON, but more than the hub reads: a limit refuses it unread, and says so.",
)
DOUBLED = Deviation(
    (
        "bytes: doubled id",
        "bytes: doubled method",
        "bytes: doubled name",
        "bytes: doubled argument",
    ),
    "400 -32700, not 200",
    "Readers differ in which of two members counts, so whoever checks may see the other.",
)
NO_NUMBERS = Deviation(
    ("bytes: NaN", "bytes: Infinity", "bytes: number beyond every double"),
    "400 -32700, not 200",
    "These are not numbers of JSON, or none that a server behind could read.",
)
TEXT_AS_BODY = Deviation(
    ("content-type: text", "content-type: form", "content-type: absent"),
    "415 -32600, not 400",
    "The status for it is 415, and the hub says in a body what it wants.",
)
LARGE_ID = Deviation(
    ("id: beyond 64 bits",),
    "400 -32600, not 200",
    "Most readers would answer another id than the one that was sent.",
)
TWO_IN_ONE = Deviation(
    ("request and response in one",),
    "400 -32600, not 200",
    "JSON-RPC has a message be one of the two; a reader could take it for the other.",
)

NO_IDS = Deviation(
    (
        "id: null",
        "id: fraction",
        "id: whole number written as a fraction",
        "id: boolean",
        "id: list",
        "id: object",
    ),
    "400 -32600, not 202",
    "The client waits for an answer that would never come; it is told instead.",
)
NO_MESSAGES = Deviation(
    (
        "params: text",
        "params: number",
        "jsonrpc: 1.0",
        "jsonrpc: number",
        "jsonrpc: absent",
        "method: absent",
        "method: number",
        "method: null",
        "error of a wrong form",
        "empty object",
        "batch",
        "batch of two",
        "empty batch",
        "text",
        "number",
        "null",
        "true",
        "initialize: batch",
    ),
    "400 -32600, not 400 -32602",
    "What is no JSON-RPC request is an invalid request, as in the stateless era.",
)
NOT_ACCEPTED = Deviation(
    ("accept: JSON alone", "accept: streams alone", "accept: neither", "accept: nothing"),
    "406 -32600, not 406",
    "The hub says in a body what it wants, as the SDK does in the handshake era.",
)
VERBS = Deviation(
    ("verb: PUT", "verb: PATCH", "verb: OPTIONS", "verb: DELETE"),
    "405 -32600, not 405",
    "The hub says in a body what it wants, as the SDK does in the handshake era.",
)
DEEP = Deviation(
    ("bytes: 5,000 lists",),
    "400 -32700, not 200",
    "Since Python 3.13 its reader takes lists in lists to any depth; the hub's has a bound.",
)

DEVIATIONS: dict[Era, tuple[Deviation, ...]] = {
    "handshake": (
        TOO_MUCH,
        DOUBLED,
        NO_NUMBERS,
        TEXT_AS_BODY,
        LARGE_ID,
        TWO_IN_ONE,
        NO_IDS,
        NO_MESSAGES,
        Deviation(
            ("tasks/get", "tasks/cancel"),
            "200 -32602, not 200 -32601",
            "Servers behind the hub may run tasks; the SDK's server knows none.",
        ),
        Deviation(
            ("call with a task",),
            "200 -32601, not 200",
            "A tool that cannot be run as a task is not run without one unasked.",
        ),
        Deviation(
            ("params: list", "params: list of values"),
            "200 -32602, not 400 -32602",
            "JSON-RPC has lists as params, so the message is one; its params do not fit.",
        ),
        Deviation(("empty method",), "400 -32600, not 200 -32601", "A method has a name."),
        Deviation(
            ("result and error in one",),
            "400 -32600, not 202",
            "JSON-RPC has a response be one of the two.",
        ),
        Deviation(
            ("content-type: capitals",),
            "200, not 415 -32600",
            "Media types are the same in capitals.",
        ),
    ),
    "stateless": (
        *((DEEP,) if sys.version_info >= (3, 13) else ()),
        TOO_MUCH,
        DOUBLED,
        NO_NUMBERS,
        TEXT_AS_BODY,
        LARGE_ID,
        TWO_IN_ONE,
        NOT_ACCEPTED,
        VERBS,
        Deviation(
            ("tasks/get", "tasks/cancel"),
            "400 -32020, not 404 -32601",
            "Servers behind the hub may run tasks, and a header must repeat the task's id.",
        ),
        Deviation(("empty method",), "400 -32600, not 404 -32601", "A method has a name."),
        Deviation(
            ("params: list of values",),
            "400 -32602, not 400 -32600",
            "JSON-RPC has lists as params, so the message is one; its params do not fit.",
        ),
        Deviation(
            ("bytes: lone surrogate", "bytes: byte order mark"),
            "400 -32700, not 200",
            "JSON is UTF-8 without a mark, and half a character is none.",
        ),
        Deviation(
            ("bytes: UTF-16",),
            "400 -32700, not 400 -32602",
            "JSON is UTF-8; the SDK guesses.",
        ),
        Deviation(
            ("content-type: looks like JSON",),
            "415 -32600, not 200",
            "It is another media type.",
        ),
    ),
}
