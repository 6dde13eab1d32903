"""Clients of a proxy, over HTTP and on pipes: they ask one by one, or much at once.

Nothing is asked before its time and no answer is looked into, so that whoever answers is what is
measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple, Protocol

from benchmarks.mail_load import END_OF_HEAD, LENGTH, META, VERSION, cpu_of, length_in
from benchmarks.proxy_peer import CHUNK, TEXT, write_all

AGREED = "2025-11-25"
ECHO = "echo"
CALL, LIST = "tools/call", "tools/list"
CALLERS = 16
WINDOW = 128
"""Questions on pipes that are open at once."""
LINES = 20_000
ANSWER_SECONDS = 30
STOP_SECONDS = 10
SILENT_SECONDS = 3
"""How long a connection is surely kept open when nothing is said on it."""
NOTHING: Iterator[bytes] = iter(())
LAST_CHUNK = b"0\r\n\r\n"
SESSION = b"mcp-session-id: "
FAILED = re.compile(rb'"error":\s*\{\s*"code"')
"""An error of JSON-RPC, and no word of a schema."""
GREETING = {
    "protocolVersion": AGREED,
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Words(NamedTuple):
    """What callers say: where, and of which tool; without one they have all of them listed."""

    path: str = "/mcp"
    tool: str = ECHO

    @property
    def headers(self) -> list[str]:
        """What the headers of the stateless era say."""
        if not self.tool:
            return [f"mcp-method: {LIST}"]
        return [f"mcp-method: {CALL}", f"mcp-name: {self.tool}"]

    def asking(self, session: str = "", version: str = AGREED) -> bytes:
        """The request that is made again and again."""
        meta = META if version == VERSION else None
        if self.tool:
            body = call(1, meta, self.tool)
        else:
            body = message(LIST, None if meta is None else {"_meta": meta}, 1)
        return request(body, session, version, words=self)


PLAIN = Words()


class Seen(NamedTuple):
    """What one measurement came to; seconds, but for the rate."""

    rate: float
    cpu: float
    """Of the one who is measured, for each question and its answer."""
    p50: float
    p99: float


class Subject(Protocol):
    """Someone who answers."""

    def alone(self, seconds: float) -> Seen:
        """One question after the other."""

    def together(self, seconds: float) -> Seen: ...

    def close(self) -> None:
        """Ask nothing more."""


def message(method: str, params: dict[str, Any] | None = None, number: int | None = None) -> bytes:
    """A message as one line; a request if it has a number."""
    identity = {} if number is None else {"id": number}
    told: dict[str, Any] = {"jsonrpc": "2.0", **identity, "method": method}
    if params is not None:
        told["params"] = params
    return json.dumps(told, separators=(",", ":")).encode()


def call(number: int, meta: dict[str, Any] | None = None, tool: str = ECHO) -> bytes:
    """A call of a tool that says something again."""
    params: dict[str, Any] = {"name": tool, "arguments": {"message": TEXT}}
    return message(CALL, params | ({} if meta is None else {"_meta": meta}), number)


def request(
    body: bytes,
    session: str = "",
    version: str = AGREED,
    method: str = "POST",
    words: Words = PLAIN,
) -> bytes:
    """A whole HTTP request."""
    head = [
        f"{method} {words.path} HTTP/1.1",
        "host: 127.0.0.1",
        "user-agent: benchmark",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        f"mcp-protocol-version: {version}",
        *([f"mcp-session-id: {session}"] if session else []),
        *(words.headers if version == VERSION else []),
        f"content-length: {len(body)}\r\n\r\n",
    ]
    return "\r\n".join(head).encode() + body


class Caller(asyncio.Protocol):
    """One connection; it sends the next request when the answer to the last one is whole."""

    def __init__(self, port: int, requests: Iterator[bytes]) -> None:
        self.waits: list[float] = []
        self.requests = requests
        self._port = port
        self._until = 0.0
        self._sent = time.perf_counter()
        self._received = b""
        self._answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def ask(self, request: bytes, until: float = 0.0) -> asyncio.Future[bytes]:
        """The answer to a request; if it is asked until a moment, that to the last of them."""
        self._until = until
        self._answered = asyncio.get_running_loop().create_future()
        self._send(request)
        return self._answered

    def call(self, until: float) -> asyncio.Future[bytes]:
        """Ask what there is to ask until a moment, but once at least."""
        return self.ask(next(self.requests), until)

    def _send(self, request: bytes) -> None:
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        end = self._received.find(END_OF_HEAD)
        if end < 0:
            return
        head, begin = self._received[:end], end + len(END_OF_HEAD)
        if LENGTH in head.lower():
            whole = len(self._received) >= begin + length_in(head)
        else:
            whole = self._received.endswith(LAST_CHUNK, begin)
        if whole:
            self._take()

    def _take(self) -> None:
        now = time.perf_counter()
        self.waits.append(now - self._sent)
        answer, self._received = self._received, b""
        failed = not answer.startswith(b"HTTP/1.1 20") or FAILED.search(answer)
        if now < self._until and not failed:
            self._send(next(self.requests))
        elif self._answered is not None and not self._answered.done():
            if failed:
                self._answered.set_exception(RuntimeError(f"a call failed: {answer[-500:]!r}"))
            else:
                self._answered.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that no answer will come."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("a connection was closed"))

    async def awake(self) -> Caller:
        """Itself, or another in its place if the connection may be closed for its silence."""
        if time.perf_counter() - self._sent < SILENT_SECONDS:
            return self
        self.close()
        return await connected(self._port, self.requests)

    def listen(self, session: str) -> None:
        """Open the stream of a session, and wait for nothing on it."""
        self._transport.write(request(b"", session, method="GET"))

    def close(self) -> None:
        """Close the connection."""
        self._transport.abort()


async def connected(port: int, requests: Iterator[bytes] = NOTHING) -> Caller:
    """A connection, and what is asked over it."""
    loop = asyncio.get_running_loop()
    make = partial(Caller, port, requests)
    _, caller = await loop.create_connection(make, "127.0.0.1", port)
    return caller


async def greeted(caller: Caller, words: Words = PLAIN) -> str:
    """Open a session; what it is called."""
    async with asyncio.timeout(ANSWER_SECONDS):
        answer = await caller.ask(request(message("initialize", GREETING, 0), words=words))
        head = answer.split(END_OF_HEAD, 1)[0]
        at = head.lower().find(SESSION)
        session = head[at + len(SESSION) :].split(b"\r\n", 1)[0].decode() if at >= 0 else ""
        await caller.ask(request(message("notifications/initialized"), session, words=words))
    return session


class HttpSubject:
    """Someone who answers over HTTP, and callers who each have a session with them."""

    def __init__(
        self,
        runner: asyncio.Runner,
        port: int,
        pids: Sequence[int],
        *,
        stateless: bool = False,
        words: Words = PLAIN,
    ) -> None:
        self._runner = runner
        self._port = port
        self._pids = pids
        self._words = words
        self._callers = runner.run(self._connected(stateless=stateless))

    async def _connected(self, *, stateless: bool) -> list[Caller]:
        words = self._words
        callers = [await connected(self._port) for _ in range(CALLERS)]
        for caller in callers:
            if stateless:
                caller.requests = cycle([words.asking(version=VERSION)])
            else:
                caller.requests = cycle([words.asking(await greeted(caller, words))])
        return callers

    def alone(self, seconds: float) -> Seen:
        """One question after the other."""
        return self._measured(1, seconds)

    def together(self, seconds: float) -> Seen:
        """One of each caller at a time."""
        return self._measured(CALLERS, seconds)

    def _measured(self, count: int, seconds: float) -> Seen:
        some = self._callers[:count]
        seen, self._callers[:count] = self._runner.run(measured(some, self._pids, seconds))
        return seen

    def close(self) -> None:
        """Let the callers go."""
        for caller in self._callers:
            caller.close()


async def measured(
    callers: Sequence[Caller], pids: Sequence[int], seconds: float
) -> tuple[Seen, list[Caller]]:
    """Let callers call for a while; what was seen, and they or those in their place."""
    awake = [await caller.awake() for caller in callers]
    for caller in awake:
        caller.waits.clear()
    began, used = time.perf_counter(), sum(map(cpu_of, pids))
    async with asyncio.timeout(seconds + ANSWER_SECONDS):
        await asyncio.gather(*(caller.call(began + seconds) for caller in awake))
    took, used = time.perf_counter() - began, sum(map(cpu_of, pids)) - used
    return seen([wait for caller in awake for wait in caller.waits], took, used), awake


def seen(waits: list[float], took: float, used: float) -> Seen:
    """What so many waits came to."""
    ordered, count = sorted(waits), len(waits)
    return Seen(count / took, used / count, ordered[count // 2], ordered[count * 99 // 100])


class StdioSubject:
    """Someone who was started and answers on pipes."""

    def __init__(
        self, command: Sequence[str], core: int | None, environment: dict[str, str]
    ) -> None:
        ours = os.sched_getaffinity(0)
        os.sched_setaffinity(0, ours if core is None else {core})
        self._child = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        os.sched_setaffinity(0, ours)
        assert self._child.stdin
        assert self._child.stdout
        self._to, self._from = self._child.stdin.fileno(), self._child.stdout.fileno()
        self._lines = [call(number) + b"\n" for number in range(1, LINES + 1)]
        self._at = 0
        write_all(self._to, message("initialize", GREETING, 0) + b"\n")
        self._hear(1)
        write_all(self._to, message("notifications/initialized") + b"\n")

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    def _hear(self, count: int) -> int:
        """Read until so many answers have come; how many it were."""
        heard = 0
        while heard < count:
            chunk = os.read(self._from, CHUNK)
            if not chunk:
                raise ConnectionError(f"{self._child.args!r} has ended")
            heard += chunk.count(b"\n")
        return heard

    def _next(self, count: int) -> bytes:
        if self._at + count > LINES:
            self._at = 0
        self._at += count
        return b"".join(self._lines[self._at - count : self._at])

    def alone(self, seconds: float) -> Seen:
        """One question after the other."""
        waits: list[float] = []
        used = cpu_of(self.pid)
        now = began = time.perf_counter()
        while now < began + seconds:
            write_all(self._to, self._next(1))
            self._hear(1)
            then, now = now, time.perf_counter()
            waits.append(now - then)
        return seen(waits, now - began, cpu_of(self.pid) - used)

    def together(self, seconds: float) -> Seen:
        """So many open at once, and one more for each that is answered."""
        began, used = time.perf_counter(), cpu_of(self.pid)
        write_all(self._to, self._next(WINDOW))
        asked, heard = WINDOW, 0
        while heard < asked:
            some = self._hear(1)
            heard += some
            if time.perf_counter() < began + seconds:
                write_all(self._to, self._next(some))
                asked += some
        took = time.perf_counter() - began
        wait = took * WINDOW / heard
        return Seen(heard / took, (cpu_of(self.pid) - used) / heard, wait, wait)

    def close(self) -> None:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
