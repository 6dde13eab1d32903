"""Good, bad and hostile requests of both eras, each with a name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

Era: TypeAlias = Literal["handshake", "stateless"]
Headers: TypeAlias = Mapping[str, str | None]

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
META = {VERSION: STATELESS, INFO: {"name": "probe", "version": "1"}, CAPABILITIES: {}}
APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
INBOX = "mmp://mailboxes/inbox"
# The resource of the server behind the hub.
NOTE = "demo://note/-/today"
NOTHING: Headers = MappingProxyType({})


class Case(NamedTuple):
    """One request, and what is sent before it in a session of its own."""

    name: str
    body: bytes = b""
    # What differs from the usual headers; None leaves one out.
    headers: Headers = NOTHING
    # Headers that are sent once more.
    added: tuple[tuple[str, str], ...] = ()
    method: str = "POST"
    before: tuple[Case, ...] = ()
    # In a session that no other request uses.
    alone: bool = False


def request(method: Any, params: Any = None, id_: Any = 1, **more: Any) -> dict[str, Any]:
    told = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id_, "method": method, **told, **more}


def call(name: Any = "msg_whoami", arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A tool call; `more` are further params."""
    return request("tools/call", {"name": name, "arguments": arguments or {}, **more})


def notice(method: Any, **params: Any) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(version: Any = HANDSHAKE, **changed: Any) -> dict[str, Any]:
    """The first request of a session; None leaves a member out."""
    info = {"name": "probe", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info, **changed}
    return request("initialize", {k: v for k, v in params.items() if v is not None}, 0)


def completing(prompt: str, argument: Any) -> dict[str, Any]:
    ref = {"type": "ref/prompt", "name": prompt} if prompt else {"type": "ref/nobody"}
    return request("completion/complete", {"ref": ref, "argument": argument})


WHOAMI = {"name": "msg_whoami"}


