"""Requests to `/mcp` as bytes: usual ones in every version, and hostile ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp_types.methods import validate_server_result

from folkmoot.rooms import read_spec, visitor_of
from tests.harness import Answer
from tests.mcp_harness import BOTH, INITIALIZE, both_eras, meeting

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
META = {VERSION: "2026-07-28", INFO: {"name": "probe", "version": "1"}, CAPABILITIES: {}}
TEA = {"room": "tea"}
APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


class Sent(NamedTuple):
    """One request of the corpus."""

    body: bytes
    headers: Mapping[str, str | None] = MappingProxyType({})


def call(name: Any, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A tool call; `more` are further params."""
    params = {"name": name, "arguments": arguments or {}, **more}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def with_meta(message: dict[str, Any], meta: Any = META) -> dict[str, Any]:
    return {**message, "params": {**message.get("params", {}), "_meta": meta}}


def listing(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": params}


def is_header(value: str) -> bool:
    """Whether a value can be sent in a header."""
    return value.isascii() and value.isprintable()


class Wire:
    """One connection to a hub, in one era, as one account."""

    def __init__(self, url: str, http: httpx2.AsyncClient, token: str) -> None:
        self.url = url
        self.http = http
        self.token = token
        self.session = ""

    def headers(self, message: Any) -> dict[str, str | None]:
        named: dict[str, str | None] = {**BOTH, "authorization": f"Bearer {self.token}"}
        if self.session:
            return {**named, "mcp-session-id": self.session}
        named["mcp-protocol-version"] = "2026-07-28"
        said = message if isinstance(message, dict) else {}
        params = said.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        told = {"mcp-method": said.get("method"), "mcp-name": name}
        return named | {k: v for k, v in told.items() if isinstance(v, str) and is_header(v)}

    async def send(self, sent: Sent) -> Answer:
        try:
            message = json.loads(sent.body)
        except (ValueError, RecursionError):
            message = None
        headers = {**self.headers(message), **sent.headers}
        answer = await self.http.post(
            self.url,
            content=sent.body,
            headers={name: value for name, value in headers.items() if value is not None},
        )
        return Answer(answer.status_code, dict(answer.headers), answer.content)


def message_of(answer: Answer) -> Any:
    """What an answer says, in either form; None if it says nothing."""
    if not answer.body:
        return None
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        lines = answer.text.replace("\r\n", "\n").split("\n")
        return json.loads([line for line in lines if line.startswith("data: ")][-1][6:])
    return answer.json()


@asynccontextmanager
async def wire(folder: Path, era: str) -> AsyncIterator[Wire]:
    """A connection, and some mail to read."""
    async with meeting(folder, era) as there, httpx2.AsyncClient(verify=False, timeout=60) as http:
        ann, bob = [await there.hub.accounts.register(handle) for handle in ("ann", "bob")]
        for number in range(3):
            await there.hub.mail.send(bob.account, "ann", body=f"letter {number} 🦉")
        ann_here = visitor_of(ann.account)
        await there.hub.rooms.create(ann_here, read_spec({"name": "tea"}))
        await there.hub.rooms.create(
            visitor_of(bob.account), read_spec({"name": "den", "access": "private"})
        )
        await there.hub.rooms.post(ann_here, "tea", PROPOSAL)
        line = Wire(there.url, http, ann.token)
        if era == "handshake":
            line.session = await opened(line)
        yield line


async def opened(line: Wire, version: str = "2025-11-25", **capabilities: Any) -> str:
    """A new session of the handshake era."""
    params = {**INITIALIZE["params"], "protocolVersion": version, "capabilities": capabilities}
    first = {**INITIALIZE, "params": params}
    headers = {"mcp-protocol-version": None, "mcp-method": None, "mcp-name": None}
    return (await line.send(Sent(encoded(first), headers))).headers["mcp-session-id"]


PROPOSAL = json.dumps(
    {
        "protocol": "mcpx/v1",
        "kind": "mcp.proposal.ping",
        "id": "p-1",
        "payload": {"method": "ping", "params": {"half": 0.5, "whole": 1.0, "far": 2**53 + 1}},
    }
).encode()


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


OWL = "\u0000 \u2028 \U0001f989 ﷽"
FULL = "x" * 1_000_001
USUAL: dict[str, list[dict[str, Any]]] = {
    "msg_whoami": [{}],
    "msg/whoami": [{}],
    "msg_inbox": [
        *({"peek": True}, {"limit": 0}, {"limit": "many"}, {"limit": 2.0, "peek": True}),
        *({"limit": 10**30}, {"nonsense": [1, {"deep": None}]}, {"wait": 0, "peek": True}),
    ],
    "msg/inbox": [{"limit": 2, "peek": True}],
    "msg_threads": [{}],
    "msg_digest": [{}],
    "msg_send": [
        *({"to": "nobody_here", "body": "hello"}, {"to": "ann", "body": "to myself"}),
        *({"to": "bob", "body": body} for body in (OWL, "", FULL)),
        *({"to": "bob"}, {"to": 5, "body": None}),
    ],
    "msg_reply": [{"message_id": "no such message", "body": "x"}],
    "msg_lookup": [{"handle": "@Bob"}],
    "msg_search_users": [{"query": "%"}],
    "msg_mark_read": [{"thread_id": "x"}],
    "room_list": [{}],
    "room/list": [{"limit": 1}],
    "room_join": [{"room": room} for room in ("tea", "den", "No Room")],
    "room_create": [
        {"name": "tea"},
        {"name": "x", "capabilities": ["system.*"]},
        {"name": "x", "grants": {"bob": "*"}, "policy": {"quorum": "many"}},
    ],
    "room_say": [{**TEA, "text": OWL, "mentions": ["bob"]}, {**TEA, "text": FULL}],
    "room/say": [{**TEA, "text": "x", "format": "html"}],
    "room_read": [
        *(TEA, {**TEA, "after": 0, "limit": 1, "kinds": ["proposal"]}),
        *({**TEA, "wait": 0, "before": 2**53}, {**TEA, "after": 1, "before": 2}),
    ],
    "room_propose": [
        *({**TEA, "method": "ping", "params": {"far": far}} for far in (2**53 + 1, 2**70)),
        {**TEA, "method": "tools/call"},
    ],
    "room_proposals": [{**TEA, "state": "open", "limit": 1}],
    "room_decide": [
        {**TEA, "proposal": "p-1", "decision": "fulfil", "to": "gateway"},
        {**TEA, "proposal": "p-1", "decision": "reject"},
    ],
    "room_invite": [{**TEA, "guest": "zoe"}, {**TEA, "handle": "bob"}, TEA],
    "room_leave": [TEA],
}
# What a usual client sends: every one has a result.
PLAIN = [
    *(call(tool, given) for tool, calls in USUAL.items() for given in calls),
    *({**call("msg_whoami"), "id": id_} for id_ in ("a string", "", -(2**62))),
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "msg_whoami"}},
    call("msg_whoami", arguments=None),
    listing(),
]

