"""The pump: carries one conversation between two carriers, until one of them is gone.

What waits, because an interceptor has it wait, lets the others go by. The cost of a message does
not depend on how many were carried before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import MessageId, ProtocolMessage, Request, Response
from folkmoot.core.verdict import Block
from folkmoot.mcp.carrier import ABOUT, Carrier, Connect
from folkmoot.mcp.client.link import ServerLink
from folkmoot.mcp.eras import EraBridge, Step, ToClient, ToServer
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.conversation import ProxyConversation
from folkmoot.relay.steps import TO_CLIENT, TO_SERVER, Envelope, Passed, Steps, answer_of

logger = logging.getLogger("folkmoot.proxy")

MOST_WAITING: Final = 256
"""Messages of a conversation that interceptors may have waiting at once."""
MOST_TOGETHER: Final = 256
"""Messages that are taken together before what is to leave of them is sent."""
EXPIRE_SECONDS: Final = 30.0
"""How often clients are looked for that take too long to answer what a server asked."""
DRAIN_SECONDS: Final = 5.0
"""How long a server may still answer a client that has said all it wanted to say."""


class Pump(Entity):
    """One conversation on its way; `run` carries it until it ends."""

    client: Carrier
    server: Carrier
    conversation: ProxyConversation
    steps: Steps
    eras: EraBridge
    used: Callable[[], None]
    _waiting: int = 0
    _taken: int = 0
    """Counts the turns in which messages were carried."""
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _client_there: bool = True
    deserted: bool = False
    """Whether the server ended while the client was still there."""
    _own: dict[MessageId, e.FolkmootError] = {}
    """Requests whose next answer is made by the link, since the server gives none."""

    def __post_init__(self) -> None:
        self._ends = {TO_SERVER: self.server, TO_CLIENT: self.client}
        self._client_said = self.client.current_context()
        """What the transport of the client's last message says of the client."""
        if isinstance(self.server, ServerLink):
            self.server.failing = self._own.__setitem__

    def end(self) -> None:
        """End the conversation, whatever is still to be said in it."""
        self._ended.set()

    async def run(self) -> None:
        """Carry until the client or the server is gone, or the tape cannot be written."""
        unwritable: e.TapeUnwritable | None = None
        try:
            async with self._tasks as tasks:
                ways: list[asyncio.Task[Any]] = [
                    tasks.create_task(self._carry(self._ends[TO_CLIENT], self._client_left)),
                    tasks.create_task(self._carry(self._ends[TO_SERVER], self._server_left)),
                    tasks.create_task(self._ended.wait()),
                    tasks.create_task(self._expire()),
                    tasks.create_task(self._stuck()),
                ]
                tasks.create_task(self._listen())
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                # The group ends with it, and what still waits in it.
                raise _Over  # noqa: TRY301
        except* _Over:
            pass
        except* e.TapeUnwritable as failed:
            unwritable = _first(failed)
        finally:
            # A message may be noted, and the pump cancelled while the next one is judged.
            with suppress(e.TapeUnwritable):
                self.steps.commit()
        if unwritable is not None:
            await self._give_up(unwritable)
            raise unwritable

    async def _carry(self, source: Carrier, left: Callable[[], Awaitable[None]]) -> None:
        """Everything that comes out of one end, to the other."""
        there = True
        while there:
            leaving: list[Envelope] = []
            count = 1
            try:
                await self._take(*await source.receive_tagged(), leaving)
                while source.waiting and count < MOST_TOGETHER:
                    if self.steps.chain.interceptors:
                        # However long they judge the next one, this one is on the tape.
                        self.steps.commit()
                    await self._take(*await source.receive_tagged(), leaving)
                    count += 1
            except e.TransportClosed:
                await self._send(leaving)
                await left()
                return
            self.used()
            self._taken += 1
            there = await self._send(leaving)

    async def _take(
        self, envelope: Envelope, about: MessageId | None, leaving: list[Envelope]
    ) -> None:
        """What is to leave because a message came; `about` is the request it was said during."""
        message = envelope.message
        if self._own and type(message) is Response and message.id is not None:
            error = self._own.pop(message.id, None)
            if error is not None:
                self._answer(envelope, error, leaving)
                return
        if envelope.context.direction is TO_CLIENT and self._bridging:
            await self._bridge_to_client(envelope, about, leaving)
        else:
            await self._admit(envelope, leaving)

    def _answer(self, envelope: Envelope, error: e.FolkmootError, leaving: list[Envelope]) -> None:
        """Answer in the place of the server, which is told apart from its answers on the tape."""
        steps: list[Step] = [ToClient(envelope.message)]
        if self._bridging:
            steps = self.eras.from_server(envelope.message)
        for step in steps:
            if isinstance(step, ToServer):
                self._say_to_server(envelope, step, leaving)
            elif isinstance(step.message, Response):
                leaving.append(self.steps.answer(step.message, error, self.conversation))

    async def _admit(self, envelope: Envelope, leaving: list[Envelope]) -> None:
        self._put(await self.steps.carry(envelope, self.conversation, self._aside), leaving)

    def _aside(self, rest: Callable[[], Awaitable[Passed]]) -> e.TooManyInFlight | None:
        """Have a message wait that an interceptor has waiting, unless too many do."""
        if self._waiting >= MOST_WAITING:
            return e.TooManyInFlight("Too many messages wait for a decision.")
        self._waiting += 1
        self._tasks.create_task(self._wait(rest))
        return None

    async def _wait(self, rest: Callable[[], Awaitable[Passed]]) -> None:
        leaving: list[Envelope] = []
        try:
            passed = await rest()
        finally:
            self._waiting -= 1
        self._put(passed, leaving)
        await self._send(leaving)

    def _put(self, passed: Passed, leaving: list[Envelope]) -> None:
        if passed.back is not None:
            leaving.append(passed.back)
        onward = passed.onward
        if onward is None:
            return
        if onward.context.direction is TO_SERVER and self._bridging:
            self._bridge_to_server(onward, leaving)
        else:
            leaving.append(onward)

    async def _send(self, leaving: list[Envelope]) -> bool:
        """Send what is to leave, after all of it is on the tape; whether both ends are there."""
        self.steps.commit()
        for envelope in leaving:
            direction = envelope.context.direction
            try:
                await self._ends[direction].send_envelope(envelope)
            except e.TransportClosed:
                if direction is TO_SERVER:
                    await self._server_left()
                return False
            except e.CarryError as error:
                await self._not_carried(envelope, error)
        return True

    async def _not_carried(self, envelope: Envelope, error: e.CarryError) -> None:
        """One message could not be carried, and the conversation goes on."""
        message, direction = envelope.message, envelope.context.direction
        logger.warning("a message was not carried", extra={"error": error.message})
        if not isinstance(message, Request):
            return
        answer = answer_of(Block(error), message.id)
        if direction is TO_SERVER:
            await self._tell_client(answer, error)
        else:
            self.conversation.close(direction, message.id)
            with suppress(e.TransportClosed):
                await self._ends[TO_SERVER].send(answer)

    @property
    def _bridging(self) -> bool:
        return not self.eras.transparent

    def _bridge_to_server(self, envelope: Envelope, leaving: list[Envelope]) -> None:
        """A message of the client's, as the server's era says it."""
        self._client_said = envelope.context.transport
        for step in self.eras.from_client(envelope.message):
            if isinstance(step, ToServer):
                self._say_to_server(envelope, step, leaving)
            else:
                self._say_for_server(step.message, leaving)

    def _say_for_server(self, message: ProtocolMessage, leaving: list[Envelope]) -> None:
        made = self.conversation.enter(self._ends[TO_SERVER].envelope_of(message))
        self._put(self.steps.pass_on(made, self.conversation), leaving)

    async def _bridge_to_client(
        self, envelope: Envelope, about: MessageId | None, leaving: list[Envelope]
    ) -> None:
        """A message of the server's, as the client's era says it."""
        for step in self.eras.from_server(envelope.message, about):
            if isinstance(step, ToServer):
                self._say_to_server(envelope, step, leaving)
                continue
            told = envelope.with_message(step.message)
            if step.about is not None:
                told = told.with_extension(ABOUT, step.about)
            await self._admit(told, leaving)

    def _say_to_server(self, about: Envelope, step: ToServer, leaving: list[Envelope]) -> None:
        """Send the server what the bridge says, after the time that it is to wait."""
        envelope = about.with_message(step.message)
        if about.context.direction is not TO_SERVER:
            # It is said in the client's name, whatever brought it about.
            envelope = envelope.with_direction(TO_SERVER).with_transport(self._client_said)
        if step.after and self._waiting < MOST_WAITING:
            self._waiting += 1
            self._tasks.create_task(self._later(envelope, step.after))
        else:
            leaving.append(envelope)

    async def _later(self, envelope: Envelope, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting -= 1
        await self._send([envelope])

    async def _expire(self) -> None:
        """Now and then, let the bridge give up calls whose clients take too long to answer."""
        while True:
            await asyncio.sleep(EXPIRE_SECONDS)
            await self._say(self.eras.expire(asyncio.get_running_loop().time()))

    async def _listen(self) -> None:
        """Have changes announced once the client listens for them."""
        await self._ends[TO_CLIENT].listening()
        await self._say(self.eras.listen())

    async def _say(self, steps: list[Step]) -> None:
        """Send what the bridge says though nothing came."""
        for step in steps:
            leaving: list[Envelope] = []
            if isinstance(step, ToServer):
                context = self._ends[TO_SERVER].context_of(TO_SERVER, self._client_said)
                leaving.append(MessageEnvelope(step.message, context))
            else:
                self._say_for_server(step.message, leaving)
            await self._send(leaving)

    async def _client_left(self) -> None:
        """Let the server answer what the client asked last, for a while, if it still listens."""
        self._client_there = False
        if not self._ends[TO_CLIENT].reachable:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.conversation.settled()

    async def _stuck(self) -> None:
        """End what cannot go on: the client says nothing more, and the server takes nothing."""
        await self._ends[TO_CLIENT].silent()
        before = -1
        while before != self._taken:
            before = self._taken
            await asyncio.sleep(2 * DRAIN_SECONDS)

    async def _server_left(self) -> None:
        self.deserted = self._client_there
        await self._give_up(e.ServerUnreachable("The server ended before it answered."))

    async def _give_up(self, error: e.FolkmootError) -> None:
        """Leave nothing without an answer."""
        for message_id in self.conversation.open_requests(TO_SERVER):
            await self._tell_client(answer_of(Block(error), message_id), error)

    async def _tell_client(self, answer: Response, error: e.FolkmootError) -> None:
        """Answer the client ourselves, whatever becomes of the tape."""
        try:
            told = self.steps.answer(answer, error, self.conversation)
            self.steps.commit()
        except e.TapeUnwritable:
            self.conversation.answered(TO_CLIENT, answer)
            told = self._ends[TO_SERVER].envelope_of(answer)
        with suppress(e.TransportClosed):
            await self._ends[TO_CLIENT].send_envelope(told)


class _Over(Exception):
    """The conversation has ended, and so do the tasks of it that still wait."""


def _first(group: BaseExceptionGroup[e.TapeUnwritable]) -> e.TapeUnwritable:
    """The error that a group is about."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def carry(
    client: Carrier,
    connect: Connect,
    steps: Steps,
    sessions: SessionManager,
    *,
    key: str,
    named: bool = True,
    eras: bool = True,
    discoverable: bool = False,
) -> bool:
    """Carry one conversation until it ends; `key` is what its session is known by.

    With `eras` clients and servers of different eras are bridged; unless the server is to be
    `discoverable`, it answers `server/discover` itself.

    The answer says whether it was the server that ended it, and not the client.
    """
    session = sessions.open(key, named=named, lasting=client.shared)
    try:
        async with connect() as server:
            pump = Pump(
                client,
                server,
                ProxyConversation(session),
                steps,
                eras=EraBridge(
                    one_client=not client.shared,
                    discoverable=discoverable,
                    listening=False,
                    transparent=not eras,
                ),
                used=partial(sessions.use, session),
            )
            session.end = pump.end
            session.attended = lambda: client.attended
            await pump.run()
            return pump.deserted
    except e.ServerUnreachable as error:
        await refuse(client, error)
        raise
    finally:
        sessions.close(session)
        await client.close()


async def refuse(client: Carrier, error: e.FolkmootError) -> None:
    """Answer the first thing a client asks of a server that cannot be had."""
    with suppress(e.TransportClosed, TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            message = await client.receive()
            if isinstance(message, Request):
                await client.send(answer_of(Block(error), message.id))
