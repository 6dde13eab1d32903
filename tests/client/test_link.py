"""One connection: what a hub may send on it, and what answers when it is no hub."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request
from websockets.server import ServerProtocol

from folkmoot.client import AnswerInvalid, FolkmootError, Gap, HubUnreachable, Room
from folkmoot.client.http import joining, rooms_url
from folkmoot.client.link import IDLE_SECONDS, Backoff, connect
from tests.certificates import certificate
from tests.client.hub import CuttingHub
from tests.client.support import SOON

WELCOME = {
    "protocol": "mcpx/v1",
    "id": "w",
    "from": "gateway",
    "kind": "system.welcome",
    "payload": {
        "you": {"id": "bob", "capabilities": []},
        "participants": [],
        "room": "square",
        "epoch": "e1",
        "history": {"enabled": True, "first_seq": 1, "last_seq": 4},
    },
}


def message(seq: int, **more: Any) -> str:
    said = {"seq": seq, "id": f"m{seq}", "from": "alice", "kind": "chat.message"}
    return json.dumps({**said, "payload": {"text": str(seq)}, **more})


@asynccontextmanager
async def scripted(script: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[Room]:
    """A room at a server that does what no hub would."""

    async def once(socket: ServerConnection) -> None:
        await script(socket)
        await socket.wait_closed()

    async with serve(once, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        yield Room(f"ws://127.0.0.1:{port}", room="square", token="sk_bob", backoff=SOON)


WRONG: dict[str, str | bytes] = {
    "bytes": b"\x00",
    "no JSON": "hello",
    "no object": "[]",
    "no kind": '{"id":"a","from":"b"}',
    "a depth bomb": '{"seq":5,"id":"a","from":"b","kind":"c","payload":{"a":' + "[" * 100_000,
    "no welcome": message(5),
    "no member of it": json.dumps(WELCOME | {"payload": {"you": {}}}),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_no_hub_would_send_ends_it_with_a_clear_sentence(what):
    async def script(socket: ServerConnection) -> None:
        await socket.send(WRONG[what])

    async with scripted(script) as room:
        with pytest.raises(AnswerInvalid, match=r"^The hub.*\.$"):
            async with room:
                pass


async def test_the_same_later_ends_it_for_whoever_waits():
    async def script(socket: ServerConnection) -> None:
        await socket.send(json.dumps(WELCOME))
        await socket.send(b"\x00")

    async with scripted(script) as room, room:
        with pytest.raises(AnswerInvalid):
            await room.say("hello")


async def test_fragments_pings_and_unknown_members_are_taken_and_gaps_are_told():
    async def script(socket: ServerConnection) -> None:
        await socket.send(json.dumps(WELCOME))
        await socket.send(iter([message(5)[:10], message(5)[10:40], message(5)[40:]]))
        await (await socket.ping())
        for seq in (6, 5, 6):
            await socket.send(message(seq))
        await socket.send(message(9, flavour="new"))

    async with scripted(script) as room, room:
        first, second, gap, last = [await anext(room) for _ in range(4)]
        assert (first.text, second.text, last.text) == ("5", "6", "9")
        assert isinstance(gap, Gap)
        assert (gap.after, gap.seq, gap.reason) == (6, 8, "skipped")


# The ping that asks a silent hub whether it is there would notice, but much later.
@pytest.mark.timeout(IDLE_SECONDS / 2)
async def test_a_connection_that_is_reset_right_after_a_message_is_noticed_at_once():
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        url = f"ws://127.0.0.1:{listening.getsockname()[1]}"
        async with asyncio.TaskGroup() as tasks:
            welcoming = tasks.create_task(welcome(listening))
            async with Room(url, room="square", token="sk_bob", backoff=SOON):
                peer, protocol = await welcoming
                protocol.send_text(message(5).encode())
                # Nothing is awaited here, so the message and the reset are seen together.
                peer.send(b"".join(protocol.data_to_send()))
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()
                again, _ = await loop.sock_accept(listening)
                with again:
                    assert b"after=" in await loop.sock_recv(again, 65_536)


async def welcome(listening: socket.socket) -> tuple[socket.socket, ServerProtocol]:
    """Take one connection as a hub does, on a socket that can be reset at a chosen moment."""
    loop = asyncio.get_running_loop()
    peer, _ = await loop.sock_accept(listening)
    protocol = ServerProtocol()
    protocol.receive_data(await loop.sock_recv(peer, 65_536))
    (request,) = protocol.events_received()
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    protocol.send_text(json.dumps(WELCOME).encode())
    await loop.sock_sendall(peer, b"".join(protocol.data_to_send()))
    return peer, protocol


EMPTY = b"\r\nContent-Length: 0\r\n\r\n"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """What answers at an address when there is no hub behind it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 404 Not Found" + EMPTY, AnswerInvalid),
        (b"HTTP/1.1 200 OK" + EMPTY, AnswerInvalid),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/" + EMPTY, AnswerInvalid),
        (b"HTTP/1.1 503 Service Unavailable" + EMPTY, HubUnreachable),
        (b"SSH-2.0-OpenSSH\r\n\r\n", FolkmootError),
        (b"", HubUnreachable),
    ],
)
async def test_what_is_no_hub_is_told_apart_from_one_that_is_away(answer, error):
    async with answering(answer) as url:
        with pytest.raises(error) as refused:
            async with Room(url, room="square", token="sk_secret"):
                pass
        assert "sk_secret" not in str(refused.value)
        assert "127.0.0.1" in str(refused.value)