# Messages; in the stateless era each that has the place for it says who asks.
MESSAGES: dict[str, Any] = {
    # What servers do every day.
    "ping": request("ping"),
    "list tools": request("tools/list"),
    "list resources": request("resources/list", {}),
    "list templates": request("resources/templates/list", {}),
    "list prompts": request("prompts/list", {}),
    "call a tool": call(),
    "call a tool with null arguments": request("tools/call", WHOAMI | {"arguments": None}),
    "call a tool with arguments": call("msg_inbox", {"limit": 1, "peek": True}),
    "call a tool of a backend": call("demo_echo", {"text": "hello"}),
    "call a tool with characters of every plane": call("demo_echo", {"text": "\x00 \u2028 🦉 ﷽"}),
    "call a tool with a large whole number": call("demo_echo", {"text": "x", "n": 2**53 + 1}),
    "call a tool that fails": call("demo_fail"),
    "id: text": {**call(), "id": "a text"},
    "id: zero": {**call(), "id": 0},
    "id: negative": {**call(), "id": -(2**62)},
    "read a resource": request("resources/read", {"uri": INBOX}),
    "read a resource of a backend": request("resources/read", {"uri": NOTE}),
    "get a prompt": request("prompts/get", {"name": "demo_greet", "arguments": {"who": "Ada"}}),
    "complete an argument": completing("demo_greet", {"name": "who", "value": "A"}),
    "subscribe": request("resources/subscribe", {"uri": INBOX}),
    "unsubscribe": request("resources/unsubscribe", {"uri": INBOX}),
    "unsubscribe from what was never subscribed": request("resources/unsubscribe", {"uri": NOTE}),
    "set the log level": request("logging/setLevel", {"level": "warning"}),
    "discover": request("server/discover"),
    "listen for nothing": request("subscriptions/listen", {"notifications": {}}),
    "notification: initialized": notice("notifications/initialized"),
    "notification: cancelled, of no request": notice("notifications/cancelled", requestId=999),
    "notification: cancelled, of nothing that is an id": notice(
        "notifications/cancelled", requestId=[999]
    ),
    "notification: progress with no token": notice("notifications/progress", progress=1),
    "notification: unknown": notice("notifications/nobody/knows"),
    "notification with null params": notice("notifications/initialized") | {"params": None},
    # What is asked for and is not there.
    "unknown method": request("nobody/knows", {}),
    "method of the other side": request("sampling/createMessage", {}),
    "empty method": request("", {}),
    "unknown tool": call("nobody/knows"),
    "tool with an empty name": call(""),
    "tool with a line break in its name": call("msg_whoami\n"),
    "unknown prompt": request("prompts/get", {"name": "nobody_knows"}),
    "unknown resource": request("resources/read", {"uri": "demo://nobody/knows"}),
    "subscribe to an unknown resource": request("resources/subscribe", {"uri": "x://y"}),
    "unknown cursor": request("tools/list", {"cursor": "nobody's"}),
    "unknown log level": request("logging/setLevel", {"level": "loud"}),
    "complete for an unknown prompt": completing("nobody_knows", {"name": "x", "value": ""}),
    "tasks/get": request("tasks/get", {"taskId": "nobody's"}),
    # Params of a wrong form.
    "call without params": request("tools/call"),
    "call with empty params": request("tools/call", {}),
    "call with a number as name": call(7),
    "call with text as arguments": request("tools/call", {"name": "msg_whoami", "arguments": "x"}),
    "call with further params": call(further="member"),
    "call with a task": call(task={"ttl": 1000}),
    "params: list": {**call(), "params": []},
    "params: list of values": {**call(), "params": ["msg_whoami"]},
    "params: text": {**call(), "params": "msg_whoami"},
    "read without a uri": request("resources/read", {}),
    "read with an empty uri": request("resources/read", {"uri": ""}),
    "get a prompt without a name": request("prompts/get", {}),
    "get a prompt with numbers as arguments": request(
        "prompts/get", {"name": "demo_greet", "arguments": {"who": 7}}
    ),
    "complete without a ref": request("completion/complete", {"argument": {}}),
    "complete with a ref of an unknown type": completing("", {"name": "x", "value": ""}),
    "cursor: number": request("tools/list", {"cursor": 7}),
    "subscribe without a uri": request("resources/subscribe", {}),
    "set the log level without one": request("logging/setLevel", {}),
    "listen without notifications": request("subscriptions/listen", {}),
    # What is no request at all.
    "id: null": {**call(), "id": None},
    "id: fraction": {**call(), "id": 1.5},
    "id: whole number written as a fraction": {**call(), "id": 1.0},
    "id: boolean": {**call(), "id": True},
    "id: list": {**call(), "id": [1]},
    "id: beyond 64 bits": {**call(), "id": 2**70},
    "jsonrpc: 1.0": {**call(), "jsonrpc": "1.0"},
    "jsonrpc: number": {**call(), "jsonrpc": 2.0},
    "jsonrpc: absent": {k: v for k, v in call().items() if k != "jsonrpc"},
    "method: absent": {k: v for k, v in call().items() if k != "method"},
    "method: number": {**call(), "method": 7},
    "further member": {**call(), "further": "member"},
    "request without an id": {k: v for k, v in call().items() if k != "id"},
    "request and response in one": {**call(), "result": {}},
    "result and error in one": {"jsonrpc": "2.0", "id": 3, "result": {}, "error": {}},
    "response to nothing": {"jsonrpc": "2.0", "id": 3, "result": {}},
    "error to nothing": {"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "no"}},
    "error of a wrong form": {"jsonrpc": "2.0", "id": 3, "error": "no"},
    "empty object": {},
    "batch": [call()],
    "batch of two": [request("ping"), call()],
    "empty batch": [],
    "text": "text",
    "number": 7,
    "null": None,
}

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"msg_whoami"}}'
ECHO = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo_echo","arguments":'

