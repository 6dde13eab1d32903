"""Held messages: they wait until someone decides, and are shown to those who may.

A held message is kept in memory only. When its conversation ends it is gone, undecided.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.events import HELD
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import (
    Request,
    Response,
    members,
    message_from,
    same_id,
)
from folkmoot.core.ports import Bus, Clock, Event
from folkmoot.core.verdict import Hold
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.proxy.interceptors.base import TYPES, context_of, method_of, root_of

MOST_HELD: Final = 256
PREVIEW: Final = 200
MOST_REASON: Final = 1_000

_TYPES: Final = {root: name for name, root in TYPES.items()}


class HeldView(msgspec.Struct, frozen=True):
    """A held message as people see it: everything in one line, nothing hidden."""

    id: int
    since: float
    """Seconds since the epoch."""
    direction: str
    type: str
    method: str = ""
    """Of a response, that of the request which it answers, if that is known."""
    tool: str = ""
    session: str = ""
    """The beginning of its id; the whole may open the session."""
    rule: str = ""
    reason: str = ""
    until: float | None = None
    """When it is dropped unless someone decides before; None if never."""
    preview: str = ""
    who: str = ""
    """The handle of whoever's conversation it is part of, where accounts are known."""
    proxy: int | None = None
    """The process of the proxy that holds it; None for whoever lists it."""


Change: TypeAlias = Literal["held", "released", "dropped", "gone"]


class HeldUpdate(msgspec.Struct, frozen=True):
    """The published state of a held message."""

    change: Change
    view: HeldView


def read_change(event: Event) -> HeldUpdate:
    """The change that an event tells of."""
    return msgspec.convert(event.data, HeldUpdate)


class _Held(msgspec.Struct, eq=False):
    view: HeldView
    envelope: MessageEnvelope[Any]
    decided: asyncio.Future[Any]


class HeldMessages(Entity):
    """The messages that wait for a decision, the longest waiting first.

    Each change is published as `held`.
    """

    clock: Clock
    bus: Bus
    most: int = MOST_HELD
    _held: dict[int, _Held] = {}
    _last: int = 0

    def __len__(self) -> int:
        return len(self._held)

    async def hold(self, envelope: MessageEnvelope[Any], by: str, hold: Hold) -> Any:
        """Return when the message is released; raise `MessageDropped` when it is dropped.

        The answer is the message as someone edited it, or None.
        """
        if len(self._held) >= self.most:
            raise e.MessageDropped(
                f"{self.most} messages are already held, so this one is dropped."
            )
        self._last += 1
        decided: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        view = seen(self._last, self.clock.now(), envelope, by, hold)
        self._held[view.id] = held = _Held(view, envelope, decided)
        self._tell("held", view)
        try:
            async with asyncio.timeout(hold.seconds):
                return await decided
        except TimeoutError:
            if decided.done() and not decided.cancelled():
                # Someone decided in the very moment in which the time was over.
                return decided.result()
            if self._held.pop(view.id, None) is held:
                self._tell("dropped", view)
            raise e.MessageDropped("Nobody decided about the message in time.") from None
        except asyncio.CancelledError:
            if self._held.pop(view.id, None) is held:
                self._tell("gone", view)
            raise

    def list(self) -> list[HeldView]:
        return [held.view for held in self._held.values()]

    def view(self, held_id: int) -> HeldView:
        """A held message as people see it."""
        return self._find(held_id).view

    def envelope(self, held_id: int) -> MessageEnvelope[Any]:
        return self._find(held_id).envelope

    def release(self, held_id: int, message: dict[str, Any] | None = None) -> HeldView:
        """Send a held message on, as it is or as edited.

        Raises `CommandInvalid` for what is another message; then the held one stays held.
        """
        held = self._find(held_id)
        edited = None if message is None else edit(held.envelope.message, message)
        del self._held[held_id]
        held.decided.set_result(edited)
        self._tell("released", held.view)
        return held.view

    def drop(self, held_id: int, reason: str = "") -> HeldView:
        """Let a message go no further; whoever waits for it reads the reason."""
        held = self._find(held_id)
        del self._held[held_id]
        told = f"The message was held and dropped: {reason[:MOST_REASON]}"
        plain = "The message was held, and someone dropped it."
        held.decided.set_exception(e.MessageDropped(told if reason else plain))
        # It may be cancelled in the same moment, and then nobody asks.
        held.decided.exception()
        self._tell("dropped", held.view)
        return held.view

    def _find(self, held_id: int) -> _Held:
        held = self._held.get(held_id)
        if held is None:
            raise e.CommandInvalid(f"No message {held_id} is held; it may have been decided about.")
        return held

    def _tell(self, change: Change, view: HeldView) -> None:
        with suppress(e.BusClosed):
            self.bus.emit(HELD, HeldUpdate(change, view))


def seen(number: int, now: float, envelope: MessageEnvelope[Any], by: str, hold: Hold) -> HeldView:
    """What people see of a message."""
    message, context = envelope.message, envelope.context
    root, method = root_of(message), method_of(message)
    session_id = context.session.session_id
    return HeldView(
        id=number,
        since=now,
        direction=context.direction.value,
        type=_TYPES.get(root, root),
        method=visible(method or hold.method),
        tool=visible(
            context_of(TOOLS_CALL, _params(message), str) if method == TOOLS_CALL else hold.tool
        ),
        session=visible(session_id.value[:8]) if session_id else "",
        rule=visible(by),
        reason=visible(hold.reason),
        until=None if hold.seconds is None else now + hold.seconds,
        preview=preview(message),
        who="" if context.caller is None else visible(context.caller.name),
    )


def what_of(type_: str, method: str, tool: str) -> str:
    """What kind of message it is, in words: `tools/call rm`, `response to tools/call rm`."""
    if not method:
        return type_
    named = f"{method} {tool}".rstrip()
    return f"response to {named}" if type_ == "response" else named


def edit(message: Any, wanted: dict[str, Any]) -> Any:
    """The edited message to send on; id, type and method may not change."""
    if isinstance(message, McpxMessage):
        raise e.CommandInvalid("A room's message can be released or dropped, and never edited.")
    try:
        edited = message_from(wanted)
    except e.MessageError as error:
        raise e.CommandInvalid(f"The edited message is not valid: {error.message}") from None
    same = type(edited) is type(message) and method_of(edited) == method_of(message)
    if not same or not same_id(getattr(edited, "id", None), getattr(message, "id", None)):
        raise e.CommandInvalid("The id and the method of a held message cannot be edited.")
    return edited


def preview(message: Any) -> str:
    """The beginning of what a message says, on one line."""
    if isinstance(message, McpxMessage):
        said: Any = message.payload
    elif isinstance(message, Response):
        body = members(message)
        said = body.get("result", body.get("error"))
    else:
        said = _params(message)
        if isinstance(message, Request) and message.method == TOOLS_CALL and isinstance(said, dict):
            said = said.get("arguments")
    text = msgspec.json.encode({} if said is None else said)[: PREVIEW * 8].decode(errors="ignore")
    return visible(text, PREVIEW)


def visible(text: str, most: int = PREVIEW) -> str:
    """A text on one line, cut, with whatever would act or hide in it spelled out."""
    cut = text if len(text) <= most else text[:most] + "…"
    return cut if cut.isprintable() else "".join(map(_spelled, cut))


def _spelled(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _params(message: Any) -> Any:
    if isinstance(message, McpxMessage):
        return (message.payload or {}).get("params")
    params = getattr(message, "params", None)
    return None if params is msgspec.UNSET else params