async def test_tls_is_verified_unless_told_whom_to_trust(tmp_path):
    cert, key = certificate(tmp_path)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(cert, key)
    trusting = ssl.create_default_context(cafile=str(cert))
    there = CuttingHub()
    async with serve(there._serve, "127.0.0.1", 0, ssl=serving, compression=None) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(HubUnreachable, match=r"self.signed"):
            async with Room(url, room="square", token="sk_bob"):
                pass
        assert there.tokens == []
        async with Room(url, room="square", token="sk_bob", ssl=trusting) as bob:
            await bob.say("in private")
            there.cut()
            await bob.say("still")
        assert there.said() == ["in private", "still"]


def test_the_address_of_a_connection_is_made_from_the_hubs():
    assert rooms_url("http://localhost:8420") == "ws://localhost:8420/ws"
    assert rooms_url(" https://example.org/hub/ ") == "wss://example.org/hub/ws"
    assert rooms_url("ws://[::1]:1") == "ws://[::1]:1/ws"
    assert joining("ws://a/ws", room="b c", conn="d", after=0, epoch="é") == (
        "ws://a/ws?room=b+c&conn=d&after=0&epoch=%C3%A9"
    )


def test_attempts_come_at_growing_intervals_that_differ():
    backoff = Backoff(first=1, most=10)
    delays = [backoff.delay(n) for n in range(8)]
    for n, longest in enumerate((1, 2, 4, 8, 10, 10, 10, 10)):
        assert longest / 2 <= delays[n] <= longest
    assert len({backoff.delay(20) for _ in range(10)}) > 1
    assert backoff.delay(10**6) <= 10


def test_connections_that_are_reset_as_they_are_made_close_their_descriptor_once():
    """A second close would hit whatever has the number by then, without a word."""
    resets = 100

    def reset_all(listening: socket.socket) -> None:
        for number in range(resets):
            connection, _ = listening.accept()
            time.sleep(number % 10 / 5_000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    made, opened = socket.socket, list[socket.socket]()

    class Watched(made):  # type: ignore[valid-type, misc]
        def __init__(self, *how: Any, **named: Any) -> None:
            super().__init__(*how, **named)
            opened.append(self)

    async def attempt(url: str) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("folkmoot.client.link.socket.socket", Watched)
            for _ in range(resets):
                with suppress(HubUnreachable):
                    await connect(url, "sk_bob", None, lambda _: None)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=reset_all, args=(listening,))
        thread.start()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(attempt(f"ws://127.0.0.1:{listening.getsockname()[1]}/ws"))
        thread.join()
    assert len(opened) >= resets
    assert [each for each in opened if each.fileno() >= 0] == []
