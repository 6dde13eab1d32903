"""Frames: what one process of a hub writes on a network for the others, and what they believe.

A frame has a *mark*, made with a key that only processes of the hub have, over all of it and over
the subject it was sent on. Nothing without a valid mark is looked at. A frame also has its sender
and a counter, so that none is accepted twice.

A sender's id is new whenever its process starts, and frames of a process that ended are valid for
ever. So an unknown sender is asked first. What is sent to one process alone bears that process's
id, which did not exist before it started: whoever answers is running now.

No part of this reads a clock or a socket.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from enum import IntEnum
from hashlib import blake2b
from hmac import compare_digest
from typing import NamedTuple

from folkmoot.bus.limits import (
    ASK_SECONDS,
    MAX_ASKED,
    MAX_FRAME_BYTES,
    MAX_PEERS,
    MAX_SENT_BYTES,
    MAX_UNFINISHED_BYTES,
)

VERSION = 1
NODE_BYTES = 16
MARK_BYTES = 16
HEAD = struct.Struct(f">BB{NODE_BYTES}sQHH")
"""Version, kind, sender, counter, number of the piece, number of pieces."""
COUNT = struct.Struct(">Q")
OVERHEAD = MARK_BYTES + HEAD.size
PERSON = b"folkmoot bus v1"


class FrameKind(IntEnum):
    EVENT = 0
    """An event, for every node."""
    SENT = 1
    """A message to one node."""
    PULSE = 2
    """How many events the sender published, for every node."""
    ASK = 3
    """Asks one node whether it is running."""
    ANSWER = 4


TO_ALL = frozenset({FrameKind.EVENT, FrameKind.PULSE})
TO_ONE = frozenset({FrameKind.SENT, FrameKind.ASK, FrameKind.ANSWER})


class Accepted(NamedTuple):
    """What a frame led to."""

    node: str
    payload: bytes | None = None
    """A whole event or message."""
    missed: int = 0
    """Events that were not received, at least."""
    asks: bool = False
    """The sender wants an answer."""
    unknown: bool = False
    """The sender is to be asked whether it is running."""


def hub_name(key: bytes) -> str:
    """What the subjects of a hub begin with, so that hubs can share a server."""
    return blake2b(b"name", digest_size=8, key=key, person=PERSON).hexdigest()


def marked(key: bytes, subject: str, head: bytes, body: bytes | memoryview) -> bytes:
    hashed = blake2b(subject.encode(), digest_size=MARK_BYTES, key=key, person=PERSON)
    hashed.update(b"\0")
    hashed.update(head)
    hashed.update(body)
    return hashed.digest()


class FrameMaker:
    """Makes the frames of one process."""

    def __init__(self, node: str, key: bytes) -> None:
        self._id = bytes.fromhex(node)
        self._key = key
        self.published = 0
        """The counter of the last frame with an event."""
        self._sent = 0

    def event(self, subject: str, payload: bytes, room: int) -> list[bytes]:
        """The frames of an event, each of at most `room` bytes."""
        frames = self._split(FrameKind.EVENT, subject, payload, room, self.published)
        self.published += len(frames)
        return frames

    def skip(self) -> None:
        """Count an event that is not sent, so that others notice that they miss it."""
        self.published += 1

    def sent(self, subject: str, payload: bytes, room: int) -> list[bytes]:
        """The frames of a message to one node."""
        frames = self._split(FrameKind.SENT, subject, payload, room, self._sent)
        self._sent += len(frames)
        return frames

    def pulse(self, subject: str) -> bytes:
        """A frame that tells how many events were published."""
        return self._frame(FrameKind.PULSE, subject, self.published, b"")

    def ask(self, subject: str, *, answer: bool = False) -> bytes:
        """A frame that asks whether a node is running, or answers that."""
        self._sent += 1
        kind = FrameKind.ANSWER if answer else FrameKind.ASK
        return self._frame(kind, subject, self._sent, COUNT.pack(self.published))

    def _split(
        self, kind: FrameKind, subject: str, payload: bytes, room: int, counter: int
    ) -> list[bytes]:
        size = min(room, MAX_FRAME_BYTES) - OVERHEAD
        if len(payload) <= size:
            return [self._frame(kind, subject, counter + 1, payload)]
        whole = memoryview(payload)
        pieces = -(-len(payload) // size)
        return [
            self._frame(kind, subject, counter + 1 + n, whole[n * size : (n + 1) * size], n, pieces)
            for n in range(pieces)
        ]

    def _frame(
        self,
        kind: FrameKind,
        subject: str,
        counter: int,
        body: bytes | memoryview,
        piece: int = 0,
        pieces: int = 1,
    ) -> bytes:
        head = HEAD.pack(VERSION, kind, self._id, counter, piece, pieces)
        return b"".join((marked(self._key, subject, head, body), head, body))


class MessagePieces(NamedTuple):
    """The pieces of a message that arrived; `last` is the counter of the last one."""

    last: int
    pieces: list[bytes]
    size: int


class FrameSender:
    """Another process: the counters of what was accepted from it last."""

    __slots__ = ("events", "sent")

    def __init__(self) -> None:
        self.events: int | None = None
        """None until it told how many events it published."""
        self.sent = 0


class FrameDropped(Exception):
    """A frame is not accepted; says why, in one word."""


class FrameChecker:
    """Checks the frames that one process receives."""

    def __init__(self, node: str, key: bytes) -> None:
        self._id = bytes.fromhex(node)
        self._key = key
        self._peers: dict[bytes, FrameSender] = {}
        self._asked: OrderedDict[bytes, float] = OrderedDict()
        self._unfinished: OrderedDict[tuple[bytes, FrameKind], MessagePieces] = OrderedDict()
        self._unfinished_bytes = 0
        self.dropped: Counter[str] = Counter()
        """How many frames were not accepted, by the reason."""

    @property
    def known(self) -> int:
        """How many senders were found to be running when they were asked."""
        return sum(peer.events is not None for peer in self._peers.values())

    def read(self, subject: str, data: bytes, now: float, *, to_all: bool) -> Accepted | None:
        """Check a frame that came on a subject, to all or to this process; None is dropped."""
        try:
            return self._read(subject, data, now, to_all=to_all)
        except FrameDropped as dropped:
            self.dropped[str(dropped)] += 1
            return None

    def _read(self, subject: str, data: bytes, now: float, *, to_all: bool) -> Accepted | None:
        if len(data) < OVERHEAD:
            raise FrameDropped("cut")
        if len(data) > MAX_FRAME_BYTES:
            raise FrameDropped("oversized")
        view = memoryview(data)
        head, body = view[MARK_BYTES:OVERHEAD], view[OVERHEAD:]
        mark = marked(self._key, subject, bytes(head), body)
        if not compare_digest(mark, data[:MARK_BYTES]):
            raise FrameDropped("forged")
        version, number, sender, counter, piece, pieces = HEAD.unpack(head)
        allowed = TO_ALL if to_all else TO_ONE
        if version != VERSION or number not in allowed or piece >= pieces:
            raise FrameDropped("unknown")
        if sender == self._id:
            raise FrameDropped("replayed")
        kind = FrameKind(number)
        if to_all:
            return self._read_event(kind, sender, counter, (piece, pieces), body, now)
        return self._read_sent(kind, sender, counter, (piece, pieces), body)

    def _read_event(
        self,
        kind: FrameKind,
        sender: bytes,
        counter: int,
        place: tuple[int, int],
        body: memoryview,
        now: float,
    ) -> Accepted | None:
        peer = self._peers.get(sender)
        if peer is None or peer.events is None:
            self.dropped["unknown_sender"] += kind is FrameKind.EVENT
            return Accepted(sender.hex(), unknown=True) if self._may_ask(sender, now) else None
        if kind is FrameKind.PULSE:
            missed, peer.events = max(0, counter - peer.events), max(counter, peer.events)
            return Accepted(sender.hex(), missed=missed)
        if counter <= peer.events:
            raise FrameDropped("replayed")
        missed, peer.events = counter - peer.events - 1, counter
        payload = self._collect(kind, sender, counter, place, body)
        if payload is None and (sender, kind) not in self._unfinished:
            missed += 1
        return Accepted(sender.hex(), payload, missed)

    def _read_sent(
        self, kind: FrameKind, sender: bytes, counter: int, place: tuple[int, int], body: memoryview
    ) -> Accepted | None:
        peer = self._peers.get(sender)
        if peer is None:
            if len(self._peers) >= MAX_PEERS:
                raise FrameDropped("too_many_senders")
            peer = self._peers[sender] = FrameSender()
        if counter <= peer.sent:
            raise FrameDropped("replayed")
        peer.sent = counter
        if kind is FrameKind.SENT:
            return Accepted(sender.hex(), self._collect(kind, sender, counter, place, body))
        if len(body) != COUNT.size:
            raise FrameDropped("cut")
        missed = 0
        if peer.events is None:
            [peer.events] = [missed] = COUNT.unpack(body)
            self._asked.pop(sender, None)
        return Accepted(sender.hex(), missed=missed, asks=kind is FrameKind.ASK)

    def _may_ask(self, sender: bytes, now: float) -> bool:
        """Whether to ask an unknown sender now; frames of the dead must not cost much."""
        if now < self._asked.get(sender, now):
            return False
        self._asked.pop(sender, None)
        while len(self._asked) >= MAX_ASKED:
            oldest = next(iter(self._asked))
            if now < self._asked[oldest]:
                return False
            del self._asked[oldest]
        self._asked[sender] = now + ASK_SECONDS
        return True

    def _collect(
        self,
        kind: FrameKind,
        sender: bytes,
        counter: int,
        place: tuple[int, int],
        body: memoryview,
    ) -> bytes | None:
        """The whole message when its last piece arrived."""
        piece, pieces = place
        before = self._unfinished.pop((sender, kind), None)
        if before is not None:
            self._unfinished_bytes -= before.size
        if piece == 0:
            if before is not None:
                self.dropped["cut"] += 1
            if pieces == 1:
                return bytes(body)
            before = MessagePieces(counter - 1, [], 0)
        if before is None or before.last != counter - 1 or len(before.pieces) != piece:
            self.dropped["cut"] += 1
            return None
        size = before.size + len(body)
        if size > MAX_SENT_BYTES:
            self.dropped["oversized"] += 1
            return None
        before.pieces.append(bytes(body))
        if piece == pieces - 1:
            return b"".join(before.pieces)
        self._unfinished[sender, kind] = MessagePieces(counter, before.pieces, size)
        self._unfinished_bytes += size
        while self._unfinished_bytes > MAX_UNFINISHED_BYTES:
            _, oldest = self._unfinished.popitem(last=False)
            self._unfinished_bytes -= oldest.size
            self.dropped["cut"] += 1
        return None
