"""Two ends of a conversation in memory, and a proxy between them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import ProtocolMessage, decode_message, encode_message
from folkmoot.core.ports import Carried, Interceptor
from folkmoot.core.transport import TransportContext
from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.mcp.carrier import Carrier
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.pump import carry
from folkmoot.relay.steps import Steps

TO_SERVER, TO_CLIENT = MessageDirection.CLIENT_TO_SERVER, MessageDirection.SERVER_TO_CLIENT


class MemoryCarrier(Carrier):
    """One end: `says` is what comes in at it, and `heard` what came out."""

    def __init__(self, receives: MessageDirection, context: TransportContext) -> None:
        super().__init__(receives, SystemClock())
        self.heard: list[MessageEnvelope[ProtocolMessage]] = []
        self.closed = False
        self.deaf = False
        self._context = context
        self._coming: deque[bytes | MessageEnvelope[Any] | None] = deque()
        self._news = asyncio.Event()

    def says(self, *messages: dict[str, Any] | bytes | MessageEnvelope[Any]) -> None:
        for each in messages:
            self._coming.append(msgspec.json.encode(each) if isinstance(each, dict) else each)
        self._news.set()

    def leaves(self) -> None:
        """Say nothing more."""
        self._coming.append(None)
        self._news.set()

    async def hears(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait for the next messages; what they say."""
        while len(self.heard) < count:
            self._news.clear()
            await self._news.wait()
        taken, self.heard = self.heard[:count], self.heard[count:]
        self.last = taken[-1]
        return [msgspec.json.decode(bytes_of(each)) for each in taken]

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        while not self._coming:
            self._news.clear()
            await self._news.wait()
        came = self._coming.popleft()
        if came is None:
            self._coming.appendleft(None)
            raise e.TransportClosed("Gone.")
        return self.envelope_of(decode_message(came)) if isinstance(came, bytes) else came

    @property
    def waiting(self) -> bool:
        return bool(self._coming) and self._coming[0] is not None

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        self.check_way(envelope)
        if self.deaf:
            raise e.TransportClosed("Gone.")
        self.heard.append(envelope)
        self._news.set()

    def current_context(self) -> TransportContext:
        return self._context

    async def close(self) -> None:
        self.closed = True


def bytes_of(envelope: MessageEnvelope[Any]) -> bytes:
    return encode_message(envelope.message)


class Says:
    """An interceptor that says one thing about messages of one direction, or of one method."""

    name, guards = "rule", False

    def __init__(self, verdict: Verdict, about: MessageDirection | str) -> None:
        self.verdict, self.about = verdict, about
        self.seen: list[MessageEnvelope[Any]] = []

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        self.seen.append(envelope)
        told = (envelope.context.direction, getattr(envelope.message, "method", ""))
        return self.verdict if self.about in told else CONTINUE


class MemoryTape:
    """A recorder in memory, which may fail."""

    def __init__(self) -> None:
        self.carried: list[Carried] = []
        self.committed = 0
        self.full = False

    def note(self, carried: Carried) -> None:
        self.carried.append(carried)

    def commit(self) -> None:
        if self.full:
            raise e.TapeUnwritable("The disk is full.")
        self.committed = len(self.carried)


class Scene:
    """A client, a server, and a proxy between them that runs while entered."""

    def __init__(
        self,
        interceptors: Sequence[Interceptor] = (),
        tape: MemoryTape | None = None,
        **options: Any,
    ) -> None:
        self.client = MemoryCarrier(TO_SERVER, TransportContext.stdio(1))
        self.server = MemoryCarrier(TO_CLIENT, TransportContext.stdio(2))
        self.sessions = SessionManager(SystemClock())
        self.tape = tape
        self.failure: BaseException | None = None
        self._steps = Steps(Chain(interceptors), tape, SystemClock())
        self._options = options
        self.over = asyncio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Carrier]:
        try:
            yield self.server
        finally:
            await self.server.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Scene]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._carry())
            try:
                yield self
            finally:
                task.cancel()

    async def _carry(self) -> None:
        try:
            await carry(
                self.client, self.connect, self._steps, self.sessions, key="k", **self._options
            )
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.failure = error
        self.over.set()
