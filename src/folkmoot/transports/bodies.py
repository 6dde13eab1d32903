"""The bodies of requests: how large, how slow and how many at once they may be.

A stranger is whoever sends no credential that the hub knows. A stranger's body is small, and when
the hub holds many bodies strangers are refused first. Who asks is looked up only where that makes a
difference, so that the usual small request, which comes whole, costs no more than its bytes.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.amount import LONG, count_starts, has_long_number, is_too_much
from folkmoot.core.entity import Entity
from folkmoot.mcp.server.heads import head_of
from folkmoot.ratelimits import AccountRates, Rate
from folkmoot.taskgroups import Eager
from folkmoot.transports.limits import (
    BODY_ACCOUNT_SHARE,
    BODY_CHECK_BYTES,
    BODY_RETRY_SECONDS,
    BODY_SECONDS,
    BODY_STRANGERS_SHARE,
    MIN_BODY_BYTES_A_SECOND,
    SMALL_BODY_BYTES,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.answers import Answers
    from folkmoot.transports.protocol import HubProtocol


Identify: TypeAlias = Callable[["Scope"], Awaitable[str]]
"""Answers whose credential a request carries, as a key to count by; empty for a stranger."""
Locate: TypeAlias = Callable[["Scope"], str]
"""Answers the address that a request comes from, as a key to count by."""


async def nobody(_: Scope) -> str:
    """Identify no one: everyone has the rights of a stranger."""
    return ""


def nowhere(_: Scope) -> str:
    """Give all callers the same place."""
    return ""


class BodyBounds(Struct, frozen=True, kw_only=True):
    """How much the bodies of requests may ask of the hub; 0 is no limit."""

    body_bytes: int
    values: int = 0
    anonymous_bytes: int = 0
    anonymous_values: int = 0
    total_bytes: int = 0
    """Of all bodies that the hub holds at the same time."""
    arriving: int = 0
    """How many bodies may be half received at the same time, from one stranger's address or for
    one account.
    """
    rate: Rate | None = None
    """How fast one account may send bodies larger than a stranger's."""


class BodyLimit(Entity):
    """Refuses bodies that are too large, too slow or too many, before anything is decoded.

    `endpoints` are reached by their path alone; `app` has the other requests.
    """

    app: ASGIApp
    bounds: BodyBounds
    answers: Answers
    endpoints: Mapping[str, ASGIApp] = {}
    identify: Identify = nobody
    locate: Locate = nowhere
    metrics: Metrics | None = None
    arriving: Counter[str] = field(default_factory=Counter)
    announced: Counter[str] = field(default_factory=Counter)
    """Bytes of the bodies that accounts have begun to send, as their heads say."""
    sent: AccountRates = field(default_factory=AccountRates)
    """What accounts sent lately in large bodies."""
    held: dict[str, int] = {}
    """Bytes of the bodies in progress by account; under "" those of strangers, and of whoever
    was not looked up.
    """
    total: int = 0

    def __post_init__(self) -> None:
        self.account_bytes = max(
            self.bounds.total_bytes // BODY_ACCOUNT_SHARE, self.bounds.body_bytes
        )
        small = self.bounds.anonymous_bytes or self.bounds.body_bytes
        self.anonymous_bytes = min(small, self.bounds.body_bytes)
        self.small = min(SMALL_BODY_BYTES, self.anonymous_bytes)
        """A body of so many bytes is refused to nobody while there is room."""
        self.most = self.bounds.total_bytes or sys.maxsize
        values = [most for most in (self.bounds.values, self.bounds.anonymous_values) if most]
        self.short = min(LONG - 1, *(2 * most for most in values)) if values else sys.maxsize
        """A body of so many bytes cannot have too many values, nor an overlong number."""
        self.at_once = min(self.small, self.short)
        """Of a body of so many bytes there is nothing to check while there is room."""
        if self.metrics is not None:
            self.metrics.watch_bodies(lambda: self.total)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or let the request through with its body held to the limits."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced, headers = 0, head_of(scope).first
        length = headers.get(b"content-length")
        if length is not None:
            announced = int(length) if length.isdigit() else sys.maxsize
            if announced > self.bounds.body_bytes:
                error = self.refused("bytes", too_large(self.bounds.body_bytes))
                await self.answers.error(scope, error)(scope, receive, send)
                return
        if not announced and b"transfer-encoding" in headers:
            announced = -1
        app = self.endpoints.get(scope["path"], self.app)
        if not announced:
            await app(scope, receive, send)
            return
        body = _Body(self, scope, receive, announced)
        try:
            await app(scope, body, send)
        finally:
            body.release()

    @property
    def is_full_for_strangers(self) -> bool:
        """Whether strangers' bodies exceed their share."""
        return bool(self.bounds.total_bytes) and (
            self.held.get("", 0) > self.bounds.total_bytes // BODY_STRANGERS_SHARE
        )

    def is_full_for(self, account: str) -> bool:
        """Whether one account's bodies exceed its share."""
        return bool(self.bounds.total_bytes) and self.held.get(account, 0) > self.account_bytes

    def hold(self, caller: str, size: int) -> None:
        """Count bytes that have come for an account, or are done with where there are less."""
        self.total += size
        held = self.held.get(caller, 0) + size
        if held:
            self.held[caller] = held
        else:
            self.held.pop(caller, None)

    def refused(self, reason: str, error: e.FolkmootError) -> e.FolkmootError:
        """The error, counted."""
        if self.metrics is not None:
            self.metrics.bodies_refused.labels(reason).inc()
        return error