CHANGES: list[dict[str, Any]] = [
    *({"params": params} for params in ([], None)),
    *({"params": {"name": "msg_whoami", "arguments": given}} for given in ("text", [])),
    *({"id": id_} for id_ in (None, 1.5, 1.0, True, [1], 2**70)),
    *({"further": "member"}, {"jsonrpc": "1.0"}, {"method": "tools/calls"}),
]
# What no client should send, or seldom does.
ODD: list[Any] = [
    *(call(name) for name in ("nobody/knows", "", "msg_send\n", 7, "msg_delete_account")),
    call("msg_whoami", further="member"),
    *(call("room_read", {"wait": 5, **given}) for given in ({**TEA, "after": 0}, {"room": "den"})),
    *({**call("msg_whoami"), **change} for change in CHANGES),
    {"id": 1, "method": "tools/call", "params": {"name": "msg_whoami"}},
    {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "msg_whoami"}},
    *({"jsonrpc": "2.0", "id": 3, "method": method} for method in ("ping", "server/discover")),
    {"jsonrpc": "2.0", "id": 3, "result": {}},
    listing(cursor="x"),
    *([call("msg_whoami")], "text", 7, None),
]

WHOAMI = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"msg_whoami"}}'
SEND = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"msg_send","arguments":'
INBOX = SEND.replace(b"msg_send", b"msg_inbox")
PROPOSE = SEND.replace(b"msg_send", b"room_propose") + b'{"room":"tea","method":"ping","params":'
TO_BOB = SEND + b'{"to":"bob","body":'