RAW: dict[str, bytes] = {
    "bytes: none": b"",
    "bytes: white space": b" \n",
    "bytes: cut off": CALL[:-1],
    "bytes: not UTF-8": b"\xff\xfe",
    "bytes: something behind": CALL + b"trailing",
    "bytes: two messages": CALL + CALL,
    "bytes: two lines": CALL + b"\n" + CALL,
    "bytes: doubled id": CALL.replace(b'"id":1', b'"id":1,"id":2'),
    "bytes: doubled method": CALL.replace(b'"id"', b'"method":"ping","id"'),
    "bytes: doubled name": CALL.replace(b'"name"', b'"name":"msg_inbox","name"'),
    "bytes: doubled argument": ECHO + b'{"text":"a","text":"b"}}}',
    "bytes: lone surrogate": ECHO + b'{"text":"\\ud800"}}}',
    "bytes: text that is not UTF-8": ECHO + b'{"text":"\xff\xfe"}}}',
    "bytes: line break in a text": ECHO + b'{"text":"\n"}}}',
    "bytes: NaN": ECHO + b'{"text":"x","n":NaN}}}',
    "bytes: Infinity": ECHO + b'{"text":"x","n":-Infinity}}}',
    "bytes: number beyond every double": ECHO + b'{"text":"x","n":1e400}}}',
    "bytes: number of 5,000 digits": ECHO + b'{"text":"x","n":' + b"9" * 5_000 + b"}}}",
    "bytes: id of 5,000 digits": CALL.replace(b'"id":1', b'"id":' + b"9" * 5_000),
    "bytes: 100 lists": ECHO + b'{"text":"x","n":' + b"[" * 100 + b"]" * 100 + b"}}}",
    "bytes: 5,000 lists": ECHO + b'{"text":"x","n":' + b"[" * 5_000 + b"]" * 5_000 + b"}}}",
    "bytes: 100,000 lists": b"[" * 100_000,
    "bytes: byte order mark": b"\xef\xbb\xbf" + CALL,
    "bytes: UTF-16": CALL.decode().encode("utf-16"),
    "bytes: much white space": b" \n\t" + CALL.replace(b":", b" : ") + b"\n",
    "bytes: escaped solidus": CALL.replace(b"/", b"\\/"),
    "bytes: NUL behind": CALL + b"\x00",
    "bytes: 5 MiB": ECHO + b'{"text":"' + b"x" * (5 << 20) + b'"}}}',
}

# Headers of a plain call.
HEADERS: dict[str, Headers] = {
    "accept: JSON alone": {"accept": "application/json"},
    "accept: streams alone": {"accept": "text/event-stream"},
    "accept: everything": {"accept": "*/*"},
    "accept: kinds of everything": {"accept": "application/*, text/*"},
    "accept: with weights": {"accept": "application/json;q=0.9, text/event-stream;q=0.1"},
    "accept: capitals": {"accept": "APPLICATION/JSON, TEXT/EVENT-STREAM"},
    "accept: neither": {"accept": "text/html"},
    "accept: nothing": {"accept": ""},
    "content-type: text": {"content-type": "text/plain"},
    "content-type: with charset": {"content-type": "application/json; charset=utf-8"},
    "content-type: capitals": {"content-type": "APPLICATION/JSON"},
    "content-type: looks like JSON": {"content-type": "application/jsonp"},
    "content-type: absent": {"content-type": None},
    "version: an older one": {"mcp-protocol-version": "2025-06-18"},
    "version: to come": {"mcp-protocol-version": "2099-01-01"},
    "version: nonsense": {"mcp-protocol-version": "nonsense"},
    "version: empty": {"mcp-protocol-version": ""},
    "version: absent": {"mcp-protocol-version": None},
    "mcp-method: of another": {"mcp-method": "tools/list"},
    "mcp-method: capitals": {"mcp-method": "TOOLS/CALL"},
    "mcp-method: absent": {"mcp-method": None},
    "mcp-name: of another": {"mcp-name": "msg_inbox"},
    "mcp-name: in base64": {"mcp-name": "=?base64?bXNnX3dob2FtaQ==?="},
    "mcp-name: broken base64": {"mcp-name": "=?base64?%%%?="},
    "mcp-name: empty": {"mcp-name": ""},
    "mcp-name: absent": {"mcp-name": None},
    "mcp-param: nobody asked for it": {"mcp-param-to": "bob"},
    "mcp-*: nobody knows it": {"mcp-nobody-knows": "1"},
    "session: unknown": {"mcp-session-id": "0" * 32},
    "session: empty": {"mcp-session-id": ""},
    "session: long": {"mcp-session-id": "x" * 5_000},
    "session: with a space": {"mcp-session-id": "a b"},
    "host: another": {"host": "evil.example"},
    "host: another that begins alike": {"host": "localhost.evil.example"},
    "origin: another": {"origin": "https://evil.example"},
    "origin: null": {"origin": "null"},
    "last-event-id": {"last-event-id": "7"},
}

