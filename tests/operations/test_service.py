"""Tool calls on the one way through: interceptors first, then policy, then the table."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Notification, Request, replace
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Interceptor
from folkmoot.core.timing import TimingContext
from folkmoot.core.verdict import Modify, Verdict
from folkmoot.gateway.configured_rights import DEFAULTS
from folkmoot.gateway.rights import NOBODY, NOBODY_MAY
from folkmoot.operations import Caller, OperationResult
from folkmoot.operations.dispatch import CALLER, ToolService
from folkmoot.pipeline import Pipeline
from folkmoot.proxy.chain import Chain
from tests.harness import run
from tests.operations.support import dispatcher, operation

ANN = Principal("account-1", "ann")
ACCOUNTS_MAY = Rights(DEFAULTS)


class Tools:
    """A table of tools that remember who called them."""

    def __init__(self) -> None:
        self.called: list[str] = []
        rows = (operation(name, self._handler(name), who="anyone") for name in NAMES)
        self.dispatcher = dispatcher(*rows)

    def _handler(self, name: str) -> Any:
        async def handler(_: Any) -> dict[str, Any]:
            self.called.append(name)
            return {"tool": name}

        return handler


NAMES = ("msg/send", "msg/register", "room/say", "folkmoot/secret")


class Becomes:
    """An interceptor that makes another message of every message."""

    name = "becomes"
    guards = False

    def __init__(self, message: Any) -> None:
        self.message = message

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        made = self.message
        return Modify(made(envelope.message) if callable(made) else made)


class Blocks:
    """An interceptor that stops every message."""

    name = "blocks"
    guards = False

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        raise e.BlockedByInterceptor("Not today.")


def renamed(name: Any) -> Becomes:
    return Becomes(lambda message: replace(message, params={"name": name}))


def ask(
    tools: Tools,
    name: str,
    *interceptors: Interceptor,
    rights: Rights = ACCOUNTS_MAY,
    principal: Principal = ANN,
) -> OperationResult:
    async def main() -> OperationResult:
        pipeline = Pipeline.to(ToolService(tools.dispatcher), Chain(interceptors))
        request = Request(id=1, method="tools/call", params={"name": name})
        envelope = MessageEnvelope.new(request, TimingContext(0.0, 0.0))
        asked = envelope.with_extension(CALLER, Caller())
        answer: OperationResult = await pipeline.run(asked, principal, rights)
        return answer

    return run(main())


def test_a_call_is_performed_by_the_table():
    tools = Tools()
    assert ask(tools, "msg/send").payload == {"tool": "msg/send"}
    assert tools.dispatcher.calls == {("msg/send", "ok"): 1}


def test_an_interceptor_stops_a_call_before_any_tool_sees_it():
    tools = Tools()
    with pytest.raises(e.BlockedByInterceptor):
        ask(tools, "msg/send", Blocks())
    assert tools.called == []


def test_policy_judges_the_tool_that_an_interceptor_chose():
    tools = Tools()
    assert ask(tools, "msg/send", renamed("room/say")).payload == {"tool": "room/say"}
    with pytest.raises(e.CapabilityDenied):
        ask(tools, "msg/send", renamed("folkmoot/secret"))
    only_say = Rights(["mcp.request.tools/call", "!mcp.request.tools/call:msg/*"])
    with pytest.raises(e.CapabilityDenied):
        ask(tools, "room/say", renamed("msg/send"), rights=only_say)
    assert tools.called == ["room/say"]


@pytest.mark.parametrize("name", ["msg_send", "msg:send", "MSG/SEND", "msg/send "])
def test_no_other_spelling_slips_past_a_deny(name):
    tools = Tools()
    all_but_send = Rights(["mcp.request.*", "!mcp.request.tools/call:msg/send"])
    with pytest.raises(e.UnknownTool):
        ask(tools, "room/say", renamed(name), rights=all_but_send)
    assert tools.called == []


def test_a_call_that_became_something_else_is_refused():
    tools = Tools()
    everything = Rights(["*"])
    for other in (
        Request(id=1, method="tools/list", params={}),
        Notification(method="notifications/chat/message", params={"text": "hi"}),
    ):
        with pytest.raises(e.RewriteRefused):
            ask(tools, "msg/send", Becomes(other), rights=everything)
    odd: tuple[Any, ...] = ([], {"name": 5}, None)
    for params in odd:
        made = Request(id=1, method="tools/call", params=params)
        with pytest.raises((e.PayloadInvalid, e.RewriteRefused, e.UnknownTool)):
            ask(tools, "msg/send", Becomes(made), rights=everything)
    assert tools.called == []


def test_whoever_has_no_account_may_only_make_or_recover_one():
    tools = Tools()
    made = ask(tools, "msg/register", rights=NOBODY_MAY, principal=NOBODY)
    assert made.payload == {"tool": "msg/register"}
    with pytest.raises(e.CapabilityDenied):
        ask(tools, "msg/send", rights=NOBODY_MAY, principal=NOBODY)
