"""Plays the client of a tape against a live server, and tells how the answers compare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    MessageId,
    ProtocolMessage,
    Request,
    Response,
    replace,
)
from folkmoot.mcp.carrier import Carrier, Connect
from folkmoot.mcp.eras import EraBridge, ToServer
from folkmoot.mcp.eras import Step as EraStep
from folkmoot.mcp.wire import INITIALIZE, METHOD_NOT_FOUND, PING, error_answer
from folkmoot.proxy.jsonpath import JsonPath
from folkmoot.proxy.replay.matching import Mode, name_of, subject_of, told
from folkmoot.proxy.replay.playing import (
    ClientStep,
    Echoes,
    PlayedCall,
    PlayOutcome,
    PlayReport,
    RecordedClient,
    RecordedReply,
    compared,
    filled,
    parts_of,
    placeholders,
)
from folkmoot.proxy.tape import Tape

ANSWER_SECONDS: Final = 30.0
"""How long a live server may take for one answer."""
LONGEST_PAUSE: Final = 300.0
MOST_REPLYING: Final = 256
"""Requests of the server that are being answered; while there are more, it is not heard."""
MOST_UNEXPECTED: Final = 100


async def play(
    tape: Tape,
    connect: Connect,
    *,
    timing: float = 0.0,
    ignore: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
    answer_seconds: float = ANSWER_SECONDS,
) -> PlayReport:
    """Say what the recorded client said, one conversation after the other.

    `ignore` holds patterns of places in answers that do not count; `secrets` the values of
    placeholders, without which a redacted request is not sent.
    """
    for pattern in ignore:
        JsonPath.below(pattern)
    calls: list[PlayedCall] = []
    unexpected: list[str] = []
    for part in parts_of(tape.entries):
        player = _Player(part, tuple(ignore), secrets or {}, timing, answer_seconds)
        async with connect() as server:
            await player.run(server)
        calls += player.calls()
        unexpected += player.unexpected
    return PlayReport(tuple(calls), tuple(unexpected))


class _Player(Entity):
    """One conversation with the live server."""

    part: RecordedClient
    ignore: tuple[str, ...]
    secrets: Mapping[str, str]
    timing: float
    answer_seconds: float
    _given: list[RecordedReply] = []
    _open: dict[tuple[type, MessageId], ClientStep] = {}
    _answers: dict[int, asyncio.Future[Response | e.CarryError]] = {}
    _played: dict[int, PlayedCall] = {}
    _echoes: Echoes = field(default_factory=Echoes)
    _ended: bool = False
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _replying: set[asyncio.Task[None]] = set()
    unexpected: list[str] = []
    _start_seconds: Callable[[], float] = float
    """How long the server may take that was just started."""

    def __post_init__(self) -> None:
        self._replies = list(self.part.replies)
        self._steps = {step.seq: step for step in self.part.steps}
        # The tape tells what the client saw, which a proxy may have translated for it. A client
        # that went on to `initialize` had asked for `server/discover` to learn the server's era.
        shakes = any(getattr(step.message, "method", "") == INITIALIZE for step in self.part.steps)
        self._eras = EraBridge(one_client=True, discoverable=not shakes)

    async def run(self, server: Carrier) -> None:
        """Say everything, and hear what the server says to it."""
        self._start_seconds = lambda: server.start_seconds
        async with self._tasks as tasks:
            hearing = tasks.create_task(self._hear(server))
            for step in self.part.steps:
                await self._take(step, server)
            for step in self.part.steps:
                await self._answered(step.seq)
            for task in (hearing, *self._replying):
                task.cancel()

    def calls(self) -> list[PlayedCall]:
        """What became of each request, in order."""
        return [self._played[step.seq] for step in self.part.steps if step.seq in self._played]

    async def _take(self, step: ClientStep, server: Carrier) -> None:
        for seq in step.after:
            await self._answered(seq)
        if self.timing:
            await asyncio.sleep(min(step.pause * self.timing, LONGEST_PAUSE))
        message = self._echoes.put(filled(step.message, self.secrets))
        missing = placeholders(message)
        if missing:
            self._note(
                step, PlayOutcome.NOT_PLAYED, why=f"the tape does not hold {', '.join(missing)}"
            )
            return
        if isinstance(message, Request):
            self._open[type(message.id), message.id] = step
            if step.cancelled:
                self._note(step, PlayOutcome.NOT_COMPARED, why="it was cancelled")
            elif step.answer is None:
                self._note(step, PlayOutcome.NOT_COMPARED, why="the tape holds no answer to it")
            else:
                self._answers[step.seq] = asyncio.get_running_loop().create_future()
        try:
            if self._ended:
                raise e.TransportClosed("The server ended.")
            async with asyncio.timeout(self.answer_seconds):
                await self._say(server, message)
        except (e.CarryError, TimeoutError) as error:
            if step.answer is not None and not step.cancelled:
                why = getattr(error, "message", "the server does not take it")
                self._note(step, PlayOutcome.UNANSWERED, why=why)

    async def _answered(self, seq: int) -> None:
        """Wait until a request has its answer, or is given up."""
        step, answer = self._steps[seq], self._answers.get(seq)
        if answer is None or seq in self._played:
            return
        seconds = max(self.answer_seconds, self._start_seconds())
        try:
            async with asyncio.timeout(seconds):
                live = await answer
        except TimeoutError:
            why = f"no answer came within {seconds:g} s"
            self._note(step, PlayOutcome.UNANSWERED, why=why)
            return
        if isinstance(live, e.CarryError):
            self._note(step, PlayOutcome.UNANSWERED, why=live.message)
        elif step.answer is not None:
            self._echoes.learn(step.answer, live)
            found = compared(step.answer, live, self.ignore)
            self._note(
                step, PlayOutcome.DIFFERS if found else PlayOutcome.SAME, differences=tuple(found)
            )

    def _note(self, step: ClientStep, outcome: PlayOutcome, **more: Any) -> None:
        message = step.message
        if isinstance(message, Request):
            self._played[step.seq] = PlayedCall(
                step.seq, message.method, outcome, name_of(message), **more
            )

    async def _say(self, server: Carrier, message: ProtocolMessage) -> None:
        """Say something to the server, in the words of its era."""
        await self._follow(server, self._eras.from_client(message))

    async def _hear(self, server: Carrier) -> None:
        try:
            while True:
                await self._follow(server, self._eras.from_server(await server.receive()))
                if len(self._replying) >= MOST_REPLYING:
                    await asyncio.wait(self._replying, return_when=asyncio.FIRST_COMPLETED)
        except e.CarryError as error:
            self._ended = True
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(error)

    async def _follow(self, server: Carrier, steps: list[EraStep]) -> None:
        for step in steps:
            if isinstance(step, ToServer):
                await server.send(step.message)
            elif isinstance(step.message, Response):
                self._heard_answer(step.message)
            elif isinstance(step.message, Request):
                # Not here: whoever waits to be heard may not be listening.
                task = self._tasks.create_task(self._reply(server, step.message))
                self._replying.add(task)
                task.add_done_callback(self._replying.discard)

    def _heard_answer(self, message: Response) -> None:
        step = None if message.id is None else self._open.pop((type(message.id), message.id), None)
        answer = None if step is None else self._answers.get(step.seq)
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def _reply(self, server: Carrier, request: Request) -> None:
        try:
            await self._say(server, self._reply_to(request))
        except e.CarryError:
            return

    def _reply_to(self, request: Request) -> Response:
        """What the recorded client answered to such a request."""
        if request.method == PING:
            return Response(id=request.id, result={})
        found = self._recorded_reply(request)
        response = None if found is None else filled(found.response, self.secrets)
        if response is not None and not placeholders(response):
            return replace(response, id=request.id)
        why = "is not on the tape" if response is None else "was answered with what is not on it"
        if len(self.unexpected) < MOST_UNEXPECTED:
            self.unexpected.append(f"{told(request)} {why}")
        said = "The recorded client has no answer to this."
        return error_answer(request.id, METHOD_NOT_FOUND, said)

    def _recorded_reply(self, request: Request) -> RecordedReply | None:
        """The answer to the same question, or else to the next of its kind.

        How often a server asks depends on when its timers run, so that the same question, asked
        more often than on the tape, gets its last answer again.
        """
        asked = subject_of(request, Mode.ARGUMENTS)

        def same(reply: RecordedReply) -> bool:
            return subject_of(reply.request, Mode.ARGUMENTS).fits(asked)

        alike = [reply for reply in self._replies if reply.request.method == request.method]
        found = next(filter(same, alike), None)
        if found is None and (before := next(filter(same, reversed(self._given)), None)):
            return before
        found = found or next(iter(alike), None)
        if found is not None:
            self._replies.remove(found)
            self._given.append(found)
        return found
