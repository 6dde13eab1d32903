"""A simulated cluster: nodes with clocks of their own, a network, a database and clients.

Everything happens in `World.advance`, by a seeded random order. What must never happen is asserted
where it would: a client that hears a gap, a fenced effect of a node that is not the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec

from folkmoot.cluster.edge import (
    Edge,
    EdgeEffect,
    FillGap,
    Hearing,
    Overheard,
    SeekOwner,
    ShutConnection,
    ToConnection,
)
from folkmoot.cluster.lease import Lease
from folkmoot.cluster.messages import (
    EndSession,
    JoinRoom,
    NotOwner,
    Packet,
    Place,
    SendMessages,
    SendPacket,
    ToEdge,
    ToOwner,
    decode,
    encode,
)
from folkmoot.cluster.owner import Arrived, Departed, Owner, RemoteKey

ROOM = 7
LEASE_SECONDS = 5.0
RENEW_SECONDS = 1.0
STEP = 0.25

# A message of the room: its id, and what it says.
Line = tuple[str, str]


def encoded(seq: int, line: Line) -> bytes:
    return msgspec.json.encode(["line", seq, *line])


class Database:
    """What all nodes agree on, by its own clock."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.until: dict[str, float] = {}
        self.owner: str | None = None
        self.epoch = 0
        self.lines: list[Line] = []

    def lives(self, node: str | None) -> bool:
        return node is not None and self.until.get(node, 0.0) > self.world.now

    def renew(self, node: str) -> None:
        self.until[node] = self.world.now + LEASE_SECONDS

    def take(self, node: str) -> Place:
        if self.owner == node or not self.lives(self.owner):
            self.owner = node
            self.epoch += 1
        return Place(self.owner, self.epoch)

    def release(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.owner = None

    def append(self, epoch: int, before: int, lines: list[Line]) -> bool:
        """One batch with its fence."""
        if (epoch, before) != (self.epoch, len(self.lines)):
            return False
        self.lines += lines
        return True


class Client:
    """Someone who comes back, and says again by its id what may be lost."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.node: Node | None = None
        self.connection = 0
        self.last: int | None = None
        # Which room it was: one in memory is another one when it is made anew.
        self.life = ""
        # What it said by id and knows not whether it was done.
        self.said: dict[str, str] = {}
        self.welcomed = False
        self.count = 0

    def connect(self, node: Node) -> None:
        self.node = node
        self.welcomed = False
        self.connection = self.world.number()
        node.edge().join(self.connection, f"{self.name} {self.life}".encode(), self.last)
        node.clients[self.connection] = self

    def say(self, *, again: bool, ask: bool = False) -> None:
        self.count += 1
        id_ = f"{self.name}-{self.count}"
        text = f"ask {id_}" if ask else f"text {id_}"
        if again:
            self.said[id_] = text
        self._send([(id_ if again else "", text)])

    def _send(self, lines: list[Line]) -> None:
        if self.node is not None and lines:
            messages = [msgspec.json.encode(one) for one in lines]
            self.node.do(self.node.edge().send(self.connection, messages))

    def receive(self, data: bytes) -> None:
        kind, *rest = msgspec.json.decode(data)
        if kind == "welcome":
            life, seq = rest
            if self.last is None or life != self.life:
                self.last, self.life = seq, life
            if not self.welcomed:
                self.welcomed = True
                self._send(list(self.said.items()))
        elif kind == "known":
            self.said.pop(rest[0], None)
        else:
            seq, id_, text = rest
            assert self.last == seq - 1, f"{self.name} heard {seq} after {self.last}"
            self.last = seq
            self.world.heard(self.life, seq, text)
            self.said.pop(id_, None)

    def leave(self) -> None:
        """Leave the node where they are."""
        if self.node is not None:
            self.node.clients.pop(self.connection, None)
            self.node.do(self.node.edge().leave(self.connection))
            self.node = None


class RoomAtOwner:
    """A room that numbers what is said, stores it and then tells it, like a live room."""

    def __init__(self, node: Node, epoch: int, *, durable: bool) -> None:
        self.node = node
        self.world = node.world
        self.epoch = epoch
        self.durable = durable
        self.remote = Owner(ROOM, epoch, lambda _: node.may_act(epoch), durable=durable)
        self.life = "stored" if durable else f"{node.id}.{epoch}"
        self.lines = list(self.world.database.lines) if durable else []
        self.stored = len(self.lines)
        self.items: list[Any] = []
        self.committing = False
        self.ended = False
        self.releasing = False

    def arrived(self, effect: Arrived) -> None:
        for number, command in enumerate(effect.commands, effect.first):
            remote = RemoteKey(effect.key, getattr(command, "connection", 0))
            if type(command) is JoinRoom:
                self.items.append(("join", remote, command))
            elif type(command) is SendMessages:
                for one in command.messages:
                    self._said(remote, *msgspec.json.decode(one))
            self.items.append(("resolve", effect.key, number))

    def _said(self, remote: RemoteKey, id_: str, text: str) -> None:
        if id_ and id_ in dict(self.lines):
            self.items.append(("tell", remote, ["known", id_]))
        else:
            self.lines.append((id_, text))
            self.items.append(("line", len(self.lines)))

    def commit(self) -> None:
        """Store what was said since the last commit, and carry it out afterwards."""
        if self.committing or not self.items or self.ended:
            return
        items, self.items = self.items, []
        if not self.durable:
            self.carry_out(items)
            return
        before, lines = self.stored, self.lines[self.stored :]
        self.committing = True

        def answered(stored: bool) -> None:
            self.committing = False
            if self.ended:
                return
            if stored:
                self.stored = before + len(lines)
                self.carry_out(items)
            else:
                self.node.owned = None
                self.node.let_go()

        append = partial(self.world.database.append, self.epoch, before, lines)
        self.node.ask_database(append, answered)

    def line(self, seq: int) -> bytes:
        return encoded(seq, self.lines[seq - 1])

    def carry_out(self, items: list[Any]) -> None:
        delivered = next((item[1] - 1 for item in items if item[0] == "line"), None)
        if delivered is None:
            delivered = self.stored if self.durable else len(self.lines)
        for kind, *rest in items:
            if kind == "line":
                delivered = rest[0]
                self.remote.speak(delivered, [self.line(delivered)])
                self._act(self.lines[delivered - 1][1])
            elif kind == "join":
                self._join(rest[0], rest[1], delivered)
            elif kind == "tell":
                self.remote.tell(rest[0], msgspec.json.encode(rest[1]))
            else:
                self.remote.resolve(*rest)

    def _join(self, remote: RemoteKey, command: JoinRoom, delivered: int) -> None:
        life = command.body.decode().split(" ")[1]
        self.remote.tell(remote, msgspec.json.encode(["welcome", self.life, delivered]))
        if command.after is not None and (command.again or life == self.life):
            for seq in range(command.after + 1, delivered + 1):
                self.remote.tell(remote, self.line(seq))
        self.remote.start_hearing(remote, delivered)

    def _act(self, text: str) -> None:
        """What no fence guards: to ask a backend, or to say something in a room in memory."""
        if not self.node.may_act(self.epoch):
            return
        if text.startswith("ask") or not self.durable:
            database = self.world.database
            assert (self.epoch, database.owner) == (database.epoch, self.node.id)
            assert database.lives(self.node.id), "a node acted after its lease"
        if text.startswith("ask"):
            self.world.asked.append(text)


class Node:
    """One process of the hub."""

    def __init__(self, world: World, id_: str, offset: float, rate: float) -> None:
        self.world = world
        self.id = id_
        self._offset, self._rate = offset, rate
        self.lease = Lease(LEASE_SECONDS)
        # The epoch of its room, and the term of the lease in which it was taken.
        self.owned: tuple[int, int] | None = None
        self.is_taking = False
        self.known_edge: Edge | None = None
        self.room: RoomAtOwner | None = None
        self.clients: dict[int, Client] = {}
        self.hearing: set[int] = set()
        self.session = 0
        self.inbox: list[Callable[[], None]] = []
        self.is_paused = False
        self.is_gone = False
        # Whether it lacks the bus.
        self.is_cut = False
        # When it ends, if it drains.
        self.stops_at: float | None = None
        self.beat_at = 0.0 - RENEW_SECONDS

    def clock(self) -> float:
        return self._offset + self._rate * self.world.now

    def edge(self) -> Edge:
        if self.known_edge is None:
            durable = self.world.durable
            self.known_edge = Edge(ROOM, self._new_session, self.clock(), durable=durable)
        return self.known_edge

    def _new_session(self) -> int:
        self.session += 1
        return self.session

    def may_act(self, epoch: int) -> bool:
        """Whether this node surely owns the room, so that it may do what no fence guards."""
        if self.owned is None or self.owned[0] != epoch:
            return False
        return self.lease.holds(self.clock(), self.owned[1])

    def ask_database(self, execute: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        self.world.statements.append((self, execute, answered))

    def run(self) -> None:
        """Do what came meanwhile, and what is due."""
        if self.is_paused or self.is_gone:
            return
        inbox, self.inbox = self.inbox, []
        for one in inbox:
            one()
        self._beat()
        self.let_go()
        if self.room is not None:
            self.room.commit()
            self.do(self.room.remote.poll(self.clock()))
        if self.known_edge is not None and self.known_edge.due <= self.clock():
            self.do(self.known_edge.poll(self.clock()))
        if self.stops_at is not None:
            self._drain(self.stops_at)

    def _beat(self) -> None:
        sent = self.clock()
        if sent - self.beat_at < RENEW_SECONDS:
            return
        self.beat_at = sent
        self.ask_database(
            lambda: self.world.database.renew(self.id),
            lambda _: self.lease.renewed(sent, self.clock()),
        )

    def _drain(self, stops_at: float) -> None:
        room = self.room
        if room is not None and not room.releasing:
            room.remote.stop_taking()
            if room.remote.is_resolved and not room.items and not room.committing:
                room.releasing = True
                self.ask_database(
                    lambda: self.world.database.release(room.epoch),
                    lambda _: room.remote.hand_over(),
                )
        if self.world.now >= stops_at:
            self.world.stop(self)

    def let_go(self) -> None:
        """End the room if it is another's."""
        if self.room is not None and not self.may_act(self.room.epoch):
            self.room.ended = True
            self.room = None

    def do(self, effects: list[Any]) -> None:
        for effect in effects:
            if type(effect) is SendPacket:
                self.world.send(self, effect.node, effect.packet)
            elif type(effect) is Arrived:
                self.room.arrived(effect)
            elif type(effect) is not Departed:
                self._do_for_connection(effect)

    def _do_for_connection(self, effect: EdgeEffect) -> None:
        if type(effect) is Overheard:
            for connection in sorted(self.hearing):
                for data in effect.messages:
                    if connection in self.clients:
                        self.clients[connection].receive(data)
        elif type(effect) is ToConnection:
            if effect.connection in self.clients:
                self.clients[effect.connection].receive(effect.data)
        elif type(effect) is Hearing:
            (self.hearing.add if effect.hears else self.hearing.discard)(effect.connection)
        elif type(effect) is ShutConnection:
            self.hearing.discard(effect.connection)
            if effect.connection in self.clients:
                self.clients.pop(effect.connection).node = None
        elif type(effect) is FillGap:
            self._fill(effect)
        elif type(effect) is SeekOwner:
            self._seek()

    def _fill(self, gap: FillGap) -> None:
        def execute() -> list[bytes]:
            lines = self.world.database.lines[gap.first_seq - 1 : gap.through]
            return [encoded(seq, line) for seq, line in enumerate(lines, gap.first_seq)]

        self.ask_database(
            execute, lambda found: self.do(self.edge().filled(gap, found, self.clock()))
        )

    def _seek(self) -> None:
        if self.room is not None and self.may_act(self.room.epoch):
            self._found(Place(self.id, self.room.epoch))
            return
        if self.is_taking or self.stops_at is not None or not self.lease.holds(self.clock()):
            self._found(None)
            return
        self.is_taking, term = True, self.lease.term

        def answered(place: Place) -> None:
            self.is_taking = False
            # Taken too late to be sure, it is taken again, with another epoch.
            if place.node == self.id and self.lease.holds(self.clock(), term):
                self.owned = place.epoch, term
            elif self.owned is not None and self.owned[0] < place.epoch:
                self.owned = None
            self.let_go()
            if place.node != self.id:
                self._found(place)
            elif self.may_act(place.epoch):
                self.ask_database(lambda: None, lambda _: loaded(place))

        def loaded(place: Place) -> None:
            if self.may_act(place.epoch):
                self.room = RoomAtOwner(self, place.epoch, durable=self.world.durable)
                self._found(place)

        self.ask_database(partial(self.world.database.take, self.id), answered)

    def _found(self, place: Place | None) -> None:
        if self.known_edge is not None:
            self.do(self.known_edge.owner_is(place, self.clock()))

    def receive(self, sender: str, data: bytes) -> None:
        packet = decode(data)
        now = self.clock()
        if isinstance(packet, ToEdge | NotOwner):
            if self.known_edge is not None:
                self.do(self.known_edge.receive(sender, packet, now))
        elif isinstance(packet, ToOwner | EndSession):
            if self.room is not None:
                self.do(self.room.remote.receive(sender, packet, now))
            elif isinstance(packet, ToOwner):
                missing = NotOwner(packet.room, packet.epoch, packet.session)
                self.world.send(self, sender, missing)


class World:
    """All of it, and the true time."""

    def __init__(self, seed: int, *, durable: bool = True, nodes: int = 3) -> None:
        self.random = Random(seed)
        self.durable = durable
        self.now = 100.0
        self.database = Database(self)
        # What is on its way to the database, and where its answer goes.
        self.statements: list[tuple[Node, Callable[[], Any], Callable[[Any], None]]] = []
        # What is on its way between nodes: from whom, to whom, and what.
        self.packets: list[tuple[Node, str, bytes]] = []
        self.loss = self.doubling = self.delay = 0.0
        self.nodes: list[Node] = []
        self.clients: list[Client] = []
        self.asked: list[str] = []
        self.truth: dict[tuple[str, int], str] = {}
        self._number = 0
        for _ in range(nodes):
            self.start()

    def number(self) -> int:
        self._number += 1
        return self._number

    def start(self) -> Node:
        node = Node(
            self,
            f"n{self.number()}",
            self.random.uniform(0.0, 1000.0),
            self.random.uniform(0.99, 1.01),
        )
        self.nodes.append(node)
        return node

    def stop(self, node: Node) -> None:
        node.is_gone = True
        self.nodes.remove(node)
        for client in node.clients.values():
            if client.node is node:
                client.node = None

    def heard(self, life: str, seq: int, text: str) -> None:
        assert self.truth.setdefault((life, seq), text) == text, "two orders of one room"
        if self.durable:
            assert self.database.lines[seq - 1][1] == text, "heard, but not stored"

    def send(self, sender: Node, target: str, packet: Packet) -> None:
        self.packets.append((sender, target, encode(packet)))

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += STEP
            for _ in range(4):
                self.turn()
            for client in self.clients:
                if client.node is None and self.random.random() < 0.3:
                    usable = [one for one in self.nodes if not one.is_paused and not one.stops_at]
                    if usable:
                        client.connect(self.random.choice(usable))

    def turn(self) -> None:
        self._deliver()
        statements, self.statements = self.statements, []
        for node, execute, answered in statements:
            if self.random.random() < self.delay:
                self.statements.append((node, execute, answered))
            else:
                node.inbox.append(partial(answered, execute()))
        for node in self.random.sample(self.nodes, len(self.nodes)):
            if node in self.nodes:
                node.run()

    def _deliver(self) -> None:
        packets, self.packets = self.packets, []
        if self.delay:
            self.random.shuffle(packets)
        for sender, name, data in packets:
            target = next((node for node in self.nodes if node.id == name), None)
            itself = target is sender
            if target is None or ((sender.is_cut or target.is_cut) and not itself):
                continue
            if self.random.random() < self.delay and not itself:
                self.packets.append((sender, name, data))
                continue
            if self.random.random() < self.loss and not itself:
                continue
            for _ in range(2 if self.random.random() < self.doubling else 1):
                target.inbox.append(partial(target.receive, sender.id, data))

    def settle(self) -> None:
        """Everything works again; then everyone has everything."""
        self.loss = self.doubling = self.delay = 0.0
        for node in self.nodes:
            node.is_paused = node.is_cut = False
        if not any(one.stops_at is None for one in self.nodes):
            self.start()
        self.advance(20.0)
        for client in self.clients:
            assert client.node is not None, "a client found no way back"
            assert not client.said, f"{client.name} was never acknowledged"
            if self.durable:
                assert client.last == len(self.database.lines), "a client heard not all"
        texts = [text for _, text in self.database.lines]
        assert len(texts) == len(set(texts)), "a message exists twice"
        # A room in memory that was lost knows nothing of what was said in it.
        twice = self.durable and len(self.asked) > len(set(self.asked))
        assert not twice, "a backend was asked twice"
