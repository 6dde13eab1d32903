"""Edge and owner, told as scripts: what goes between them, and what connections see of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from folkmoot.cluster.edge import (
    CallAnswered,
    DrainConnection,
    Edge,
    FillGap,
    Hearing,
    HoldConnection,
    Overheard,
    SeekOwner,
    ShutConnection,
    ToConnection,
)
from folkmoot.cluster.limits import (
    BACKLOG_BYTES,
    GATHER_SECONDS,
    KEEPALIVE_SECONDS,
    MAX_COMMANDS,
    MAX_EARLY,
    MAX_PACKET_BYTES,
    MAX_UNRECEIVED,
    PAGE_BYTES,
    SEEK_SECONDS,
    SILENCE_SECONDS,
)
from folkmoot.cluster.messages import (
    AskOwner,
    Batch,
    EndSession,
    JoinRoom,
    NotOwner,
    Place,
    SendMessages,
    SendPacket,
    Spoken,
    ToEdge,
    ToOwner,
    decode,
    encode,
)
from folkmoot.cluster.owner import Arrived, Departed, Owner, RemoteKey, SessionKey, TurnGiven
from folkmoot.core.closecodes import CloseCode


class Pair:
    """An edge `e` and an owner `o` with a network that a script may cut."""

    def __init__(self, *, durable: bool = True) -> None:
        self.now = 0.0
        self.sessions = 0
        self.acts = True
        self.durable = durable
        self.edge = Edge(7, self.new_session, 0.0, durable=durable)
        self.owner = Owner(7, 1, lambda now: self.acts, durable=durable)
        # What the edge is to do with connections.
        self.seen: list[Any] = []
        self.arrived: list[Arrived] = []
        self.departed: list[RemoteKey] = []
        self.turns: list[TurnGiven] = []
        self.packets: list[ToEdge] = []
        self.cut = False
        # Whether only what the owner sends is lost.
        self.deaf = False

    def new_session(self) -> int:
        self.sessions += 1
        return self.sessions

    @property
    def key(self) -> SessionKey:
        return SessionKey("e", self.sessions)

    def remote(self, connection: int) -> RemoteKey:
        return RemoteKey(self.key, connection)

    def do(self, effects: Any) -> None:
        for effect in effects:
            if type(effect) is Arrived:
                self.arrived.append(effect)
            elif type(effect) is Departed:
                self.departed.append(effect.remote)
            elif type(effect) is TurnGiven:
                self.turns.append(effect)
            elif type(effect) is not SendPacket:
                self.seen.append(effect)
            elif not self.cut:
                packet: Any = decode(encode(effect.packet))
                if isinstance(packet, ToEdge | NotOwner):
                    if self.deaf:
                        continue
                    self.packets.append(packet)
                    self.do(self.edge.receive("o", packet, self.now))
                elif effect.node == "o":
                    self.do(self.owner.receive("e", packet, self.now))

    def run(self, seconds: float = 0.0) -> None:
        end = self.now + seconds
        while True:
            self.do(self.edge.poll(self.now))
            self.do(self.owner.poll(self.now))
            if self.now >= end:
                return
            self.now += 0.1

    def attach(self, *connections: int) -> Pair:
        for one in connections:
            self.edge.join(one, b"who", None)
        self.find_owner()
        for one in connections:
            self.welcome(one, 0)
        self.resolve()
        self.run()
        for told in (self.seen, self.arrived, self.packets):
            told.clear()
        return self

    def welcome(self, connection: int, seq: int) -> None:
        self.owner.tell(self.remote(connection), b"welcome")
        self.owner.start_hearing(self.remote(connection), seq)

    def find_owner(self) -> None:
        self.do(self.edge.owner_is(Place("o", 1), self.now))
        self.run()

    def moved(self) -> Any:
        """What the edge sends to the next owner at first."""
        effects = self.edge.owner_is(Place("p", 2), self.now)
        self.seen += effects
        return next((sent.packet for sent in of(SendPacket, effects) if sent.node == "p"), None)

    def join(self, connection: int, after: int | None = None) -> None:
        self.edge.join(connection, b"who", after)
        self.run()

    def say(self, message: bytes, seconds: float = 0.0) -> None:
        """Have the first connection say something."""
        self.do(self.edge.send(1, [message]))
        self.run(seconds)

    def ask(self, call: int, question: bytes) -> None:
        self.do(self.edge.ask(call, question))
        self.run()

    def speak(self, first_seq: int, *messages: bytes, seconds: float = 0.0) -> None:
        """Have the owner say something."""
        self.owner.speak(first_seq, messages)
        self.run(seconds)

    def lose(self, first_seq: int, *messages: bytes) -> None:
        """Let what the owner says be lost on its way, and let the edge notice."""
        self.cut = True
        self.speak(first_seq, *messages)
        self.cut = False
        self.run(1.0)

    def fill(self, gap: FillGap, *found: bytes) -> None:
        """Let a gap be read from the store."""
        self.do(self.edge.filled(gap, found, self.now))

    @property
    def heard(self) -> list[bytes]:
        """What all connections that hear were told."""
        return [one for told in of(Overheard, self.seen) for one in told.messages]

    @property
    def shut(self) -> list[int]:
        """The connections that were closed, which may come again."""
        closed = of(ShutConnection, self.seen)
        assert all(one.code is CloseCode.RESTARTING for one in closed)
        return [one.connection for one in closed]

    @property
    def answers(self) -> list[tuple[int, bytes | None]]:
        return [(one.call, one.body) for one in of(CallAnswered, self.seen)]

    def fall_silent(self) -> None:
        """Let neither hear the other for too long."""
        self.cut = True
        self.run(SILENCE_SECONDS + 0.5)

    def resolve(self) -> None:
        for one in self.arrived:
            self.owner.resolve(one.key, *range(one.first, one.first + len(one.commands)))

    @property
    def commands(self) -> list[Any]:
        """What the owner took."""
        return [command for one in self.arrived for command in one.commands]


@pytest.fixture
def pair() -> Pair:
    """One connection, which hears the room."""
    return Pair().attach(1)


def of(type_: Any, effects: list[Any]) -> list[Any]:
    return [one for one in effects if type(one) is type_]


def test_a_batch_leaves_once_for_a_node_whatever_the_number_of_its_connections():
    pair = Pair().attach(*range(1, 101))
    pair.owner.speak(1, [b"one", b"two"])
    pair.speak(3, b"three")
    assert len([one for one in pair.packets if one.batches]) == 1
    assert pair.heard == [b"one", b"two", b"three"]


def test_a_node_without_connections_that_hear_gets_no_messages(pair):
    pair.do(pair.edge.leave(1))
    pair.run()
    pair.packets.clear()
    pair.speak(1, b"one")
    assert not [one for one in pair.packets if one.batches]


def test_messages_are_not_told_before_those_that_are_missing(pair):
    pair.speak(2, b"two")
    assert pair.seen == [FillGap(1, 2)]
    pair.fill(FillGap(1, 2), b"one", b"two")
    assert pair.heard == [b"one", b"two"]


def test_what_was_lost_on_the_way_is_read_from_the_store(pair):
    pair.lose(1, b"one")
    pair.owner.speak(2, [b"two"])
    pair.owner.tell(pair.remote(1), b"for you")
    pair.run(1.0)
    gap = FillGap(1, 1)
    assert of(FillGap, pair.seen) == [gap]
    assert not of(Overheard, pair.seen)
    pair.fill(gap, b"one")
    heard = [Overheard((b"one",)), Overheard((b"two",))]
    assert pair.seen == [gap, *heard, ToConnection(1, b"for you")]


@pytest.mark.parametrize("found", [[b"one"], []])
def test_a_gap_that_is_read_when_nobody_hears_any_more_keeps_nobody_waiting(found):
    pair = Pair().attach(1)
    pair.lose(1, b"one")
    (gap,) = of(FillGap, pair.seen)
    pair.do(pair.edge.leave(1))
    pair.join(2)
    pair.welcome(2, 1)
    pair.run()
    pair.seen.clear()
    pair.fill(gap, *found)
    pair.speak(2, b"two", seconds=1.0)
    assert not of(FillGap, pair.seen)
    assert of(ToConnection, pair.seen) == [ToConnection(2, b"welcome")]
    assert pair.heard == [b"two"]


def test_a_gap_that_cannot_be_read_is_asked_for_again_and_one_read_in_part_goes_on(pair):
    pair.lose(1, b"one", b"two", b"three")
    gap = FillGap(1, 3)
    assert of(FillGap, pair.seen) == [gap]
    pair.fill(gap)
    pair.run(1.0)
    assert of(FillGap, pair.seen) == [gap, gap]
    pair.seen.clear()
    pair.fill(gap, b"one", b"two")
    rest = FillGap(3, 3)
    assert pair.seen == [Overheard((b"one", b"two")), rest]
    # An answer that comes twice tells nothing twice.
    pair.fill(gap, b"one", b"two")
    pair.fill(rest, b"three")
    assert pair.heard == [b"one", b"two", b"three"]


def test_what_was_read_from_the_store_and_what_the_owner_says_overlap_and_are_told_once(pair):
    pair.deaf = True
    pair.speak(1, b"one", b"two", seconds=SILENCE_SECONDS + 1)
    ahead = of(FillGap, pair.seen)[0]
    pair.fill(ahead, b"one")
    pair.fill(ahead, b"one", b"two")
    said = Batch(pair.edge._queued + 1, (Spoken(1, 3, (b"one", b"two", b"three")),), resolved=1)
    pair.do(pair.edge.receive("o", ToEdge(7, 1, 1, (said,), 1, said.number), pair.now))
    assert pair.heard == [b"one", b"two", b"three"]


def test_batches_that_come_again_take_no_room_from_those_that_are_new(pair):
    for seq in range(1, MAX_EARLY + 2):
        pair.owner.speak(seq, [b"one"])
        pair.run(0.1)
    for packet in list(pair.packets):
        pair.do(pair.edge.receive("o", packet, pair.now))
    pair.seen.clear()
    pair.speak(MAX_EARLY + 2, b"new")
    assert pair.heard == [b"new"]


def test_who_was_told_a_part_of_the_past_is_closed_when_the_owner_changes(pair):
    pair.join(2, after=0)
    for told in (b"welcome", b"the past"):
        pair.owner.tell(pair.remote(2), told)
    pair.resolve()
    pair.run()
    pair.moved()
    assert pair.shut == [2]


def test_whoever_comes_behind_those_who_were_read_to_from_the_store_comes_again(pair):
    pair.join(2)
    pair.deaf = True
    pair.welcome(2, 0)
    pair.speak(1, b"one", seconds=SILENCE_SECONDS + 1)
    ahead = of(FillGap, pair.seen)[0]
    # The owner is not heard, and what it stored is read meanwhile.
    pair.fill(ahead, b"one")
    pair.deaf = False
    pair.run(1.0)
    assert pair.heard == [b"one"]
    assert pair.shut == [2]
    assert Hearing(2, hears=True) not in pair.seen


def test_what_was_lost_of_a_room_in_memory_comes_again_from_its_owner():
    pair = Pair(durable=False).attach(1)
    pair.lose(1, b"one")
    assert pair.heard == [b"one"]
    assert not of(FillGap, pair.seen)


def test_messages_that_the_store_has_no_more_close_whoever_hears(pair):
    pair.lose(1, b"one")
    pair.do(pair.edge.gone(FillGap(1, 1), pair.now))
    assert pair.shut == [1]


def test_a_command_is_taken_once_however_often_it_comes(pair):
    pair.edge.send(1, [b"hello"])
    effects = pair.edge.poll(pair.now)
    pair.do(effects)
    pair.do(effects)
    pair.run(2.0)
    assert pair.commands == [SendMessages(1, (b"hello",))]


def test_commands_leave_together_while_earlier_ones_are_on_their_way():
    pair = Pair().attach(1, 2)
    pair.edge.send(1, [b"a"])
    under_way = pair.edge.poll(pair.now)
    pair.edge.send(2, [b"b"])
    pair.edge.send(1, [b"c"])
    assert not of(SendPacket, pair.edge.poll(pair.now))
    # The owner has the first: the others need not wait for more.
    pair.do(under_way)
    pair.resolve()
    pair.do(pair.owner.poll(pair.now))
    (packet,) = of(SendPacket, pair.edge.poll(pair.now))
    assert packet.packet.commands == (SendMessages(2, (b"b",)), SendMessages(1, (b"c",)))
    # Also one that does not say so is not waited for.
    pair.edge.send(1, [b"d"])
    assert not of(SendPacket, pair.edge.poll(pair.now))
    assert pair.edge.due == pair.now + GATHER_SECONDS
    (packet,) = of(SendPacket, pair.edge.poll(pair.edge.due))
    assert packet.packet.commands == (SendMessages(1, (b"d",)),)


def test_what_was_lost_is_sent_again_also_while_there_is_always_something_new_to_send(pair):
    pair.cut = True
    pair.edge.send(1, [b"0"])
    pair.do(pair.edge.poll(pair.now))
    pair.cut = False
    for number in range(1, 10):
        pair.edge.send(1, [str(number).encode()])
        pair.run(0.1)
    assert pair.commands == [SendMessages(1, (str(number).encode(),)) for number in range(10)]


def test_a_connection_with_unknown_messages_is_closed_when_the_owner_changes():
    pair = Pair().attach(1, 2)
    pair.say(b"hello")
    pair.moved()
    assert pair.shut == [1]


def test_the_others_are_attached_again_from_what_they_heard():
    pair = Pair().attach(1, 2)
    pair.speak(1, b"one")
    packet = pair.moved()
    assert packet.commands == (JoinRoom(1, b"who", 1, True), JoinRoom(2, b"who", 1, True))
    assert (packet.epoch, packet.session, packet.first) == (2, 2, 1)


def test_a_room_in_memory_that_is_lost_closes_its_connections():
    pair = Pair(durable=False).attach(1, 2)
    pair.moved()
    assert pair.shut == [1, 2]


def test_what_a_room_did_not_take_before_it_was_handed_over_goes_to_its_next_owner(pair):
    pair.owner.stop_taking()
    pair.edge.send(1, [b"late"])
    pair.ask(5, b"who is here")
    assert pair.owner.is_resolved
    pair.owner.hand_over()
    pair.run()
    assert of(SeekOwner, pair.seen)
    assert not of(ShutConnection, pair.seen)
    assert pair.moved().commands == (
        JoinRoom(1, b"who", 0, True),
        SendMessages(1, (b"late",)),
        AskOwner(5, b"who is here"),
    )


@pytest.mark.parametrize("late", [False, True])
def test_a_node_that_comes_while_a_room_is_handed_over_is_told_so(late):
    pair = Pair()
    pair.owner.stop_taking()
    if late:
        pair.owner.hand_over()
    pair.edge.join(1, b"who", None)
    pair.find_owner()
    if not late:
        pair.owner.hand_over()
    pair.run()
    assert not pair.arrived
    assert pair.moved().commands == (JoinRoom(1, b"who", None),)


def test_a_call_is_answered_once_or_said_to_be_unknown(pair):
    pair.edge.ask(5, b"who")
    pair.ask(6, b"what")
    pair.owner.answer(pair.key, 5, b"ada")
    pair.owner.resolve(pair.key, 2)
    pair.run()
    assert pair.answers == [(5, b"ada")]
    pair.moved()
    assert pair.answers == [(5, b"ada"), (6, None)]


def test_an_owner_that_is_silent_leaves_nobody_waiting():
    pair = Pair().attach(1, 2)
    pair.edge.send(1, [b"hello"])
    pair.fall_silent()
    assert pair.shut == [1]
    assert of(SeekOwner, pair.seen)
    assert not pair.edge.is_reachable
    # Whoever only listens goes on, from the store.
    (first, *_) = of(FillGap, pair.seen)
    pair.fill(first, b"one")
    assert pair.heard == [b"one"]
    # Whoever says something now is told at once.
    assert of(ShutConnection, pair.edge.send(2, [b"me too"]))


def test_an_owner_that_never_answered_is_looked_for_long_before_it_counts_as_silent():
    pair = Pair()
    pair.cut = True
    pair.attach(1)
    # By the database the owner is still that node, since its lease goes on although it is dead.
    pair.run(SEEK_SECONDS + 0.1)
    assert of(SeekOwner, pair.seen)
    pair.cut = False
    pair.run(KEEPALIVE_SECONDS)
    pair.seen.clear()
    pair.run(SILENCE_SECONDS)
    assert not of(SeekOwner, pair.seen)


def test_who_asks_a_silent_owner_is_answered_at_once_and_nothing_gathers(pair):
    pair.fall_silent()
    for call in range(MAX_COMMANDS + 1):
        assert pair.edge.ask(call, b"who") == [CallAnswered(call, None)]
    assert not pair.edge.is_full


def test_an_edge_that_nobody_needs_looks_for_nobody_and_says_nothing():
    pair = Pair()
    pair.do(pair.edge.owner_is(Place("o", 1), pair.now))
    pair.seen.clear()
    pair.cut = True
    pair.run(10 * SILENCE_SECONDS)
    assert not pair.seen
    assert pair.edge.due == math.inf
    pair.cut = False
    # Whoever owns it by now is asked, in a session of its own.
    pair.ask(5, b"who")
    assert pair.seen == [SeekOwner()]
    pair.find_owner()
    assert pair.commands == [AskOwner(5, b"who")]


def test_an_edge_that_is_needed_again_and_again_stays_in_its_session():
    pair = Pair()
    pair.do(pair.edge.owner_is(Place("o", 1), pair.now))
    for call in range(20):
        pair.ask(call, b"who")
        pair.owner.answer(pair.key, call, b"ada")
        pair.resolve()
        pair.run(0.5)
        assert pair.edge.is_idle
        assert pair.owner.is_received
    assert pair.sessions == 1
    assert pair.answers == [(call, b"ada") for call in range(20)]
    assert len(pair.seen) == 20


def test_an_edge_that_is_needed_after_a_while_begins_anew_and_loses_no_call():
    pair = Pair()
    for call in range(3):
        pair.ask(call, b"who")
        pair.find_owner()
        pair.owner.answer(pair.key, call, b"ada")
        pair.resolve()
        pair.run(2 * SILENCE_SECONDS)
    assert pair.answers == [(call, b"ada") for call in range(3)]
    assert len(of(SeekOwner, pair.seen)) == 3


def test_an_edge_that_is_silent_leaves_the_room_and_comes_back(pair):
    pair.fall_silent()
    assert pair.departed == [pair.remote(1)]
    pair.cut = False
    pair.arrived.clear()
    pair.run(1.5)
    # The owner knows the session no more: the same connection is attached in a new one.
    pair.do(pair.edge.owner_is(Place("o", 1), pair.now))
    pair.run(1.5)
    assert pair.commands == [JoinRoom(1, b"who", 0, True)]


def test_an_owner_without_a_lease_takes_nothing(pair):
    pair.acts = False
    pair.say(b"hello", 1.0)
    assert not pair.arrived


def test_a_node_that_is_silent_leaves_also_an_owner_without_a_lease():
    pair = Pair(durable=False).attach(1)
    pair.acts = False
    pair.cut = True
    pair.owner.tell(pair.remote(1), b"something")
    pair.run(SILENCE_SECONDS + 0.5)
    assert pair.departed == [pair.remote(1)]
    assert pair.owner.due == math.inf


def test_an_edge_that_receives_nothing_is_dropped_before_it_fills_the_memory(pair):
    pair.cut = True
    for number in range(MAX_UNRECEIVED + 1):
        pair.owner.tell(pair.remote(1), str(number).encode())
        pair.do(pair.owner.poll(pair.now))
    assert pair.departed == [pair.remote(1)]


def test_what_is_told_leaves_in_packets_of_a_bounded_size_in_its_order(pair):
    told = [bytes([number]) * (MAX_PACKET_BYTES // 3) for number in range(10)]
    pair.owner.speak(1, told[:5])
    for one in told[5:]:
        pair.owner.tell(pair.remote(1), one)
    pair.run()
    assert max(len(encode(one)) for one in pair.packets) < MAX_PACKET_BYTES + 1_000
    said = [one for each in of(Overheard, pair.seen) for one in each.messages]
    assert said + [one.data for one in of(ToConnection, pair.seen)] == told
    pair.run(1.0)
    assert pair.owner.is_received


def test_those_with_much_to_tell_a_node_have_their_turns_one_after_another():
    pair = Pair().attach(*range(1, 21))
    for one in range(1, 21):
        pair.owner.drain(pair.remote(one))
    pair.cut = True
    pair.run()
    assert not pair.turns
    pair.cut = False
    pair.run(1.0)
    assert [one.connection for one in of(DrainConnection, pair.seen)] == list(range(1, 21))
    for one in range(1, 21):
        pair.edge.drained(one)
    heard, most = [], BACKLOG_BYTES // PAGE_BYTES
    while pair.turns or not heard:
        pair.run(0.1)
        turns, pair.turns = pair.turns, []
        assert len(turns) <= most
        pair.cut = True
        for turn in turns:
            heard.append(turn.who)
            pair.owner.tell(pair.remote(turn.who), bytes(PAGE_BYTES))
            pair.owner.end_turn(pair.key, turn.who)
        pair.run(0.1)
        # What was told is not received: nobody else has a turn.
        assert len(turns) < most or not pair.turns
        pair.cut = False
        pair.run(1.0)
    assert heard == list(range(1, 21))


def test_who_waits_for_a_turn_waits_no_more_when_the_session_ends(pair):
    pair.cut = True
    pair.owner.tell(pair.remote(1), bytes(BACKLOG_BYTES))
    pair.owner.ask_turn(pair.key, 5, PAGE_BYTES)
    pair.run()
    assert not pair.turns
    pair.run(SILENCE_SECONDS + 0.5)
    assert [one.who for one in pair.turns] == [5]


def test_who_leaves_waits_for_no_turn_and_keeps_none():
    pair = Pair().attach(1, 2, 3)
    pair.owner.ask_turn(pair.key, 9, BACKLOG_BYTES)
    pair.run()
    pair.owner.ask_welcome(pair.remote(1))
    pair.owner.drain(pair.remote(2))
    assert [one.who for one in pair.turns] == [9]
    for one in (1, 2, 3):
        pair.do(pair.edge.leave(one))
    pair.run(0.1)
    assert [one.who for one in pair.turns] == [9, 1, 2]
    # It is gone before it is welcomed, and is told nothing.
    pair.owner.ask_welcome(pair.remote(3))
    pair.owner.tell(pair.remote(3), b"welcome")
    assert not any(pair.owner.waits(pair.key, one) for one in (1, 2, 3))
    pair.owner.end_turn(pair.key, 9)
    pair.run(0.1)
    (session,) = pair.owner._sessions.values()
    assert not session.turns
    assert len(pair.turns) == 3


def test_what_another_node_epoch_or_session_says_is_not_the_owners_word(pair):
    pair.edge.send(1, [b"hello"])
    said = Batch(pair.edge._queued + 1, (Spoken(1, 1, (b"one",)),), resolved=2)

    def packet(epoch: int, session: int) -> ToEdge:
        return ToEdge(7, epoch, session, (said,), 2, said.number)

    for sender, epoch, session in (("x", 1, 1), ("o", 2, 1), ("o", 0, 1), ("o", 1, 2), ("o", 1, 0)):
        [ending] = pair.edge.receive(sender, packet(epoch, session), pair.now)
        assert ending == SendPacket(sender, EndSession(7, epoch, session))
        assert pair.edge.receive(sender, NotOwner(7, epoch, session), pair.now) == []
    assert pair.edge.owner == Place("o", 1)
    assert pair.edge.delivered == 0
    assert of(Overheard, pair.edge.receive("o", packet(1, 1), pair.now)) == [Overheard((b"one",))]


@pytest.mark.parametrize("epoch", [0, 2])
def test_what_is_meant_for_an_owner_before_or_after_is_not_taken(epoch):
    owner = Owner(7, 1, lambda now: True, durable=True)
    packet = ToOwner(7, epoch, 1, 1, (JoinRoom(1, b"who", None),), 0, False)
    assert owner.receive("e", packet, 0.0) == [SendPacket("e", NotOwner(7, epoch, 1))]
    assert owner.nodes == []
    joined = ToOwner(7, 1, 1, 1, (JoinRoom(1, b"who", None),), 0, False)
    assert of(Arrived, owner.receive("e", joined, 0.0))
    assert owner.receive("e", EndSession(7, epoch, 1), 0.0) == []
    assert owner.nodes == ["e"]


def test_an_old_session_never_begins_again(pair):
    joined = ToOwner(7, 1, 1, 1, (JoinRoom(1, b"who", None),), 0)
    pair.do(pair.edge.end())
    assert pair.departed == [pair.remote(1)]
    (effect,) = pair.owner.receive("e", joined, pair.now)
    assert effect == SendPacket("e", NotOwner(7, 1, 1))
    # Nor does its end, told again, end another.
    assert pair.owner.receive("e", EndSession(7, 1, 1), pair.now) == []


def test_an_edge_says_when_it_has_too_much_on_its_way(pair):
    for _ in range(MAX_COMMANDS):
        assert not pair.edge.is_full
        pair.edge.send(1, [b"x"])
    assert pair.edge.is_full


def test_a_connection_that_is_held_twice_is_held_once_and_let_go_when_the_owner_changes(pair):
    for held in (True, True, False, False, True, True):
        pair.owner.hold(pair.remote(1), held=held)
        pair.run()
    effects = pair.edge.owner_is(Place("p", 2), pair.now)
    assert of(HoldConnection, [*pair.seen, *effects]) == [
        HoldConnection(1, held=held) for held in (True, False, True, False)
    ]


@pytest.mark.parametrize("data", [b"", b"\x93\x01\x02\x03", encode(NotOwner(7, 1, 1))[:-1]])
def test_bytes_that_are_no_packet_are_dropped(data):
    assert decode(data) is None


def test_an_answer_that_comes_in_parts_is_given_whole(pair):
    pair.do(pair.edge.ask(5, b"who is here?"))
    pair.ask(6, b"what is proposed?")
    for call, part in ((5, b"ada, "), (6, b"to mow, "), (5, b"bob, ")):
        pair.owner.answer(pair.key, call, part, more=True)
    pair.run()
    assert not of(CallAnswered, pair.seen)
    pair.owner.answer(pair.key, 5, b"cyd")
    pair.owner.answer(pair.key, 6, b"to bake")
    pair.resolve()
    pair.run()
    answers = [CallAnswered(5, b"ada, bob, cyd"), CallAnswered(6, b"to mow, to bake")]
    assert of(CallAnswered, pair.seen) == answers


def test_a_part_of_an_answer_is_no_answer_when_the_owner_is_lost(pair):
    pair.ask(5, b"who is here?")
    pair.owner.answer(pair.key, 5, b"ada, ", more=True)
    pair.run()
    pair.cut = True
    pair.run(2 * SILENCE_SECONDS)
    assert pair.answers == [(5, None)]
    pair.cut = False
    pair.owner.answer(pair.key, 5, b"bob")
    pair.run(2 * SILENCE_SECONDS)
    assert pair.answers == [(5, None)]


@pytest.mark.parametrize("failure", ["cannot be resolved", "too large to be sent"])
def test_a_node_whose_commands_are_not_done_begins_anew_without_them(failure):
    pair = Pair().attach(1, 2)
    pair.do(pair.edge.send(1, [b"lost"]))
    pair.do(pair.edge.ask(5, b"who is here?"))
    if failure == "cannot be resolved":
        pair.run()
        pair.do(pair.owner.end_session(pair.key))
    else:
        for _ in range(2):
            pair.do(pair.edge.too_large(pair.sessions, pair.now))
    assert (pair.shut, pair.answers, pair.owner.nodes) == ([1], [(5, None)], [])
    assert pair.departed
    pair.arrived.clear()
    pair.find_owner()
    assert pair.commands == [JoinRoom(2, b"who", 0, True)]
    assert pair.sessions == 2
