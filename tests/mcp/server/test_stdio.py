"""The stdio front: a client on pipes, sockets, files or a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import socket
import subprocess
import sys
import tty
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    decode_message,
)
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.strict import Limits
from folkmoot.core.transport import StdioMetadata
from folkmoot.mcp.carrier import PROXY_LIMITS
from folkmoot.mcp.server.stdio import StdioFront

CALL = (
    b'{"jsonrpc":"2.0", "id": 7,"method":"tools/call","params":{"name":"x","arguments":{}},"y":1}'
)


def pipes() -> tuple[int, int, int, int]:
    """The front's input and output, and the client's ends of them."""
    stdin, to_front = os.pipe()
    from_front, stdout = os.pipe()
    return stdin, stdout, to_front, from_front


def sockets() -> tuple[int, int, int, int]:
    a, b = socket.socketpair()
    mine, theirs = a.detach(), b.detach()
    return mine, os.dup(mine), theirs, os.dup(theirs)


def terminal() -> tuple[int, int, int, int]:
    theirs, mine = pty.openpty()
    tty.setraw(mine)
    return mine, os.dup(mine), theirs, os.dup(theirs)


@contextlib.asynccontextmanager
async def client(
    make: Callable[[], tuple[int, int, int, int]] = pipes, limits: Limits = PROXY_LIMITS
) -> AsyncIterator[tuple[StdioFront, int, int]]:
    """A front, and the client's two ends."""
    stdin, stdout, to_front, from_front = make()
    front = StdioFront(SystemClock(), stdin=stdin, stdout=stdout, limits=limits)
    try:
        await front.open()
        yield front, to_front, from_front
    finally:
        await front.close()
        for fd in (stdin, stdout, to_front, from_front):
            with contextlib.suppress(OSError):
                os.close(fd)


async def read_line(fd: int) -> bytes:
    def read() -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            line += os.read(fd, 1 << 20)
        return bytes(line[:-1])

    return await asyncio.to_thread(read)


@pytest.mark.requirement(
    "proxy.stdio", "proxy.unknown-members", "proxy.direction-set-at-entry", "proxy.direction-routes"
)
@pytest.mark.parametrize("make", [pipes, sockets, terminal])
async def test_messages_pass_in_both_directions_as_their_bytes(make):
    async with client(make) as (front, to_front, from_front):
        session = SessionContext.with_id(SessionId("s"))
        front.session = session
        os.write(to_front, CALL + b"\n")
        envelope = await front.receive_envelope()
        assert isinstance(envelope.message, Request)
        assert envelope.message.raw == CALL
        assert envelope.context.direction is MessageDirection.CLIENT_TO_SERVER
        assert envelope.context.session is session
        assert envelope.context.transport is front.current_context()
        assert isinstance(envelope.context.transport.metadata, StdioMetadata)

        raw = b'{ "id":7, "jsonrpc":"2.0","result":{"unknown" : 1.0}}'
        await front.send(decode_message(raw))
        assert await read_line(from_front) == raw
        lines = raw.replace(b" ", b"\r\n")
        await front.send(decode_message(lines))
        assert decode_message(await read_line(from_front)) == decode_message(lines)
        with pytest.raises(e.Misrouted):
            await front.send_envelope(envelope)


