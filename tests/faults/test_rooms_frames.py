"""What comes on a connection and is no message: its sender is told or closed, the others go on."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from folkmoot.core.closecodes import CloseCode
from tests.interaction.room_client import Seat, Square, address, chat, square
from tests.transports.websocket.support import (
    BINARY,
    CONTINUATION,
    PING,
    TEXT,
    Client,
    frame,
)

MIB = 1_048_576
# For SO_LINGER: closing tells the other side nothing but that it is over.
RESET = struct.pack("ii", 1, 0)

HELLO = json.dumps(chat("hello")).encode()


def of_size(size: int) -> bytes:
    """A message of exactly so many bytes."""
    empty = json.dumps(chat(""), separators=(",", ":")).encode()
    return empty.replace(b'"text":""', b'"text":"%b"' % (b"x" * (size - len(empty))))


def parts(message: bytes, count: int) -> list[bytes]:
    """A message in so many fragments."""
    size = -(-len(message) // count)
    cut = [message[at : at + size] for at in range(0, len(message), size)]
    opcodes = [TEXT] + [CONTINUATION] * (len(cut) - 1)
    return [
        frame(part, opcode, fin=number == len(cut))
        for number, (part, opcode) in enumerate(zip(cut, opcodes, strict=True), start=1)
    ]


# What ends a connection, and with which code.
CLOSED = {
    "one byte too many": ([frame(of_size(MIB + 1))], CloseCode.TOO_BIG),
    "one byte too many in fragments": (parts(of_size(MIB + 1), 40), CloseCode.TOO_BIG),
    "fragments without an end": (
        [frame(b"x" * 1000, TEXT, fin=False)]
        + [frame(b"x" * 60_000, CONTINUATION, fin=False)] * 20,
        CloseCode.TOO_BIG,
    ),
    "a length no memory has": ([b"\x81\xff" + b"\x7f" + b"\xff" * 7 + b"mask"], CloseCode.TOO_BIG),
    "binary": ([frame(HELLO, BINARY)], CloseCode.NOT_TEXT),
    "bytes that are no UTF-8": ([frame(b'{"kind":"\xff\xfe"}')], CloseCode.NOT_UTF8),
    "half a character": ([frame("\u20ac".encode()[:2])], CloseCode.NOT_UTF8),
    "a surrogate": ([frame(b"\xed\xa0\x80")], CloseCode.NOT_UTF8),
    "a fragment of nothing": ([frame(HELLO, CONTINUATION)], CloseCode.PROTOCOL_ERROR),
    "a message within a message": (
        [frame(HELLO[:9], TEXT, fin=False), frame(HELLO)],
        CloseCode.PROTOCOL_ERROR,
    ),
    "without a mask": ([frame(HELLO, masked=False)], CloseCode.PROTOCOL_ERROR),
    "reserved bits": ([frame(HELLO, reserved=4)], CloseCode.PROTOCOL_ERROR),
    "an opcode nobody knows": ([frame(HELLO, 5)], CloseCode.PROTOCOL_ERROR),
    "a ping in fragments": ([frame(b"", PING, fin=False)], CloseCode.PROTOCOL_ERROR),
    "a ping of great length": ([frame(b"x" * 126, PING)], CloseCode.PROTOCOL_ERROR),
}

ROOM = b'{"protocol":"mcpx/v1","kind":"a.b","payload":%b}'
# Text messages that are refused as a whole.
BOMBS = {
    "arrays": b"[" * 500_000,
    "arrays that end": b"[" * 250_000 + b"]" * 250_000,
    "objects": b'{"a":' * 100_000,
    "in a payload": ROOM % (b'{"a":' + b"[" * 100_000 + b"1" + b"]" * 100_000 + b"}"),
    "in a member nobody knows": ROOM.replace(b"payload", b"more")
    % (b'{"a":' * 80_000 + b"1" + b"}" * 80_000),
    "just one too deep": ROOM % (b'{"a":' * 64 + b"1" + b"}" * 64),
    "a number without end": ROOM % (b'{"a":' + b"9" * 500_000 + b"}"),
    "a number that is infinite": ROOM % b'{"a":1e999}',
    "the same name twice": ROOM % rb'{"a":1,"\u0061":2}',
    "a batch": b"[%b]" % HELLO,
    "half a pair": ROOM % rb'{"a":"\ud800"}',
    "nothing": b"",
    "a word": b"hello",
    "a byte order mark": b"\xef\xbb\xbf" + HELLO,
}


@asynccontextmanager
async def raw(there: Square, handle: str) -> AsyncIterator[Client]:
    """Someone who sends any bytes whatever, once the welcome is read."""
    client = await Client.connect(there.port)
    try:
        url = urlsplit(address(there.port, there.tokens[handle]))
        assert (await client.ask(f"{url.path}?{url.query}")).status == 101
        assert b"system.welcome" in await client.text()
        yield client
    finally:
        client.leave()


async def came_and_went(witness: Seat, name: str) -> None:
    """Nothing but presence was heard since, and it is over; the room goes on."""
    await witness.kind("system.presence.leave")
    news = [(one["kind"], one["payload"]["participant"]["id"]) for one in await witness.news()]
    assert news == [("system.presence.join", name), ("system.presence.leave", name)]


@pytest.mark.requirement("wire.strict")
async def test_what_is_no_text_message_ends_its_connection_and_no_other(tmp_path):
    async with square(tmp_path) as there:
        await there.people("ann", "mallory")
        await there.room("ann", durable=False)
        async with there.seat("ann") as ann:
            await ann.news()
            for what, (frames, code) in CLOSED.items():
                async with raw(there, "mallory") as mallory:
                    mallory.send(*frames)
                    closed = await mallory.awoken()
                    assert int.from_bytes(closed[:2], "big") == code, what
                    await came_and_went(ann, "mallory")


@pytest.mark.requirement("wire.strict", "wire.refusal-to-sender")
async def test_what_is_text_and_no_message_is_refused_and_the_connection_goes_on(tmp_path):
    async with square(tmp_path) as there:
        await there.people("ann", "mallory")
        await there.room("ann", durable=False, capabilities=["*"])
        async with there.seat("ann") as ann, there.seat("mallory") as mallory:
            await ann.news()
            await mallory.news()
            for what, text in BOMBS.items():
                await mallory.send(text)
                told = await mallory.hear()
                assert told["kind"] == "system.error", what
                assert len(json.dumps(told)) < 2000, what
            assert [one["payload"] for one in await ann.news()] == [{"text": "mark"}]
            fits = BOMBS["just one too deep"].replace(b'{"a":' * 64, b'{"a":' * 63)
            await mallory.send(fits.replace(b"}" * 65, b"}" * 64))
            assert "seq" in await mallory.kind("a.b")


@pytest.mark.requirement("wire.strict")
async def test_a_message_in_fragments_with_pings_between_them_is_one_message(tmp_path):
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann", durable=False)
        whole = of_size(MIB).replace(b"xxx", "\u20ac".encode(), 1)
        async with there.seat("ann") as ann, raw(there, "bob") as bob:
            # Cut where it falls, also amid a character.
            for fragment in parts(whole, 1 + len(whole) // 30_011):
                bob.send(fragment, frame(b"?", PING))
            told = await ann.kind("chat.message")
            assert told["payload"] == json.loads(whole)["payload"]


@pytest.mark.requirement("room.presence")
@pytest.mark.parametrize("how", ["half closed", "reset", "amid a frame", "amid a message"])
async def test_whoever_vanishes_is_gone_for_the_room_as_well(tmp_path, how):
    half = frame(HELLO[:20], TEXT, fin=False)
    unfinished = {"amid a frame": frame(HELLO)[:20], "amid a message": half}
    async with square(tmp_path) as there:
        await there.people("ann", "mallory")
        await there.room("ann", durable=False)
        async with there.seat("ann") as ann:
            await ann.news()
            async with raw(there, "mallory") as mallory:
                mallory.send(unfinished.get(how, b""))
                await mallory.writer.drain()
                if how == "half closed":
                    mallory.writer.write_eof()
                else:
                    if how == "reset":
                        handle = mallory.writer.get_extra_info("socket")
                        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    mallory.writer.close()
                await came_and_went(ann, "mallory")