RAW: list[bytes] = [
    *(b"", b"{", b'{"a":' * 1_500, b"\xff\xfe"),
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 300 + b', "method": "ping"}',
    *(WHOAMI + b"trailing", WHOAMI.replace(b'"id":1', b'"id":1,"id":2')),
    SEND + b'{"to":"bob","to":"ann","body":"twice"}}}',
    *(TO_BOB + body + b"}}}" for body in (b'"\\ud800"', b'"\xff\xfe"', b'"\n raw line"')),
    *(INBOX + b'{"limit":' + limit + b"}}}" for limit in (b"NaN", b"1e400", b"-0")),
    INBOX + b'{"limit":1E1,"peek":true}}}',
    INBOX + b"[" * 5_000 + b"]" * 5_000 + b"}}",
    *(PROPOSE + b'{"n":' + number + b"} }}}" for number in (b"NaN", b"-Infinity", b"1e400")),
    PROPOSE + b'{"n":[{"x":"\\ud800"}]} }}}',
    PROPOSE + b'{"n":1,"n":1.0} }}}',
    PROPOSE + b'{"n":' + b"[" * 70 + b"]" * 70 + b"} }}}",
    *(b"\xef\xbb\xbf" + WHOAMI, WHOAMI.decode().encode("utf-16")),
    b" \n\t" + WHOAMI.replace(b"/", b"\\/").replace(b":", b" : ") + b"\n",
]

JSON, EVENTS = "application/json", "text/event-stream"
SPOILED: dict[str, list[str | None]] = {
    "accept": [
        *(JSON, EVENTS, "*/*", f"{JSON};q=0.9, {EVENTS};q=0.1"),
        *(f"{JSON}, {EVENTS}".upper(), f"{EVENTS},{JSON}", None),
    ],
    "content-type": [
        *("text/plain", f"{JSON}; charset=utf-8", f"{JSON};charset=latin-1", JSON.upper(), None),
    ],
    "mcp-protocol-version": ["2025-06-18", "2024-01-01", "nonsense", None],
    "mcp-method": ["tools/list", None],
    "mcp-name": ["msg_inbox", "=?base64?bXNnX3dob2FtaQ==?=", None],
    "mcp-param-to": ["bob"],
    "mcp-session-id": ["0" * 32, ""],
    "authorization": [None, "Bearer sk_" + "0" * 64, "Basic abc"],
    "host": ["evil.example"],
    "origin": ["https://evil.example", "http://localhost:3000"],
    "last-event-id": ["7"],
    "transfer-encoding": ["chunked"],
}


# What no client may say of itself.
METAS: list[Any] = [
    {},
    None,
    [],
    {VERSION: "2026-07-28"},
    {CAPABILITIES: {}},
    {VERSION: "2025-11-25", CAPABILITIES: {}},
    {VERSION: "2026-07-28", CAPABILITIES: None},
    {VERSION: "2026-07-28", CAPABILITIES: {"roots": 5}},
    {VERSION: "2026-07-28", CAPABILITIES: {}, INFO: "nobody"},
    {**META, "progressToken": {}},
]


