"""How far a request goes: the files and functions of ours that it passes, in a hub that runs.

The hub is the command `folkmoot serve` in a process of its own, in which a profile is switched on
before a request and off after its answer; it sees every thread, and counts what is ours alone.
A function counts each time it is called or resumed; "different" counts each once. Shown are the
medians of the rounds.

`python -m benchmarks.path FOLDER ORDERS TOLD` is that hub; it obeys what comes on one descriptor,
and tells on the other what was counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import NamedTuple

import uvloop

import folkmoot
from benchmarks.gateway_places import CALLER, NAMESPACE, Behind, ready, registered
from benchmarks.mail_load import END_OF_HEAD, LENGTH, VERSION, length_in, request_of
from benchmarks.mail_servers import STOP_SECONDS, port_of
from benchmarks.nothing import main as command_line
from benchmarks.proxy_load import LAST_CHUNK, Words, request
from benchmarks.proxy_servers import http_server
from benchmarks.rooms_load import HEAD, MARK, envelope

ROUNDS = 15
WARM = 5
"""Requests before the first that is counted."""
AFTER_SECONDS = 0.02
"""How long a profile stays on after an answer, for what is done behind it."""
OURS = str(Path(folkmoot.__file__).parent)
INLINED = frozenset(("<listcomp>", "<dictcomp>", "<setcomp>"))
"""What newer Pythons do not call."""
ON, OFF = b"+", b"-"
OTHER, ROOM = "bob", "bench"


class Way(NamedTuple):
    """What a request passed."""

    files: float
    functions: float
    different: float


class Goal(NamedTuple):
    """What it should not exceed."""

    files: int | None = None
    functions: int | None = None


class Row(NamedTuple):
    """One kind of request, and how it is made once."""

    name: str
    ask: Callable[[], object]
    goal: Goal = Goal()


class Profile:
    """Counts calls of our functions while it is on."""

    def __init__(self) -> None:
        self._on = False
        self._calls: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call."""
        if self._on and event == "call" and frame.f_code.co_filename.startswith(OURS):
            self._calls[frame.f_code] += 1

    def obey(self, orders: int, told: int) -> None:
        """Count from one order to the next, and tell what was counted."""
        while order := os.read(orders, 1):
            self._on = order == ON
            if self._on:
                self._calls.clear()
                os.write(told, b"\n")
            else:
                # A copy, since a thread may be about to count one more.
                counted = dict(self._calls)
                ours = {code: n for code, n in counted.items() if code.co_name not in INLINED}
                files = {code.co_filename for code in ours}
                os.write(told, json.dumps([len(files), sum(ours.values()), len(ours)]).encode())
                os.write(told, b"\n")


def serve(folder: str, orders: int, told: int) -> None:
    """Be a hub that is profiled."""
    profile = Profile()
    threading.Thread(target=profile.obey, args=(orders, told), daemon=True).start()
    threading.setprofile(profile)
    sys.setprofile(profile)
    sys.argv = ["folkmoot", "serve", "--port", "0", "--data", folder]
    command_line()


class Profiled:
    """A hub whose profile we switch."""

    def __init__(self, port: int, orders: int, told: int) -> None:
        self.port = port
        self._orders = orders
        self._told = os.fdopen(told, "rb")

    def measured(self, ask: Callable[[], object]) -> Way:
        """What a request passes that was made a few times before."""
        for _ in range(WARM):
            ask()
        return Way(*map(median, zip(*(self._once(ask) for _ in range(ROUNDS)), strict=True)))

    def _once(self, ask: Callable[[], object]) -> list[int]:
        self._order(ON)
        ask()
        time.sleep(AFTER_SECONDS)
        counted: list[int] = json.loads(self._order(OFF))
        return counted

    def _order(self, order: bytes) -> bytes:
        os.write(self._orders, order)
        return self._told.readline()


@contextmanager
def profiled(folder: Path) -> Iterator[Profiled]:
    """A hub with its settings as they come, but for the limits; its log goes nowhere."""
    (orders, give), (listen, told) = os.pipe(), os.pipe()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.path", str(folder), str(orders), str(told)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=(orders, told),
        env={**kept, "PYTHONUNBUFFERED": "1", "FOLKMOOT_RATE_LIMITS": "off"},
    )
    os.close(orders)
    os.close(told)
    try:
        yield Profiled(port_of(child), give, listen)
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        finally:
            child.kill()
            if child.stdout:
                child.stdout.close()


