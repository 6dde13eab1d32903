"""The attacks: what is sent, in which way, how often and from how many addresses.

Every attack is sent to a hub of our own on loopback.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from tests.siege.host import PUBLIC_URL
from tests.siege.rogue import HOSTILE
from tests.siege.wire import ACCEPT, bearer, call, initialize, request, rest, rpc, upgrade
from tests.transports.websocket.support import frame

MEGABYTE: Final = 1_000_000
# Accounts of attackers, which anyone may make at a hub with open registration.
ACCOUNTS: Final = [f"mallory{number}" for number in range(10)]
# What tells a request that came through a proxy from an operator's own.
FORWARDED: Final = {"x-forwarded-for": "203.0.113.7"}


class Target(NamedTuple):
    """Whom attacks are aimed at, and with what."""

    tokens: dict[str, str]
    victim: str
    room: str

    def token(self, number: int) -> str:
        """The token of an attacker's account."""
        return self.tokens[ACCOUNTS[number]]


class Shots(NamedTuple):
    """A connection for each request, whose answer is read; so many a second."""

    rate: float
    addresses: int = 1

    def __str__(self) -> str:
        return f"{self.rate:g}/s"


class Held(NamedTuple):
    """Connections that stay open: a beginning, and then a byte now and again, or nothing."""

    connections: int
    addresses: int = 1
    drip: bytes = b""
    drip_seconds: float = 5.0
    reads: bool = True

    def __str__(self) -> str:
        return f"{self.connections} held"


class Frames(NamedTuple):
    """A WebSocket on which frames are sent after the head."""

    rate: float

    def __str__(self) -> str:
        """The rate."""
        return f"{self.rate:g} frames/s"


class Poured(NamedTuple):
    """A connection on which bytes are sent without end and whose answers are not read."""

    bytes_per_second: int
    connections: int = 1
    addresses: int = 1

    def __str__(self) -> str:
        """The rate."""
        return f"{self.connections * self.bytes_per_second / MEGABYTE:g} MB/s"


class Attack(NamedTuple):
    """One attack: what it is called, how it is carried out, and what is sent."""

    name: str
    how: Shots | Held | Frames | Poured
    sends: Callable[[Target], Sequence[bytes]]


ATTACKS: Final[list[Attack]] = []
Sends = TypeVar("Sends", bound=Callable[[Target], Sequence[bytes]])


def attack(name: str, how: Shots | Held | Frames | Poured) -> Callable[[Sends], Sends]:
    """Have what a function answers sent in this way."""

    def add(sends: Sends) -> Sends:
        ATTACKS.append(Attack(name, how, sends))
        return sends

    return add


def post(body: bytes, path: str = "/mcp", **headers: str) -> bytes:
    """A POST of JSON."""
    return request("POST", path, body, {**ACCEPT, **headers})


def members(count: int, value: str) -> bytes:
    """The members of an object that has very many."""
    return ",".join(f'"{number:05x}":{value}' for number in range(count)).encode()


def declared(count: int) -> bytes:
    """`initialize` with so many experimental capabilities."""
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"clientInfo":{"name":"x","version":"1"},"capabilities":{"experimental":{%b}}}}'
    ) % members(count, "{}")


def described(count: int, *, token: str = "") -> bytes:
    """A stateless call with so many objects in its `_meta`."""
    head, body = rpc("tools/list", {}, token=token).split(b"\r\n\r\n", 1)
    grown = body.replace(b'"_meta": {', b'"_meta": {"x":{%b},' % members(count, "{}"))
    sizes = [b"content-length: %d" % len(each) for each in (body, grown)]
    return head.replace(*sizes) + b"\r\n\r\n" + grown


def keyed(count: int) -> bytes:
    """A call with so many arguments."""
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"msg_digest",'
        b'"arguments":{%b}}}'
    ) % members(count, "1")


def pings(count: int) -> bytes:
    """An array of pings, as batches once were."""
    return b"[%b]" % b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * count)


def nested(depth: int) -> bytes:
    """Lists in lists."""
    return b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%b1%b}}' % (
        b"[" * depth,
        b"]" * depth,
    )


def message(kind: str, payload: Any, **more: Any) -> bytes:
    """An envelope of a room."""
    envelope = {"protocol": "mcpx/v1", "kind": kind, "payload": payload, **more}
    return json.dumps(envelope).encode()


def said(room: str, token: str, kind: str, payload: Any) -> bytes:
    """A POST of an envelope to a room."""
    return post(message(kind, payload), f"/v1/rooms/{room}/messages", **bearer(token))


