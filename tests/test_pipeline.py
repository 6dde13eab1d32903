"""The one way through, as scripts of messages over the real store."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

import folkmoot
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.message import (
    Request,
    decode_message,
    encode_message,
    members,
    replace,
)
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Admitted, Interceptor, Tx
from folkmoot.core.strict import encode
from folkmoot.core.verdict import CONTINUE, Block, Delay, Modify, Verdict
from folkmoot.pipeline import Pipeline, enveloped
from folkmoot.proxy.chain import Chain
from folkmoot.store import SqliteStore

ALICE = Principal("account-1", "alice")
READER = Rights(["mcp.request.tools/call:read", "mcp.proposal.*"])


def calling(tool: str) -> MessageEnvelope[Request]:
    request = Request(id=1, method="tools/call", params={"name": tool})
    return enveloped(SystemClock(), request, ALICE)


class Ledger:
    """A service that writes each call down."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.performed: list[MessageEnvelope[Any]] = []
        self.turned_away: list[str] = []

    async def perform(self, admitted: Admitted) -> str:
        envelope, principal = admitted.envelope, admitted.principal
        self.performed.append(envelope)
        tool = str(admitted.kind).rpartition(":")[2]

        async def unit(tx: Tx) -> int:
            return await tx.execute(
                "INSERT INTO meta (key, value) VALUES (?, ?)", (f"call-{tool}", principal.name)
            )

        await self.store.write(unit)
        return tool

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.PolicyError:
        self.turned_away.append(principal.name)
        return error


class Plain:
    """What every interceptor says of itself."""

    name = "test"
    guards = False


class Renames(Plain):
    """An interceptor that makes every call a call of another tool."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        return Modify(replace(envelope.message, params={"name": self.tool}))


class Edits(Plain):
    """An interceptor that changes what it was shown, in place."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        message = envelope.message
        members = (
            message.payload if isinstance(message, McpxMessage) else {"params": message.params}
        )
        members["params"]["name"] = self.tool
        return CONTINUE


