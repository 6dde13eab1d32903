"""`python -m tests.fuzz.cost`: looks for inputs that cost a hub more CPU than their size explains.

A case makes a well-formed input of any size up to a limit: a head, a query, a body in chunks, JSON,
an argument of an operation, frames of a WebSocket. Arguments come from the hub's own OpenAPI
document and list of tools, so that a new operation is tried too. Each case is sent small, at a
quarter of its limit and at its limit; what the CPU clock of the hub's process says gives the cost
of a byte. A cost that grows faster than the input is a failure. The seed is printed: the same seed
makes the same cases.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

from tests.harness import read_answer
from tests.process import Process
from tests.siege.wire import (
    ACCEPT,
    FAILURES,
    HUB,
    Line,
    bearer,
    call,
    connect,
    registered,
    request,
    rest,
    rpc,
    upgrade,
)
from tests.transports.websocket.support import frame

HEAD_BYTES: Final = 60_000
ANONYMOUS_BYTES: Final = 60_000
BODY_BYTES: Final = 500_000
ANSWER_SECONDS: Final = 20.0
SMALL, QUARTER, WHOLE = 0.001, 0.25, 1.0
# How often each size is sent; the cheapest counts, since everything else is noise.
TIMES: Final = 3
# A cost below this is not judged: the clock and the hub's own chores are too near.
NOTICED_SECONDS: Final = 0.03
# How much faster than the input the cost may grow from a quarter to the whole; squared it is 4.
MOST_GROWTH: Final = 2.2
# What one input may cost however large it is.
MOST_SECONDS: Final = 1.5
# An input that can grow by less says nothing about the cost of a byte.
JUDGED_BYTES: Final = 1000
SHOWN: Final = 20
# How deep a schema lies in a document, with what it refers to.
DEEPEST: Final = 20
# Operations that would end the account that tries them, its token, or never answer.
LEFT_OUT: Final = (
    *("delete_account", "DELETE /v1/me", "DELETE /v1/session", "GET /v1/events", "/credentials"),
    *("change_handle", "PUT /v1/me/handle", "recover"),
)
ATOMS: Final = (
    *("a", "A1", "0", " ", "\n", "\t", "é", "\u0301", "😀", "\u202e", '"', "\\", "'", "`"),
    *("*", "**", "?", "!", "../", "./", "//", "%2e%2e/", "%", "a:", ":", "://", "@a ", "@", "#"),
    *("a.", ".", "-", "_", "a-", ",", ";", "=", "a=b&", "<b>", "&amp;", "[x](y)", "_a_", "{", "}"),
    *("[", "]", "$.", "sk_", "Bearer ", "password=", "http://a/", "data: ", "\r\n", "eyJ", "=="),
    "q=0.1,",
)


class Case(NamedTuple):
    """A way to make an input, by the share of its limit; frames are sent on a WebSocket."""

    name: str
    make: Callable[[float], bytes]
    is_frames: bool = False


class Cost(NamedTuple):
    """What a case cost."""

    name: str
    size: int
    seconds: float
    per_byte: float
    # How much faster than the input the cost grew; 1 is in proportion.
    growth: float

    @property
    def is_bad(self) -> bool:
        """Whether nobody should be able to send this."""
        too_much = self.seconds > MOST_SECONDS
        return too_much or (self.seconds > NOTICED_SECONDS and self.growth > MOST_GROWTH)

    def __str__(self) -> str:
        """One row."""
        growth = f"{self.growth:5.1f}" if self.seconds > NOTICED_SECONDS else "    -"
        return (
            f"  {self.per_byte * 1e9:9,.0f} ns/byte {self.seconds * 1000:8,.1f} ms"
            f" {self.size:9,} bytes  growth {growth}  {self.name}"
        )


class Hub(NamedTuple):
    """Where inputs are sent, and whose CPU is read."""

    port: int
    pid: int
    token: str = ""
    room: str = "square"

    def cpu(self) -> float:
        """The seconds of CPU that the process has used; its clock has a number made of its id."""
        return time.clock_gettime((~self.pid << 3) | 2)

    async def send(self, case: Case, raw: bytes) -> None:
        """Send an input and wait until the hub is done with it."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await connect(self.port, HUB)
                try:
                    if case.is_frames:
                        writer.write(upgrade(self.room, self.token))
                        await reader.readuntil(b"\r\n\r\n")
                        # What comes back for a ping comes when all before it is read.
                        writer.write(raw + b"\x89\x84" + bytes(4) + b"done")
                        await reader.readuntil(b"\x8a\x04done")
                    else:
                        writer.write(raw)
                        await read_answer(reader, chunks=True)
                finally:
                    writer.transport.abort()
        except FAILURES:
            pass

    async def spent(self, case: Case, raw: bytes) -> float:
        """The CPU that an input took."""
        before = self.cpu()
        await self.send(case, raw)
        return self.cpu() - before

    async def measure(self, case: Case, times: int = TIMES) -> Cost:
        """The cost of a case at its limit, of a byte, and how it grows."""
        inputs = [case.make(scale) for scale in (SMALL, QUARTER, WHOLE)]
        costs = [float("inf")] * len(inputs)
        for _ in range(times):
            for number, raw in enumerate(inputs):
                costs[number] = min(costs[number], await self.spent(case, raw))
        fixed, quarter, whole = costs
        sizes = [len(raw) for raw in inputs]
        more = max(whole - fixed, 0.0)
        expected = max(1, sizes[2] - sizes[0]) / max(1, sizes[1] - sizes[0])
        # Below a fifth of what is noticed the quarter is noise, and would make any growth.
        growth = more / max(quarter - fixed, NOTICED_SECONDS / 5) / expected
        grown = sizes[2] - sizes[0]
        per_byte = more / grown if grown >= JUDGED_BYTES else 0.0
        return Cost(case.name, sizes[2], whole, per_byte, growth)

    async def judged(self, case: Case) -> Cost:
        """The cost of a case; one that looks bad is measured again, longer."""
        cost = await self.measure(case)
        return await self.measure(case, 3 * TIMES) if cost.is_bad else cost