def room_filling(token: str, rooms: int, prefix: str, *, durable: bool, times: int) -> list[bytes]:
    """Rooms that are made and then filled with thoughts of a megabyte."""
    names = [f"{prefix}{number}" for number in range(rooms)]
    made = [rest("POST", "", token, {"name": name, "durable": durable}) for name in names]
    thought = {"text": "x" * MEGABYTE}
    return made + [said(name, token, "reasoning.thought", thought) for name in names] * times


@attack("boxes nobody can open", Shots(2))
def boxes(target: Target) -> list[bytes]:
    """Mail that nobody can open."""
    zeros = base64.b64encode(bytes(32)).decode()
    payload = {
        "ciphertext": "AA==",
        "nonce": base64.b64encode(bytes(24)).decode(),
        "sender_public_key": zeros,
    }
    return [call("msg_send", {"to": target.victim, "encrypted_payload": payload}, target.token(5))]


@attack("who has an account", Shots(10))
def enumerated(target: Target) -> list[bytes]:
    """Searches, lookups and other ways to learn who has an account."""
    token = target.token(6)
    guesses = [f"mail{number}" for number in range(40)] + [f"nobody{n}" for n in range(40)]
    tools = ("msg_lookup", "msg_add_contact", "msg_block")
    asked = [call(tool, {"handle": guess}, token) for guess in guesses for tool in tools]
    asked += [call("msg_search_users", {"query": guess[:3]}, token) for guess in guesses]
    return asked + [call("msg_send", {"to": guess, "body": "x"}, token) for guess in guesses]