class Wire:
    """A connection that stays open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)

    def say(self, words: bytes, ends: Callable[[bytes], bool]) -> bytes:
        """Send something; what comes back until it ends."""
        self._socket.sendall(words)
        heard = b""
        while not ends(heard):
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise ConnectionError(f"the hub closed a connection: {heard[-500:]!r}")
            heard += chunk
        return heard

    def ask(self, words: bytes) -> bytes:
        """An HTTP request whose answer is the result of a call."""
        answer = self.say(words, is_whole)
        if not answer.startswith(b"HTTP/1.1 20") or b'"isError":true' in answer:
            raise RuntimeError(f"a call failed: {answer[-500:]!r}")
        return answer


def is_whole(answer: bytes) -> bool:
    """Whether all of an HTTP answer has come."""
    head, found, body = answer.partition(END_OF_HEAD)
    if LENGTH in head.lower():
        return len(body) >= length_in(head)
    return bool(found) and body.endswith(LAST_CHUNK)


def in_session(wire: Wire, token: str) -> bytes:
    """A call that does nothing, in a session of the handshake era."""
    words = Words(f"/mcp?token={token}")
    client = {"name": "benchmark", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    head = wire.ask(request(json.dumps(first).encode(), words=words)).decode()
    found = [line for line in head.split("\r\n") if line.lower().startswith("mcp-session-id:")]
    session = found[0].partition(":")[2].strip()
    call = {"name": "msg_nothing", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return request(json.dumps(message).encode(), session, words=words)


def rows(port: int, token: str) -> list[Row]:
    """The kinds of requests, each on a connection of its own."""

    def asking(words: bytes) -> Callable[[], object]:
        wire = Wire(port)
        return lambda: wire.ask(words)

    head = f"host: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
    make = json.dumps({"name": ROOM}).encode()
    Wire(port).ask(
        f"POST /v1/rooms HTTP/1.1\r\n{head}content-type: application/json\r\n"
        f"content-length: {len(make)}\r\n\r\n".encode()
        + make
    )
    room, session = Wire(port), Wire(port)
    room.say(HEAD.format(room=ROOM, token=token).encode(), lambda heard: b"system.welcome" in heard)
    again = in_session(session, token)
    letter = {"to": OTHER, "body": "All is well here."}
    behind = Words(f"/mcp?token={token}", f"{NAMESPACE}_echo").asking(version=VERSION)
    listed = f"GET /v1/rooms HTTP/1.1\r\n{head}\r\n".encode()
    return [
        Row(
            "a tool call that does nothing",
            asking(request_of("msg_nothing", {}, token)),
            Goal(functions=105),
        ),
        Row("the same in a session", lambda: session.ask(again)),
        Row("a mail send", asking(request_of("msg_send", letter, token)), Goal(40, 170)),
        Row("a gateway call", asking(behind), Goal(45, 195)),
        Row("a room message", lambda: room.say(envelope("ada"), lambda heard: MARK in heard)),
        Row("a REST call", asking(listed)),
    ]


def shown(number: float, goal: int | None) -> str:
    """A number beside its goal."""
    beside = "" if goal is None else f"≤ {goal:<3} {'met' if number <= goal else 'MISSED'}"
    return f"{number:>5.0f} {beside:<12}"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place, http_server(None, "stateless", 1) as server:
        folder = Path(place)
        tokens = uvloop.run(registered(folder, (CALLER, OTHER)))
        behind = Behind(url=f"http://127.0.0.1:{server.port}/mcp")
        (folder / "config.toml").write_text(behind.table(NAMESPACE, everyone=True))
        token = tokens[CALLER]
        with profiled(folder) as hub:
            words = Words(f"/mcp?token={token}", "")
            asyncio.run(ready(hub.port, words, (NAMESPACE,)))
            print("\nThe way of a request: what it passes of ours, from a profile of a hub")
            print(f"  {'':<29} {'files':<18} {'functions':<18} {'different':>9}")
            for row in rows(hub.port, token):
                way = hub.measured(row.ask)
                files = shown(way.files, row.goal.files)
                functions = shown(way.functions, row.goal.functions)
                print(f"  {row.name:<29} {files} {functions} {way.different:>9.0f}")


if __name__ == "__main__":
    folder, orders, told = sys.argv[1:]
    serve(folder, int(orders), int(told))
