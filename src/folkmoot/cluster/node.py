"""The packets of a node: between its edges and owners and those of other nodes, over the bus.

Machines say what is to be done and when to ask them next. Here they are asked: at once when
something came, once for all that happened in a turn of the loop, and when it is time.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from folkmoot.cluster.edge import Edge
from folkmoot.cluster.lease import boot_time
from folkmoot.cluster.limits import MIN_POLL_SECONDS, RESEND_SECONDS
from folkmoot.cluster.messages import (
    AskNode,
    EndSession,
    NodeAnswer,
    NotOwner,
    Packet,
    SendPacket,
    ToEdge,
    ToOwner,
    decode,
    encode,
)
from folkmoot.cluster.owner import Owner, SessionKey
from folkmoot.core import errors as e
from folkmoot.core.ports import NodeBus

logger = logging.getLogger("folkmoot.cluster")

M = TypeVar("M", Edge, Owner)


class Driven(Generic[M]):
    """A machine that is asked when it is time, and whose effects are done in their order."""

    def __init__(
        self,
        machine: M,
        perform: Callable[[Any], None],
        send: Callable[[SendPacket], None],
        now: Callable[[], float],
    ) -> None:
        self.machine: M = machine
        self._perform = perform
        self._send = send
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._effects: deque[Any] = deque()
        self._performing = False
        self._soon = False
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf
        """When the timer ends."""
        self._ended = False

    def run(self, effects: Sequence[Any]) -> None:
        """Do what the machine asked for, and ask it at the end of this turn."""
        self._do(effects)
        self.touch()

    def _do(self, effects: Sequence[Any]) -> None:
        """Do what the machine asked for; what that brings about is done afterwards."""
        waiting = self._effects
        waiting.extend(effects)
        if self._performing:
            return
        self._performing = True
        try:
            while waiting and not self._ended:
                effect = waiting.popleft()
                if type(effect) is SendPacket:
                    self._send(effect)
                    continue
                try:
                    self._perform(effect)
                except Exception:
                    logger.exception("an effect of a room elsewhere failed")
        finally:
            self._performing = False

    def touch(self) -> None:
        """Ask the machine at the end of this turn: something may have changed."""
        if not self._soon and not self._ended:
            self._soon = True
            self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        self._soon = False
        now = self._now()
        effects: Sequence[Any] = ()
        if not self._ended and self.machine.due <= now:
            effects = self.machine.poll(now)
            self._do(effects)
        if self._ended or self._soon:
            return
        due = self.machine.due
        if effects and due <= now:
            self.touch()
        elif (due := max(due, now + MIN_POLL_SECONDS)) < self._alarm:
            # A timer that ends too early costs less than a new one each time.
            self._end_timer()
            self._alarm = due
            self._timer = self._loop.call_later(due - now, self._wake)

    def _wake(self) -> None:
        self._timer, self._alarm = None, math.inf
        self._poll()

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """Ask the machine no more."""
        self._ended = True
        self._effects.clear()
        self._end_timer()


class NodeTraffic:
    """The edges and owners of this node, by their rooms."""

    def __init__(
        self,
        bus: NodeBus,
        serve: Callable[[int, int], Driven[Owner] | None],
        is_loading: Callable[[int], bool],
        give_back: Callable[[int, int], None],
        answer: Callable[[bytes], bytes],
        now: Callable[[], float] = boot_time,
    ) -> None:
        self.node = bus.node
        self.now = now
        self._bus = bus
        self._serve = serve
        """Makes the owner of a room that this node has, in an epoch."""
        self._is_loading = is_loading
        self._give_back = give_back
        """Lets a room go, in an epoch, that others think is here."""
        self._answer = answer
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._edges: dict[int, Driven[Edge]] = {}
        self._owners: dict[int, Driven[Owner]] = {}
        self._sessions = self._calls = 0
        bus.receive(self._receive)

    @property
    def is_connected(self) -> bool:
        """Whether other nodes can be reached."""
        return self._bus.is_connected

    def add_edge(self, room: int, perform: Callable[[Any], None], *, durable: bool) -> Driven[Edge]:
        """Begin to be an edge of a room."""
        edge = Edge(room, self._new_session, self.now(), durable=durable)
        driven = Driven(edge, perform, self._send, self.now)
        self._edges[room] = driven
        return driven

    def remove_edge(self, driven: Driven[Edge]) -> None:
        """Be an edge no more."""
        driven.run(driven.machine.end())
        driven.end()
        if self._edges.get(driven.machine.room) is driven:
            del self._edges[driven.machine.room]

    def add_owner(self, owner: Owner, perform: Callable[[Any], None]) -> Driven[Owner]:
        """Serve a room to other nodes."""
        driven = Driven(owner, perform, self._send, self.now)
        self.remove_owner(owner.room)
        self._owners[owner.room] = driven
        return driven

    def remove_owner(self, room: int, epoch: int | None = None) -> None:
        """Serve a room no more: whoever asks is told that it is not here."""
        driven = self._owners.get(room)
        if driven is not None and epoch in (None, driven.machine.epoch):
            driven.end()
            del self._owners[room]

    async def ask(self, node: str, body: bytes) -> bytes:
        """Ask another node something that changes nothing; whoever asks sets a time limit."""
        self._calls += 1
        question = AskNode(self._calls, body)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[question.call] = answer
        try:
            while True:
                self._send(SendPacket(node, question))
                await asyncio.wait((answer,), timeout=RESEND_SECONDS)
                if answer.done():
                    return answer.result()
        finally:
            del self._asked[question.call]

    def _new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def _send(self, effect: SendPacket) -> None:
        if effect.node == self.node:
            asyncio.get_running_loop().call_soon(self._take, self.node, effect.packet)
        else:
            # What does not leave is sent again, or given up, by its machine.
            try:
                self._bus.send(effect.node, encode(effect.packet))
            except e.EventTooLarge:
                logger.warning("a packet to a node is too large", extra={"node": effect.node})
                self._too_large(effect.node, effect.packet)

    def _too_large(self, node: str, packet: Packet) -> None:
        """Have a machine give up what it would send again for ever."""
        if type(packet) is ToOwner and (edge := self._edges.get(packet.room)) is not None:
            edge.run(edge.machine.too_large(packet.session, self.now()))
        elif type(packet) is ToEdge and (owner := self._owners.get(packet.room)) is not None:
            owner.run(owner.machine.end_session(SessionKey(node, packet.session)))

    def _receive(self, sender: str, data: bytes) -> None:
        packet = decode(data)
        if packet is None:
            logger.warning("a packet of a node cannot be read", extra={"node": sender})
        else:
            self._take(sender, packet)

    def _take(self, sender: str, packet: Packet) -> None:
        if isinstance(packet, AskNode):
            self._send(SendPacket(sender, NodeAnswer(packet.call, self._answer(packet.body))))
            return
        if isinstance(packet, NodeAnswer):
            asked = self._asked.get(packet.call)
            if asked is not None and not asked.done():
                asked.set_result(packet.body)
            return
        if isinstance(packet, ToEdge | NotOwner):
            edge = self._edges.get(packet.room)
            if edge is not None:
                edge.run(edge.machine.receive(sender, packet, self.now()))
            elif type(packet) is ToEdge:
                end = EndSession(packet.room, packet.epoch, packet.session)
                self._send(SendPacket(sender, end))
            return
        owner = self._owners.get(packet.room)
        if type(packet) is ToOwner and (owner is None or owner.machine.epoch != packet.epoch):
            owner = self._serve(packet.room, packet.epoch) or owner
        if owner is not None:
            owner.run(owner.machine.receive(sender, packet, self.now()))
        elif type(packet) is ToOwner and not self._is_loading(packet.room):
            # One that is being loaded may be the one that is meant: the packet comes again.
            missing = NotOwner(packet.room, packet.epoch, packet.session)
            self._send(SendPacket(sender, missing))
            self._give_back(packet.room, packet.epoch)
