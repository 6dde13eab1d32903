"""Where the hub answers otherwise than the SDK's server, and why.

Names of requests, in which a star stands for anything, with what each of the two answers.
"""

from __future__ import annotations

import sys

from tests.mcp.oracle.corpus import Era

BOTH = {
    # It is JSON, but more than the hub reads: a limit refuses it unread, and says so.
    "bytes: * of 5,000 digits": "413 -32600, not 400 -32700",
    "bytes: 100,000 lists": "413 -32600, not 400 -32700",
    # Readers differ in which of two members counts, so whoever checks may see the other.
    "bytes: doubled *": "400 -32700, not 200",
    # These are not numbers of JSON, or none that a server behind could read.
    "bytes: NaN": "400 -32700, not 200",
    "bytes: Infinity": "400 -32700, not 200",
    "bytes: number beyond every double": "400 -32700, not 200",
    # The status for it is 415, and the hub says in a body what it wants.
    "content-type: text": "415 -32600, not 400",
    "content-type: absent": "415 -32600, not 400",
    # Most readers would answer another id than the one that was sent.
    "id: beyond 64 bits": "400 -32600, not 200",
    # JSON-RPC has a message be one of the two; a reader could take it for the other.
    "request and response in one": "400 -32600, not 200",
}

NO_IDS = ("null", "fraction", "whole number written as a fraction", "boolean", "list")
NO_MESSAGES = (
    *("params: text", "jsonrpc: *", "method: *", "error of a wrong form"),
    *("empty object", "text", "number", "null", "*batch*"),
)

HANDSHAKE = {
    # The client waits for an answer that would never come; it is told instead.
    **{f"id: {kind}": "400 -32600, not 202" for kind in NO_IDS},
    # What is no JSON-RPC request is an invalid request, as in the stateless era.
    **dict.fromkeys(NO_MESSAGES, "400 -32600, not 400 -32602"),
    # Servers behind the hub may run tasks; the SDK's server knows none.
    "tasks/get": "200 -32602, not 200 -32601",
    # A tool that cannot be run as a task is not run without one unasked.
    "call with a task": "200 -32601, not 200",
    # JSON-RPC has lists as params, so the message is one; its params do not fit.
    "params: list*": "200 -32602, not 400 -32602",
    # A method has a name.
    "empty method": "400 -32600, not 200 -32601",
    # JSON-RPC has a response be one of the two.
    "result and error in one": "400 -32600, not 202",
    # Media types are the same in capitals.
    "content-type: capitals": "200, not 415 -32600",
}

STATELESS = {
    # The hub says in a body what it wants, as the SDK does in the handshake era.
    **{f"accept: {kind}": "406 -32600, not 406" for kind in ("* alone", "neither", "nothing")},
    **{f"verb: {verb}": "405 -32600, not 405" for verb in ("P*", "OPTIONS", "DELETE")},
    # Servers behind the hub may run tasks, and a header must repeat the task's id.
    "tasks/get": "400 -32020, not 404 -32601",
    # A method has a name.
    "empty method": "400 -32600, not 404 -32601",
    # JSON-RPC has lists as params, so the message is one; its params do not fit.
    "params: list of values": "400 -32602, not 400 -32600",
    # JSON is UTF-8 without a mark, half a character is none, and nobody guesses.
    "bytes: lone surrogate": "400 -32700, not 200",
    "bytes: byte order mark": "400 -32700, not 200",
    "bytes: UTF-16": "400 -32700, not 400 -32602",
    # It is another media type.
    "content-type: looks like JSON": "415 -32600, not 200",
}
if sys.version_info >= (3, 13):
    # The SDK's reader takes lists in lists to any depth; the hub's has a bound.
    STATELESS["bytes: 5,000 lists"] = "400 -32700, not 200"

DEVIATIONS: dict[Era, dict[str, str]] = {
    "handshake": BOTH | HANDSHAKE,
    "stateless": BOTH | STATELESS,
}
