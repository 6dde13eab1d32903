"""The bus between the processes of one hub, over NATS servers.

Nothing that comes from a server is believed (`frames.py`), and nothing depends on one: events reach
this process's own listeners directly, and what is lost on the way to others is told them as missed.

Each connection has a client of its own; when it ends, for whatever reason, the next server is
tried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import ssl
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from folkmoot.bus.frames import NODE_BYTES, Accepted, FrameChecker, FrameMaker, hub_name
from folkmoot.bus.limits import (
    ANSWER_SECONDS,
    ANSWER_STEP_SECONDS,
    BEHIND_FACTOR,
    CONNECT_SECONDS,
    MAX_CHANGES,
    MAX_EVENT,
    MAX_FRAME_BYTES,
    MAX_OUTBOX,
    MAX_OUTBOX_BYTES,
    MAX_QUEUED_EVENT_BYTES,
    MAX_QUEUED_EVENTS,
    MAX_SENT_BYTES,
    MIN_FRAME_BYTES,
    MISSED_SECONDS,
    PULSE_SECONDS,
    RETRY_SECONDS,
    SILENT_SECONDS,
    WRITE_BYTES,
)
from folkmoot.bus.memory import MemoryBus
from folkmoot.bus.nats_client import ENDED, NatsConnection, NatsServer, describe
from folkmoot.bus.subjects import SubjectIndex, check_pattern, check_subject
from folkmoot.core import errors as e
from folkmoot.core.ports import LoggedChange, MessageHandler, MissedListener

logger = logging.getLogger("folkmoot.bus")


class NatsBus(MemoryBus):
    """`core.ports.NodeBus`; until it is started, a bus of this process alone."""

    def __init__(
        self,
        servers: Sequence[NatsServer],
        *,
        node: str = "",
        local: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        max_event: int = MAX_EVENT,
        max_queued: int = MAX_QUEUED_EVENTS,
        max_queued_bytes: int = MAX_QUEUED_EVENT_BYTES,
    ) -> None:
        super().__init__(
            max_event=max_event, max_queued=max_queued, max_queued_bytes=max_queued_bytes
        )
        self.node = node or secrets.token_hex(NODE_BYTES)
        self._servers = list(servers)
        self._tls = tls
        self._local: SubjectIndex[str] = SubjectIndex()
        for pattern in local:
            self._local.add(check_pattern(pattern), pattern)
        self._client: NatsConnection | None = None
        self._room = MIN_FRAME_BYTES
        self._outbox: list[bytes] = []
        """Frames that wait to be written, each in a command to the server."""
        self._outbox_bytes = 0
        self._has_outgoing = asyncio.Event()
        self._handler: MessageHandler | None = None
        self._unsent: Counter[str] = Counter()
        self._delivered: OrderedDict[int, None] = OrderedDict()
        """The numbers of changes that listeners have heard of."""
        self._last_change: OrderedDict[str, int] = OrderedDict()
        """The highest of them, by subject."""
        self._missed_count = 0
        self._telling: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._run: asyncio.Task[None] | None = None
        self._stopping = False
        self._is_silent = False
        self._error = ""

    @property
    def is_connected(self) -> bool:
        """Whether a server is connected and answers; before the start, `check` says so."""
        return self._client is not None or (self._run is None and not self._stopping)

    @property
    def peers(self) -> int:
        """How many other processes are known, those that ended since among them."""
        return self._reader.known if self._run else 0

    @property
    def dropped(self) -> Counter[str]:
        """How many frames were not accepted or not sent, by the reason."""
        return self._unsent + (self._reader.dropped if self._run else Counter())

    async def start(self, key: bytes) -> None:
        """Connect, with a key that every node of this hub has and nobody else.

        Raises `BusUnreachable` if no server can be used now. Later the bus reconnects by itself.
        """
        if self._run is not None:
            return
        self._writer, self._reader = FrameMaker(self.node, key), FrameChecker(self.node, key)
        # Hubs that share a server have keys of their own, and subjects too.
        self._prefix = f"folkmoot.{hub_name(key)}"
        self._to_all = f"{self._prefix}.events"
        self._to_me = f"{self._prefix}.node.{self.node}"
        client = await self._connect_first(self._to_all, self._to_me)
        self._begin(client)
        self._run = asyncio.create_task(self._keep_connected(client))
        self._tick = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._tell_outage)

    async def check(self) -> None:
        """Raise `BusUnreachable` if no server is connected or, before the start, none can be."""
        if self._run is None:
            await (await self._connect_first()).end()
        elif not self.is_connected:
            raise e.BusUnreachable(f"The bus is not connected. {self._error}.")

    async def _connect_first(self, *subjects: str) -> NatsConnection:
        """Connect to the first server that can be used."""
        errors = []
        for server in self._servers:
            client = await self._connect(server, *subjects)
            if client is not None:
                return client
            errors.append(self._error)
        raise e.BusUnreachable(f"No server of the bus can be used. {'; '.join(errors)}.")

    async def _connect(self, server: NatsServer, *subjects: str) -> NatsConnection | None:
        """Connect to a server and subscribe there; None, and `_error`, if it cannot be used."""
        client = NatsConnection(self._take)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.open(server, f"folkmoot {self.node[:8]}", self._tls, subjects)
            if client.info.max_payload >= MIN_FRAME_BYTES:
                return client
            problem = f"its max_payload is below {MIN_FRAME_BYTES:,} bytes"
        except (*ENDED, ValueError) as error:
            problem = describe(error)
        except BaseException:
            client.abort()
            raise
        await client.end()
        self._error = f"{server}: {problem}"
        return None

    async def _keep_connected(self, client: NatsConnection | None) -> None:
        while True:
            try:
                if client is None:
                    client = await self._reconnect()
                if client is not None:
                    await self._use(client)
            except Exception:
                # Whatever it was, nobody else would connect again.
                logger.exception("a connection of the bus failed")
                await asyncio.sleep(RETRY_SECONDS)
            client = None

    async def _reconnect(self) -> NatsConnection | None:
        """Connect to any of the servers; None if none could be used, after a while."""
        random.shuffle(self._servers)
        for server in self._servers:
            client = await self._connect(server, self._to_all, self._to_me)
            if client is not None:
                self._begin(client)
                return client
        logger.debug("the bus cannot be reached", extra={"reason": self._error})
        await asyncio.sleep(RETRY_SECONDS * (1 + random.random()))  # noqa: S311
        return None

    async def _use(self, client: NatsConnection) -> None:
        """Use a connection until it ends."""
        logger.info("the bus is connected", extra={"node": self.node})
        try:
            await self._serve(client)
        finally:
            self._client = None
            self._unsent["unsent"] += len(self._outbox)
            self._outbox.clear()
            self._outbox_bytes = 0
            await client.end()
        logger.warning("the bus is lost; events of other nodes come late until it is back")

    def _begin(self, client: NatsConnection) -> None:
        """Use a new connection, and doubt everything from before it."""
        self._room = min(client.info.max_payload, MAX_FRAME_BYTES)
        self._client = client
        self._put(self._to_all, [self._writer.pulse(self._to_all)])
        self._miss(1)

    async def _serve(self, client: NatsConnection) -> None:
        """Write what waits for as long as the server answers."""

        def stopped(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                client.fail("it cannot be written to")

        writing = asyncio.create_task(self._write(client))
        writing.add_done_callback(stopped)
        try:
            while not client.lost.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PULSE_SECONDS):
                        await client.lost.wait()
                self._put(self._to_all, [self._writer.pulse(self._to_all)])
                if not await self._is_answered(client):
                    break
        finally:
            self._client = None
            writing.cancel()
            self._has_outgoing.set()
            with contextlib.suppress(asyncio.CancelledError):
                await writing

    async def _is_answered(self, client: NatsConnection) -> bool:
        """Whether the server answers in time.

        That is waited for in steps. If this process was paused, or busy with something else, the
        answer has come meanwhile, and is read in the next step. While frames come, it is behind
        them: so it may take longer.
        """
        asked = asyncio.ensure_future(client.ask())
        waited = 0.0
        try:
            while waited < ANSWER_SECONDS and not asked.done():
                received = client.received
                await asyncio.wait((asked,), timeout=ANSWER_STEP_SECONDS)
                is_behind = client.received > received
                waited += ANSWER_STEP_SECONDS / (BEHIND_FACTOR if is_behind else 1)
                self._is_silent = waited >= SILENT_SECONDS
            return asked.done() and asked.result()
        finally:
            self._is_silent = False
            asked.cancel()

    async def _write(self, client: NatsConnection) -> None:
        while True:
            await self._has_outgoing.wait()
            if self._client is not client:
                return
            commands = self._take_commands()
            try:
                await client.write(commands)
            except ENDED:
                self._unsent["unsent"] += len(commands)
                return

    def _take_commands(self) -> list[bytes]:
        """The next commands to write, few enough for a question to the server to pass soon."""
        count = size = 0
        while count < len(self._outbox) and size < WRITE_BYTES:
            size += len(self._outbox[count])
            count += 1
        commands, self._outbox = self._outbox[:count], self._outbox[count:]
        self._outbox_bytes -= size
        if not self._outbox:
            self._has_outgoing.clear()
        return commands

    def emit(self, subject: str, event: Any, *, change: int = 0) -> None:
        """Publish without waiting; every listener of this process was called when it returns."""
        if self._closed:
            raise e.BusClosed("The bus is closed.")
        tokens = check_subject(subject)
        data = self._encode(subject, event)
        if self._run is not None and not self._local.match(tokens):
            if self._client is None:
                self._writer.skip()
                self._unsent["unsent"] += 1
            else:
                payload = b"%d %s\n%s" % (change, subject.encode(), data)
                self._put(self._to_all, self._writer.event(self._to_all, payload, self._room))
        if self._is_new(change, subject):
            self._deliver(subject, tokens, data)

    def _is_new(self, change: int, subject: str) -> bool:
        """Whether an event was not delivered yet, as far as it can be known."""
        if not change:
            return True
        if change in self._delivered:
            return False
        self._remember(change, subject)
        if change < (last := self._last_change[subject]):
            # A later one came first: it is delivered once more, from the log.
            self._delivered.pop(last, None)
            self._miss(1)
        return True

    def _remember(self, change: int, subject: str) -> None:
        self._delivered[change] = None
        last = max(change, self._last_change.pop(subject, 0))
        self._last_change[subject] = last
        for table in (self._delivered, self._last_change):
            if len(table) > MAX_CHANGES:
                table.popitem(last=False)

    def replay(self, changes: Sequence[LoggedChange]) -> None:
        """Deliver what was not delivered, and what came after it on the same subject."""
        behind: set[str] = set()
        for change, subject, data in changes:
            if change not in self._delivered or subject in behind:
                behind.add(subject)
                self._remember(change, subject)
                self._deliver(subject, check_subject(subject), data)

    def doubt(self) -> None:
        """Call those who `listen_doubt`."""
        call_all(self._doubt_listeners.values())

    def has_audience(self, subject: str) -> bool:
        """Whether anyone may receive what is published there; of other nodes it is not known."""
        if self._run is not None and not self._local.match(subject.split(".")):
            return True
        return super().has_audience(subject)

    def send(self, node: str, message: bytes) -> bool:
        """Send a message to one node; False if it was not sent, and it may be lost if it was."""
        if len(message) > MAX_SENT_BYTES:
            raise e.EventTooLarge(
                f"A message to a node has {len(message):,} bytes; at most {MAX_SENT_BYTES:,} fit."
            )
        if self._client is None:
            self._unsent["unsent"] += 1
            return False
        to = f"{self._prefix}.node.{node}"
        return self._put(to, self._writer.sent(to, message, self._room))

    def receive(self, handler: MessageHandler) -> None:
        """Have a handler called with each message that other nodes send to this one."""
        self._handler = handler

    def _put(self, subject: str, frames: list[bytes]) -> bool:
        name = subject.encode()
        commands = [b"PUB %b %d\r\n%b\r\n" % (name, len(one), one) for one in frames]
        size = sum(map(len, commands))
        if (
            len(self._outbox) + len(frames) > MAX_OUTBOX
            or self._outbox_bytes + size > MAX_OUTBOX_BYTES
        ):
            self._unsent["unsent"] += len(frames)
            return False
        self._outbox += commands
        self._outbox_bytes += size
        self._has_outgoing.set()
        return True

    def _take(self, subject: str, data: bytes) -> None:
        """Receive a frame; what one brought that failed is missed."""
        try:
            self._receive(subject, data)
        except Exception:
            logger.exception("a frame of the bus failed")
            self._miss(1)

    def _receive(self, subject: str, data: bytes) -> None:
        to_all = subject == self._to_all
        found = self._reader.read(subject, data, asyncio.get_running_loop().time(), to_all=to_all)
        if found is None or self._closed:
            return
        if found.unknown or found.asks:
            to = f"{self._prefix}.node.{found.node}"
            self._put(to, [self._writer.ask(to, answer=found.asks)])
        if found.missed:
            self._miss(found.missed)
        if found.payload is not None:
            self._accept(found, found.payload, to_all=to_all)

    def _accept(self, found: Accepted, payload: bytes, *, to_all: bool) -> None:
        if to_all:
            head, _, data = payload.partition(b"\n")
            try:
                number, _, subject = head.decode("ascii").partition(" ")
                tokens = check_subject(subject)
                if self._is_new(int(number), subject):
                    self._deliver(subject, tokens, data)
            except (ValueError, e.SubjectInvalid):
                self._reader.dropped["unknown"] += 1
        elif self._handler is not None:
            try:
                self._handler(found.node, payload)
            except Exception:
                logger.exception("a message of another node failed", extra={"node": found.node})

    def _tell_outage(self) -> None:
        """Without a server events are missed all the time: whoever waits looks each second."""
        self._tick = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._tell_outage)
        if self._client is None or self._is_silent:
            self._miss(1)

    def _miss(self, count: int) -> None:
        """Tell everyone that events were lost: at once, then no more often than they can bear."""
        self._missed_count += count
        if self._telling is None:
            self._tell_missed()

    def _tell_missed(self) -> None:
        count, self._missed_count = self._missed_count, 0
        self._telling = None
        if not count or self._closed:
            return
        self._telling = asyncio.get_running_loop().call_later(MISSED_SECONDS, self._tell_missed)
        call_all(self._missed_listeners.values())
        for subscription in list(self._open):
            subscription.miss(count)

    async def close(self) -> None:
        """Leave the servers and close every subscription."""
        run, self._run = self._run, None
        client, self._stopping = self._client, True
        for timer in (self._telling, self._tick):
            if timer is not None:
                timer.cancel()
        if run is not None:
            run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await run
        if client is not None:
            await client.end()
        await super().close()


def call_all(listeners: Iterable[MissedListener]) -> None:
    """Call listeners, each whatever the others do."""
    for listener in list(listeners):
        try:
            listener()
        except Exception:
            logger.exception("a listener failed")
