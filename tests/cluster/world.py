"""A simulated cluster: nodes with clocks of their own, a network, a database and clients.

Everything happens in `World.advance`, by a seeded random order. What must never happen is asserted
where it would: a client that hears a gap, a fenced effect of a node that is not the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

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
    Batch,
    Command,
    EndSession,
    JoinRoom,
    NotOwner,
    Packet,
    Place,
    SendMessages,
    SendPacket,
    Spoken,
    ToEdge,
    ToOwner,
    decode,
    encode,
)
from folkmoot.cluster.owner import Arrived, Departed, Owner, RemoteKey, SessionKey
from tests.cluster.ownership import Ownership

ROOM = 7
LEASE_SECONDS = 5.0
RENEW_SECONDS = 1.0
STEP = 0.25

Line = tuple[str, str]
"""A message of the room: its id, and what it says."""


class Mutations(Struct):
    """What a broken hub would not do."""

    fence: bool = True
    checks_marks: bool = True


class Database:
    """What all nodes agree on, by its own clock."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.until: dict[str, float] = {}
        self.owner: str | None = None
        self.epoch = 0
        self.last_seq = 0
        self.lines: list[Line] = []

    def lives(self, node: str | None) -> bool:
        return node is not None and self.until.get(node, 0.0) > self.world.now

    def renew(self, node: str) -> None:
        self.until[node] = self.world.now + LEASE_SECONDS

    def take(self, node: str) -> Place:
        if self.owner == node or not self.lives(self.owner):
            self.owner = node
            self.epoch += 1
        assert self.owner is not None
        return Place(self.owner, self.epoch)

    def release(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.owner = None

    def append(self, epoch: int, before: int, lines: list[Line]) -> bool:
        """One batch with its fence; the key of the messages would refuse a `seq` that is taken."""
        if self.world.mutations.fence and (epoch, before) != (self.epoch, self.last_seq):
            return False
        if lines and before != self.last_seq:
            return False
        assert epoch == self.epoch, "a node wrote that is not the owner"
        self.lines += lines
        self.last_seq += len(lines)
        return True


class Statement(Struct):
    """Something on its way to the database, whose answer goes to a node."""

    node: Node
    execute: Callable[[], Any]
    answered: Callable[[Any], None]


class Client:
    """Someone who comes back, and says again by its id what may be lost."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.node: Node | None = None
        self.connection = 0
        self.last: int | None = None
        self.life = ""
        """Which room it was: one in memory is another one when it is made anew."""
        self.said: dict[str, str] = {}
        """What it said by id and knows not whether it was done."""
        self.welcomed = False
        self.count = 0

    def connect(self, node: Node) -> None:
        self.node = node
        self.welcomed = False
        self.connection = self.world.number()
        edge = node.edge()
        edge.join(self.connection, f"{self.name} {self.life}".encode(), self.last)
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
            edge = self.node.edge()
            self.node.do(edge.send(self.connection, [msgspec.json.encode(one) for one in lines]))

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
            assert self.last is not None
            assert seq == self.last + 1, f"{self.name} heard {seq} after {self.last}"
            self.last = seq
            self.world.heard(self.life, seq, text)
            self.said.pop(id_, None)

    def shut(self) -> None:
        self.node = None

    def leave(self) -> None:
        """Leave the node where they are."""
        if self.node is not None:
            self.node.clients.pop(self.connection, None)
            self.node.do(self.node.edge().leave(self.connection))
            self.shut()


class RoomAtOwner:
    """A room that numbers what is said, stores it and then tells it, like a live room."""

    def __init__(self, node: Node, epoch: int, *, durable: bool) -> None:
        self.node = node
        self.world = node.world
        self.epoch = epoch
        self.durable = durable
        self.remote = Owner(
            ROOM, epoch, lambda now: node.ownership.may_act(epoch, now), durable=durable
        )
        database = self.world.database
        self.life = "stored" if durable else f"{node.id}.{epoch}"
        self.lines = list(database.lines) if durable else []
        self.stored = len(self.lines)
        self.items: list[Any] = []
        self.committing = False
        self.ended = False
        self.releasing = False

    def arrived(self, effect: Arrived) -> None:
        for number, command in enumerate(effect.commands, effect.first):
            self._arrived(effect.key, number, command)

    def _arrived(self, key: SessionKey, number: int, command: Command) -> None:
        remote = RemoteKey(key, getattr(command, "connection", 0))
        if type(command) is JoinRoom:
            self.items.append(("join", remote, command))
        elif type(command) is SendMessages:
            for one in command.messages:
                id_, text = msgspec.json.decode(one)
                known = {line[0] for line in self.lines if line[0]}
                if id_ in known:
                    self.items.append(("tell", remote, ["known", id_]))
                else:
                    self.lines.append((id_, text))
                    self.items.append(("line", len(self.lines)))
        self.items.append(("resolve", key, number))

    def commit(self) -> None:
        """Store what was said since the last commit, and carry it out afterwards."""
        if self.committing or not self.items or self.ended:
            return
        items, self.items = self.items, []
        if not self.durable:
            self.carry_out(items)
            return
        through = len(self.lines)
        lines, before = self.lines[self.stored : through], self.stored
        self.committing = True

        def execute() -> bool:
            return self.world.database.append(self.epoch, before, lines)

        def answered(stored: bool) -> None:
            self.committing = False
            if self.ended:
                return
            if not stored:
                self.node.ownership.lost(self.epoch)
                self.node.let_go()
                return
            self.stored = through
            self.carry_out(items)

        self.node.ask_database(execute, answered)

    def line(self, seq: int) -> bytes:
        return msgspec.json.encode(["line", seq, *self.lines[seq - 1]])

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
        if not self.node.ownership.may_act(self.epoch, self.node.clock()):
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
        self.ownership = Ownership(id_, self.lease)
        self.known_edge: Edge | None = None
        self.room: RoomAtOwner | None = None
        self.clients: dict[int, Client] = {}
        self.hearing: set[int] = set()
        self.session = 0
        self.inbox: list[Callable[[], None]] = []
        self.is_paused = False
        self.is_gone = False
        self.is_cut = False
        """Whether it lacks the bus."""
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

    def ask_database(self, execute: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        self.world.statements.append(Statement(self, execute, answered))

    def run(self) -> None:
        """Do what came meanwhile, and what is due."""
        if self.is_paused or self.is_gone:
            return
        inbox, self.inbox = self.inbox, []
        for one in inbox:
            one()
        self._beat()
        self.let_go()
        self._poll()
        if self.stops_at is not None:
            self._drain(self.stops_at)

    def _poll(self) -> None:
        if self.room is not None:
            self.room.commit()
            self.do(self.room.remote.poll(self.clock()))
        if self.known_edge is not None and self.known_edge.due <= self.clock():
            self.do(self.known_edge.poll(self.clock()))

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
        if self.room is not None and not self.ownership.owns(self.room.epoch, self.clock()):
            self.room.ended = True
            self.room = None

    def do(self, effects: list[Any]) -> None:
        for effect in effects:
            if type(effect) is SendPacket:
                self.world.send(self, effect.node, effect.packet)
            elif type(effect) is Arrived:
                assert self.room is not None
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
            client = self.clients.pop(effect.connection, None)
            if client is not None:
                client.shut()
        elif type(effect) is FillGap:
            self._fill(effect)
        elif type(effect) is SeekOwner:
            self._seek()

    def _fill(self, gap: FillGap) -> None:
        def execute() -> list[bytes]:
            lines = self.world.database.lines[gap.first_seq - 1 : gap.through]
            return [
                msgspec.json.encode(["line", seq, *line])
                for seq, line in enumerate(lines, gap.first_seq)
            ]

        self.ask_database(
            execute, lambda found: self.do(self.edge().filled(gap, found, self.clock()))
        )

    def _seek(self) -> None:
        now = self.clock()
        if self.room is not None and self.ownership.may_act(self.room.epoch, now):
            self._found(Place(self.id, self.room.epoch))
            return
        term = self.ownership.take(now)
        if term is None:
            self._found(None)
            return

        def answered(place: Place) -> None:
            self.ownership.took(term, place, self.clock())
            self.let_go()
            if place.node != self.id:
                self._found(place)
            elif self.ownership.may_act(place.epoch, self.clock()):
                self.ask_database(lambda: None, lambda _: loaded(place))

        def loaded(place: Place) -> None:
            if self.ownership.may_act(place.epoch, self.clock()):
                self.room = RoomAtOwner(self, place.epoch, durable=self.world.durable)
                self._found(place)

        self.ask_database(lambda: self.world.database.take(self.id), answered)

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


class Travelling(Struct):
    """A packet in the network; one that is not genuine lacks the mark of its sender."""

    sender: Node
    target: str
    data: bytes
    genuine: bool = True


class World:
    """All of it, and the true time."""

    def __init__(self, seed: int, *, durable: bool = True, nodes: int = 3) -> None:
        self.random = Random(seed)
        self.durable = durable
        self.mutations = Mutations()
        self.now = 100.0
        self.database = Database(self)
        self.statements: list[Statement] = []
        self.packets: list[Travelling] = []
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
                client.shut()

    def heard(self, life: str, seq: int, text: str) -> None:
        assert self.truth.setdefault((life, seq), text) == text, "two orders of one room"
        if self.durable:
            assert self.database.lines[seq - 1][1] == text, "heard, but not stored"

    def send(self, sender: Node, target: str, packet: Packet) -> None:
        self.packets.append(Travelling(sender, target, encode(packet)))

    def forge(self) -> None:
        """Someone without the key says what an owner would say next."""
        for node in self.nodes:
            edge = node.known_edge
            if edge is None or edge.owner is None:
                continue
            said = msgspec.json.encode(["line", edge.delivered + 1, "", "forged"])
            batch = Batch(edge._queued + 1, (Spoken(edge.delivered + 1, 1, (said,)),), 0)
            packet = ToEdge(ROOM, edge.owner.epoch, edge._session, (batch,), 0, batch.number)
            owner = next((one for one in self.nodes if one.id == edge.owner.node), None)
            if owner is not None:
                forged = Travelling(owner, node.id, encode(packet), genuine=False)
                self.packets.append(forged)

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
        for one in statements:
            if self.random.random() < self.delay:
                self.statements.append(one)
                continue
            answer = one.execute()
            one.node.inbox.append(lambda one=one, answer=answer: one.answered(answer))
        for node in self.random.sample(self.nodes, len(self.nodes)):
            if node in self.nodes:
                node.run()

    def _deliver(self) -> None:
        packets, self.packets = self.packets, []
        if self.delay:
            self.random.shuffle(packets)
        for one in packets:
            target = next((node for node in self.nodes if node.id == one.target), None)
            itself = target is one.sender
            if target is None or ((one.sender.is_cut or target.is_cut) and not itself):
                continue
            if self.random.random() < self.delay and not itself:
                self.packets.append(one)
                continue
            if self.random.random() < self.loss and not itself:
                continue
            if not one.genuine and self.mutations.checks_marks:
                continue
            for _ in range(2 if self.random.random() < self.doubling else 1):
                target.inbox.append(
                    lambda target=target, one=one: target.receive(one.sender.id, one.data)
                )

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
                assert client.last == self.database.last_seq, "a client heard not all"
        ids = [id_ for id_, _ in self.database.lines if id_]
        assert len(ids) == len(set(ids)), "a message exists twice"
        texts = [text for _, text in self.database.lines]
        assert len(texts) == len(set(texts)), "a message exists twice that was sent once"
        # A room in memory that was lost knows nothing of what was said in it.
        twice = self.durable and len(self.asked) > len(set(self.asked))
        assert not twice, "a backend was asked twice"