ADDED: dict[str, tuple[str, str]] = {
    "twice: accept": ("accept", "application/json"),
    "twice: version": ("mcp-protocol-version", "2025-06-18"),
    "twice: mcp-method": ("mcp-method", "tools/list"),
    "twice: mcp-name": ("mcp-name", "msg_inbox"),
    "twice: session": ("mcp-session-id", "0" * 32),
    "twice: content-type": ("content-type", "text/plain"),
}

METAS: dict[str, Any] = {
    "meta: empty": {},
    "meta: null": None,
    "meta: list": [],
    "meta: version alone": {VERSION: STATELESS},
    "meta: capabilities alone": {CAPABILITIES: {}},
    "meta: no client": {VERSION: STATELESS, CAPABILITIES: {}},
    "meta: version of the handshake era": {**META, VERSION: HANDSHAKE},
    "meta: version nobody knows": {**META, VERSION: "2099-01-01"},
    "meta: version as a number": {**META, VERSION: 2026},
    "meta: null capabilities": {**META, CAPABILITIES: None},
    "meta: text as capabilities": {**META, CAPABILITIES: "all"},
    "meta: wrong capabilities": {**META, CAPABILITIES: {"roots": 5}},
    "meta: unknown capabilities": {**META, CAPABILITIES: {"nobody": {"knows": 1}}},
    "meta: apps": {**META, CAPABILITIES: APPS},
    "meta: text as client": {**META, INFO: "nobody"},
    "meta: client without a name": {**META, INFO: {}},
    "meta: progress token": {**META, "progressToken": 5},
    "meta: progress token as an object": {**META, "progressToken": {}},
    "meta: unknown log level": {**META, "io.modelcontextprotocol/logLevel": "loud"},
    "meta: log level": {**META, "io.modelcontextprotocol/logLevel": "info"},
}

REGION = {"text": "x", "region": "north"}
# Calls of a tool that wants an argument in a header too.
PARAMS: dict[str, tuple[Any, Headers]] = {
    "param: as in the arguments": (REGION, {"mcp-param-region": "north"}),
    "param: absent": (REGION, NOTHING),
    "param: another value": (REGION, {"mcp-param-region": "south"}),
    "param: in base64": (REGION, {"mcp-param-region": "=?base64?bm9ydGg=?="}),
    "param: not in the arguments": ({"text": "x"}, {"mcp-param-region": "north"}),
    "param: in neither": ({"text": "x"}, NOTHING),
}