class _Body(Struct, eq=False):
    """The body of one request; it is read, whole, when the application first asks for it."""

    _limit: BodyLimit
    _scope: Scope
    _receive: Receive
    _announced: int
    _caller: str | None = None
    """Whose request it is, once that was asked."""
    _read: bool = False
    _held: int = 0
    _taken: int = 0
    """Bytes that count against its account's rate."""

    def at_once(self) -> bytes | None:
        """The whole body, if it is short and here already; else it must be received."""
        limit, size = self._limit, self._announced
        take_body = getattr(self._receive, "take_body", None)
        is_short = 0 < size <= limit.at_once and limit.total + size <= limit.most
        if take_body is None or self._read or not is_short:
            return None
        body: bytes | None = take_body()
        if body is not None:
            self._read = True
            self._held = len(body)
            limit.hold("", len(body))
        return body

    async def __call__(self) -> Message:
        """The whole body as one message, then later messages."""
        if self._read:
            return await self._receive()
        self._read = True
        limit = self._limit
        if self._announced > limit.anonymous_bytes:
            await self._check_size(self._announced)
        first = Eager(self._receive())
        if not first.done:
            first.close()
            return await self._rest(bytearray())
        message = first.result
        body = message.get("body", b"")
        size = len(body)
        if size <= limit.small and self._caller is None and limit.total + size <= limit.most:
            self._held = size
            limit.total += size
            limit.held[""] = limit.held.get("", 0) + size
        else:
            await self._hold(size)
        if message.get("more_body", False):
            return await self._rest(bytearray(body))
        if size > limit.short:
            await self._check_values(body)
        return message

    async def _rest(self, body: bytearray) -> Message:
        """Read on for as long as the body makes progress."""
        limit = self._limit
        loop = asyncio.get_running_loop()
        enough, deadline = 0, None
        starts, checked = count_starts(body), BODY_CHECK_BYTES
        async with self._arriving():
            while True:
                if starts > self._fewest_values and len(body) >= checked:
                    # Too many values are refused before the rest of them comes.
                    await self._check_values(body)
                    checked *= 4
                reading = Eager(self._receive())
                if not reading.done:
                    if deadline is None:
                        enough = len(body) + int(BODY_SECONDS * MIN_BODY_BYTES_A_SECOND)
                        deadline = loop.time() + BODY_SECONDS
                    try:
                        async with asyncio.timeout_at(deadline):
                            await reading
                    except TimeoutError:
                        why = e.BodyTimeout("The rest of the body did not arrive in time.")
                        raise limit.refused("slow", why) from None
                message = reading.result
                if message["type"] != "http.request":
                    return message
                fresh = message.get("body", b"")
                body += fresh
                starts += count_starts(fresh)
                await self._hold(len(fresh))
                if not message.get("more_body", False):
                    break
                if len(body) >= enough:
                    deadline = None
        whole = bytes(body)
        if starts > self._fewest_values or has_long_number(whole):
            await self._check_values(whole)
        return {"type": "http.request", "body": whole, "more_body": False}

    def release(self) -> None:
        """The request is done with."""
        limit, caller, size = self._limit, self._caller or "", self._held
        if size:
            limit.total -= size
            left = limit.held.get(caller, 0) - size
            if left:
                limit.held[caller] = left
            else:
                limit.held.pop(caller, None)

    async def _is_stranger(self) -> bool:
        if self._caller is None:
            self._caller = await self._limit.identify(self._scope)
            if self._caller:
                self._limit.hold("", -self._held)
                self._limit.hold(self._caller, self._held)
        return not self._caller

    @asynccontextmanager
    async def _arriving(self) -> AsyncIterator[None]:
        """Count a body that does not come at once, until it is here."""
        limit, announced = self._limit, max(0, self._announced)
        # Between the spaces no account has the name of an address.
        if await self._is_stranger():
            key, announced = "address " + limit.locate(self._scope), 0
        else:
            key = "account " + (self._caller or "")
        if limit.bounds.arriving and limit.arriving[key] >= limit.bounds.arriving:
            error = e.ConnectionsExceeded(
                "Too many requests from you are half received; finish them first.",
                setting="http.max_connections_per_address",
                retry_after=BODY_RETRY_SECONDS,
            )
            raise limit.refused("arriving", error)
        if limit.bounds.total_bytes and limit.announced[key] + announced > limit.account_bytes:
            raise self._account_is_full()
        limit.arriving[key] += 1
        limit.announced[key] += announced
        try:
            yield
        finally:
            _subtract(limit.arriving, key, 1)
            _subtract(limit.announced, key, announced)

    def _account_is_full(self) -> e.FolkmootError:
        error = e.ConnectionsExceeded(
            "Your requests in progress have too many bytes; wait until some are answered.",
            setting="http.max_bodies_bytes",
            retry_after=BODY_RETRY_SECONDS,
        )
        return self._limit.refused("account", error)

    async def _hold(self, fresh: int) -> None:
        """Count what has come for this body and for all of them, and refuse what is too much."""
        limit = self._limit
        self._held += fresh
        limit.hold(self._caller or "", fresh)
        if self._held > limit.anonymous_bytes:
            await self._check_size(self._held)
        crowded = self._held > SMALL_BODY_BYTES and limit.is_full_for_strangers
        if limit.total > limit.most or (crowded and await self._is_stranger()):
            error = e.HubFull(
                "The hub is reading as many requests as it can; try again in a moment.",
                setting="http.max_bodies_bytes",
                retry_after=BODY_RETRY_SECONDS,
            )
            raise limit.refused("total", error)
        if self._caller and limit.is_full_for(self._caller):
            raise self._account_is_full()

    async def _check_size(self, size: int) -> None:
        bounds = self._limit.bounds
        if size > bounds.body_bytes:
            raise self._limit.refused("bytes", too_large(bounds.body_bytes))
        if bounds.anonymous_bytes and await self._is_stranger():
            most = self._limit.anonymous_bytes
            why = f"Without a valid token a request's body may have at most {most:,} bytes."
            raise self._limit.refused(
                "anonymous_bytes",
                e.BodyTooLarge(why, limit=most, setting="http.max_anonymous_body_bytes"),
            )
        if bounds.rate is not None and size > self._taken and not await self._is_stranger():
            now, fresh = asyncio.get_running_loop().time(), size - self._taken
            try:
                self._limit.sent.take(self._caller or "", bounds.rate, fresh, now)
            except e.RateLimited as error:
                raise self._limit.refused("rate", error) from None
            self._taken = size

    @property
    def _fewest_values(self) -> int:
        """Whoever is not known to have an account is held to a stranger's limit first."""
        bounds = self._limit.bounds
        return bounds.values if self._caller else bounds.anonymous_values or bounds.values

    async def _check_values(self, body: bytes | bytearray) -> None:
        bounds = self._limit.bounds
        fewer = bounds.values if self._caller else bounds.anonymous_values or bounds.values
        if not fewer or not is_too_much(body, fewer):
            return
        stranger = await self._is_stranger()
        most = fewer if stranger else bounds.values
        if most and (most == fewer or is_too_much(body, most)):
            anonymous = stranger and bool(bounds.anonymous_values)
            who = "Without a valid token a" if anonymous else "A"
            setting = "http.max_anonymous_body_values" if anonymous else "http.max_body_values"
            why = (
                f"{who} request's body may hold at most {most:,} JSON values, and no number of "
                "hundreds of digits."
            )
            raise self._limit.refused("values", e.BodyTooLarge(why, limit=most, setting=setting))