@pytest.mark.parametrize(
    ("line", "message_id", "code"),
    [
        (b"{nonsense", None, -32700),
        (b"[]", None, -32600),
        (b'{"jsonrpc":"1.0","id":"q","method":"x"}', "q", -32600),
        (b'{"jsonrpc":"2.0","id":3,"method":""}', 3, -32600),
        (b'{"jsonrpc":"2.0","id":3,"result":1,"error":1}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', None, -32600),
        (b"\xff\xfe", None, -32700),
        (b'{"a":"' + b"x" * 2000 + b'"}', None, -32600),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_not_passed_on(line, message_id, code):
    async with client(limits=Limits(message_bytes=1000)) as (front, to_front, from_front):
        os.write(to_front, line + b"\n" + CALL + b"\n")
        assert (await front.receive_envelope()).message.raw == CALL
        answer = json.loads(await read_line(from_front))
        assert answer["id"] == message_id
        assert answer["error"]["code"] == code


async def test_the_end_of_input_ends_the_conversation_after_its_last_line():
    async with client() as (front, to_front, from_front):
        os.write(to_front, CALL + b"\n" + CALL)
        os.close(to_front)
        for _ in range(2):
            assert (await front.receive_envelope()).message.raw == CALL
        for _ in range(2):
            with pytest.raises(e.TransportClosed):
                await front.receive_envelope()
        # The client may still read what it asked for.
        await front.send(Response(id=7, result={}))
        assert json.loads(await read_line(from_front))["id"] == 7


async def test_a_client_that_reads_no_more_is_gone():
    async with client() as (front, _, from_front):
        os.close(from_front)
        waiting = asyncio.ensure_future(front.receive_envelope())

        async def send_on() -> None:
            while True:
                await front.send(Notification(method="notifications/x"))
                await asyncio.sleep(0)

        with pytest.raises(e.TransportClosed):
            await send_on()
        with pytest.raises(e.TransportClosed):
            await waiting


async def test_a_file_is_read_to_its_end_and_a_file_is_written(tmp_path):
    (tmp_path / "in").write_bytes((CALL + b"\n") * 3000)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        front = StdioFront(SystemClock(), stdin=stdin.fileno(), stdout=stdout.fileno())
        await front.open()

        async def answer_all() -> None:
            while True:
                envelope = await front.receive_envelope()
                await front.send(Response(id=envelope.message.id, result={}))

        with pytest.raises(e.TransportClosed):
            await answer_all()
        await front.close()
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert len(lines) == 3000
    assert all(json.loads(line)["id"] == 7 for line in lines)


async def test_a_client_that_does_not_read_has_the_sender_wait_and_loses_nothing():
    def read_lines(fd: int, count: int) -> list[bytes]:
        with os.fdopen(os.dup(fd), "rb") as file:
            return [file.readline() for _ in range(count)]

    async with client() as (front, _, from_front):
        sent = 0

        async def send() -> None:
            nonlocal sent
            for number in range(2000):
                note = Notification(method="notifications/x", params={"n": number, "p": "x" * 1000})
                await front.send(note)
                sent += 1

        sending = asyncio.ensure_future(send())
        # It stops on its own: nothing more is taken, however often the loop turns.
        before = -1
        while before != sent or sent == 0:
            before = sent
            for _ in range(50):
                await asyncio.sleep(0)
        assert sent < 1000
        got = await asyncio.to_thread(read_lines, from_front, 2000)
        await sending
        assert [json.loads(each)["params"]["n"] for each in got] == list(range(2000))


async def test_what_nobody_takes_is_not_read():
    async with client() as (front, to_front, _):
        os.set_blocking(to_front, False)
        written = 0
        stalled = 0
        while stalled < 50:
            try:
                written += os.write(to_front, (CALL + b"\n") * 100)
                stalled = 0
            except BlockingIOError:
                stalled += 1
            await asyncio.sleep(0)
            assert written < 4 * 1024 * 1024
        assert (await front.receive_envelope()).message.raw == CALL


async def test_a_large_message_passes_both_ways():
    async with client() as (front, to_front, from_front):
        text = "x" * (8 * 1024 * 1024)
        raw = msgspec.json.encode(
            {"jsonrpc": "2.0", "method": "notifications/x", "params": {"t": text}}
        )

        def write() -> None:
            rest = memoryview(raw + b"\n")
            while rest:
                rest = rest[os.write(to_front, rest) :]

        _, envelope = await asyncio.gather(asyncio.to_thread(write), front.receive_envelope())
        assert envelope.message.raw == raw
        reading = asyncio.ensure_future(read_line(from_front))
        await front.send(envelope.message)
        assert await reading == raw


ECHO = """
import asyncio
from folkmoot.clock import SystemClock
from folkmoot.core.errors import TransportClosed
from folkmoot.mcp.server.stdio import StdioFront

async def main():
    front = StdioFront(SystemClock())
    await front.open()
    print("a stray word")
    try:
        while True:
            envelope = await front.receive_envelope()
            back = envelope.context.direction.reverse()
            await front.send_envelope(envelope.with_direction(back))
    except TransportClosed:
        await front.close()
    print("after the end")

asyncio.run(main())
"""


def test_what_else_the_process_prints_never_reaches_the_client():
    done = subprocess.run(
        [sys.executable, "-c", ECHO],
        input=CALL + b"\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == CALL + b"\nafter the end\n"
    assert done.stderr == b"a stray word\n"
