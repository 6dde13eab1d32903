"""The edge of a room: the connections of one node to a room that another node owns.

What the connections say goes to the owner as numbered commands; what they hear comes as numbered
batches, which are processed in order, each once. Messages that a batch lacks are read from the
store by their `seq`. When the owner changes, connections stay and are attached again, but for those
that said something of which nobody knows whether it was done: they are closed with 1012, and their
clients say it again by its id.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from folkmoot.cluster.limits import (
    ACK_SECONDS,
    GATHER_SECONDS,
    KEEPALIVE_SECONDS,
    MAX_COMMANDS,
    MAX_EARLY,
    MAX_PACKET_BYTES,
    RESEND_SECONDS,
    SEEK_SECONDS,
    SILENCE_SECONDS,
)
from folkmoot.cluster.messages import (
    AskOwner,
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
    Place,
    SendMessages,
    SendPacket,
    Spoken,
    StartHearing,
    TellOne,
    ToEdge,
    ToOwner,
    size,
)
from folkmoot.core.closecodes import CloseCode

END_OF_ROOM: Final = 2**62
"""After the last message that there can be."""


class Overheard(Struct, frozen=True, gc=False):
    """Give messages to every connection that hears, in this order."""

    messages: Sequence[bytes]


class ToConnection(Struct, frozen=True, gc=False):
    """Give something to one connection, after everything before."""

    connection: int
    data: bytes


class Hearing(Struct, frozen=True, gc=False):
    """From here on a connection hears, or does not."""

    connection: int
    hears: bool


class ShutConnection(Struct, frozen=True, gc=False):
    """Close a connection, which is forgotten already."""

    connection: int
    code: CloseCode


class HoldConnection(Struct, frozen=True, gc=False):
    """Stop reading a connection, or go on."""

    connection: int
    held: bool


class DrainConnection(Struct, frozen=True, gc=False):
    """Answer with `drained` once a connection has read most of what it was told."""

    connection: int


class FillGap(Struct, frozen=True, gc=False):
    """Read messages from the store and answer with `filled`."""

    first_seq: int
    through: int


class CallAnswered(Struct, frozen=True, gc=False):
    """What the owner answered a call; None where nobody knows whether it was done."""

    call: int
    body: bytes | None


class SeekOwner(Struct, frozen=True, gc=False):
    """Find out who owns the room, taking it if nobody does; answer with `owner_is`."""


EdgeEffect: TypeAlias = (
    Overheard
    | ToConnection
    | Hearing
    | ShutConnection
    | HoldConnection
    | DrainConnection
    | FillGap
    | CallAnswered
    | SeekOwner
    | SendPacket
)


class Attached(Struct):
    """A connection, and how far it came: nothing yet, the welcome, or all that is said."""

    body: bytes
    after: int | None
    state: Literal["joining", "welcomed", "hearing"] = "joining"
    holds: int = 0
    """How often the owner held it without a release."""


class Edge:
    """One room as a node has it that does not own it. Effects are to be done in their order."""

    def __init__(
        self, room: int, new_session: Callable[[], int], now: float, *, durable: bool
    ) -> None:
        self.room = room
        self._durable = durable
        self._new_session = new_session
        self.owner: Place | None = None
        self.delivered = 0
        """The `seq` of the last message that those who hear have."""
        self._connections: dict[int, Attached] = {}
        self._calls: set[int] = set()
        self._heard_at = now
        self._is_silent = False
        self._is_met = False
        """Whether the owner has answered since this edge is attached to it."""
        self._was_idle = False
        self._seek_at = now
        self._begin_session(())

    def _begin_session(self, commands: Sequence[Command]) -> None:
        self._session = 0
        self._commands: deque[Command] = deque(commands)
        """Those that are not resolved; `_resolved + 1` is the number of the first."""
        self._resolved = 0
        self._received = 0
        """The last command that the owner has."""
        self._sent = 0
        self._processed = 0
        """The last batch of which everything is done."""
        self._queued = 0
        self._early: dict[int, Batch] = {}
        self._items: deque[Item | Batch] = deque()
        """What is to be done, each batch after its items."""
        self._parts: dict[int, list[bytes]] = {}
        """Of calls whose answers come in parts, those that came."""
        self._gap: FillGap | None = None
        self._ack_at = self._fill_at = self._resend_at = math.inf
        self._sent_at = self._gap_at = -math.inf
        self._wait = RESEND_SECONDS

    @property
    def is_full(self) -> bool:
        """Whether so much is not resolved that no more should be taken."""
        return len(self._commands) >= MAX_COMMANDS

    @property
    def is_reachable(self) -> bool:
        """Whether the owner was heard of lately."""
        return self.owner is not None and not self._is_silent

    @property
    def is_idle(self) -> bool:
        """Whether nobody here needs the room."""
        return not (self._connections or self._calls or self._commands)

    @property
    def due(self) -> float:
        """When `poll` is to be called at the latest."""
        if self.is_idle:
            return math.inf if self.owner is None else self._ack_at
        seek = self._seek_at if self._is_seeking else math.inf
        if self.owner is None:
            return seek
        keepalive = self._sent_at + KEEPALIVE_SECONDS
        silence = math.inf if self._is_silent else self._heard_at + SILENCE_SECONDS
        return min(
            seek, keepalive, silence, self._send_at, self._resend_at, self._ack_at, self._fill_at
        )

    @property
    def _is_seeking(self) -> bool:
        """Whether the owner is looked for; the one that the database named may be gone."""
        return self.owner is None or self._is_silent or not self._is_met

    @property
    def _last(self) -> int:
        return self._resolved + len(self._commands)

    @property
    def _unsent(self) -> bool:
        return self._sent < self._last

    @property
    def _send_at(self) -> float:
        """When commands are sent: at once, or together with others while some are under way."""
        if not self._unsent:
            return math.inf
        return -math.inf if self._sent <= self._received else self._sent_at + GATHER_SECONDS

    @property
    def _unreceived(self) -> bool:
        return self._received < self._last

    def join(self, connection: int, body: bytes, after: int | None) -> None:
        self._wake()
        self._connections[connection] = Attached(body, after)
        self._commands.append(JoinRoom(connection, body, after))

    def send(self, connection: int, messages: Sequence[bytes]) -> list[EdgeEffect]:
        if connection not in self._connections:
            return []
        if self._is_silent:
            return self._shut(connection)
        self._commands.append(SendMessages(connection, tuple(messages)))
        return []

    def drained(self, connection: int) -> None:
        """A connection has read most of what it was told."""
        if connection in self._connections:
            self._commands.append(Drained(connection))

    def leave(self, connection: int) -> list[EdgeEffect]:
        """A connection ended."""
        gone = self._connections.pop(connection, None)
        if gone is None:
            return []
        self._commands.append(LeaveRoom(connection))
        return [Hearing(connection, hears=False)] if gone.state == "hearing" else []

    def ask(self, call: int, body: bytes) -> list[EdgeEffect]:
        """Ask the owner something; one that is silent is not asked."""
        self._wake()
        if self._is_silent:
            return [CallAnswered(call, None)]
        self._calls.add(call)
        self._commands.append(AskOwner(call, body))
        return []

    def _wake(self) -> None:
        """Somebody needs the room: if nobody did, nothing is known of its owner."""
        if self.is_idle:
            self._was_idle = True
            self._is_silent = False

    def _go_on(self, now: float) -> None:
        """Count silence from now on, and look for the owner unless the session is surely kept."""
        self._was_idle = False
        self._heard_at = now
        if self.owner is not None and now - self._sent_at >= KEEPALIVE_SECONDS:
            self.owner = None
            self._seek_at = now
            self._begin_session(self._commands)

    def end(self) -> list[EdgeEffect]:
        """Nobody here needs the room any more."""
        return [] if self.owner is None else [self._ending(self.owner, self._session)]

    def _ending(self, place: Place, session: int) -> SendPacket:
        return SendPacket(place.node, EndSession(self.room, place.epoch, session))

    def _shut(self, connection: int) -> list[EdgeEffect]:
        self._commands.append(LeaveRoom(connection))
        del self._connections[connection]
        return [ShutConnection(connection, CloseCode.RESTARTING)]

    def owner_is(self, place: Place | None, now: float) -> list[EdgeEffect]:
        """Who owns the room, by the database; None where it is not known."""
        self._seek_at = now + SEEK_SECONDS
        if place is None or place == self.owner:
            return []
        if self.owner is None:
            return self._attach(place, now)
        if place.epoch < self.owner.epoch:
            return []
        effects = self._let_go_of_owner(now)
        return effects + self._attach(place, now)

    def _let_go_of_owner(self, now: float) -> list[EdgeEffect]:
        """The owner is lost: nobody knows what became of that which is not resolved."""
        effects: list[EdgeEffect] = []
        unknown = {one.connection for one in self._commands if type(one) is SendMessages}
        for connection, attached in list(self._connections.items()):
            if attached.state == "welcomed" or connection in unknown or not self._durable:
                del self._connections[connection]
                effects.append(ShutConnection(connection, CloseCode.RESTARTING))
        return effects + self._lose_calls() + self._detach((), now)

    def _lose_calls(self) -> list[EdgeEffect]:
        lost: list[EdgeEffect] = [CallAnswered(call, None) for call in sorted(self._calls)]
        self._calls.clear()
        self._parts.clear()
        return lost

    def _hand_over(self, now: float) -> list[EdgeEffect]:
        """The owner gave the room away, and took nothing of what it did not resolve."""
        if not self._durable:
            return self._let_go_of_owner(now)
        effects: list[EdgeEffect] = []
        for connection, attached in list(self._connections.items()):
            if attached.state == "welcomed":
                del self._connections[connection]
                effects.append(ShutConnection(connection, CloseCode.RESTARTING))
        kept = [one for one in self._commands if type(one) is SendMessages or type(one) is AskOwner]
        return effects + self._detach(kept, now)

    def _detach(self, kept: Sequence[Command], now: float) -> list[EdgeEffect]:
        """Be without an owner; whoever is here joins anew, and then says what it had said."""
        effects: list[EdgeEffect] = []
        joins: list[Command] = []
        for connection, attached in self._connections.items():
            again = attached.state == "hearing"
            if attached.holds:
                attached.holds = 0
                effects.append(HoldConnection(connection, held=False))
            if again:
                attached.state, attached.after = "joining", self.delivered
                effects.append(Hearing(connection, hears=False))
            joins.append(JoinRoom(connection, attached.body, attached.after, again))
        said = [
            one
            for one in kept
            if not isinstance(one, SendMessages) or one.connection in self._connections
        ]
        self.owner = None
        self._seek_at = self._heard_at = now
        self._begin_session([*joins, *said])
        return effects

    def _attach(self, place: Place, now: float) -> list[EdgeEffect]:
        self.owner = place
        self._session = self._new_session()
        self._heard_at = self._sent_at = now
        self._is_silent = self._is_met = False
        return self.poll(now)

    def too_large(self, session: int, now: float) -> list[EdgeEffect]:
        """A packet cannot be sent: whoever said or asked what is in it is told that it is lost."""
        if self.owner is None or session != self._session:
            return []
        return [self._ending(self.owner, session), *self._let_go_of_owner(now)]

    def receive(self, sender: str, packet: ToEdge | NotOwner, now: float) -> list[EdgeEffect]:
        """A packet came from a node."""
        if packet.session != self._session or self.owner != Place(sender, packet.epoch):
            if type(packet) is ToEdge:
                return [self._ending(Place(sender, packet.epoch), packet.session)]
            return []
        if isinstance(packet, NotOwner):
            return self._let_go_of_owner(now) + self.poll(now)
        self._heard_at = now
        self._is_silent, self._is_met = False, True
        if packet.received > self._received:
            self._received = packet.received
            self._wait = RESEND_SECONDS
            self._resend_at = now + self._wait if self._unreceived else math.inf
        for batch in packet.batches:
            if batch.number > self._queued and len(self._early) < MAX_EARLY:
                # One that is sent again may have left its messages in the store.
                self._early.setdefault(batch.number, batch)
        while (following := self._early.pop(self._queued + 1, None)) is not None:
            self._queued += 1
            self._items.extend((*following.items, following))
        effects = self._process(now)
        if packet.session != self._session:
            return effects + self.poll(now)
        if packet.sent > self._queued and now - self._gap_at >= ACK_SECONDS:
            self._gap_at = now
            effects.append(self._packet(self.owner, (), self._sent + 1, gap=True))
        elif packet.batches:
            self._ack_at = min(self._ack_at, now + ACK_SECONDS)
        return effects

    def _process(self, now: float) -> list[EdgeEffect]:
        effects: list[EdgeEffect] = []
        while self._items and self._gap is None:
            item = self._items.popleft()
            if type(item) is Spoken:
                self._speak(item, effects)
            elif type(item) is TellOne:
                attached = self._connections.get(item.connection)
                if attached is not None:
                    if attached.state == "joining":
                        attached.state = "welcomed"
                    effects.append(ToConnection(item.connection, item.data))
            elif type(item) is Batch:
                self._processed = item.number
                for _ in range(item.resolved - self._resolved):
                    done = self._commands.popleft()
                    if type(done) is AskOwner and done.call in self._calls:
                        self._calls.discard(done.call)
                        effects.append(CallAnswered(done.call, None))
                self._resolved = max(self._resolved, item.resolved)
            elif type(item) is OwnerAnswer:
                self._take_answer(item, effects)
            elif type(item) is HandedOver:
                return effects + self._hand_over(now)
            elif isinstance(item, StartHearing | CloseOne | HoldOne | DrainOne):
                self._do(item, effects)
        return effects

    def _take_answer(self, item: OwnerAnswer, effects: list[EdgeEffect]) -> None:
        if item.call not in self._calls:
            return
        if item.more:
            self._parts.setdefault(item.call, []).append(item.body)
            return
        self._calls.discard(item.call)
        body = b"".join((*self._parts.pop(item.call, ()), item.body))
        effects.append(CallAnswered(item.call, body))

    def _speak(self, item: Spoken, effects: list[EdgeEffect]) -> None:
        """Messages of the room: some may be here already, or some before may be missing."""
        last = item.first_seq + item.count - 1
        if last <= self.delivered or not self._hears:
            self.delivered = max(self.delivered, last)
            return
        if item.messages and item.first_seq <= self.delivered + 1:
            effects.append(Overheard(item.messages[self.delivered + 1 - item.first_seq :]))
            self.delivered = last
            return
        self._gap = FillGap(self.delivered + 1, last)
        effects.append(self._gap)

    @property
    def _hears(self) -> bool:
        return any(one.state == "hearing" for one in self._connections.values())

    def _do(
        self, item: StartHearing | CloseOne | HoldOne | DrainOne, effects: list[EdgeEffect]
    ) -> None:
        attached = self._connections.get(item.connection)
        if attached is None:
            return
        if type(item) is HoldOne:
            was = attached.holds > 0
            attached.holds = max(attached.holds + (1 if item.held else -1), 0)
            if was != (attached.holds > 0):
                effects.append(HoldConnection(item.connection, held=not was))
        elif type(item) is DrainOne:
            effects.append(DrainConnection(item.connection))
        elif type(item) is CloseOne:
            del self._connections[item.connection]
            effects.append(ShutConnection(item.connection, CloseCode(item.code)))
        elif type(item) is StartHearing:
            if not self._hears:
                self.delivered = item.seq
            if item.seq != self.delivered:
                # The others were read to from the store, further than this one was.
                effects += self._shut(item.connection)
                return
            attached.state = "hearing"
            effects.append(Hearing(item.connection, hears=True))

    def filled(self, gap: FillGap, messages: Sequence[bytes], now: float) -> list[EdgeEffect]:
        """What the store has of a gap, from its first message on; nothing if it cannot be read."""
        effects: list[EdgeEffect] = []
        start = self.delivered + 1 - gap.first_seq
        if self._hears and 0 <= start < len(messages):
            effects.append(Overheard(messages[start:]))
            self.delivered += len(messages) - start
        if gap == self._gap:
            if not self._hears:
                # All whom it was for have left meanwhile: it would be read again for ever.
                self._gap, self.delivered = None, max(self.delivered, gap.through)
                return effects + self._process(now)
            if not messages:
                self._fill_at = now + RESEND_SECONDS
                return effects
            self._gap = None
            if self.delivered < gap.through:
                self._gap = FillGap(self.delivered + 1, gap.through)
                return [*effects, self._gap]
        return effects + self._process(now)

    def gone(self, gap: FillGap, now: float) -> list[EdgeEffect]:
        """The store does not have all of a gap any more: whoever hears comes back later."""
        if gap != self._gap:
            return []
        self._gap, self.delivered = None, gap.through
        effects: list[EdgeEffect] = []
        for connection, attached in list(self._connections.items()):
            if attached.state == "hearing":
                effects += self._shut(connection)
        return effects + self._process(now)

    def poll(self, now: float) -> list[EdgeEffect]:
        """Send what is to be sent, and do what is due."""
        if self.is_idle:
            return self._acknowledge(now)
        effects: list[EdgeEffect] = []
        if self._was_idle:
            self._go_on(now)
        if now - self._heard_at >= SILENCE_SECONDS:
            effects += self._fall_silent()
        if self._is_seeking and now >= self._seek_at:
            self._seek_at = now + SEEK_SECONDS
            effects.append(SeekOwner())
            if self._durable and self._hears and self._gap is None:
                effects.append(FillGap(self.delivered + 1, END_OF_ROOM))
        if self.owner is None:
            return effects
        if now >= self._fill_at:
            self._fill_at = math.inf
            if self._gap is not None:
                effects.append(self._gap)
        if now >= self._resend_at:
            # However much was sent meanwhile: the owner waits for the first that it lacks.
            self._sent = self._received
            self._wait = min(2 * self._wait, KEEPALIVE_SECONDS)
            self._resend_at = math.inf
        overdue = now >= self._ack_at or now - self._sent_at >= KEEPALIVE_SECONDS
        if overdue or now >= self._send_at:
            if not self._unsent:
                effects.append(self._packet(self.owner, (), self._sent + 1))
            else:
                self._resend_at = min(self._resend_at, now + self._wait)
            while self._unsent:
                effects.append(self._next_packet(self.owner))
            self._sent_at, self._ack_at = now, math.inf
        return effects

    def _acknowledge(self, now: float) -> list[EdgeEffect]:
        if self.owner is None or now < self._ack_at:
            return []
        self._sent_at, self._ack_at = now, math.inf
        return [self._packet(self.owner, (), self._sent + 1)]

    def _fall_silent(self) -> list[EdgeEffect]:
        """Nothing is heard of the owner: whoever said something, or asks, is not kept waiting."""
        if self._is_silent:
            return []
        self._is_silent = True
        effects: list[EdgeEffect] = []
        for connection in sorted(
            {one.connection for one in self._commands if type(one) is SendMessages}
        ):
            if connection in self._connections:
                effects += self._shut(connection)
        return effects + self._lose_calls()

    def _next_packet(self, place: Place) -> SendPacket:
        first = max(self._sent, self._resolved) + 1
        commands: list[Command] = []
        amount = 0
        for one in islice(self._commands, first - self._resolved - 1, None):
            amount += size(one)
            if commands and amount > MAX_PACKET_BYTES:
                break
            commands.append(one)
        self._sent = first + len(commands) - 1
        return self._packet(place, commands, first)

    def _packet(
        self, place: Place, commands: Sequence[Command], first: int, *, gap: bool = False
    ) -> SendPacket:
        packet = ToOwner(
            self.room,
            place.epoch,
            self._session,
            first,
            tuple(commands),
            self._processed,
            gap,
        )
        return SendPacket(place.node, packet)
