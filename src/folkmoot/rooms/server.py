"""A live room as other nodes use it: each connection elsewhere is an outlet of the room here.

What the room broadcasts leaves once for each node.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from folkmoot.cluster import (
    Arrived,
    Departed,
    Owner,
    OwnerEffect,
    RemoteKey,
    SessionKey,
    TurnGiven,
)
from folkmoot.cluster.limits import PAGE_BYTES
from folkmoot.cluster.messages import (
    AskOwner,
    Command,
    Drained,
    JoinRoom,
    LeaveRoom,
    SendMessages,
)
from folkmoot.cluster.node import Driven, NodeTraffic
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.entity import Entity
from folkmoot.rooms.journal import Barrier, Spawn
from folkmoot.rooms.ports import Crowd, Outlet
from folkmoot.rooms.remote_calls import (
    LONG_CALLS,
    ChangeRoom,
    JoinBody,
    answer_call,
    encode_failure,
    read_call,
    read_refusal,
)

if TYPE_CHECKING:
    from folkmoot.rooms.live import LiveRoom

logger = logging.getLogger("folkmoot.rooms")

UNRESOLVED: Final = "what another node sent cannot be resolved; it begins anew"

Numbered: TypeAlias = tuple[int, Command]


class RemoteOutlet(Entity):
    """A connection on another node."""

    server: RoomServer
    key: RemoteKey
    _open: bool = True

    @property
    def is_open(self) -> bool:
        """Whether the node still has it."""
        return self._open

    def tell(self, data: bytes) -> None:
        """Send a message after everything before."""
        if self._open:
            self.server.owner.tell(self.key, data)
            self.server.touch()

    def close(self, code: CloseCode) -> None:
        """Have the connection closed, unless the room only goes to another node."""
        if self._open:
            self._open = False
            self.server.closed(self, code)

    def hold(self) -> None:
        """Have the connection not be read for now."""
        self.server.owner.hold(self.key, held=True)
        self.server.touch()

    def release(self) -> None:
        """Have the connection read again."""
        self.server.owner.hold(self.key, held=False)
        self.server.touch()

    async def drained(self) -> None:
        """Wait until it has read most of what it was told, and its node can be told a page."""
        if self._open:
            await self.server.drained(self.key)

    def leave(self) -> None:
        """The connection is gone."""
        self._open = False


class NodeCrowd(Entity):
    """Those who hear a room: on this node, and on others."""

    local: Crowd
    server: RoomServer | None = None

    def add(self, outlet: Outlet) -> None:
        """Let a connection hear."""
        if isinstance(outlet, RemoteOutlet):
            if self.server is not None:
                self.server.start_hearing(outlet)
        else:
            self.local.add(outlet)

    def remove(self, outlet: Outlet) -> None:
        """Let it hear no more."""
        if isinstance(outlet, RemoteOutlet):
            if self.server is not None:
                self.server.owner.stop_hearing(outlet.key)
        else:
            self.local.remove(outlet)

    def broadcast(self, messages: Sequence[bytes]) -> None:
        """Tell all of them, in this order."""
        self.local.broadcast(messages)
        if self.server is not None:
            self.server.speak(messages)


class RoomServer:
    """A live room, for the nodes that have connections to it."""

    def __init__(self, live: LiveRoom, crowd: NodeCrowd, epoch: int, change: ChangeRoom) -> None:
        self._change = change
        self.live = live
        self.owner = Owner(live.room_id, epoch, lambda _: not live.is_ended, durable=live.durable)
        self.driven: Driven[Owner]
        self._spawn: Spawn
        self._crowd = crowd
        self._outlets: dict[RemoteKey, RemoteOutlet] = {}
        self._commands: dict[SessionKey, deque[Numbered]] = {}
        """Of each session in which someone comes in, the commands that wait for that."""
        self._turns: dict[RemoteKey, asyncio.Future[None]] = {}
        """Who waits for a turn, a connection or a call."""

    def start(self, traffic: NodeTraffic, spawn: Spawn) -> Driven[Owner]:
        """Begin to take packets."""
        self._spawn = spawn
        self.driven = traffic.add_owner(self.owner, self._perform)
        self._crowd.server = self
        return self.driven

    def touch(self) -> None:
        """Something waits to be sent."""
        self.driven.touch()

    def start_hearing(self, outlet: RemoteOutlet) -> None:
        """Let a connection hear what is said from now on."""
        self.owner.start_hearing(outlet.key, self.live.delivered)
        self.touch()

    def speak(self, messages: Sequence[bytes]) -> None:
        """Tell every node that hears."""
        self.owner.speak(self.live.delivered - len(messages) + 1, messages)
        self.touch()

    def closed(self, outlet: RemoteOutlet, code: CloseCode) -> None:
        """The room closes a connection."""
        self._outlets.pop(outlet.key, None)
        self._give_turn(outlet.key)
        # Its node says no more of it. Soon, as the end of a connection here is told.
        asyncio.get_running_loop().call_soon(self.live.left, outlet)
        if not self.live.is_taken_over:
            self.owner.close(outlet.key, code)
            self.touch()

    def _perform(self, effect: OwnerEffect) -> None:
        if type(effect) is Departed:
            self._leave(effect.remote)
        elif type(effect) is TurnGiven:
            self._give_turn(RemoteKey(effect.key, effect.who))
        elif type(effect) is Arrived:
            commands = enumerate(effect.commands, effect.first)
            if (waiting := self._commands.get(effect.key)) is not None:
                waiting.extend(commands)
                return
            rest = deque(commands)
            try:
                self._carry_out(effect.key, rest)
            except Exception:
                logger.exception(UNRESOLVED)
                self.driven.run(self.owner.end_session(effect.key))
                return
            if rest:
                self._commands[effect.key] = rest
                self._spawn(self._let_in(effect.key, rest))

    async def drained(self, remote: RemoteKey) -> None:
        """Wait until a connection has read most of what it was told, and for its turn."""
        self.owner.drain(remote)
        await self._turn(remote)

    async def _turn(self, remote: RemoteKey) -> None:
        """Wait for a turn that was asked for; whoever is gone needs none."""
        if not self.owner.waits(*remote):
            return
        self.touch()
        given = self._turns[remote] = asyncio.get_running_loop().create_future()
        try:
            await given
        finally:
            if self._turns.get(remote) is given:
                del self._turns[remote]

    def _give_turn(self, remote: RemoteKey) -> None:
        given = self._turns.pop(remote, None)
        if given is not None and not given.done():
            given.set_result(None)

    def end(self) -> None:
        """The room is here no more: nobody waits for it."""
        for remote in list(self._turns):
            self._give_turn(remote)

    def _carry_out(self, key: SessionKey, commands: deque[Numbered]) -> None:
        """Carry out a node's commands in their order, up to one by which someone comes in."""
        done: list[int] = []
        while commands and type(commands[0][1]) is not JoinRoom:
            number, command = commands.popleft()
            try:
                if type(command) is SendMessages:
                    outlet = self._outlets.get(RemoteKey(key, command.connection))
                    if outlet is not None:
                        self.live.receive(outlet, *command.messages)
                elif type(command) is LeaveRoom:
                    self._leave(RemoteKey(key, command.connection))
                elif type(command) is Drained:
                    continue
                elif type(command) is AskOwner and not self._refuse(key, command):
                    self._spawn(self._answer(key, number, command))
                    continue
            except Exception:
                logger.exception("a command of another node failed")
                self._failed(key, command)
            done.append(number)
        self._resolve_after(key, done)

    async def _let_in(self, key: SessionKey, commands: deque[Numbered]) -> None:
        """Let those in who come, and carry out the commands behind, in their order."""
        try:
            while commands:
                number, command = commands.popleft()
                if type(command) is JoinRoom:
                    try:
                        await self._join(key, command)
                    except Exception:
                        logger.exception("a command of another node failed")
                        self._failed(key, command)
                    self._resolve_after(key, [number])
                self._carry_out(key, commands)
        except Exception:
            logger.exception(UNRESOLVED)
            self.driven.run(self.owner.end_session(key))
        finally:
            del self._commands[key]

    def _failed(self, key: SessionKey, command: Command) -> None:
        """Tell whom a command concerns that it failed; the others of its node go on."""
        if isinstance(command, AskOwner):
            self.owner.answer(key, command.call, encode_failure())
        else:
            remote = RemoteKey(key, command.connection)
            outlet = self._outlets.get(remote) or RemoteOutlet(self, remote)
            outlet.close(CloseCode.INTERNAL)

    async def _join(self, key: SessionKey, command: JoinRoom) -> None:
        remote = RemoteKey(key, command.connection)
        outlet = RemoteOutlet(self, remote)
        try:
            body = msgspec.msgpack.decode(command.body, type=JoinBody)
            self.owner.ask_welcome(remote)
            await self._turn(remote)
            await self.live.prepare(body.visitor.principal.account_id)
            if not self.owner.has(key):
                # The node fell silent meanwhile: nobody would say that the connection ended.
                return
            self._outlets[remote] = outlet
            # One that was here before the room changed its owner heard this very room.
            epoch = self.live.status.epoch if command.again else body.epoch
            self.live.join(
                outlet,
                body.visitor,
                body.role,
                conn=body.conn,
                after=command.after,
                epoch=epoch,
                serve=body.serve,
                linger=body.linger,
                credential=body.credential,
            )
        except e.FolkmootError as error:
            outlet.close(error.close)
        except msgspec.DecodeError:
            outlet.close(CloseCode.RESTARTING)

    def _refuse(self, key: SessionKey, command: AskOwner) -> bool:
        """Tell a connection that something before the room refused a message of its."""
        refusal = read_refusal(command.body)
        if refusal is None:
            return False
        outlet = self._outlets.get(RemoteKey(key, refusal.connection))
        if outlet is not None:
            self.live.refuse(outlet, refusal.message, refusal.error.error)
        return True

    async def _answer(self, key: SessionKey, number: int, command: AskOwner) -> None:
        asked = read_call(command.body)
        remote = RemoteKey(key, command.call)
        if asked.name in LONG_CALLS:
            await self._page_turn(remote)
        body = await answer_call(self.live, self._change, asked)
        last = max(len(body) - 1, 0) // PAGE_BYTES * PAGE_BYTES
        for start in range(0, last, PAGE_BYTES):
            self.owner.answer(*remote, body[start : start + PAGE_BYTES], more=True)
            await self._page_turn(remote)
        self.owner.answer(*remote, body[last:])
        self.owner.resolve(key, number)
        self.touch()

    async def _page_turn(self, remote: RemoteKey) -> None:
        self.owner.ask_turn(*remote, PAGE_BYTES)
        await self._turn(remote)

    def _leave(self, remote: RemoteKey) -> None:
        outlet = self._outlets.pop(remote, None)
        if outlet is not None:
            outlet.leave()
            self._give_turn(remote)
            self.live.left(outlet)

    def _resolve_after(self, key: SessionKey, numbers: Sequence[int]) -> None:
        """Resolve commands once everything they brought about was carried out."""

        def carried_out(error: e.FolkmootError | None) -> None:
            if error is None:
                self.owner.resolve(key, *numbers)
                self.touch()

        if not numbers:
            return
        if self.live.has_lookups:
            self._spawn(self._resolve_later(key, carried_out))
        else:
            self.live.perform([Barrier(carried_out)])

    async def _resolve_later(
        self, key: SessionKey, carried_out: Callable[[e.FolkmootError | None], None]
    ) -> None:
        try:
            await self.live.flushed()
            carried_out(None)
        except e.FolkmootError:
            if not self.live.is_ended:
                self.driven.run(self.owner.end_session(key))
        except Exception:
            logger.exception(UNRESOLVED)
            self.driven.run(self.owner.end_session(key))

    async def finish(self) -> None:
        """Wait until all that was taken is resolved."""
        while not self.owner.is_resolved:
            await self.live.flushed()
            await asyncio.sleep(0.01)
