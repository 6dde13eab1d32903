"""The interceptors in their order, and what became of a message among them.

A message nobody touches keeps its bytes. One that waits, by `Delay` or `Hold`, is handed back, so
that whoever carries messages can let the others go by meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import Request, members, replace
from folkmoot.core.ports import Holding, Interceptor
from folkmoot.core.strict import Limits, same
from folkmoot.core.verdict import CONTINUE, Block, Continue, Delay, Hold, Mock, Modify, Verdict

logger = logging.getLogger("folkmoot.proxy")


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Why a message has waited, and who had it wait."""

    verdict: Delay | Hold
    by: str


class Concealed(msgspec.Struct, frozen=True):
    """A message as interceptors see it, and how hidden values are put back."""

    envelope: MessageEnvelope[Any]
    reveal: Callable[[MessageEnvelope[Any]], MessageEnvelope[Any]]


Conceal: TypeAlias = Callable[[MessageEnvelope[Any]], Concealed | None]
"""Answers None for a message that interceptors may see as it is."""
Rest: TypeAlias = Callable[[MessageEnvelope[Any]], Awaitable["Ruling"]]
"""Goes on with a message that has waited, as it is by now."""


class Ruling(msgspec.Struct, frozen=True):
    """How far a message came: the envelope now, and the last word about it.

    `CONTINUE` means that it goes on; `Delay` and `Hold` that it waits and is then shown to the
    interceptors from `place` on.
    """

    envelope: MessageEnvelope[Any]
    verdict: Verdict = CONTINUE
    by: str = ""
    """Who spoke the last word, or changed the message last."""
    changed: bool = False
    place: int = 0
    rest: Rest | None = None
    """How the one who has it wait goes on with it, where that one is a list of its own."""
    waited: Wait | None = None
    """What it has waited for: a decision, if anyone held it."""
    reveal: Callable[[MessageEnvelope[Any]], MessageEnvelope[Any]] | None = None
    """Of a message that waits, how it gets back what interceptors must not see."""

    @property
    def waits(self) -> bool:
        """Whether nothing is decided yet."""
        return isinstance(self.verdict, Delay | Hold)


class Nested(ABC):
    """An interceptor that is an ordered list itself, and so may have more than one word."""

    name: str

    @property
    @abstractmethod
    def guards(self) -> bool:
        """Whether any of the list only checks."""

    @abstractmethod
    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        """The last word about a message, for those who know nothing of lists in lists."""

    @abstractmethod
    async def judge(self, envelope: MessageEnvelope[Any]) -> Ruling:
        """The ruling of the inner chain; one that waits has its `rest`."""

    @abstractmethod
    async def look_again(self, envelope: MessageEnvelope[Any]) -> Ruling | None:
        """The ruling of its guards on a message changed later, if they stop it."""


class Chain:
    """An ordered list of interceptors. It costs nothing where it is empty."""

    def __init__(
        self,
        interceptors: Sequence[Interceptor] = (),
        holding: Holding | None = None,
        conceal: Conceal | None = None,
    ) -> None:
        self.interceptors = tuple(interceptors)
        self._holding = holding
        self._conceal = conceal

    async def run(self, envelope: MessageEnvelope[Any]) -> Ruling:
        """The last word about a message, once there is one."""
        ruling = await self.judge(envelope)
        return await self.settle(ruling) if ruling.waits else ruling

    async def judge(self, envelope: MessageEnvelope[Any]) -> Ruling:
        """Show a message to everyone, until one stops it or has it wait."""
        concealed = None if self._conceal is None else self._conceal(envelope)
        if concealed is None:
            return await self._go_on(Ruling(envelope))
        ruling = await self._go_on(Ruling(concealed.envelope))
        if ruling.waits:
            return msgspec.structs.replace(ruling, reveal=concealed.reveal)
        return msgspec.structs.replace(ruling, envelope=concealed.reveal(ruling.envelope))

    async def settle(self, ruling: Ruling) -> Ruling:
        """Wait as a ruling asks, and go on, as often as needed."""
        last = await self._settle(ruling)
        if ruling.reveal is None:
            return last
        return msgspec.structs.replace(last, envelope=ruling.reveal(last.envelope))

    async def _settle(self, ruling: Ruling) -> Ruling:
        while isinstance(verdict := ruling.verdict, Delay | Hold):
            by, waited = ruling.by, ruling.waited
            try:
                if isinstance(verdict, Hold):
                    ruling = await self._hold(ruling, verdict)
                else:
                    await asyncio.sleep(verdict.seconds)
            except e.FolkmootError as error:
                return msgspec.structs.replace(ruling, verdict=Block(error))
            if waited is None or isinstance(verdict, Hold):
                waited = Wait(verdict, by)
            if isinstance(ruling.verdict, Block | Mock):
                return msgspec.structs.replace(ruling, waited=waited)
            onward = await self._go_on(msgspec.structs.replace(ruling, verdict=CONTINUE))
            ruling = msgspec.structs.replace(onward, waited=waited)
        return ruling

    async def _hold(self, ruling: Ruling, hold: Hold) -> Ruling:
        """Wait for a decision; a message that was edited is shown to earlier guards again."""
        if self._holding is None:
            raise e.BlockedByInterceptor(
                f"{ruling.by} holds the message, but nobody can decide about it."
            )
        edited = await self._holding.hold(ruling.envelope, ruling.by, hold)
        if edited is None:
            return ruling
        envelope = ruling.envelope.with_message(edited)
        stopped = await self._shown_again(envelope, ruling.place)
        return stopped or msgspec.structs.replace(ruling, envelope=envelope, changed=True)

    async def _go_on(self, ruling: Ruling) -> Ruling:
        envelope, by, changed, rest = ruling.envelope, ruling.by, ruling.changed, ruling.rest
        for place in range(ruling.place, len(self.interceptors)):
            said = await ruled(self.interceptors[place], envelope, rest)
            rest = None
            if said.changed:
                envelope, by, changed = said.envelope, said.by, True
                stopped = await self._shown_again(envelope, place)
                if stopped is not None:
                    return stopped
            if not isinstance(said.verdict, Continue):
                after = place if said.rest else place + 1
                return Ruling(envelope, said.verdict, said.by, changed, after, said.rest)
        return Ruling(envelope, CONTINUE, by, changed, len(self.interceptors))

    async def _shown_again(self, envelope: MessageEnvelope[Any], before: int) -> Ruling | None:
        """Show a changed message to the guards that saw it before the change."""
        for guard in self.interceptors[:before]:
            if guard.guards:
                said = await shown_again(guard, envelope)
                if said is not None:
                    return Ruling(envelope, said.verdict, said.by, changed=True, place=before)
        return None


