"""TapeServer: a server that answers from a tape.

It is a carrier like any other, so whatever carries messages to a server carries them to a tape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.core.ports import Clock
from folkmoot.core.transport import ConnectionInfo, TransportContext
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier, EnvelopeQueue
from folkmoot.mcp.wire import LISTEN, PING, cancelled_id, refusal
from folkmoot.proxy.replay.answers import Voice, discovery, other_era
from folkmoot.proxy.replay.matching import GREETINGS, Index, Mode, Prompter, told
from folkmoot.proxy.replay.script import Beat, RecordedCall, Script
from folkmoot.proxy.tape import Tape
from folkmoot.taskgroups import BackgroundTasks, background_tasks

MOST_PLAYING: Final = 1024
"""Requests that are being answered at once; a further one is refused."""
MOST_MISSES: Final = 1000
"""Requests without an answer that are remembered; later ones are only refused."""
ENDED: Final = "The tape is no longer played."
BEFORE_ANSWER: Final = 0.02
"""Seconds between what a call tells and its answer. Some clients drop what they were told of a call
if its answer is there at the same time.
"""
LONGEST_PAUSE: Final = 300.0
"""How many seconds of silence are kept, however the tape's are scaled."""


class Replay(Entity):
    """A tape that is served, to one conversation after the other or to several at once.

    A tape of one conversation begins anew for each. On a tape of several, equal requests go on
    where the last one stopped, whoever asks. `ignore` holds patterns of places in requests that do
    not count when they are compared.
    """

    tape: Tape
    clock: Clock
    mode: Mode = Mode.ARGUMENTS
    timing: float = 0.0
    once: bool = False
    ignore: Sequence[str] = ()
    on_miss: Callable[[e.TapeExhausted], None] | None = None
    _asked: set[int] = set()
    misses: list[e.TapeExhausted] = []
    """What was asked for and is not on the tape."""

    def __post_init__(self) -> None:
        self.script = Script.of(self.tape.entries)
        self._index = Index(self.script, self.mode, self.ignore)
        self._shared = (
            Prompter(self._index, once=self.once) if self.script.conversations > 1 else None
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[TapeServer]:
        """One conversation with the recorded server."""
        prompter = self._shared or Prompter(self._index, once=self.once, asked=self._asked)
        async with background_tasks() as playing:
            server = TapeServer(
                prompter, self.clock, playing, timing=self.timing, on_miss=self._missed
            )
            try:
                yield server
            finally:
                await server.close()

    def unasked(self) -> list[RecordedCall]:
        """The recorded requests not made yet, in order."""
        asked = self._shared.asked if self._shared else self._asked
        # Pings are answered without the tape, however many there are.
        calls = (call for call in self.script.calls if call.message.method != PING)
        return [call for call in calls if call.seq not in asked]

    def _missed(self, error: e.TapeExhausted) -> None:
        if len(self.misses) < MOST_MISSES:
            self.misses.append(error)
        if self.on_miss is not None:
            self.on_miss(error)


class TapeServer(Carrier):
    """One conversation with a recorded server."""

    def __init__(
        self,
        prompter: Prompter,
        clock: Clock,
        playing: BackgroundTasks,
        *,
        timing: float = 0.0,
        on_miss: Callable[[e.TapeExhausted], None] | None = None,
    ) -> None:
        super().__init__(MessageDirection.SERVER_TO_CLIENT, clock, PROXY_LIMITS)
        self._prompter = prompter
        self._playing = playing
        self._timing = timing
        self._on_miss = on_miss
        self._closed = False
        self._out = EnvelopeQueue(ENDED)
        """What was said and nobody has taken yet; when it is full, the tape stands still."""
        self._answering: dict[MessageId, asyncio.Task[None]] = {}
        self._awaited: dict[MessageId, asyncio.Future[None]] = {}
        self._ids = count(1)
        self._context = TransportContext(None, ConnectionInfo("tape"))
        if opening := prompter.script.opening:
            playing.run(self._play(opening, Voice()))

    @property
    def waiting(self) -> bool:
        """Whether a message is there already."""
        return bool(self._out.held)

    def current_context(self) -> TransportContext:
        """The transport context of a tape."""
        return self._context

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next thing the recorded server says."""
        return await self._out.get()

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Say something to the recorded server."""
        self.check_way(envelope)
        if self._closed:
            raise e.TransportClosed(ENDED)
        message = envelope.message
        if isinstance(message, Request):
            await self._asked(message)
        elif isinstance(message, Response):
            self._heard_answer(message)
        elif (cancelled := cancelled_id(message)) is not None:
            if (task := self._answering.pop(cancelled, None)) is not None:
                task.cancel()
        elif cue := self._prompter.cue_for(message):
            self._playing.run(self._play(cue.beats, Voice()))

    async def close(self) -> None:
        """Say nothing more."""
        self._closed = True
        self._out.end()
        self._playing.end()

    async def _asked(self, request: Request) -> None:
        if request.method == PING:
            await self._say(Response(id=request.id, result={}))
        elif len(self._playing) >= MOST_PLAYING:
            refused = e.TooManyInFlight("The tape has too many requests to answer at once.")
            await self._say(refusal(request.id, refused))
        else:
            found = self._find(request)
            if isinstance(found, Response):
                await self._say(found)
            else:
                self._answering[request.id] = self._playing.run(self._answer(found, request))

    def _find(self, request: Request) -> RecordedCall | Response:
        """The recorded call, or what to say in its place."""
        script = self._prompter.script
        if (found := discovery(request, script)) is not None:
            return found
        foreign = other_era(request, script)
        if foreign is not None and request.method not in GREETINGS:
            return foreign
        try:
            return self._prompter.call_for(request)
        except e.TapeExhausted as error:
            if foreign is not None:
                return foreign
            return self._miss(request, error)

    def _miss(self, request: Request, error: e.TapeExhausted) -> Response:
        if self._on_miss is not None:
            self._on_miss(error)
        return refusal(request.id, error)

    async def _answer(self, call: RecordedCall, request: Request) -> None:
        try:
            await self._play(call.beats, Voice(request), request.id)
            if not (call.answered or call.cancelled or request.method == LISTEN):
                error = e.TapeExhausted(
                    f"The tape ends before {told(request)} is answered.", method=request.method
                )
                await self._say(self._miss(request, error))
        finally:
            self._answering.pop(request.id, None)

    async def _play(
        self, beats: tuple[Beat, ...], voice: Voice, answering: MessageId | None = None
    ) -> None:
        told = False
        for beat in beats:
            if self._timing:
                await asyncio.sleep(min(beat.pause * self._timing, LONGEST_PAUSE))
            elif told and isinstance(beat.message, Response):
                await asyncio.sleep(BEFORE_ANSWER)
            fresh = f"tape-{next(self._ids)}"
            message = voice.say(beat.message, fresh)
            if message is None:
                continue
            if isinstance(message, Response) and answering is not None:
                # From here on the client has its answer, and can take back nothing.
                self._answering.pop(answering, None)
            if beat.answered:
                await self._ask(message, fresh)
            else:
                await self._say(message)
                told = isinstance(message, Notification)

    async def _ask(self, request: ProtocolMessage, fresh: MessageId) -> None:
        """Ask the live client, and go on when it has answered."""
        answered = asyncio.get_running_loop().create_future()
        self._awaited[fresh] = answered
        try:
            await self._say(request)
            await answered
        finally:
            self._awaited.pop(fresh, None)

    def _heard_answer(self, response: Response) -> None:
        answered = None if response.id is None else self._awaited.get(response.id)
        if answered is not None and not answered.done():
            answered.set_result(None)

    async def _say(self, message: ProtocolMessage) -> None:
        await self._out.put(self.envelope_of(message), 0)
