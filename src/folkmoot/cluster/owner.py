"""The owner of a room: its connections on other nodes, and what is on its way to them.

Each node with such connections has one *session*, whose commands are taken in order and once. What
the room tells is gathered into one batch for each node, sent again until it was received, and kept
until then; of a durable room without the messages, which are in the store. Whoever has much to tell
waits for its *turn*, so that what is kept for a node stays small, and has it until it says so.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from folkmoot.cluster.limits import (
    ACK_SECONDS,
    BACKLOG_BYTES,
    KEEPALIVE_SECONDS,
    MAX_PACKET_BYTES,
    MAX_UNRECEIVED,
    MAX_UNRECEIVED_BYTES,
    PAGE_BYTES,
    RESEND_SECONDS,
    SILENCE_SECONDS,
    WELCOME_BYTES,
)
from folkmoot.cluster.messages import (
    Batch,
    CloseOne,
    Command,
    Drained,
    DrainOne,
    EndSession,
    HandedOver,
    HoldOne,
    Item,
    JoinRoom,
    LeaveRoom,
    NotOwner,
    OwnerAnswer,
    SendPacket,
    Spoken,
    StartHearing,
    TellOne,
    ToEdge,
    ToOwner,
    size,
)


class SessionKey(NamedTuple):
    """One session of one node."""

    node: str
    session: int


class RemoteKey(NamedTuple):
    """A connection on another node."""

    key: SessionKey
    connection: int


class Arrived(Struct, frozen=True, gc=False):
    """Commands to carry out in their order, the first of which has a number.

    When all that one brought about was told, `resolve` its number. Those that are `Drained` need
    nothing.
    """

    key: SessionKey
    first: int
    commands: Sequence[Command]


class Departed(Struct, frozen=True, gc=False):
    """A connection is gone with its session."""

    remote: RemoteKey


class TurnGiven(Struct, frozen=True, gc=False):
    """Whoever asked for a turn has it, or needs none since it or its session is gone."""

    key: SessionKey
    who: int


OwnerEffect: TypeAlias = Arrived | Departed | TurnGiven | SendPacket


class _Session(Struct, eq=False):
    key: SessionKey
    heard_at: float
    sent_at: float
    received: int = 0
    resolved: int = 0
    done: set[int] = set()
    connections: set[int] = set()
    hearing: set[int] = set()
    items: list[Item] = []
    telling: int = 0
    """Bytes of what is told to one and not sent yet."""
    draining: set[int] = set()
    queue: dict[int, int] = {}
    """Who waits for a turn, by connection or call, and how many bytes it is for."""
    turns: dict[int, int] = {}
    """Who has one."""
    told: int = 0
    """What the last batch said was resolved."""
    sent: int = 0
    batches: deque[Batch] = field(default_factory=deque)
    """Those that were not received."""
    bytes: int = 0
    ack_at: float = math.inf
    resend_at: float = math.inf
    wait: float = RESEND_SECONDS

    @property
    def has_turn(self) -> bool:
        """Whether the next who waits can have its turn."""
        if not self.queue:
            return False
        return self.bytes + self.telling + sum(self.turns.values()) < BACKLOG_BYTES

    def waits(self, who: int) -> bool:
        """Whether someone is to have a turn."""
        return who in self.queue or who in self.draining

    def end_turn(self, who: int) -> None:
        """Someone has told what it had to tell, or is gone."""
        self.queue.pop(who, None)
        self.turns.pop(who, None)
        self.draining.discard(who)


class Owner(Struct, eq=False):
    """One room as its owner has it for other nodes.

    `may_act` says whether the room is surely owned here at a time: else nothing is taken.
    """

    room: int
    epoch: int
    may_act: Callable[[float], bool]
    durable: bool
    _sessions: dict[str, _Session] = {}
    _latest: dict[str, int] = {}
    """The latest session of each node: earlier ones never begin again."""
    is_taking: bool = True
    _is_handed_over: bool = False

    @property
    def nodes(self) -> list[str]:
        """The nodes that have connections to the room."""
        return list(self._sessions)

    @property
    def is_resolved(self) -> bool:
        """Whether all that was taken is resolved."""
        return all(one.received == one.resolved for one in self._sessions.values())

    @property
    def is_received(self) -> bool:
        """Whether every node has received everything."""
        return not any(one.batches or one.items for one in self._sessions.values())

    @property
    def due(self) -> float:
        """When `poll` is to be called at the latest."""
        times = [math.inf]
        for one in self._sessions.values():
            if one.items or one.told < one.resolved or one.has_turn:
                return -math.inf
            times.append(min(one.ack_at, one.resend_at, one.sent_at + KEEPALIVE_SECONDS))
            times.append(one.heard_at + SILENCE_SECONDS)
        return min(times)

    def receive(self, sender: str, packet: ToOwner | EndSession, now: float) -> list[OwnerEffect]:
        """A packet came from a node."""
        if packet.epoch != self.epoch:
            return [self._not_owner(sender, packet)] if type(packet) is ToOwner else []
        session = self._sessions.get(sender)
        if isinstance(packet, EndSession):
            if session is not None and session.key.session == packet.session:
                return self._end(session)
            return []
        if not self.may_act(now):
            return []
        effects: list[OwnerEffect] = []
        if session is None or session.key.session != packet.session:
            if packet.session <= self._latest.get(sender, 0):
                return [self._not_owner(sender, packet)]
            if packet.first != 1 or not packet.commands:
                return []
            if session is not None:
                effects += self._end(session)
            session = _Session(SessionKey(sender, packet.session), now, now)
            self._sessions[sender] = session
            self._latest[sender] = packet.session
            if self._is_handed_over:
                session.items.append(HandedOver())
        session.heard_at = now
        self._acknowledge(session, packet.received, now)
        known = session.received + 1 - packet.first
        if self.is_taking and 0 <= known < len(packet.commands):
            effects += self._take(session, packet.commands[known:])
        if packet.commands:
            session.ack_at = min(session.ack_at, now + ACK_SECONDS)
        if packet.gap:
            effects += self._resend(session, now)
        return effects

    def _take(self, session: _Session, commands: Sequence[Command]) -> list[OwnerEffect]:
        first = session.received + 1
        session.received += len(commands)
        effects: list[OwnerEffect] = [Arrived(session.key, first, commands)]
        for number, command in enumerate(commands, first):
            if type(command) is JoinRoom:
                session.connections.add(command.connection)
            elif type(command) is LeaveRoom:
                session.connections.discard(command.connection)
                session.hearing.discard(command.connection)
                if session.waits(command.connection):
                    # Its join may wait for the turn, and this command for the join.
                    effects.append(TurnGiven(session.key, command.connection))
                session.end_turn(command.connection)
            elif type(command) is Drained:
                if command.connection in session.draining:
                    session.draining.discard(command.connection)
                    session.queue[command.connection] = PAGE_BYTES
                self.resolve(session.key, number)
        return effects

    def _acknowledge(self, session: _Session, received: int, now: float) -> None:
        batches = session.batches
        while batches and batches[0].number <= received:
            session.bytes -= sum(map(size, batches.popleft().items))
            session.wait = RESEND_SECONDS
            session.resend_at = now + RESEND_SECONDS
        if not batches:
            session.resend_at = math.inf

    def _not_owner(self, node: str, packet: ToOwner) -> SendPacket:
        return SendPacket(node, NotOwner(packet.room, packet.epoch, packet.session))

    def _end(self, session: _Session) -> list[OwnerEffect]:
        del self._sessions[session.key.node]
        waiting = (*session.queue, *session.draining)
        gone: list[OwnerEffect] = [TurnGiven(session.key, who) for who in waiting]
        return gone + [Departed(RemoteKey(session.key, one)) for one in sorted(session.connections)]

    def end_session(self, key: SessionKey) -> list[OwnerEffect]:
        """Have a node begin anew, since what it sent or is to be told cannot be carried out."""
        session = self._of(key)
        if session is None:
            return []
        ended = NotOwner(self.room, self.epoch, key.session)
        return [*self._end(session), SendPacket(key.node, ended)]

    def has(self, key: SessionKey) -> bool:
        return self._of(key) is not None

    def _of(self, key: SessionKey) -> _Session | None:
        session = self._sessions.get(key.node)
        return session if session is not None and session.key == key else None

    def _put(self, key: SessionKey, item: Item) -> None:
        session = self._of(key)
        if session is not None:
            session.items.append(item)

    def speak(self, first_seq: int, messages: Sequence[bytes]) -> None:
        """Tell everyone who hears what was said: one item for each node."""
        heard = [one for one in self._sessions.values() if one.hearing]
        if heard:
            items = _spoken(first_seq, tuple(messages))
            for session in heard:
                session.items += items

    def tell(self, remote: RemoteKey, data: bytes) -> None:
        """Tell one connection something, unless it is gone."""
        session = self._of(remote.key)
        if session is not None and remote.connection in session.connections:
            session.items.append(TellOne(remote.connection, data))
            session.telling += len(data)

    def ask_turn(self, key: SessionKey, who: int, amount: int) -> None:
        """A connection, or a call, has so many bytes to tell: `TurnGiven` says when it may."""
        session = self._of(key)
        if session is not None:
            session.end_turn(who)
            session.queue[who] = amount

    def ask_welcome(self, remote: RemoteKey) -> None:
        """A connection is to be welcomed: one that has left already needs no turn for it."""
        session = self._of(remote.key)
        if session is not None and remote.connection in session.connections:
            self.ask_turn(remote.key, remote.connection, WELCOME_BYTES)

    def waits(self, key: SessionKey, who: int) -> bool:
        """Whether `TurnGiven` is still to come for a connection or a call."""
        session = self._of(key)
        return session is not None and session.waits(who)

    def end_turn(self, key: SessionKey, who: int) -> None:
        """A connection or a call has told what it had to tell."""
        session = self._of(key)
        if session is not None:
            session.end_turn(who)

    def drain(self, remote: RemoteKey) -> None:
        """Give a connection a turn for a page once it has read what it was told before."""
        session = self._of(remote.key)
        if session is not None and remote.connection in session.connections:
            session.end_turn(remote.connection)
            session.draining.add(remote.connection)
            session.items.append(DrainOne(remote.connection))

    def start_hearing(self, remote: RemoteKey, seq: int) -> None:
        """Let a connection hear what is said after a `seq`, which is the last one."""
        session = self._of(remote.key)
        if session is not None and remote.connection in session.connections:
            session.end_turn(remote.connection)
            session.hearing.add(remote.connection)
            session.items.append(StartHearing(remote.connection, seq))

    def stop_hearing(self, remote: RemoteKey) -> None:
        """Let a connection that leaves hear no more."""
        session = self._of(remote.key)
        if session is not None:
            session.hearing.discard(remote.connection)

    def close(self, remote: RemoteKey, code: int) -> None:
        """Have a connection closed."""
        self.stop_hearing(remote)
        session = self._of(remote.key)
        if session is not None and remote.connection in session.connections:
            session.end_turn(remote.connection)
            session.connections.discard(remote.connection)
            session.items.append(CloseOne(remote.connection, code))

    def hold(self, remote: RemoteKey, *, held: bool) -> None:
        """Have a connection not be read, or read again."""
        self._put(remote.key, HoldOne(remote.connection, held))

    def answer(self, key: SessionKey, call: int, body: bytes, *, more: bool = False) -> None:
        """Answer what a node asked, or send a part of the answer."""
        session = self._of(key)
        if session is not None:
            session.end_turn(call)
            session.items.append(OwnerAnswer(call, body, more))
            session.telling += len(body)

    def resolve(self, key: SessionKey, *numbers: int) -> None:
        """All that some commands brought about was told."""
        session = self._of(key)
        if session is None:
            return
        session.done.update(numbers)
        while session.resolved + 1 in session.done:
            session.resolved += 1
            session.done.discard(session.resolved)

    def stop_taking(self) -> None:
        """Take nothing more: the room is about to be handed over."""
        self.is_taking = False

    def hand_over(self) -> None:
        """The room was let go in the database, and everything that was taken is resolved."""
        self._is_handed_over = True
        for session in self._sessions.values():
            session.items.append(HandedOver())

    def poll(self, now: float) -> list[OwnerEffect]:
        """Send one batch to each node that has something to hear, and do what is due."""
        effects: list[OwnerEffect] = []
        for session in list(self._sessions.values()):
            if now - session.heard_at >= SILENCE_SECONDS:
                effects += self._end(session)
        if not self.durable and not self.may_act(now):
            # Nothing proves that this is still the room that others see.
            return effects
        for session in list(self._sessions.values()):
            if session.items or session.told < session.resolved:
                effects += self._send_batches(session, now)
                if len(session.batches) > MAX_UNRECEIVED or session.bytes > MAX_UNRECEIVED_BYTES:
                    effects += self._end(session)
                    continue
            if now >= session.resend_at:
                effects += self._resend(session, now)
                session.wait = min(2 * session.wait, KEEPALIVE_SECONDS)
            elif now >= session.ack_at or now - session.sent_at >= KEEPALIVE_SECONDS:
                effects.append(self._packet(session, (), now))
            while session.has_turn:
                who = next(iter(session.queue))
                session.turns[who] = session.queue.pop(who)
                effects.append(TurnGiven(session.key, who))
        return effects

    def _send_batches(self, session: _Session, now: float) -> list[OwnerEffect]:
        """Send what a node has to hear: one batch, or some where that is too large for a packet."""
        items, session.items, session.telling = session.items, [], 0
        effects: list[OwnerEffect] = []
        while True:
            count = _fitting(items)
            if count == len(items):
                session.told = session.resolved
                effects.append(self._send_batch(session, tuple(items), now))
                return effects
            effects.append(self._send_batch(session, tuple(items[:count]), now))
            items = items[count:]

    def _send_batch(self, session: _Session, items: tuple[Item, ...], now: float) -> SendPacket:
        session.sent += 1
        batch = kept = Batch(session.sent, items, session.told)
        if self.durable:
            stored = [
                replace(item, messages=()) if type(item) is Spoken else item for item in batch.items
            ]
            kept = replace(batch, items=tuple(stored))
        session.batches.append(kept)
        session.bytes += sum(map(size, kept.items))
        session.resend_at = min(session.resend_at, now + session.wait)
        return self._packet(session, (batch,), now)

    def _resend(self, session: _Session, now: float) -> list[OwnerEffect]:
        effects: list[OwnerEffect] = []
        chosen: list[Batch] = []
        amount = 0
        for batch in session.batches:
            amount += sum(map(size, batch.items))
            if chosen and amount > MAX_PACKET_BYTES:
                effects.append(self._packet(session, chosen, now))
                chosen, amount = [], 0
            chosen.append(batch)
        if chosen:
            effects.append(self._packet(session, chosen, now))
        session.resend_at = now + session.wait if session.batches else math.inf
        return effects

    def _packet(self, session: _Session, batches: Sequence[Batch], now: float) -> SendPacket:
        session.sent_at, session.ack_at = now, math.inf
        packet = ToEdge(
            self.room,
            self.epoch,
            session.key.session,
            tuple(batches),
            session.received,
            session.sent,
        )
        return SendPacket(session.key.node, packet)


def _fitting(items: Sequence[Item]) -> int:
    """How many of the first items fit a packet; one at least, if there is one."""
    amount = 0
    for count, item in enumerate(items):
        amount += size(item)
        if count and amount > MAX_PACKET_BYTES:
            return count
    return len(items)


def _spoken(first_seq: int, messages: tuple[bytes, ...]) -> list[Spoken]:
    """Messages as items, each of which fits a packet unless it has only one."""
    if sum(map(len, messages)) <= MAX_PACKET_BYTES:
        return [Spoken(first_seq, len(messages), messages)]
    items: list[Spoken] = []
    start = amount = 0
    for place, one in enumerate(messages):
        amount += len(one)
        if place > start and amount > MAX_PACKET_BYTES:
            items.append(Spoken(first_seq + start, place - start, messages[start:place]))
            start, amount = place, len(one)
    return [*items, Spoken(first_seq + start, len(messages) - start, messages[start:])]