Maker: TypeAlias = Callable[[random.Random, Hub], Case]


def text(rng: random.Random) -> Callable[[int], str]:
    """A way to make text of any length, of one atom or of several."""
    atoms = rng.choices(ATOMS, k=rng.choice((1, 1, 1, 2, 5)))
    last = rng.choice(("", "", "x", "!", "\x00"))

    def make(length: int) -> str:
        unit = "".join(atoms)
        return (unit * (length // len(unit) + 1))[: max(0, length - len(last))] + last

    return make


def head_text(rng: random.Random) -> Callable[[int], str]:
    """The same for the head of a request, which has no line ends and no other letters."""
    make = text(rng)
    return lambda length: "".join(
        each if each.isascii() and each.isprintable() else "x" for each in make(length)
    )


def heads(rng: random.Random) -> Case:
    """Many headers, or long ones, of one name or of many."""
    name, value = rng.choice(("a", "x-b", "cookie", "accept", "forwarded", "n{}")), head_text(rng)
    length = rng.choice((0, 1, 10, 200, 8_000))

    def make(scale: float) -> bytes:
        line = f"{name}: {value(length)}\r\n"
        count = max(1, int(HEAD_BYTES * scale) // (len(line) + 2))
        lines = "".join(line.replace("{}", str(number)) for number in range(count))
        return request("GET", "/health")[:-2] + lines.encode() + b"\r\n"

    return Case(f"head: {name} of {length} × {value(8)!r}", make)


NAMED: Final = (
    *("accept", "accept-language", "accept-encoding", "authorization", "cookie", "origin", "host"),
    *("forwarded", "x-forwarded-for", "if-none-match", "last-event-id", "mcp-session-id", "range"),
    *("mcp-protocol-version", "mcp-method", "mcp-name", "content-type", "connection", "baggage"),
    *("tracestate", "referer", "user-agent", "sec-fetch-site", "mcp-param-x", "expect"),
    "traceparent",
)


def headers(rng: random.Random) -> Case:
    """One long header that the hub reads."""
    name, value, path = rng.choice(NAMED), head_text(rng), rng.choice(("/mcp", "/v1/me", "/"))

    def make(scale: float) -> bytes:
        filled = value(int(HEAD_BYTES * scale)).strip() or "x"
        body = rpc("ping", {}).partition(b"\r\n\r\n")[2] if path == "/mcp" else b""
        given = {**(ACCEPT if body else {}), name: filled}
        return request("POST" if body else "GET", path, body, given)

    return Case(f"header: {name} of {value(8)!r} to {path}", make)


def targets(rng: random.Random) -> Case:
    """A long path or query."""
    starts = ("/", "/v1/", "/docs/", "/mcp?", "/v1/rooms?q=", "/v1/rooms?", "/invite/", "/ws?")
    start, value, longest = rng.choice(starts), text(rng), HEAD_BYTES / rng.choice((1, 3))

    def make(scale: float) -> bytes:
        return request("GET", start + quote(value(int(longest * scale)), safe="&=/;:,."))

    return Case(f"target: {start} and {value(8)!r}", make)


def chunked(rng: random.Random) -> Case:
    """A body in chunks of one size, with or without extensions, and a trailer."""
    size, extension = rng.choice((1, 2, 16, 1000)), rng.choice(("", "", ";a=b", ";" + "x" * 50))
    trailer = rng.choice((b"", b"a: b\r\n" * 20))

    def make(scale: float) -> bytes:
        body = json.dumps({"x": "y" * int(ANONYMOUS_BYTES * scale / (1 + 6 / size))}).encode()
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        ends = extension.encode()
        chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(part), ends, part) for part in parts)
        head = request("POST", "/mcp", b"", {**ACCEPT, "transfer-encoding": "chunked"})
        return head.replace(b"content-length: 0\r\n", b"") + chunks + b"0\r\n" + trailer + b"\r\n"

    return Case(f"chunks of {size}{extension[:8]}{' with a trailer' if trailer else ''}", make)


def value_of(rng: random.Random) -> Callable[[int], Any]:
    """A way to make a JSON value of about so many bytes."""
    words, depth = text(rng), rng.randrange(2, 50)
    # JSON writes some characters in twelve.
    longer = len(json.dumps(words(100))) / 102

    def fill(length: int) -> str:
        return words(max(1, int(length / longer)))

    def nested(length: int) -> Any:
        inner: Any = fill(length)
        for number in range(depth):
            inner = [inner] if number % 2 else {"k": inner}
        return inner

    ways: list[Callable[[int], Any]] = [
        fill,
        nested,
        lambda n: " " * n,
        lambda n: [fill(10)] * (n // 14),
        lambda n: [0.1] * (n // 5),
        lambda n: [int("9" * 300)] * (n // 302),
        lambda n: {f"{fill(3)}{number}": 1 for number in range(n // 14)},
        lambda n: [{"a": {}}] * (n // 11),
    ]
    return rng.choice(ways)


def bodies(rng: random.Random, hub: Hub) -> Case:
    """JSON for `/mcp`, of a stranger or of someone with a token."""
    token = hub.token if rng.random() < 0.5 else ""
    most = BODY_BYTES if token else ANONYMOUS_BYTES
    method = rng.choice(("tools/call", "tools/list", "initialize", "ping", "resources/read", "x/y"))
    key = rng.choice(("name", "arguments", "_meta", "uri", "cursor", "capabilities"))
    value = value_of(rng)

    def make(scale: float) -> bytes:
        params = {key: value(int(most * scale))}
        if key == "name" and not isinstance(params["name"], str):
            params = {"x": params["name"]}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return request("POST", "/mcp", json.dumps(message).encode(), {**ACCEPT, **bearer(token)})

    return Case(f"body: {method} with {key}{' and a token' if token else ''} {shown(value)}", make)


def shown(value: Callable[[int], Any]) -> str:
    """What a way makes, shortly."""
    return json.dumps(value(20), ensure_ascii=False)[:40]


def filled(rng: random.Random, schema: Any, grown: str) -> Callable[[float], Any]:
    """Arguments of a schema, of which `grown` has this share of the size that it may have."""
    properties: dict[str, Any] = schema.get("properties", {})
    ways = {name: argument(rng, properties[name]) for name in properties}
    wanted = {grown, *schema.get("required", ())} & ways.keys()
    return lambda share: {name: ways[name](share * (name == grown)) for name in sorted(wanted)}


def argument(rng: random.Random, schema: Any) -> Callable[[float], Any]:
    """A value of a schema that has this share of the size that it may have."""
    if schema.get("enum"):
        return lambda _: schema["enum"][0]
    kinds = schema.get("type", schema.get("anyOf", [{}])[0].get("type", "string"))
    kind = kinds[0] if isinstance(kinds, list) else kinds
    fill = text(rng)
    if kind == "string":
        longest = min(BODY_BYTES, schema.get("maxLength", BODY_BYTES))
        return lambda share: fill(max(1, int(share * longest)))
    if kind == "array":
        item, each = argument(rng, schema.get("items") or {}), rng.choice((0.0, 0.0, 0.001))
        size = len(json.dumps(item(each))) + 2
        most = min(BODY_BYTES // size, schema.get("maxItems", BODY_BYTES))
        return lambda share: [item(each)] * max(1, int(share * most))
    if kind == "object":
        if schema.get("properties"):
            return filled(rng, schema, rng.choice(list(schema["properties"])))
        return lambda share: {f"{fill(3)}{n}": fill(8) for n in range(int(share * BODY_BYTES / 22))}
    return lambda _: {"boolean": False, "null": None}.get(kind, schema.get("minimum", 1))


def resolved(schema: Any, document: Any, depth: int = 0) -> Any:
    """A schema without references; what lies deeper than any argument does is left out."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            target = document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            return resolved(target, document, depth + 1) if depth < DEEPEST else {}
        return {key: resolved(each, document, depth + 1) for key, each in schema.items()}
    if isinstance(schema, list):
        return [resolved(each, document, depth + 1) for each in schema]
    return schema


def tool_case(tool: Any, name: str, rng: random.Random, hub: Hub) -> Case:
    """A call of a tool whose argument grows."""
    schema = resolved(tool["inputSchema"], tool["inputSchema"])
    arguments = filled(rng, schema, name)

    def make(scale: float) -> bytes:
        return call(tool["name"], arguments(scale), hub.token)

    return Case(f"tool: {tool['name']} with {name}", make)


def tools(listed: list[Any]) -> list[Maker]:
    """A maker of cases for each argument of each tool."""
    return [
        partial(tool_case, tool, name)
        for tool in listed
        for name, schema in tool["inputSchema"].get("properties", {}).items()
        if can_grow(schema) and not is_left_out(tool["name"])
    ]


class Operation(NamedTuple):
    """A REST operation, without references."""

    method: str
    path: str
    parameters: list[Any]
    # The schema of its body, or an empty one.
    body: Any

    def case(self, grown: str, rng: random.Random, hub: Hub) -> Case:
        """A request in which one parameter, or one member of the body, grows."""
        body = filled(rng, self.body, grown)
        ways = {each["name"]: argument(rng, each.get("schema", {})) for each in self.parameters}

        def make(scale: float) -> bytes:
            target, query = self.path, ""
            for each in self.parameters:
                value = str(ways[each["name"]](scale * (each["name"] == grown)))
                value = quote(value[: HEAD_BYTES // 4], safe="")[: HEAD_BYTES // 2]
                if each["in"] == "path":
                    target = target.replace(f"{{{each['name']}}}", value or "x")
                elif each["name"] == grown and each["in"] == "query":
                    query = f"?{grown}={value}"
            data = json.dumps(body(scale)).encode() if self.body else b""
            return request(self.method, target + query, data, ACCEPT | bearer(hub.token))

        return Case(f"REST: {self.method} {self.path} with {grown}", make)


def operations(document: Any) -> list[Maker]:
    """A maker of cases for each parameter and member of a body of each REST operation."""
    found: list[Maker] = []
    for path, methods in resolved(document["paths"], document).items():
        shared = methods.pop("parameters", [])
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            parameters = shared + described.get("parameters", [])
            each = Operation(method.upper(), path, parameters, schema)
            grown = {one["name"]: one.get("schema", {}) for one in parameters}
            grown |= schema.get("properties", {})
            if not is_left_out(f"{each.method} {path}"):
                found += [partial(each.case, name) for name in grown if can_grow(grown[name])]
    return found


def can_grow(schema: Any) -> bool:
    """Whether values of a schema have many sizes."""
    sizes = schema.get("maxLength", BODY_BYTES) >= 1000
    return sizes and not {"enum", "const"} & schema.keys() and schema.get("type") not in FIXED


def is_left_out(name: str) -> bool:
    """Whether an operation or a tool is not tried."""
    return any(name == each if " " in each else each in name for each in LEFT_OUT)


FIXED: Final = ("boolean", "integer", "number", "null")
KINDS: Final = (
    *("chat.message", "reasoning.thought", "mcp.request.tools/call:x", "mcp.proposal.tools/call:x"),
    *("mcp.notification.notifications/chat/message", "capability.grant", "capability.revoke"),
    *("mcp.response.tools/call:x", "participant.status", "room.invite", "mcpx.reject.proposal"),
    "x.y",
)


def frames(rng: random.Random, _: Hub) -> Case:
    """A message of a room, in one frame or in pieces, or frames that carry none."""
    kind, value = rng.choice(KINDS), value_of(rng)
    member = rng.choice(("payload", "to", "correlation_id", "context", "id", "kind", "x"))
    piece = rng.choice((0, 0, 1, 2, 100))
    between = rng.choice((b"", b"", b"\x89\x80" + bytes(4), b"\x8a\x80" + bytes(4)))

    def make(scale: float) -> bytes:
        size = int((BODY_BYTES if not piece else ANONYMOUS_BYTES) * scale)
        message: dict[str, Any] = {"protocol": "mcpx/v1", "kind": kind, "payload": {"text": "hm"}}
        message[member] = {"text": value(size)} if member == "payload" else value(size)
        raw = json.dumps(message).encode()
        if not piece:
            return frame(raw)
        parts = [raw[at : at + piece] for at in range(0, len(raw), piece)]
        heads = [b"\x01", *([b"\x00"] * (len(parts) - 2)), b"\x80"]
        pieces = (head + frame(part)[1:] for head, part in zip(heads, parts, strict=False))
        return between.join(pieces)

    return Case(
        f"frames: {kind} with {member} in pieces of {piece or 'all'} {shown(value)}", make, True
    )


def cases(rng: random.Random, hub: Hub, described: list[Callable[..., Case]]) -> Iterator[Case]:
    """Cases without end; half of them try operations, once the hub has said which it has."""
    strangers: list[Callable[..., Case]] = [heads, headers, targets, chunked]
    more: list[Callable[..., Case]] = [bodies, frames] if hub.token else []
    yield from (maker(rng) for maker in strangers)
    while True:
        if described and rng.random() < 0.5:
            yield rng.choice(described)(rng, hub)
        elif more and rng.random() < 0.5:
            yield rng.choice(more)(rng, hub)
        else:
            yield rng.choice(strangers)(rng)


async def fuzz(hub: Hub, seconds: float, seed: int) -> list[Cost]:
    """Costs of random cases, the most expensive byte first."""
    described: list[Callable[..., Case]] = []
    line = Line(hub.port, hub.token)
    if hub.token:
        answer = (await line.ask(rpc("tools/list", {}, token=hub.token))).json()
        described = tools(answer["result"]["tools"])
        described += operations((await line.ask(request("GET", "/v1/openapi.json"))).json())
    costs, end = [], time.monotonic() + seconds
    for case in cases(random.Random(seed), hub, described):
        costs.append(await hub.judged(case))
        if time.monotonic() > end:
            break
    line.close()
    if hub.token:
        await line.call("msg_digest")
        line.close()
    return sorted(costs, key=lambda cost: -cost.per_byte)


async def prepared(port: int, pid: int) -> Hub:
    """A hub with an account and a room to try things in."""
    hub = Hub(port, pid, (await registered(port, "fuzzer"))["fuzzer"])
    async with Line(port) as line:
        await line.ask(rest("POST", "", hub.token, {"name": hub.room}))
    return hub


def run(seconds: float, seed: int) -> list[Cost]:
    """Try a hub of our own."""
    settings = {
        "FOLKMOOT_RATE_LIMITS": "off",
        "FOLKMOOT_PUBLIC_URL": "https://hub.test",
        "FOLKMOOT_REGISTRATION": "open",
    }
    with (
        tempfile.TemporaryDirectory(prefix="folkmoot-cost-") as folder,
        Process(Path(folder) / "data", **settings) as process,
    ):
        hub = asyncio.run(prepared(process.port, process.child.pid))
        return asyncio.run(fuzz(hub, seconds, seed))


def table(costs: list[Cost]) -> str:
    """The worst, and what is bad."""
    bad = [cost for cost in costs if cost.is_bad]
    lines = [f"{len(costs)} cases; the most CPU for a byte:", *map(str, costs[:SHOWN])]
    if bad:
        lines += [f"{len(bad)} cost too much, or grow faster than they are sent:", *map(str, bad)]
    return "\n".join(lines)


def main() -> int:
    """Run for so long; the exit code is 1 when something is bad."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cost", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    costs = run(options.seconds, options.seed)
    print(table(costs))
    return 1 if any(cost.is_bad for cost in costs) else 0


if __name__ == "__main__":
    sys.exit(main())
