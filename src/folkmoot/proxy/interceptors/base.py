"""The base of the built-in interceptors, and their view of a message.

A response says neither method nor tool; both are those of the request it answers. Tools go by their
canonical names, so that no spelling slips past a rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.kindcheck import CONTEXTS
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    members,
    message_from,
)
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Clock
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.mcp.wire import TOOLS_CALL

REQUEST: Final = "mcp.request"
RESPONSE: Final = "mcp.response"
NOTIFICATION: Final = "mcp.notification"

TYPES: Final = {"request": REQUEST, "response": RESPONSE, "notification": NOTIFICATION}
"""The types of message a rule can name, and what a kind of that type begins with."""

_ROOTS: Final[dict[type, str]] = {Request: REQUEST, Response: RESPONSE, Notification: NOTIFICATION}

Canonical = Callable[[str], str]


class MessageKey(NamedTuple):
    """What rules are found by."""

    direction: str
    root: str
    """The beginning of the kind: `mcp.request`, and in rooms others too."""
    method: str
    """Empty in a response to a request that nobody saw."""


class AskedRequest(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a request until it is answered."""

    method: str
    context: str = ""


class MessageView(Entity):
    """One message and the request it answers; costly look-ups are cached."""

    envelope: MessageEnvelope[Any]
    key: MessageKey
    asked: AskedRequest | None
    canonical: Canonical
    _context: str | None = None
    _body: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.message: Any = self.envelope.message

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that paths begin at; of a room's message, its payload."""
        if self._body is None:
            message = self.message
            if isinstance(message, McpxMessage):
                self._body = message.payload or {}
            else:
                self._body = members(message)
        return self._body

    @property
    def context(self) -> str:
        """The context of the effective kind: which tool, prompt or resource; empty if none."""
        if self._context is None:
            if self.asked is not None:
                self._context = self.asked.context
            elif isinstance(self.message, McpxMessage) and self.message.kind.context:
                self._context = self._spelled(self.message.kind.context)
            else:
                self._context = context_of(self.key.method, self.params, self.canonical)
        return self._context

    @property
    def tool(self) -> str | None:
        """The canonical name of the tool that is called, or whose call is answered."""
        return self.context if self.key.method == TOOLS_CALL else None

    @property
    def params(self) -> Any:
        """The parameters of a call."""
        if isinstance(self.message, McpxMessage):
            return self.body.get("params")
        return getattr(self.message, "params", None)

    @property
    def result(self) -> Any:
        """The result of a response; None where there is none."""
        if isinstance(self.message, McpxMessage):
            return self.body.get("result")
        result = getattr(self.message, "result", None)
        return None if result is msgspec.UNSET else result

    @property
    def session(self) -> str:
        """The id of the session; empty before there is one."""
        session_id = self.envelope.context.session.session_id
        return "" if session_id is None else session_id.value

    def changed(self, message: Any) -> MessageView:
        """The same place in a conversation, with another message in it."""
        return MessageView(
            self.envelope.with_message(message), self.key, self.asked, self.canonical
        )

    def with_member(self, name: str, value: Any) -> Verdict:
        """Have the message go on with another `params`, `result` or `error`."""
        if value is self.body.get(name):
            return CONTINUE
        return Modify(message_from({**self.body, name: value}))

    def _spelled(self, context: str) -> str:
        return self.canonical(context) if self.key.method == TOOLS_CALL else context


def key_of(envelope: MessageEnvelope[Any], method: str) -> MessageKey:
    """What the rules about a message are found by."""
    # The value as such: an Enum's hash is slow.
    return MessageKey(envelope.context.direction._value_, root_of(envelope.message), method)


def root_of(message: Any) -> str:
    """What the kind of a message begins with."""
    root = _ROOTS.get(type(message))
    return root if root is not None else str(message.kind.root)


def method_of(message: Any) -> str:
    """The method a message names itself; empty if none."""
    if isinstance(message, McpxMessage):
        return message.kind.method or ""
    return getattr(message, "method", "")


def context_of(method: str, params: Any, canonical: Canonical) -> str:
    """Which tool, prompt or resource a call names; empty where it names none."""
    named = CONTEXTS.get(method)
    if named is None:
        return ""
    try:
        context = named(params)
    except e.KindError:
        return ""
    return canonical(context) if method == TOOLS_CALL else context


Groups: TypeAlias = Callable[[Principal], Collection[str]]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options of an interceptor; a table that has others is refused."""


class OptionInvalid(ValueError):
    """An option has a value of the right type that makes no sense."""


class Means(msgspec.Struct, frozen=True):
    """What interceptors are given to work with."""

    clock: Clock
    canonical: Canonical
    groups: Groups | None = None
    """The groups someone is in; None where nobody knows who asks, as in a proxy."""


class Action(ABC):
    """What a rule does with the messages its conditions let through."""

    guards = False
    """Whether it only checks: what is changed later is then shown to it again."""
    learns = False
    """Whether it must see some messages whatever the rule's conditions say."""

    def concerns(self, key: MessageKey) -> bool:  # noqa: ARG002 - the rule, and its exceptions below
        """Whether it has anything to do with such messages at all."""
        return True

    def learns_from(self, key: MessageKey) -> bool:  # noqa: ARG002
        """Which messages it must see."""
        return False

    def learn(self, view: MessageView) -> None:  # noqa: B027 - most have nothing to learn
        """Remember what is needed of a message; its verdict is asked separately."""

    @abstractmethod
    async def look(self, view: MessageView) -> Verdict:
        """What is to become of the message."""

    def look_again(self, _view: MessageView) -> Verdict:
        """A guard's verdict on a message changed after it looked."""
        return CONTINUE


class Guard(Action):
    """An action that only checks, without waiting for anything, however often it is asked."""

    guards = True

    async def look(self, view: MessageView) -> Verdict:
        """What is to become of the message."""
        return self.check(view)

    def look_again(self, view: MessageView) -> Verdict:
        """The verdict on a changed message: the same check again."""
        return self.check(view)

    @abstractmethod
    def check(self, view: MessageView) -> Verdict:
        """Whether the message may go on."""


def truncated(name: Any) -> str:
    """A name of someone else's, short and with nothing hidden in it."""
    text = str(name)
    cut = text if len(text) <= 80 else text[:80] + "…"
    return cut if cut.isprintable() else repr(cut)[1:-1]