# What could begin a session.
FIRST: dict[str, dict[str, Any]] = {
    **{
        f"initialize: {version}": initialize(version)
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    },
    "initialize: stateless version": initialize(STATELESS),
    "initialize: unknown version": initialize("1999-01-01"),
    "initialize: empty version": initialize(""),
    "initialize: number as version": initialize(2025),
    "initialize: no version": initialize(None),
    "initialize: no client": initialize(clientInfo=None),
    "initialize: client without a name": initialize(clientInfo={"version": "1"}),
    "initialize: no capabilities": initialize(capabilities=None),
    "initialize: text as capabilities": initialize(capabilities="all"),
    "initialize: further params": initialize(further={"member": 1}),
    "initialize: no params": request("initialize"),
    "initialize: null id": {**initialize(), "id": None},
    "initialize: as a notification": {k: v for k, v in initialize().items() if k != "id"},
    "initialize: batch": [initialize()],  # type: ignore[dict-item]
}


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def dressed(era: Era, message: Any, meta: Any = META) -> Any:
    """A message that says who asks, where its era wants it and it has the place."""
    if era == "handshake" or not isinstance(message, dict) or "method" not in message:
        return message
    params = message.get("params") or {}
    return {**message, "params": {**params, "_meta": meta}} if isinstance(params, dict) else message


def dressed_bytes(era: Era, raw: bytes) -> bytes:
    """The same for bytes that cannot be read."""
    meta = b'"params":{"_meta":' + encoded(META) + b","
    return raw.replace(b'"params":{', meta) if era == "stateless" else raw


def corpus(era: Era) -> Iterator[Case]:
    """Every request of an era."""
    plain = encoded(dressed(era, call()))
    for name, message in MESSAGES.items():
        yield Case(name, encoded(dressed(era, message)))
    for name, raw in RAW.items():
        yield Case(name, dressed_bytes(era, raw))
    for name, headers in HEADERS.items():
        yield Case(name, plain, headers)
    for name, header in ADDED.items():
        yield Case(name, plain, added=(header,))
    for name, meta in METAS.items():
        yield Case(name, encoded({**call(), "params": {"name": "msg_whoami", "_meta": meta}}))
    for name, (arguments, headers) in PARAMS.items():
        yield Case(name, encoded(dressed(era, call("demo_region", arguments))), headers)
    for verb in ("PUT", "PATCH", "HEAD", "OPTIONS"):
        yield Case(f"verb: {verb}", method=verb)
    yield from sessions() if era == "handshake" else no_sessions()


def sessions() -> Iterator[Case]:
    """What is told of sessions, and what is sent without one."""
    without: Headers = {"mcp-session-id": None, "mcp-protocol-version": None}
    for name, message in FIRST.items():
        yield Case(name, encoded(message), without)
    first, unknown = encoded(initialize()), {"mcp-session-id": "0" * 32}
    yield Case("initialize: with the header of its version", first, {"mcp-session-id": None})
    yield Case("initialize: in a session", first, alone=True)
    yield Case("initialize: in a session that is unknown", first, unknown)
    for name, message in {
        "call": call(),
        "ping": request("ping"),
        "list": request("tools/list", {}),
        "notification": notice("notifications/initialized"),
        "response": {"jsonrpc": "2.0", "id": 3, "result": {}},
    }.items():
        yield Case(f"no session: {name}", encoded(message), without)
    for verb in ("GET", "DELETE"):
        yield Case(f"no session: {verb}", headers=without, method=verb)
        yield Case(f"unknown session: {verb}", headers=unknown, method=verb)
    yield Case("stream", method="GET", alone=True)
    yield Case("stream: JSON alone accepted", headers={"accept": "application/json"}, method="GET")
    yield Case("end", method="DELETE", alone=True)
    ended = (Case("end", method="DELETE"),)
    yield Case("after the end: call", encoded(call()), before=ended)
    yield Case("after the end: stream", method="GET", before=ended)
    yield Case("after the end: end", method="DELETE", before=ended)


def no_sessions() -> Iterator[Case]:
    """What the stateless era has no more, and what it demands of every request."""
    for verb in ("GET", "DELETE"):
        yield Case(f"verb: {verb}", method=verb)
    first = initialize(STATELESS)
    without, unnamed = {"mcp-protocol-version": None}, {"mcp-method": None, "mcp-name": None}
    yield Case("initialize", encoded(dressed("stateless", first)))
    yield Case("initialize: without the header of a version", encoded(first), without)
    yield Case("nobody says who asks", encoded(call()))
    yield Case("no headers", encoded(dressed("stateless", call())), unnamed)
