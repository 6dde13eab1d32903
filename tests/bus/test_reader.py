"""What a NATS server says, as it is read: whole, cut, too large or wrong."""

from __future__ import annotations

import asyncio
import random
import ssl
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.bus.limits import FRAMES_PER_TURN, MAX_FRAME_BYTES, MAX_LINE_BYTES
from folkmoot.bus.nats_client import NatsConnection, NatsReader, NatsServer
from tests.certificates import certificate

INFO = b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576}\r\n'

words = st.binary(min_size=1, max_size=20).map(bytes.hex).map(str.encode)
messages = st.tuples(words, st.none() | words, st.binary(max_size=300))
lines = st.sampled_from([b"PING", b"PONG", b"+OK", b"-ERR 'Slow Consumer'", b'INFO {"a":[1]}'])


def written(message: tuple[bytes, bytes | None, bytes]) -> bytes:
    subject, reply, payload = message
    head = b" ".join(filter(None, (b"MSG", subject, b"1", reply, b"%d" % len(payload))))
    return head + b"\r\n" + payload + b"\r\n"


def read_all(reader: NatsReader, pieces: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    found: list[Any] = []
    for piece in pieces:
        reader.feed(piece)
        found += iter(reader.read, None)
    return found


def cut(stream: bytes, seed: int) -> list[bytes]:
    """The same bytes in pieces, many of them tiny."""
    chance, pieces = random.Random(seed), []
    while stream:
        size = chance.choice((1, 2, 3, 10, 1000, 100_000))
        pieces.append(stream[:size])
        stream = stream[size:]
    return pieces


@given(st.lists(messages | lines, max_size=20), st.integers(0, 2**32))
def test_what_a_server_says_is_read_however_it_is_cut(said, seed):
    stream, expected = b"", []
    for each in said:
        if isinstance(each, tuple):
            stream += written(each)
            expected.append((b"MSG", each[0], each[2]))
        else:
            stream += each + b"\r\n"
            verb, _, argument = each.partition(b" ")
            expected.append((verb, argument, b""))
    reader = NatsReader()
    assert read_all(reader, cut(stream, seed)) == expected
    assert reader.is_empty


@given(st.binary(max_size=200), st.integers(0, 2**32))
def test_whatever_comes_is_read_or_refused(junk, seed):
    stream = bytearray(INFO + written((b"a.b", None, b"x" * 100)) + b"PING\r\n" + junk)
    chance = random.Random(seed)
    for _ in range(chance.randrange(4)):
        stream[chance.randrange(len(stream))] = chance.randrange(256)
    with suppress(ValueError):
        read_all(NatsReader(), cut(bytes(stream), seed))


@pytest.mark.parametrize(
    "said",
    [
        *(b"MSG a%b\r\n" % rest for rest in (b"", b" 1", b" 1 2 3 4")),
        *(b"MSG a 1 %b\r\n" % size for size in (b"x", b"-1", b"1.0", b"9999999999")),
        b"MSG a 1 2\r\nabcd",
        b"x" * MAX_LINE_BYTES,
    ],
)
def test_what_is_no_command_is_refused(said):
    with pytest.raises(ValueError, match="a "):
        read_all(NatsReader(), [said])


@pytest.mark.parametrize("piece", [1_000, 3_000_000])
def test_of_a_message_that_is_too_large_only_so_much_is_kept_as_shows_it(piece):
    reader, found = NatsReader(), []
    stream = written((b"a", None, b"x" * 5_000_000)) + b"PING\r\n"
    for at in range(0, len(stream), piece):
        found += read_all(reader, [stream[at : at + piece]])
        assert len(reader._unread) <= MAX_FRAME_BYTES + 1 + piece
    assert [(verb, len(payload)) for verb, _, payload in found] == [
        (b"MSG", MAX_FRAME_BYTES + 1),
        (b"PING", 0),
    ]


@asynccontextmanager
async def pretended(said: bytes, tls: ssl.SSLContext | None = None, behind: bytes = b"") -> Any:
    """Something that says this to whoever connects, in clear, has TLS then, and answers a ping."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        if tls is not None:
            await writer.start_tls(tls)
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"PING\r\n")
            writer.write(b"PONG\r\n" + behind)
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield NatsServer("127.0.0.1", listening.sockets[0].getsockname()[1], tls is not None)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"INFO not JSON\r\n",
        b"INFO " + b"[" * 60_000 + b"\r\n",
        b"x" * 100_000,
        INFO + b"HMSG a 1 2 2\r\n\r\n\r\n",
        INFO + b"MSG \xff 1 0\r\n\r\n",
    ],
)
async def test_what_does_not_speak_the_protocol_is_named_so(said):
    async with pretended(said) as server:
        client = NatsConnection(lambda *_: None)
        with pytest.raises(ConnectionError, match="does not speak the protocol of NATS"):
            await client.open(server, "a", None, [])
        await client.end()


async def test_what_was_said_before_the_encryption_is_refused(tmp_path):
    chain, key = certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(chain, key)
    trusted = ssl.create_default_context(cafile=str(chain))
    info = b'INFO {"max_payload":1048576,"tls_required":true}\r\n'
    refused = pytest.raises(ValueError, match="not encrypted")
    for said, outcome in ((b"MSG a", refused), (b"", nullcontext())):
        async with pretended(info + said, tls) as server:
            client = NatsConnection(lambda *_: None)
            with outcome:
                await client.open(server, "a", trusted, [])
            await client.end()


async def test_many_small_frames_are_read_in_turns_and_in_order():
    frames = [written((b"a", None, b"%d" % number)) for number in range(5 * FRAMES_PER_TURN)]
    async with pretended(INFO, behind=b"".join(frames)) as server:
        turns: list[int] = []
        came: list[bytes] = []
        client = NatsConnection(lambda _, data: came.append(data))
        await client.open(server, "a", None, ["a"])
        while len(came) < len(frames):
            turns.append(len(came))
            await asyncio.sleep(0)
        assert came == [b"%d" % number for number in range(5 * FRAMES_PER_TURN)]
        assert max(b - a for a, b in pairwise(turns)) <= FRAMES_PER_TURN
        await client.end()
