"""The recorded client, played against a server that lives: here, another tape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.message import ProtocolMessage, Response
from folkmoot.mcp.carrier import Carrier, Connect
from folkmoot.proxy.replay.matching import Mode
from folkmoot.proxy.replay.playing import PlayOutcome, PlayReport
from folkmoot.relay.play import play
from folkmoot.relay.tape_server import Replay
from tests.harness import run
from tests.proxy.replay.tapes import (
    HANDSHAKE,
    INFO,
    Said,
    answers,
    asks,
    calls,
    fails,
    tape,
    tells,
    text,
)

pytestmark = pytest.mark.requirement("proxy.replay")

SECRET = "[redacted:password:0123456789ab]"
CANCEL = tells("notifications/cancelled", {"requestId": 2}, side="client")


def played(recorded: tuple[Said, ...], live: tuple[Said, ...], **options: Any) -> PlayReport:
    server = Replay(tape(*live), SystemClock(), mode=options.pop("mode", Mode.ARGUMENTS))
    return run(play(tape(*recorded), server.connect, **options))


class Noting(Carrier):
    """Another carrier, with a note of what passed."""

    def __init__(self, inner: Carrier) -> None:
        super().__init__(inner.receives, inner.clock)
        self.inner = inner
        self.notes: list[Any] = []
        self.sent: list[ProtocolMessage] = []

    async def receive_envelope(self) -> Any:
        envelope = await self.inner.receive_envelope()
        self.notes.append(("got", envelope.message.id))
        return envelope

    async def send_envelope(self, envelope: Any) -> None:
        self.notes.append(("sent", envelope.message.id))
        self.sent.append(envelope.message)
        await self.inner.send_envelope(envelope)

    def current_context(self) -> Any:
        return self.inner.current_context()

    async def close(self) -> None:
        await self.inner.close()


def passing(made: list[Noting], *lines: Said, kind: type[Noting] = Noting) -> Connect:
    """A way to a tape that is served, on which a note is taken."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Carrier]:
        async with Replay(tape(*lines), SystemClock()).connect() as server:
            made.append(kind(server))
            yield made[0]

    return connect


SESSION = (
    *HANDSHAKE,
    asks(1, "tools/list", {}), answers(1, {"tools": [{"name": "a", "description": "A."}]}),
    calls(2, "a", n=1), answers(2, text("one")),
)  # fmt: skip


def test_of_a_changed_server_exactly_the_change_is_reported():
    changed = list(SESSION)
    changed[4] = answers(1, {"tools": [{"name": "a", "description": "B."}]})
    report = played(SESSION, tuple(changed))
    assert (report.same, report.summary()) == (False, "3 calls, 2 the same, 1 differs")
    same = played(SESSION, SESSION)
    assert (same.same, same.summary()) == (True, "3 calls, 3 the same")
    (call,) = [each for each in report.calls if each.outcome is PlayOutcome.DIFFERS]
    assert (call.seq, call.method) == (4, "tools/list")
    assert [(d.path, d.recorded, d.live) for d in call.differences] == [
        ('$.result.tools["a"].description', "A.", "B.")
    ]


def test_what_is_ignored_does_not_differ():
    live = (*SESSION[:-1], answers(2, text("two")))
    assert not played(SESSION, live).same
    assert played(SESSION, live, ignore=["$.result.content[*].text"]).same
    with pytest.raises(e.PathSyntax):
        played(SESSION, live, ignore=["result"])


def test_an_error_where_a_result_was_differs():
    report = played(SESSION, (*SESSION[:-1], fails(2)))
    (call,) = [each for each in report.calls if each.outcome is PlayOutcome.DIFFERS]
    assert [each.path for each in call.differences] == ["$.result", "$.error"]


def test_a_question_gets_the_answer_to_itself_also_in_another_order():
    def asked(*order: int) -> tuple[Said, ...]:
        lines = [calls(1, "a")]
        for number in order:
            question = {"messages": [number]}
            lines.append(asks(number, "sampling/createMessage", question, side="server"))
            lines.append(answers(number, {"text": number}, side="client"))
        return (*lines, answers(1, {}))

    # One that is asked more often than on the tape gets its last answer again: a server that
    # fetches something on a timer and for a tool asks once or twice, by when each runs.
    report = played(asked(7), asked(7, 7, 7))
    assert report.same
    assert report.unexpected == ()
    noting: list[Noting] = []
    assert run(play(tape(*asked(7, 8)), passing(noting, *asked(8, 7)))).same
    said = [message.result for message in noting[0].sent if isinstance(message, Response)]
    assert said == [{"text": 8}, {"text": 7}]


def test_what_the_server_asks_beside_the_tape_is_told():
    live = (
        *SESSION[:-1],
        asks(9, "elicitation/create", {}, side="server"),
        answers(9, {}, side="client"),
        answers(2, text("one")),
    )
    report = played(SESSION, live)
    assert report.unexpected == ("elicitation/create is not on the tape",)
    assert not report.same