def _subtract(counts: Counter[str], key: str, number: int) -> None:
    counts[key] -= number
    if counts[key] <= 0:
        del counts[key]


def too_large(most: int) -> e.BodyTooLarge:
    """The refusal of a body that is larger than any may be."""
    why = f"The request's body is larger than {most:,} bytes."
    return e.BodyTooLarge(why, limit=most, setting="http.max_body_bytes")


def body_at_once(receive: Receive) -> bytes | None:
    """The whole body if it is short and here already, and nothing stands between; else None."""
    return receive.at_once() if isinstance(receive, _Body) else None


async def read_body(receive: Receive) -> bytes | None:
    """The whole body, or nothing if the client has left.

    How long a body may be, and how long it may take, is watched further out. It is kept as what it
    is, in however many parts it came: each of them may be a single byte.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        gathered = bytearray(body)
        while message.get("more_body", False):
            message = await receive()
            gathered += message.get("body", b"")
        body = bytes(gathered)
    return body if message["type"] == "http.request" else None


def replaying(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then later messages of the connection."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class Discarding(asyncio.BufferedProtocol):
    """Reads the rest of a body whose request was answered, and looks at none of it.

    A client that reads its answer only after it has sent all gets it in this way, for a fraction
    of what it costs to keep and parse the bytes.
    """

    buffer: Final = memoryview(bytearray(262_144))
    """What the bytes of all connections are read into; nobody looks at it."""

    def __init__(self, connection: HubProtocol, left: int) -> None:
        self._connection = connection
        self._left = left

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the next bytes of the body go, and none of the next request."""
        return self.buffer[: self._left]

    def buffer_updated(self, nbytes: int) -> None:
        """Give the connection back once the body is whole."""
        self._left -= nbytes
        if not self._left:
            self._connection.read_on()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
