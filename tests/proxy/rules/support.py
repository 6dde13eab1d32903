"""What tests of rules and interceptors share: messages, and rules written as the file has them."""

from __future__ import annotations

import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    decode_message,
)
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.strict import encode
from folkmoot.core.timing import TimingContext
from folkmoot.core.verdict import Block, Mock
from folkmoot.proxy.chain import Chain, Ruling
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.sessions import ProxySession
from folkmoot.relay.conversation import ProxyConversation
from folkmoot.relay.steps import Steps
from tests.clocks import StillClock as Clock

T = TypeVar("T")

TO_SERVER = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT = MessageDirection.SERVER_TO_CLIENT


def envelope(
    message: Any, direction: MessageDirection = TO_SERVER, session: str | None = "s1"
) -> MessageEnvelope[Any]:
    context = SessionContext(SessionId(session)) if session is not None else SessionContext()
    return MessageEnvelope(message, MessageContext(TimingContext(0.0, 0.0), direction, context))


def request(method: str, params: Any = None, number: int | str = 1) -> Request:
    """A request as it came, with its bytes."""
    members = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
    return decode_message(encode(members))


def call(tool: str, arguments: Any = None, number: int | str = 1) -> Request:
    return request("tools/call", {"name": tool, "arguments": arguments or {}}, number)


def notice(method: str, params: Any = None) -> Notification:
    return Notification(method=method, params=params or {})


def answer(result: Any, number: int | str = 1) -> Response:
    """An answer as it came, with its bytes."""
    return decode_message(encode({"jsonrpc": "2.0", "id": number, "result": result}))


def loaded(text: str, clock: Clock | None = None, **more: Any) -> Rules:
    """Rules from the text of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.toml"
        path.write_text(text, encoding="utf-8")
        return Rules.load(path, clock=clock or Clock(), **more)


def at_once(saying: Coroutine[Any, Any, T]) -> T:
    """What comes of something that waits for nothing, without a loop."""
    try:
        saying.send(None)
    except StopIteration as said:
        return said.value
    raise AssertionError("it waits for something")


class Way:
    """The way of messages past rules."""

    def __init__(self, text: str, clock: Clock | None = None, **more: Any) -> None:
        self.clock = clock or Clock()
        self.rules = loaded(text, self.clock, **more)
        self.chain = Chain(self.rules.interceptors)
        self._steps = Steps(self.chain, None, self.clock)
        self._conversations: dict[str | None, ProxyConversation] = {}

    def judge(
        self, message: Any, direction: MessageDirection = TO_SERVER, session: str | None = "s1"
    ) -> Ruling:
        """What is said of a message, at once."""
        came = envelope(message, direction, session)
        if session not in self._conversations:
            known = ProxySession(session or "", came.context.session, 0.0, 0.0)
            known.activate()
            self._conversations[session] = ProxyConversation(known)
        conversation = self._conversations[session]
        came = conversation.enter(came)
        ruling = at_once(self.chain.judge(came))
        if isinstance(ruling.verdict, Block | Mock):
            self._steps.stop(came, ruling, conversation)
        elif not ruling.waits:
            self._steps.pass_on(came, conversation, ruling)
        return ruling

    def asked(self, question: Request, result: Any, session: str | None = "s1") -> Ruling:
        """What is said of the answer to a client's question."""
        self.judge(question, TO_SERVER, session)
        return self.judge(answer(result, question.id), TO_CLIENT, session)


def used(name: str, options: str = "", when: str = "") -> str:
    """A rule that uses an interceptor."""
    condition = f"when = {{ {when} }}\n" if when else ""
    return f'[[rule]]\nname = "it"\n{condition}use = "{name}"\noptions = {{ {options} }}\n'


def blocked(when: str) -> str:
    """A rule that blocks what a condition says."""
    return f'[[rule]]\nname = "it"\nwhen = {{ {when} }}\naction = "block"\n'


def blocks(way: Way, message: Any, *where: Any) -> bool:
    """Whether a message is stopped on its way, from a side and in a session."""
    return isinstance(way.judge(message, *where).verdict, Block)


def refusal(ruling: Ruling) -> Any:
    """Why a message was stopped."""
    assert isinstance(ruling.verdict, Block)
    return ruling.verdict.error


def stopped_by(ruling: Ruling) -> str:
    """Who stopped a message, if it was stopped."""
    return ruling.by if isinstance(ruling.verdict, Block) else ""