def many_headers(headers: bytes) -> list[bytes]:
    """A head of just under 64 KiB."""
    start = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    return [start + headers * ((65_000 - len(start)) // len(headers)) + b"\r\n"]


def poured(head: bytes, piece: bytes) -> list[bytes]:
    """What a flood begins with, and what it then repeats, about 16 KiB of it at once."""
    return [head, piece * max(1, 16_384 // len(piece))]


@attack("REST", Shots(10, 10))
def asked_of_rest(target: Target) -> list[bytes]:
    """Requests to `/v1` that strangers and accounts should not send."""
    token = target.token(6)
    paths = ("/v1/me", "/v1/me/export", "/v1/audit", "/v1/accounts", "/v1/threads?limit=100000")
    queries = "&".join(f"x{number}={number}" for number in range(1000))
    asked = [
        request("GET", path, b"", bearer(who))
        for path in (*paths, f"/v1/rooms?{queries}")
        for who in ("", token)
    ]
    deep = b'{"x":' + b"[" * 60 + b"]" * 60 + b"}"
    bodies = (b"{" * 5000, deep, b'{"to":"' + b"x" * 60_000 + b'"}')
    asked += [post(body, "/v1/messages", **bearer(token)) for body in bodies]
    call = b'{"name":"cellar:echo","arguments":{"message":"hm"}}'
    return [*asked, post(call, "/v1/tools/call", **bearer(token))]


@attack("ambiguous heads", Shots(10, 5))
def smuggled(_: Target) -> list[bytes]:
    """Heads that two readers could understand in two ways."""
    hidden = request("GET", "/metrics")
    start = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    tails = (
        f"content-length: {len(hidden)}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        f"content-length: 0\r\ncontent-length: {len(hidden)}\r\n\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        "transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "content-length: +4\r\n\r\n",
        "x: y\r\n z: folded\r\ncontent-length: 0\r\n\r\n",
        "content-length: 0\r\nhost: elsewhere.example\r\n\r\n",
    )
    return [(start + tail).encode() + hidden for tail in tails]


@attack("spellings of paths", Shots(5))
def spelled(target: Target) -> list[bytes]:
    """Other spellings of paths, and of what is below a folder."""
    token = target.token(7)
    paths = ("//health", "/v1//rooms", "/v1/rooms/..%2f..%2fmetrics", "/%2e%2e/etc/passwd")
    asked = [request("GET", path, headers=bearer(token)) for path in paths]
    uris = ("oven://notes/../../etc/passwd", "oven://notes//secret1", "file:///etc/passwd")
    asked += [rpc("resources/read", {"uri": uri}, token=token) for uri in uris]
    tricks = ("notes/../../etc/passwd", "notes//secret1", "notes/%2e%2e/x", "notes/\u2025/x")
    return asked + [call("oven_echo", {"message": trick}, token) for trick in tricks]


@attack("frames that are no messages", Frames(5))
def wrong_frames(target: Target) -> list[bytes]:
    """A WebSocket, and frames that are no messages."""
    return [
        upgrade(target.room, target.token(8)),
        frame(b"no JSON"),
        frame(nested(2000)),
        b"\x81\x05hello",
        b"\xc1\x80" + bytes(4),
        b"\x89\xff" + (1 << 20).to_bytes(8, "big") + bytes(4),
    ]


@attack("frames never ended", Held(40, drip=b"x"))
def half_frames(target: Target) -> list[bytes]:
    """A WebSocket, and the most of a large frame."""
    whole = frame(message("reasoning.thought", {"text": "x" * MEGABYTE}))
    return [upgrade(target.room, target.token(8)) + whole[:-10_000]]


@attack("flood of a member", Frames(50))
def members_flood(target: Target) -> list[bytes]:
    """A member's messages of kinds other than chat, in the room of others."""
    thought = message("reasoning.thought", {"text": "hm"})
    seen = message("chat.acknowledge", {}, correlation_id=["talk0-square-0"])
    return [upgrade(target.room, target.token(9)), frame(thought), frame(seen)]


@attack("flood of unknown kinds", Frames(50))
def owners_flood(target: Target) -> list[bytes]:
    """Messages of protocols that nobody knows, in a room of one's own."""
    token = target.token(0)
    return [upgrade("unknown", token), frame(message("siege.noise", {"x": "y" * 2000}))]


WRONG_TOKEN: Final = f"sk_{'0' * 64}"
GUESS: Final = "AAAA-BBBB-CCCC"
HALF_HEAD: Final = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "
HALF_BODY: Final = request("POST", "/mcp", b"", {**ACCEPT, "content-length": "60000"}) + b'{"a":"'

CHUNKED_HEAD: Final = request(
    "POST", "/mcp", b"", {**ACCEPT, "transfer-encoding": "chunked"}
).replace(b"content-length: 0\r\n", b"")
# What the hub's own pages send beside what changes something.
OWN_PAGE: Final = {"folkmoot-page": "1", "origin": PUBLIC_URL}

attack("declarations", Shots(2, 20))(lambda _: [post(declared(300_000))])
attack("declarations below 64 KiB", Shots(5, 20))(lambda _: [post(declared(5_000))])
attack("stateless meta", Shots(2, 20))(lambda _: [described(300_000)])
attack("sessions opened and left", Shots(10, 4))(lambda _: [initialize()])
attack("many keys", Shots(1, 4))(lambda _: [post(keyed(380_000))])
attack("array of pings", Shots(1, 4))(lambda _: [post(pings(95_000))])
attack("slow bodies", Held(1001, 1, drip=b"x"))(lambda _: [HALF_BODY])
attack("slow bodies from many", Held(200, 50, drip=b"x"))(lambda _: [HALF_BODY])
attack("slow heads", Held(100, 10, drip=b"x"))(lambda _: [HALF_HEAD])
attack("idle connections", Held(300, 3))(lambda _: [b""])
attack("slow readers", Held(50, 5, reads=False))(lambda _: [request("GET", "/") * 40])
attack("metrics", Shots(10, 4))(lambda _: [request("GET", "/metrics", b"", FORWARDED)])
attack("readiness", Shots(20, 4))(lambda _: [request("GET", "/health/ready", b"", FORWARDED)])
attack("wrong tokens", Shots(10, 10))(lambda _: [call("msg_inbox", {}, token=WRONG_TOKEN)])
attack("repeated headers", Shots(2, 5))(lambda _: many_headers(b"a:b\r\n"))
attack("empty headers", Shots(2, 5))(lambda _: many_headers(b"a:\r\n"))
attack("denied calls", Shots(20, 2))(lambda t: [call("cellar_echo", {"message": "hm"}, t.token(1))])
attack("own declarations", Shots(1))(lambda t: [described(300_000, token=t.token(1))])
attack("own array of pings", Shots(1))(lambda t: [post(pings(95_000), **bearer(t.token(1)))])
attack("invites", Shots(2))(lambda t: [call("msg_invite", {}, t.token(4))])
attack("WebSockets that do not read", Held(5, reads=False))(lambda t: [upgrade(t.room, t.token(8))])
attack("no JSON", Shots(10, 10))(lambda _: [post(b"\xff" * 500), post(b"{" * 500), post(b"")])
attack("nesting", Shots(5, 5))(lambda _: [post(nested(20_000))])
attack("huge heads", Shots(10, 5))(lambda _: [request("GET", "/", b"", {"x": "y" * 300_000})])


@attack("large bodies never ended", Held(200, 4, drip=b"x"))
def large_bodies_never_ended(_: Target) -> Sequence[bytes]:
    return [post(b'{"x":"' + b"x" * 3_900_000, **{"content-length": "4194304"})]


@attack("recovery guesses", Shots(5, 50))
def recovery_guesses(t: Target) -> Sequence[bytes]:
    return [call("msg_recover", {"handle": t.victim, "recovery_code": GUESS})]


@attack("recovery of unknown handles", Shots(5, 2))
def recovery_of_unknown_handles(_: Target) -> Sequence[bytes]:
    return [call("msg_recover", {"handle": f"no{n}", "recovery_code": GUESS}) for n in range(100)]


@attack("registrations", Shots(10, 8))
def registrations(_: Target) -> Sequence[bytes]:
    return [call("msg_register", {"handle": f"crowd{n}"}) for n in range(1000)]


@attack("pipelined requests", Poured(300_000, 2, 2))
def pipelined_requests(_: Target) -> Sequence[bytes]:
    return poured(b"", b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")


@attack("pings without a token", Poured(300_000, 2, 2))
def pings_without_a_token(t: Target) -> Sequence[bytes]:
    return poured(upgrade(t.room), b"\x89\x80" + bytes(4))


@attack("empty fragments without a token", Poured(300_000, 2, 2))
def empty_fragments_without_a_token(t: Target) -> Sequence[bytes]:
    return poured(upgrade(t.room) + b"\x01\x80" + bytes(4), b"\x00\x80" + bytes(4))


@attack("chunks of a byte", Poured(300_000, 2, 2))
def chunks_of_a_byte(_: Target) -> Sequence[bytes]:
    return poured(CHUNKED_HEAD + b'5\r\n{"x":\r\n1\r\n"\r\n', b"1\r\nx\r\n")


@attack("chunks with extensions", Poured(300_000, 2, 2))
def chunks_with_extensions(_: Target) -> Sequence[bytes]:
    return poured(CHUNKED_HEAD + b'6\r\n{"x":"\r\n', b"1;a=b\r\nx\r\n")


@attack("sign-in guesses", Shots(10, 10))
def sign_in_guesses(_: Target) -> Sequence[bytes]:
    return [
        post(b'{"token":"%b"}' % WRONG_TOKEN.encode(), "/v1/session", **OWN_PAGE),
        post(b'{"code":"oc_0123456789abcdef0123456789abcdef"}', "/v1/session/code", **OWN_PAGE),
    ]


@attack("event streams", Held(60, 3))
@attack("event streams that come and go", Shots(5, 10))
def event_streams(t: Target) -> Sequence[bytes]:
    return [request("GET", "/v1/events", b"", bearer(t.token(7)))]


@attack("calls of a hostile server", Shots(0.5, 2))
def calls_of_a_hostile_server(t: Target) -> Sequence[bytes]:
    return [call(f"rogue_{tool}", {"message": "hm"}, t.token(6)) for tool in HOSTILE]


@attack("own pings", Poured(200_000))
def own_pings(t: Target) -> Sequence[bytes]:
    return poured(upgrade(t.room, t.token(8)), b"\x89\x80" + bytes(4))


@attack("own fragments of a byte", Poured(200_000))
def own_fragments_of_a_byte(t: Target) -> Sequence[bytes]:
    return poured(
        upgrade(t.room, t.token(8)) + b"\x01\x81" + bytes(4) + b"{", b"\x00\x81" + bytes(4) + b" "
    )


@attack("own large bodies never ended", Held(100, 1, drip=b"x"))
def own_large_bodies_never_ended(t: Target) -> Sequence[bytes]:
    return [
        post(b'{"x":"' + b"x" * 3_900_000, **bearer(t.token(1)), **{"content-length": "4194304"})
    ]


@attack("thoughts of a megabyte", Shots(5))
def thoughts_of_a_megabyte(t: Target) -> Sequence[bytes]:
    return room_filling(t.token(2), 2, "thoughts", durable=True, times=200)


@attack("memory rooms", Shots(3))
def memory_rooms(t: Target) -> Sequence[bytes]:
    return room_filling(t.token(3), 10, "memory", durable=False, times=50)


@attack("rooms", Shots(5))
def many_rooms(t: Target) -> Sequence[bytes]:
    return [rest("POST", "", t.token(4), {"name": f"heap{n}"}) for n in range(1000)]


@attack("urgent mail", Shots(5))
def urgent_mail(t: Target) -> Sequence[bytes]:
    return [
        call("msg_send", {"to": t.victim, "body": "x" * 90_000, "priority": "urgent"}, t.token(4))
    ]


@attack("forged sessions", Shots(10, 5))
def forged_sessions(_: Target) -> Sequence[bytes]:
    return [call("msg_inbox", {}, session=f"{n:032x}") for n in range(100)]


@attack("WebSockets without a token", Shots(10, 5))
def websockets_without_a_token(t: Target) -> Sequence[bytes]:
    return [upgrade(t.room), upgrade(t.room, WRONG_TOKEN)]


@attack("guests' invitations", Shots(5, 2))
def guests_invitations(t: Target) -> Sequence[bytes]:
    return [post(b'{"token":"gi_0123456789abcdef"}', f"/v1/rooms/{t.room}/guests")]
