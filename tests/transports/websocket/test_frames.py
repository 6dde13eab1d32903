"""Frames as no client should send them, and as some may."""

from __future__ import annotations

import pytest

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.websocket import LinkLimits
from tests.transports.websocket.support import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    client,
    frame,
)

EURO = "€".encode()
LONG_SMALL = bytes([0x81, 0xFE, 0, 5]) + bytes(4) + b"hello"
LONGEST_SMALL = bytes([0x81, 0xFF]) + (300).to_bytes(8, "big") + bytes(4) + b"x" * 300
NEGATIVE = bytes([0x81, 0xFF]) + b"\xff" * 8 + bytes(4)

HOSTILE: dict[str, tuple[bytes, CloseCode]] = {
    "a frame without a mask": (frame(b"x", masked=False), CloseCode.PROTOCOL_ERROR),
    "the first reserved bit": (frame(b"x", reserved=4), CloseCode.PROTOCOL_ERROR),
    "the second reserved bit": (frame(b"x", reserved=2), CloseCode.PROTOCOL_ERROR),
    "the third reserved bit": (frame(b"x", reserved=1), CloseCode.PROTOCOL_ERROR),
    "a reserved bit on a ping": (frame(b"x", PING, reserved=4), CloseCode.PROTOCOL_ERROR),
    "an unknown opcode": (frame(b"x", 3), CloseCode.PROTOCOL_ERROR),
    "an unknown control opcode": (frame(b"x", 11), CloseCode.PROTOCOL_ERROR),
    "a fragmented ping": (frame(b"x", PING, fin=False), CloseCode.PROTOCOL_ERROR),
    "a ping of 126 bytes": (frame(b"x" * 126, PING), CloseCode.PROTOCOL_ERROR),
    "a close of 126 bytes": (frame(b"\x03\xe8" + b"x" * 124, CLOSE), CloseCode.PROTOCOL_ERROR),
    "a length in more bytes than it needs": (LONG_SMALL, CloseCode.PROTOCOL_ERROR),
    "a length in many more bytes": (LONGEST_SMALL, CloseCode.PROTOCOL_ERROR),
    "a length below zero": (NEGATIVE, CloseCode.PROTOCOL_ERROR),
    "a continuation of nothing": (frame(b"x", CONTINUATION), CloseCode.PROTOCOL_ERROR),
    "a message inside another": (frame(b"x", fin=False) + frame(b"y"), CloseCode.PROTOCOL_ERROR),
    "a close of one byte": (frame(b"x", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a close with no code": (frame(b"\x03\xed", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a close with the code of a loss": (frame(b"\x03\xee", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a close with an old code": (frame(b"\x03\xe7", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a close with a code of 5000": (frame(b"\x13\x88", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a close whose reason is no text": (frame(b"\x03\xe8\xff", CLOSE), CloseCode.PROTOCOL_ERROR),
    "a binary message": (frame(b"x", BINARY), CloseCode.NOT_TEXT),
    "a fragmented binary message": (frame(b"x", BINARY, fin=False), CloseCode.NOT_TEXT),
    "text that is not UTF-8": (frame(b"\xff"), CloseCode.NOT_UTF8),
    "a surrogate": (frame(b"\xed\xa0\x80"), CloseCode.NOT_UTF8),
    "text that ends within a character": (frame(EURO[:2]), CloseCode.NOT_UTF8),
    "fragments that are not UTF-8 together": (
        frame(EURO[:2], fin=False) + frame(b"x", CONTINUATION),
        CloseCode.NOT_UTF8,
    ),
    "a frame over the limit": (frame(b"x" * 1001), CloseCode.TOO_BIG),
    "a length far over the limit": (
        bytes([0x81, 0xFF]) + (1 << 40).to_bytes(8, "big") + bytes(4),
        CloseCode.TOO_BIG,
    ),
    "fragments over the limit together": (
        frame(b"x" * 600, fin=False) + frame(b"x" * 401, CONTINUATION, fin=False),
        CloseCode.TOO_BIG,
    ),
}


@pytest.mark.parametrize("glued", [False, True], ids=["alone", "glued to the handshake"])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.settings(limits=LinkLimits(max_message_bytes=1000))
async def test_a_frame_that_breaks_a_rule_is_answered_with_its_close(hub, name, glued):
    sent, code = HOSTILE[name]
    async with client(hub, after=sent if glued else b"") as one:
        if not glued:
            one.send(sent)
        assert await one.closed() == code
    guest = hub.party.guests[0]
    await guest.left.wait()
    assert [end[0] for end in guest.ends] == [code]
    assert guest.heard == []


async def test_messages_after_the_one_that_broke_a_rule_are_not_heard(hub, one):
    one.send(frame(b"before"))
    assert await one.text() == b"before"
    one.send(frame(b"x", BINARY), frame(b"after"))
    assert await one.closed() == CloseCode.NOT_TEXT
    assert hub.party.guests[0].heard == [b"before"]


@pytest.mark.settings(limits=LinkLimits(max_message_bytes=1000, close_seconds=600))
async def test_a_client_that_sends_on_after_a_broken_frame_still_learns_why(one):
    one.send(frame(b"x" * 3_000_000))
    opcode, payload = await one.receive()
    assert opcode == CLOSE
    assert await one.reader.read() == b""
    assert int.from_bytes(payload[:2], "big") == CloseCode.TOO_BIG


async def test_control_frames_may_come_between_fragments(one):
    one.send(
        frame(EURO[:1], fin=False),
        frame(b"ping", PING),
        frame(b"", CONTINUATION, fin=False),
        frame(b"unasked", PONG),
        frame(EURO[1:], CONTINUATION),
    )
    assert await one.receive() == (PONG, b"ping")
    assert await one.receive() == (TEXT, EURO)


async def test_frames_glued_to_the_handshake_are_heard(hub):
    sent = b"".join(frame(b"%d" % number) for number in range(3000))
    async with client(hub, after=sent) as one:
        for number in range(3000):
            assert await one.text() == b"%d" % number


@pytest.mark.settings(limits=LinkLimits(max_message_bytes=10))
async def test_endless_empty_fragments_cost_no_memory_and_end_when_the_message_does(one):
    one.send(frame(b"x", fin=False))
    for _ in range(50):
        one.send(frame(b"", CONTINUATION, fin=False) * 1000)
        await one.writer.drain()
    one.send(frame(b"y", CONTINUATION))
    assert await one.text() == b"xy"


@pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x03\xe8bye", b"\x0f\xa0"])
async def test_a_close_is_answered_in_kind_and_the_hub_hangs_up(hub, one, payload):
    code = int.from_bytes(payload[:2], "big") if payload else 1005
    one.send(frame(payload, CLOSE))
    assert await one.receive() == (CLOSE, payload)
    assert await one.reader.read() == b""
    await hub.party.guests[0].left.wait()
    assert hub.party.guests[0].ends == [(code, payload[2:].decode())]
