"""DecidingRoom: held messages as proposals in a room, where people decide about them.

Someone who may make the request fulfils the proposal, and the message goes on; someone rejects it,
and the message is dropped with their reason. The hub sees to it that a fulfilment is equal to what
was proposed. If the room cannot be reached, messages stay held and are decided on elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import field

from folkmoot.client import Backoff, Message, Outcome, Proposal, Room
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import HELD
from folkmoot.core.kindcheck import kind_of
from folkmoot.core.message import Request
from folkmoot.core.ports import Event
from folkmoot.proxy.held import HeldMessages, HeldView, read_change, visible, what_of

logger = logging.getLogger("folkmoot.proxy")

RELEASE: Final = "folkmoot/release"
"""What is proposed where the held message is no request, or too large to be shown."""
MOST_SHOWN: Final = 64 * 1024
"""Bytes of parameters that are shown to the room."""
MOST_EARLY: Final = 64
LATE: Final = {"code": -32000, "message": "The message is no longer held."}


class DecidingRoom(Entity):
    """One room in which held messages are decided about; `run` is owned by a task group."""

    held: HeldMessages
    url: str
    room: str
    token: str | Callable[[], str]
    backoff: Backoff = field(default_factory=Backoff)

    def __repr__(self) -> str:
        return f"DecidingRoom({self.url!r}, room={self.room!r})"

    async def run(self) -> None:
        """Be in the room until cancelled; what keeps us out is told once, and tried again."""
        told, attempt = "", 0
        while True:
            room = Room(self.url, room=self.room, token=self.token, backoff=self.backoff)
            failure: e.FolkmootError | None = None
            try:
                async with room:
                    told, attempt = "", 0
                    await ProposalDesk(room, self.held).serve()
            except* e.FolkmootError as group:
                failure = first(group)
            if failure is not None and failure.message != told:
                told = failure.message
                logger.warning(
                    "held messages cannot be decided about in the room",
                    extra={"room": self.room, "error": told},
                )
            await asyncio.sleep(self.backoff.delay(attempt))
            attempt += 1


class ProposalDesk(Entity):
    """The proposals of one stay in the room."""

    room: Room
    held: HeldMessages
    _open: dict[str, int] = {}
    """What each proposal is about."""
    _proposals: dict[int, Proposal] = {}
    _early: dict[str, Message] = {}
    """Fulfilments that came before our own proposal was known to be stored."""
    _proposing: int = 0
    _spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None

    async def serve(self) -> None:
        """Propose held messages and carry out decisions, as long as the room lasts."""
        async with asyncio.TaskGroup() as tasks:
            self._spawn = tasks.create_task
            end = self.held.bus.listen(HELD, self._changed)
            try:
                for view in self.held.list():
                    tasks.create_task(self._ask(view))
                async for message in self.room:
                    self._hear(message)
            finally:
                self._spawn = None
                end()
            raise e.AnswerLost("The room ended.")

    def _changed(self, event: Event) -> None:
        if self._spawn is None:
            return
        changed = read_change(event)
        view = changed.view
        if changed.change == "held":
            self._spawn(self._ask(view))
        elif (proposal := self._proposals.pop(view.id, None)) is not None:
            self._spawn(self._withdraw(proposal))

    async def _withdraw(self, proposal: Proposal) -> None:
        """Withdraw a proposal that was decided elsewhere or is no longer waited for."""
        self._open.pop(proposal.id, None)
        with suppress(e.FolkmootError):
            await self.room.withdraw(proposal)

    async def _ask(self, view: HeldView) -> None:
        """Have the room decide about one message, however often its proposal expires."""
        try:
            while self._is_held(view.id):
                outcome = await self._outcome(view)
                if outcome is None or outcome.state in ("fulfilled", "withdrawn"):
                    return
                if outcome.state == "rejected":
                    reason = f"{outcome.reason or 'rejected'} ({outcome.by})"
                    with suppress(e.CommandInvalid):
                        self.held.drop(view.id, visible(reason))
                    return
        except e.FolkmootError as error:
            logger.warning(
                "a held message could not be proposed in the room",
                extra={"held": view.id, "error": error.message},
            )

    async def _outcome(self, view: HeldView) -> Outcome | None:
        proposal = await self._propose(view)
        if not self._is_held(view.id):
            await self._withdraw(proposal)
            return None
        self._open[proposal.id] = view.id
        self._proposals[view.id] = proposal
        self._hear_early(proposal.id)
        try:
            return await proposal.outcome()
        except e.AnswerLost:
            # What came of it is among messages that were missed: ask again while it is held.
            return Outcome("expired", "")
        finally:
            self._open.pop(proposal.id, None)
            self._proposals.pop(view.id, None)

    async def _propose(self, view: HeldView) -> Proposal:
        method, params = proposed(view, self.held.envelope(view.id).message)
        expires_in = None if view.until is None else max(1.0, view.until - view.since)
        self._proposing += 1
        try:
            with suppress(e.FolkmootError):
                await self.room.say(told(view))
            return await self.room.propose(
                method, params, to=self.room.me.id, expires_in=expires_in
            )
        finally:
            self._proposing -= 1

    def _hear(self, message: Message) -> None:
        """A request to us that correlates a proposal of ours fulfils it."""
        if not message.base.startswith("mcp.request.") or message.to != (self.room.me.id,):
            return
        if self._spawn is None or not message.correlation_id:
            return
        proposal = message.correlation_id[0]
        number = self._open.pop(proposal, None)
        if number is None and self._proposing and len(self._early) < MOST_EARLY:
            self._early[proposal] = message
        else:
            self._spawn(self._fulfil(message, number))

    def _hear_early(self, proposal: str) -> None:
        """Hear what came too early; what no proposal under way can be about is answered too."""
        for about in [it for it in self._early if it == proposal or not self._proposing]:
            self._hear(self._early.pop(about))

    async def _fulfil(self, request: Message, number: int | None) -> None:
        answer: dict[str, Any] = {"error": LATE}
        if number is not None:
            self._proposals.pop(number, None)
            with suppress(e.CommandInvalid):
                self.held.release(number)
                text = f"Released held message {number}."
                answer = {"result": {"content": [{"type": "text", "text": text}]}}
        with suppress(e.FolkmootError):
            await self.room.respond(request, **answer)

    def _is_held(self, number: int) -> bool:
        try:
            self.held.envelope(number)
        except e.CommandInvalid:
            return False
        return True


def proposed(view: HeldView, message: Any) -> tuple[str, dict[str, Any]]:
    """What is proposed for a held message: the request itself, or to release it."""
    if isinstance(message, Request) and isinstance(message.params, dict):
        with suppress(e.KindError):
            kind_of(message)
            if len(msgspec.json.encode(message.params)) <= MOST_SHOWN:
                return message.method, message.params
    shown = msgspec.to_builtins(view)
    return RELEASE, {name: value for name, value in shown.items() if value not in ("", None)}


def told(view: HeldView) -> str:
    """What the room is told of a held message before it is proposed."""
    what = what_of(view.type, view.method, view.tool)
    why = f": {view.reason}" if view.reason else "."
    return f"Held message {view.id}, {what}, by the rule “{view.rule}”{why}"


def first(group: BaseExceptionGroup[e.FolkmootError]) -> e.FolkmootError:
    """The first error of a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, e.FolkmootError) else e.FolkmootError(str(error))
