"""The one way through, as scripts of messages over the real store."""

from __future__ import annotations

import re
from collections.abc import Callable
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
from folkmoot.core.ports import Admitted, Interceptor
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

        insert = "INSERT INTO meta (key, value) VALUES (?, ?)"
        await self.store.write(lambda tx: tx.execute(insert, (f"call-{tool}", principal.name)))
        return tool

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.PolicyError:
        self.turned_away.append(principal.name)
        return error


class Judges:
    """An interceptor that says of every message what it was made with."""

    name = "test"
    guards = False

    def __init__(self, judge: Callable[[Any], Verdict]) -> None:
        self._judge = judge

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        return self._judge(envelope.message)


def renames(tool: str) -> Judges:
    """Makes every call a call of another tool."""
    return Judges(lambda message: Modify(replace(message, params={"name": tool})))


def copies(tool: str) -> Judges:
    """Changes a copy and leaves the old bytes beside it."""
    return Judges(lambda message: Modify(msgspec.structs.replace(message, params={"name": tool})))


def edits(tool: str) -> Judges:
    """Changes what it was shown, in place."""

    def edit(message: Any) -> Verdict:
        is_rooms = isinstance(message, McpxMessage)
        (message.payload["params"] if is_rooms else message.params)["name"] = tool
        return CONTINUE

    return Judges(edit)


def blocks() -> Judges:
    """Lets nothing through."""
    return Judges(lambda _: Block(e.BlockedByInterceptor("Not today.")))


@pytest.fixture
async def ledger(store: SqliteStore) -> Ledger:
    return Ledger(store)


def through(ledger: Ledger, *interceptors: Interceptor) -> Pipeline:
    return Pipeline.to(ledger, Chain(interceptors))


async def test_whoever_looks_at_a_message_knows_when_its_processing_began(ledger):
    pipeline = through(ledger, renames("read"))
    await pipeline.run(calling("read"), ALICE, READER)
    assert ledger.performed[0].context.timing.processing_started is not None


async def test_no_rewrite_slips_past_policy(ledger):
    pipeline = through(ledger, renames("remove"))
    with pytest.raises(e.ProposalRequired, match="tools/call:remove"):
        await pipeline.run(calling("read"), ALICE, READER)
    assert not ledger.performed
    with pytest.raises(e.CapabilityDenied):
        await pipeline.run(calling("read"), ALICE, Rights(["chat.*"]))
    assert ledger.turned_away == ["alice", "alice"]


@pytest.mark.parametrize("interceptor", [edits("read"), copies("read")], ids=["edits", "copies"])
async def test_what_policy_judged_is_what_is_passed_on(ledger, interceptor):
    """A careless interceptor must not get the bytes of one call past policy as another."""
    pipeline = through(ledger, interceptor)
    raw = encode_message(calling("remove").message)
    await pipeline.run(calling("remove").with_message(decode_message(raw)), ALICE, READER)
    assert encode_message(ledger.performed[0].message) == encode_message(calling("read").message)


async def test_an_unchanged_message_keeps_its_bytes(ledger):
    pipeline = through(ledger, edits("read"))
    raw = b' {"jsonrpc":"2.0", "id":1, "method":"tools/call", "params":{"name":"read"}}'
    await pipeline.run(calling("read").with_message(decode_message(raw)), ALICE, READER)
    assert ledger.performed[0].message.raw == raw


def in_a_room() -> MessageEnvelope[Any]:
    """A call that is said in a room."""
    sent = {"protocol": "mcpx/v1", "kind": "mcp.request.tools/call", "to": ["files"]}
    raw = encode({**sent, "payload": members(calling("read").message)})
    return calling("read").with_message(decode_mcpx(raw))


async def test_a_rooms_message_is_stopped_or_let_through_but_never_rewritten(ledger):
    assert await through(ledger, edits("read")).run(in_a_room(), ALICE, READER) == "read"
    with pytest.raises(e.RewriteRefused):
        await through(ledger, edits("other")).run(in_a_room(), ALICE, READER)


async def test_interceptors_act_in_their_order_and_may_stop_a_message(ledger):
    pipeline = through(ledger, renames("other"), renames("read"))
    assert await pipeline.run(calling("remove"), ALICE, READER) == "read"
    with pytest.raises(e.BlockedByInterceptor):
        await through(ledger, blocks(), renames("read")).run(calling("read"), ALICE, READER)
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
                "relay/asked_calls.py",
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
    with pytest.raises(e.BlockedByInterceptor, match="Not today"):
        await through(ledger, edits("other"), blocks()).run(in_a_room(), ALICE, READER)


async def test_a_refusal_that_nobody_notes_is_raised_as_it_is(tmp_path):
    async def never(_: Admitted) -> None:
        raise AssertionError

    with pytest.raises(e.ProposalRequired):
        await Pipeline(never).run(calling("remove"), ALICE, READER)


async def test_a_message_that_waits_can_be_left_aside_or_be_one_too_many(ledger):
    pipeline = through(ledger, Judges(lambda _: Delay(0.0)))
    rest: list[Any] = []
    assert await pipeline.run(calling("read"), ALICE, READER, rest.append) is None
    assert not ledger.performed
    assert await rest[0]() == "read"
    with pytest.raises(e.TooManyInFlight):
        await pipeline.run(calling("read"), ALICE, READER, lambda _: e.TooManyInFlight("full"))


async def test_an_error_that_an_interceptor_gives_each_time_keeps_nothing_of_earlier_messages(
    ledger,
):
    same = Block(e.BlockedByInterceptor("Not today."))
    pipeline = through(ledger, Judges(lambda _: same))
    lengths = []
    for _ in range(5):
        with pytest.raises(e.BlockedByInterceptor) as refused:
            await pipeline.run(calling("read"), ALICE, READER)
        lengths.append(len(refused.traceback))
    assert len(set(lengths)) == 1