class Copies(Plain):
    """An interceptor that changes a copy and leaves the old bytes beside it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        return Modify(msgspec.structs.replace(envelope.message, params={"name": self.tool}))


class Blocks(Plain):
    """An interceptor that lets nothing through."""

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        return Block(e.BlockedByInterceptor("Not today."))


@pytest.fixture
async def ledger(store: SqliteStore) -> AsyncIterator[Ledger]:
    yield Ledger(store)  # noqa: PT022 - async fixtures are generators


def through(ledger: Ledger, *interceptors: Interceptor) -> Pipeline:
    return Pipeline.to(ledger, Chain(interceptors))


async def test_whoever_looks_at_a_message_knows_when_its_processing_began(ledger):
    pipeline = through(ledger, Renames("read"))
    await pipeline.run(calling("read"), ALICE, READER)
    assert ledger.performed[0].context.timing.processing_started is not None


async def test_no_rewrite_slips_past_policy(ledger):
    pipeline = through(ledger, Renames("remove"))
    with pytest.raises(e.ProposalRequired, match="tools/call:remove"):
        await pipeline.run(calling("read"), ALICE, READER)
    assert not ledger.performed
    with pytest.raises(e.CapabilityDenied):
        await pipeline.run(calling("read"), ALICE, Rights(["chat.*"]))
    assert ledger.turned_away == ["alice", "alice"]


@pytest.mark.parametrize("interceptor", [Edits("read"), Copies("read")], ids=["edits", "copies"])
async def test_what_policy_judged_is_what_is_passed_on(ledger, interceptor):
    """A careless interceptor must not get the bytes of one call past policy as another."""
    pipeline = through(ledger, interceptor)
    raw = encode_message(calling("remove").message)
    await pipeline.run(calling("remove").with_message(decode_message(raw)), ALICE, READER)
    assert encode_message(ledger.performed[0].message) == encode_message(calling("read").message)


async def test_an_unchanged_message_keeps_its_bytes(ledger):
    pipeline = through(ledger, Edits("read"))
    raw = b' {"jsonrpc":"2.0", "id":1, "method":"tools/call", "params":{"name":"read"}}'
    await pipeline.run(calling("read").with_message(decode_message(raw)), ALICE, READER)
    assert ledger.performed[0].message.raw == raw


@pytest.mark.parametrize("interceptor", [Edits("other"), None], ids=["edits", "leaves alone"])
async def test_a_rooms_message_is_stopped_or_let_through_but_never_rewritten(ledger, interceptor):
    pipeline = through(ledger, interceptor or Edits("read"))
    sent = {"protocol": "mcpx/v1", "kind": "mcp.request.tools/call", "to": ["files"]}
    raw = encode({**sent, "payload": members(calling("read").message)})
    envelope = calling("read").with_message(decode_mcpx(raw))
    if interceptor:
        with pytest.raises(e.RewriteRefused):
            await pipeline.run(envelope, ALICE, READER)
    else:
        assert await pipeline.run(envelope, ALICE, READER) == "read"


async def test_interceptors_act_in_their_order_and_may_stop_a_message(ledger):
    pipeline = through(ledger, Renames("other"), Renames("read"))
    assert await pipeline.run(calling("remove"), ALICE, READER) == "read"
    blocked = Pipeline.to(ledger, Chain([Blocks(), Renames("read")]))
    with pytest.raises(e.BlockedByInterceptor):
        await blocked.run(calling("read"), ALICE, READER)
    assert len(ledger.performed) == 1


@cache
def sources() -> dict[str, str]:
    source = Path(folkmoot.__file__).parent
    files = {path.relative_to(source).as_posix(): path for path in source.rglob("*.py")}
    return {name: path.read_text("utf-8") for name, path in files.items()}


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (r"(?<!class )\bAdmitted\(", ["pipeline.py"]),
        (r"(?<!def )\bdecide\(", ["gateway/operations.py"]),
        (r"(chain|interceptors)\.(run|judge|settle)\b", ["pipeline.py"]),
        (
            r"(?<!class )\bPipeline(\.to)?\(",
            [
                "composition.py",
                "relay/room_backends.py",
                "relay/steps.py",
                "transports/operations.py",
            ],
        ),
    ],
    ids=["admitted", "decided", "intercepted", "ways in"],
)
def test_nothing_is_admitted_beside_the_pipeline(made, where):
    """Whoever made an `Admitted` of its own, or asked policy or interceptors, could pass some by.

    The ways in are those of the table in `pipeline.py`.
    """
    found = [name for name, text in sources().items() if re.search(made, text)]
    assert sorted(found) == where


async def test_a_message_that_was_changed_in_place_and_stopped_is_told_why_it_was_stopped(ledger):
    pipeline = through(ledger, Edits("other"), Blocks())
    sent = {"protocol": "mcpx/v1", "kind": "mcp.request.tools/call", "to": ["files"]}
    raw = encode({**sent, "payload": members(calling("read").message)})
    with pytest.raises(e.BlockedByInterceptor, match="Not today"):
        await pipeline.run(calling("read").with_message(decode_mcpx(raw)), ALICE, READER)


async def test_a_refusal_that_nobody_notes_is_raised_as_it_is(tmp_path):
    async def never(_: Admitted) -> None:
        raise AssertionError

    with pytest.raises(e.ProposalRequired):
        await Pipeline(never).run(calling("remove"), ALICE, READER)


async def test_a_message_that_waits_can_be_left_aside_or_be_one_too_many(ledger):
    class Waits(Plain):
        async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
            return Delay(0.0)

    pipeline = through(ledger, Waits())
    rest: list[Any] = []
    assert await pipeline.run(calling("read"), ALICE, READER, rest.append) is None
    assert not ledger.performed
    assert await rest[0]() == "read"
    with pytest.raises(e.TooManyInFlight):
        await pipeline.run(calling("read"), ALICE, READER, lambda _: e.TooManyInFlight("full"))
