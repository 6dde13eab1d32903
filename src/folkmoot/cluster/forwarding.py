"""Requests that one node forwards to another: how they are written, and which are believed.

A forwarded request is one POST. A *mark* in its head, made with a key that only nodes of the hub
have, names its sender, the process it is for, a counter, the time and the digest of its body. So it
is checked before the body is read, holds for one process, and is accepted once. A node that accepts
one proves it in its answer: whatever else has come to its address does not have the key.
"""

from __future__ import annotations

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from folkmoot.cluster.limits import (
    MARK_SECONDS,
    MAX_FORWARDED_HEADERS,
    MAX_FORWARDERS,
    MAX_MARKS_OUT_OF_ORDER,
)

VERSION: Final = 1
DIGEST_BYTES: Final = 32
_MARKED: Final = struct.Struct(">B16s16sQd32s")
"""Version, sender, receiver, counter, seconds since the epoch, digest of the body."""
LENGTH: Final = 4 * -(-(_MARKED.size + DIGEST_BYTES) // 3)
"""Of a mark, in characters."""
PERSON: Final = b"folkmoot fwd v1"
PROOF_PERSON: Final = b"folkmoot ans v1"


class ForwardedRequest(Struct, array_like=True, frozen=True):
    """A request as its client sent it; an empty method only asks whether the node answers."""

    method: str
    path: str = ""
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    scheme: str = "http"
    client: tuple[str, int] | None = None
    server: tuple[str, int | None] | None = None
    body: bytes = b""
    address: str = ""
    """The client's, as the first node found it: proxies that it trusts are left out."""
    caller: str = ""
    """The id of the account that asks, where the first node knows it."""


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ForwardedRequest).decode


def decode(written: bytes) -> ForwardedRequest | None:
    """The request in a body; None where there is none."""
    try:
        request = _decode(written)
    except msgspec.DecodeError:
        return None
    return request if len(request.headers) <= MAX_FORWARDED_HEADERS else None


class ValidMark(NamedTuple):
    """What a valid mark says."""

    for_us: bool
    """Whether it is for this process, and not for one that was here before."""
    digest: bytes


def digest_of(body: bytes) -> bytes:
    """What a mark says of a body."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


class Counted:
    """The counters that one sender has used, as far back as they may come out of order."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = 0
        self._seen = 0
        """A bit for each counter up to the highest, which is the lowest bit."""

    def take(self, counter: int) -> bool:
        ahead = counter - self._highest
        if ahead > 0:
            kept = self._seen << ahead if ahead < MAX_MARKS_OUT_OF_ORDER else 0
            self._seen = (kept | 1) & ((1 << MAX_MARKS_OUT_OF_ORDER) - 1)
            self._highest = counter
            return True
        if -ahead >= MAX_MARKS_OUT_OF_ORDER or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True


class Marks:
    """Makes the marks of one process, and checks those of others."""

    def __init__(self, key: bytes, process: str) -> None:
        self._key = key
        self._process = bytes.fromhex(process)
        self._counter = 0
        self._senders: OrderedDict[bytes, Counted] = OrderedDict()

    def make(self, receiver: str, body: bytes, now: float) -> str:
        """The mark of a body for another process."""
        self._counter += 1
        said = _MARKED.pack(
            VERSION,
            self._process,
            bytes.fromhex(receiver),
            self._counter,
            now,
            digest_of(body),
        )
        return urlsafe_b64encode(said + self._mark(said)).decode()

    def check(self, mark: bytes, now: float) -> ValidMark | None:
        """What a mark says; None if it is forged, too old or was used before."""
        if len(mark) != LENGTH:
            return None
        try:
            written = urlsafe_b64decode(mark)
        except (binascii.Error, ValueError):
            return None
        said = written[: _MARKED.size]
        if not compare_digest(self._mark(said), written[_MARKED.size :]):
            return None
        version, sender, receiver, counter, at, digest = _MARKED.unpack(said)
        if version != VERSION or abs(now - at) > MARK_SECONDS:
            return None
        if receiver != self._process:
            return ValidMark(for_us=False, digest=digest)
        counted = self._senders.get(sender)
        if counted is None:
            # Marks of the one that is forgotten are too old by now.
            if len(self._senders) >= MAX_FORWARDERS:
                self._senders.popitem(last=False)
            counted = self._senders[sender] = Counted()
        if not counted.take(counter):
            return None
        return ValidMark(for_us=True, digest=digest)

    def prove(self, mark: bytes) -> str:
        """What shows whoever made a mark that a node has accepted it."""
        return blake2b(
            mark, digest_size=DIGEST_BYTES, key=self._key, person=PROOF_PERSON
        ).hexdigest()

    def is_proven(self, mark: str, proof: str) -> bool:
        """Whether a node has accepted a mark of this process."""
        return compare_digest(self.prove(mark.encode()).encode(), proof.encode())

    def _mark(self, said: bytes) -> bytes:
        return blake2b(said, digest_size=DIGEST_BYTES, key=self._key, person=PERSON).digest()