async def ruled(
    interceptor: Interceptor,
    envelope: MessageEnvelope[Any],
    rest: Rest | None = None,
) -> Ruling:
    """How far a message comes with one interceptor, from the beginning or where it had it wait."""
    if isinstance(interceptor, Nested):
        try:
            return await (interceptor.judge if rest is None else rest)(envelope)
        except Exception as error:  # noqa: BLE001 - told by what stops the message
            return Ruling(envelope, failure(interceptor.name, error), interceptor.name)
    verdict = await heard(interceptor, envelope)
    if isinstance(verdict, Modify):
        changed = envelope.with_message(verdict.message)
        return Ruling(changed, CONTINUE, interceptor.name, changed=True)
    return Ruling(envelope, verdict, interceptor.name)


async def shown_again(guard: Interceptor, envelope: MessageEnvelope[Any]) -> Ruling | None:
    """The ruling with which a guard stops a message changed since the guard saw it; else None."""
    if isinstance(guard, Nested):
        try:
            return await guard.look_again(envelope)
        except Exception as error:  # noqa: BLE001 - told by what stops the message
            return Ruling(envelope, failure(guard.name, error), guard.name)
    verdict = await heard(guard, envelope)
    return Ruling(envelope, verdict, guard.name) if isinstance(verdict, Block | Mock) else None


async def heard(interceptor: Interceptor, envelope: MessageEnvelope[Any]) -> Verdict:
    """What an interceptor says of a message."""
    return await spoken(interceptor.name, interceptor.intercept(envelope), envelope.message)


async def spoken(name: str, saying: Awaitable[Verdict], message: Any) -> Verdict:
    """The interceptor's verdict; an exception or a senseless verdict stops the message."""
    try:
        verdict = await saying
        if isinstance(verdict, Modify):
            return Modify(settled(message, verdict.message))
    except Exception as error:  # noqa: BLE001 - told by what stops the message
        return failure(name, error)
    if isinstance(verdict, Mock) and not isinstance(message, Request):
        return Block(e.BlockedByInterceptor(f"{name} answered a message that is not a request."))
    return verdict


def failure(name: str, error: Exception) -> Block:
    """What becomes of a message that an interceptor raised an error about."""
    if isinstance(error, e.FolkmootError):
        return Block(error)
    logger.error("an interceptor failed", extra={"interceptor": name}, exc_info=error)
    return Block(e.BlockedByInterceptor(f"{name} failed, so the message was stopped."))


def settled(sent: Any, message: Any) -> Any:
    """The message to go on with: its bytes and its members say the same.

    An interceptor may have changed the members in place, or copied them beside the old bytes; then
    what policy saw would not be what is passed on.
    """
    if isinstance(sent, McpxMessage):
        # Of a message only the payload can be changed in place.
        if message is not sent or not same(sent.payload, sent.members.get("payload")):
            raise e.RewriteRefused("An interceptor tried to rewrite a room's message.")
        return message
    if message.raw is not None and not same(members(message), _read(message.raw)):
        return replace(message)
    return message


def _read(raw: bytes) -> Any:
    """Decode bytes that decoded before."""
    return strict.decode(raw, Limits(message_bytes=len(raw), nesting=1024))