def test_a_request_waits_for_the_answers_it_had_waited_for_and_no_others():
    class Holding(Noting):
        """Keeps the answer to the first request back until the third was made."""

        first: Any = None

        async def receive_envelope(self) -> Any:
            if self.first is not None:
                await third.wait()
                held, self.first = self.first, None
                return held
            envelope = await super().receive_envelope()
            if envelope.message.id == 1:
                self.first = envelope
                return await super().receive_envelope()
            return envelope

        async def send_envelope(self, envelope: Any) -> None:
            await super().send_envelope(envelope)
            if envelope.message.id == 3:
                third.set()

    recorded = (
        calls(1, "a"), calls(2, "b"), answers(2, {}), calls(3, "c"), answers(1, {}), answers(3, {}),
    )  # fmt: skip
    third = asyncio.Event()
    holding: list[Noting] = []
    report = run(play(tape(*recorded[:-1]), passing(holding, *recorded, kind=Holding)))
    assert report.summary() == "3 calls, 2 the same, 1 not compared"
    notes = holding[0].notes
    assert notes.index(("got", 2)) < notes.index(("sent", 3))


def test_a_server_that_does_not_answer_is_given_up():
    report = played(SESSION, (*SESSION[:-1], CANCEL), answer_seconds=1)
    assert report.summary() == "3 calls, 2 the same, 1 not answered"
    assert report.calls[-1].why == "no answer came within 1 s"


def test_a_redacted_request_is_not_sent_without_its_secret():
    recorded = (*HANDSHAKE, calls(1, "login", password=f"pw {SECRET}"), answers(1, text("in")))
    live = (*HANDSHAKE, calls(1, "login", password="pw hunter2"), answers(1, text("in")))
    report = played(recorded, live)
    assert report.summary() == "2 calls, 1 the same, 1 not played"
    assert report.calls[-1].why == f"the tape does not hold {SECRET}"
    assert played(recorded, live, secrets={SECRET: "hunter2"}).summary() == "2 calls, 2 the same"
    # A redacted answer is compared but for the secret.
    recorded = (*HANDSHAKE, calls(1, "a"), answers(1, text(f"token {SECRET}.")))
    assert played(recorded, (*HANDSHAKE, calls(1, "a"), answers(1, text("token abc.")))).same


def test_what_a_server_makes_up_is_said_back_to_it_and_not_compared():
    def pages(cursor: str) -> tuple[Said, ...]:
        return (
            asks(1, "tools/list", {}), answers(1, {"tools": [], "nextCursor": cursor}),
            asks(2, "tools/list", {"cursor": cursor}), answers(2, {"tools": []}),
        )  # fmt: skip

    assert played(pages("then"), pages("now")).same


def test_a_request_without_an_answer_on_the_tape_is_not_compared():
    report = played((*SESSION, calls(3, "a", n=1)), SESSION)
    assert report.summary() == "4 calls, 3 the same, 1 not compared"
    assert report.same


def test_a_request_that_its_client_cancelled_is_not_compared():
    report = played((*SESSION[:-1], CANCEL, fails(2, 0, "Request cancelled")), SESSION)
    assert report.same
    assert [call.why for call in report.calls if call.why] == ["it was cancelled"]


def test_a_server_that_ends_while_it_is_asked_is_not_waited_for():
    class Leaving(Noting):
        async def send_envelope(self, envelope: Any) -> None:
            await self.inner.close()

    report = run(play(tape(*SESSION), passing([], *SESSION, kind=Leaving)))
    assert report.summary() == "3 calls, 0 the same, 3 not answered"
    assert report.calls[0].why == "The tape is no longer played."


def test_a_client_of_the_other_era_is_understood_as_it_was_through_a_proxy():
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": "2026-07-28"}
    told = {**text("one"), "resultType": "complete", "_meta": {f"{prefix}/serverInfo": INFO}}
    recorded = (calls(1, "a", _meta=meta, n=1), answers(1, told))
    assert played(recorded, SESSION).summary() == "1 call, 1 the same"


def test_a_client_that_tried_both_eras_finds_the_server_the_same():
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    recorded = (
        asks("era", "server/discover", meta),
        fails("era", -32601, "Method not found"),
        *SESSION,
    )
    assert played(recorded, recorded).summary() == "4 calls, 4 the same"


BETWEEN = {
    "log": lambda _: [tells("notifications/message", {"data": "hm"})],
    "progress": lambda n: [tells("notifications/progress", {"progressToken": n, "progress": 1})],
    "changed": lambda _: [tells("notifications/tools/list_changed")],
    "question": lambda n: [
        asks(f"q{n}", "roots/list", side="server"),
        answers(f"q{n}", {"roots": []}, side="client"),
    ],
}
CALLS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 1),
        st.lists(st.sampled_from(sorted(BETWEEN)), max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@given(CALLS, st.sampled_from(Mode))
def test_whatever_was_recorded_a_tape_played_against_itself_is_the_same(said, mode):
    lines: list[Said] = list(HANDSHAKE)
    late: list[Said] = []
    for number, (tool, argument, between, overlaps) in enumerate(said, 1):
        lines.append(calls(number, tool, _meta={"progressToken": number}, n=argument))
        lines += [line for each in between for line in BETWEEN[each](number)]
        # An overlapping call is answered only after the next one was made.
        answer = answers(number, text(f"{tool}{argument} {number}"))
        if overlaps and mode is not Mode.ORDER:
            late.append(answer)
        else:
            lines += [answer, *late]
            late.clear()
    report = played((*lines, *late), (*lines, *late), mode=mode)
    assert report.same
    assert report.count(PlayOutcome.SAME) == len(said) + 1