def dressed(era: str, message: Any) -> Any:
    """A message as a client of an era writes it."""
    fits = isinstance(message, dict) and isinstance(message.get("params", {}), dict)
    return with_meta(message) if era == "stateless" and fits else message


@both_eras
async def test_every_usual_request_has_a_result_in_the_form_of_its_era(era, tmp_path):
    async with wire(tmp_path, era) as line:
        version = "2026-07-28" if era == "stateless" else "2025-11-25"
        for message in PLAIN:
            answer = await line.send(Sent(encoded(dressed(era, message))))
            told = message_of(answer)
            assert (answer.status, told["id"]) == (200, message["id"]), message
            validate_server_result(message["method"], version, told["result"])


@both_eras
async def test_no_request_breaks_the_hub_and_each_bad_one_is_told_so(era, tmp_path):
    async with wire(tmp_path, era) as line:
        meta = b',"_meta":' + encoded(META) + b"}}"
        sent = [Sent(encoded(dressed(era, message))) for message in ODD]
        sent += [Sent(raw.replace(b"}}", meta, 1) if era == "stateless" else raw) for raw in RAW]
        usual = encoded(dressed(era, call("msg_whoami")))
        sent += [Sent(usual, {name: value}) for name, values in SPOILED.items() for value in values]
        for each in sent:
            answer = await line.send(each)
            assert answer.status < 500, each
            if answer.status >= 400:
                assert message_of(answer)["error"], each
        assert (await line.send(Sent(usual))).status == 200


async def test_what_a_client_says_of_itself_is_checked_with_every_request(tmp_path):
    async with wire(tmp_path, "stateless") as line:
        for meta in METAS:
            for message in (listing(), call("msg_whoami")):
                answer = await line.send(Sent(encoded(with_meta(message, meta))))
                assert answer.status == 400, meta
                assert message_of(answer)["error"]["code"] in {-32602, -32020}, meta
        for meta in ({**META, CAPABILITIES: APPS}, {**META, INFO: None}, {**META, "x/y": 1}):
            answer = await line.send(Sent(encoded(with_meta(listing(), meta))))
            assert answer.status == 200, meta


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_version_of_the_handshake_era_gets_its_own_form(version, tmp_path):
    async with wire(tmp_path, "handshake") as line:
        for capabilities in ({}, APPS):
            line.session = await opened(line, version, **capabilities)
            for message in (call("msg_whoami"), listing()):
                for header in (None, version, "2025-06-18"):
                    sent = Sent(encoded(message), {"mcp-protocol-version": header})
                    result = message_of(await line.send(sent))["result"]
                    validate_server_result(message["method"], version, result)
                    assert not result.keys() & {"resultType", "ttlMs", "cacheScope"}


PLACES: list[tuple[str, ...]] = [
    *(("id",), ("jsonrpc",), ("method",), ("params",)),
    *(("params", member) for member in ("name", "arguments", "_meta", "more")),
    *(("params", "arguments", "limit"), ("params", "arguments", "cursor")),
    ("params", "_meta", CAPABILITIES),
]
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**70, -(2**70), 1.5, -0.0, 1e308),
    *("", "2.0", "\u0000", "🦉", "msg_whoami", "msg/inbox", "tools/call"),
    *([], [None], [1, ["x", {}]], {}, {"x": None}, {"name": {"msg_whoami": [0]}}),
]


async def test_no_change_of_a_request_breaks_the_hub(tmp_path):
    async with wire(tmp_path, "stateless") as line:
        for place, value in product(PLACES, VALUES):
            message: Any = with_meta(call("msg_inbox", {"peek": True}))
            holder = message
            for step in place[:-1]:
                holder[step] = dict(holder[step])
                holder = holder[step]
            holder[place[-1]] = value
            answer = await line.send(Sent(encoded(message)))
            assert answer.status < 500, (place, value)
            if answer.status >= 400:
                assert message_of(answer)["error"]["code"] < -32000, (place, value)
