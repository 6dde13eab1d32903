"""Streams of sessions that break, and clients that come back for the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.framing import EventReader, SseEvent
from folkmoot.mcp.server import responses, streams
from folkmoot.transports.mcp.notices import INBOX
from tests.faults.cluster import Cable, Cut
from tests.mcp_harness import until
from tests.transports.mcp.gateway_support import (
    Demo,
    Talker,
    Wire,
    fronted,
    log,
    progress,
    text,
    wired,
)

TOKEN = {"progressToken": "mine"}


@pytest.fixture
def talker() -> Talker:
    return Talker()


@pytest.fixture
def backend(talker: Talker) -> Demo:
    return Demo(talk=talker)


class Reading:
    """The events of one response, as they come."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self._chunks = response.aiter_bytes()
        self._reader = EventReader(1 << 24)
        self._read: list[SseEvent] = []
        self.first: SseEvent | None = None

    async def next(self) -> SseEvent:
        while not self._read:
            self._read += self._reader.feed(await anext(self._chunks))
        self.first = self.first or self._read[0]
        return self._read.pop(0)

    async def rest(self) -> list[Any]:
        """Every message until the end."""
        found = [json.loads(each.data) for each in self._read if each.data]
        async for chunk in self._chunks:
            found += [json.loads(each.data) for each in self._reader.feed(chunk) if each.data]
        return found

    async def message(self) -> tuple[str | None, Any]:
        """The next message, and the id of its event."""
        while not (event := await self.next()).data:
            pass
        return event.event_id, json.loads(event.data)


@asynccontextmanager
async def listening(wire: Wire, event_id: str = "", **headers: str) -> AsyncIterator[Reading]:
    """A GET of a session; whoever leaves it breaks the connection."""
    named = {**wire.headers({}), **headers, **({"last-event-id": event_id} if event_id else {})}
    async with (
        httpx2.AsyncClient(verify=False, timeout=30) as http,
        http.stream("GET", wire.there.url, headers=named) as response,
    ):
        yield Reading(response)


@asynccontextmanager
async def calling(
    wire: Wire, tool: str = "demo_talk", id_: int = 1, **arguments: Any
) -> AsyncIterator[Reading]:
    """A call on a connection of its own; whoever leaves it before its end breaks the connection."""
    message = wire.message("tools/call", {"name": tool, "arguments": arguments}, id_, TOKEN)
    async with (
        httpx2.AsyncClient(verify=False, timeout=30) as http,
        http.stream(
            "POST", wire.there.url, json=message, headers=wire.headers(message)
        ) as response,
    ):
        yield Reading(response)


async def refusal(wire: Wire, event_id: str, **headers: str) -> tuple[int, bytes]:
    """What is answered to whoever may not resume a stream."""
    named = {**wire.headers({}), **headers}
    raw = [*((name.encode(), value.encode()) for name, value in named.items())]
    raw.append((b"last-event-id", event_id.encode()))
    answer = await wire.http.get(wire.there.url, headers=raw)
    return answer.status_code, answer.content


def kept(wire: Wire) -> list[Any]:
    """The streams of a session that are kept."""
    session = wire.there.hub.mcp._sessions._sessions.get(wire.session)
    return [] if session is None or session.streams is None else [*session.streams._named.values()]


async def unread(wire: Wire) -> None:
    """Wait until the hub knows that nobody reads any stream of a session."""
    await until(lambda: all(stream.reader is None for stream in kept(wire)))


async def broken(wire: Wire, talker: Talker, **arguments: Any) -> tuple[SseEvent, str]:
    """Call, hear the first words, and lose the connection: the first event, and the last id."""
    async with calling(wire, **arguments) as said:
        last, message = await said.message()
        assert message["params"]["progress"] == 1
    await unread(wire)
    assert last is not None
    assert said.first is not None
    return said.first, last


@pytest.mark.requirement("mcp.stream-resumed", "mcp.disconnect-is-no-cancel")
@pytest.mark.parametrize(
    ("version", "taped"),
    [("2025-03-26", False), ("2025-11-25", False), ("2025-11-25", True)],
)
async def test_a_call_whose_connection_broke_goes_on_and_its_answer_is_had_later(
    version, taped, tmp_path, talker, backend
):
    record = {"record": {"folder": str(tmp_path / "tapes")}} if taped else {}
    async with fronted(tmp_path / "hub", "handshake", backend, **record) as there:
        wire = await wired(there, await there.person("ann"), version=version)
        first, last = await broken(wire, talker)
        # Only the newest version knows an event that has no message.
        primed = version == "2025-11-25"
        assert (first.data == b"", first.retry) == (primed, 1.0 if primed else None)
        talker.go_on.set()
        await until(lambda: talker.answered)
        async with listening(wire, last) as said:
            two, note, answer = await said.rest()
        assert two["params"] == {**progress(2).params, "progressToken": "mine"}  # type: ignore[dict-item]
        assert note["params"]["data"] == "nearly"
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, "done")
        # What was sent may have been lost on its way: it can be had again.
        async with listening(wire, last) as said:
            assert [each.get("id") for each in await said.rest()] == [None, None, 1]
        assert (backend.cancelled, len(backend.asked)) == ([], 1)


@pytest.mark.requirement("mcp.stream-resumed")
async def test_a_stream_that_is_resumed_goes_on_live_with_questions(hub, talker, ann):
    wire = await wired(hub, ann, capabilities={"elicitation": {}})
    _, last = await broken(wire, talker, ask=True)
    async with listening(wire, last) as said:
        talker.go_on.set()
        for _ in range(2):
            last, _ = await said.message()  # type: ignore[assignment]
    await unread(wire)
    # The question is asked while nobody reads, and answered before its stream is back.
    async with listening(wire, last) as said:
        _, question = await said.message()
        assert question["method"] == "elicitation/create"
        result = {"action": "accept", "content": {"name": "Ann"}}
        assert await wire.reply(question, result) == 202
        [answer] = await said.rest()
    assert answer["result"]["content"][0]["text"] == "done Ann"


@pytest.mark.requirement("mcp.stream-resumed")
async def test_whoever_comes_back_takes_the_place_of_a_connection_that_is_not_known_to_be_broken(
    talker, wire
):
    async with calling(wire) as before:
        last, _ = await before.message()
        assert last is not None
        async with listening(wire, last) as said:
            talker.go_on.set()
            assert [each.get("id") for each in await said.rest()] == [None, None, 1]
        assert await before.rest() == []


@pytest.mark.requirement("mcp.stream-resumed", "tool.inbox.vanished-client")
async def test_mail_that_was_delivered_by_resuming_is_read_then_and_not_before(hub, monkeypatch):
    monkeypatch.setattr(responses, "OPEN_SECONDS", 0.06)
    alice, bob = await hub.people("alice", "bob")
    wire = await wired(hub, bob)
    async with calling(wire, "msg_inbox", wait=50) as said:
        first = await said.next()
        assert first.data == b""
    await unread(wire)
    assert first.event_id is not None
    await alice.call("msg/send", to="bob", body="Kept for you")
    await until(lambda: all(stream.done for stream in kept(wire)))
    assert (await bob.call("msg/digest"))["total_unread"] == 1

    async def all_read() -> bool:
        return (await bob.call("msg/digest"))["total_unread"] == 0

    for _ in range(2):
        async with listening(wire, first.event_id) as said:
            [answer] = await said.rest()
        assert "Kept for you" in str(answer)
        await until(all_read)


async def test_a_call_whose_client_does_not_come_back_ends_and_marks_nothing_read(
    hub, talker, backend, monkeypatch
):
    monkeypatch.setattr(responses, "OPEN_SECONDS", 0.06)
    budget = hub.hub.mcp._server.streams
    budget.seconds = 0.05
    alice, bob = await hub.people("alice", "bob")
    wire = await wired(hub, bob)
    _, last = await broken(wire, talker)
    await until(lambda: len(backend.cancelled) == 1)
    async with calling(wire, "msg_inbox", wait=50) as said:
        first = await said.next()
    await until(lambda: not kept(wire) and hub.hub.bus.subscriptions == 0)
    await alice.call("msg/send", to="bob", body="Still unread")
    for gone in (last, first.event_id or ""):
        assert_unknown(await refusal(wire, gone))
    assert (await bob.call("msg/digest"))["total_unread"] == 1


def assert_unknown(answer: tuple[int, bytes]) -> None:
    """What is answered wherever a stream cannot be resumed, and nothing else."""
    status, body = answer
    error = json.loads(body)["error"]
    assert (status, error["code"], error["data"]) == (400, -32600, {"code": "event_unknown"})
    assert error["message"].startswith("This stream cannot be resumed")


async def test_only_the_session_and_the_credential_of_a_stream_resume_it(
    hub, talker, ann, bob, wire
):
    others = [await wired(hub, who) for who in (ann, bob, "")]
    _, last = await broken(wire, talker)
    name, _, number = last.rpartition("-")
    places = (f"{int(number) + 1}", "9" * 15, "9" * 400, "-1", "1.0", "\u0661")
    another = name[:-1] + ("0" if name[-1] != "0" else "1")
    forged = ["7", "0-57", "-1", "x" * 4_000, f"{another}-{number}"]
    forged += [f"{name}-{place}" for place in places]
    answers = {await refusal(other, last) for other in others}
    for each in forged:
        answers |= {await refusal(other, each) for other in (wire, *others)}
    [answer] = answers
    assert_unknown(answer)
    # It would be of another process, which is gone with all it had of the session.
    elsewhere = f"{'0' * 16}{name[16:]}-{number}"
    assert {(await refusal(each, elsewhere))[0] for each in (wire, *others)} == {404}
    # Of another's session they learn nothing, with whatever id.
    for token in (bob.token, "", "sk_" + "0" * 64):
        lent = Wire(hub, token, wire.session)
        assert (await refusal(lent, last))[0] == 404
        await lent.leave()
    # All of that has disturbed nobody.
    talker.go_on.set()
    async with listening(wire, last) as said:
        assert (await said.rest())[-1]["id"] == 1


@pytest.mark.requirement("auth.old-token-stops")
async def test_a_dead_credential_ends_a_broken_call(hub, talker, backend, ann, wire, monkeypatch):
    monkeypatch.setattr(responses, "OPEN_SECONDS", 0.06)
    _, last = await broken(wire, talker)
    async with calling(wire, "msg_inbox", id_=2, wait=50) as said:
        await said.next()
    await unread(wire)
    assert len(kept(wire)) == 2
    await hub.hub.accounts.recover("ann", ann.recovery_code)
    await until(lambda: not kept(wire))
    assert len(backend.cancelled) == 1
    assert (await refusal(wire, last))[0] == 401


@pytest.mark.requirement("mcp.disconnect-is-no-cancel")
async def test_a_broken_call_that_is_cancelled_or_whose_session_ends_is_gone(talker, backend, wire):
    _, last = await broken(wire, talker)
    notice = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await wire.post({"jsonrpc": "2.0", **notice})).status == 202
    await until(lambda: len(backend.cancelled) == 1)
    assert_unknown(await refusal(wire, last))
    _, last = await broken(wire, talker)
    assert await wire.end() == 200
    await until(lambda: len(backend.cancelled) == 2)
    assert (await refusal(wire, last))[0] == 404
    assert kept(wire) == []


async def test_a_hub_that_stops_does_not_wait_for_broken_calls(tmp_path, talker, backend):
    async with fronted(tmp_path, "handshake", backend, http={"shutdown_seconds": 60}) as there:
        await broken(await wired(there, await there.person("ann")), talker)
        began = asyncio.get_running_loop().time()
    assert len(backend.cancelled) == 1
    assert asyncio.get_running_loop().time() - began < 30


@pytest.mark.settings(mcp={"max_stream_bytes": 1_048_576})
async def test_an_answer_that_is_too_large_to_be_kept_is_told_to_be_lost(
    hub, talker, backend, wire
):
    async def large(wanted: UpstreamRequest) -> Any:
        await talker(wanted)
        return text("x" * 70_000)

    backend.tools["talk"] = large
    async with calling(wire) as said:
        await said.message()
        talker.go_on.set()
        # Whoever reads it gets it, however large it is.
        assert len((await said.rest())[-1]["result"]["content"][0]["text"]) == 70_000
    talker.go_on.clear()
    _, last = await broken(wire, talker)
    talker.go_on.set()
    await until(lambda: not hub.hub.mcp._sessions._sessions[wire.session].requests)
    assert_unknown(await refusal(wire, last))


@pytest.mark.parametrize("logs", [False, True])
async def test_of_what_is_said_while_nobody_reads_old_progress_goes_first_and_lost_logs_are_told(
    logs, talker, backend, wire
):
    async def flood(wanted: UpstreamRequest) -> Any:
        result = await talker(wanted)
        talker.say(wanted, *(progress(number) for number in range(1_000)))
        talker.say(wanted, *(log("info", str(n)) for n in range(300 if logs else 0)))
        return result

    backend.tools["talk"] = flood
    _, last = await broken(wire, talker)
    talker.go_on.set()
    async with listening(wire, last) as said:
        *told, answer = await said.rest()
    assert answer["result"]["content"][0]["text"] == "done"
    assert len(told) <= streams.MOST_EVENTS + 1
    data = [each["params"].get("data") for each in told if "data" in each["params"]]
    if logs:
        note = told[0]["params"]
        assert (note["level"], note["logger"]) == ("warning", "folkmoot")
        assert note["data"].startswith("Log messages of this call were dropped")
        assert data[-1] == "299"
    else:
        assert data == ["nearly"]
        assert told[-1]["params"]["progress"] == 999


@pytest.mark.requirement("mcp.stream-resumed", "notice.inbox-resource")
async def test_what_changes_while_a_session_does_not_listen_is_told_when_it_is_back(hub):
    alice, bob = await hub.people("alice", "bob")
    wire = await wired(hub, bob)
    await wire.ask("resources/subscribe", {"uri": INBOX})
    async with listening(wire) as said:
        first = await said.next()
        assert (first.data, first.retry) == (b"", 1.0)
        assert first.event_id is not None
        await alice.call("msg/send", to="bob", body="One")
        last, one = await said.message()
        assert (one["params"]["uri"], last is not None) == (INBOX, True)
    await unread(wire)
    for priority in ("urgent", "normal"):
        await alice.call("msg/send", to="bob", body="More", priority=priority)
    async with listening(wire, last or "") as said:
        _, more = await said.message()
        assert more["params"] == {"uri": INBOX, "_meta": {"folkmoot/urgent": True}}
        # A second connection takes the stream over, from wherever it wants.
        async with listening(wire, first.event_id) as again:
            assert [(await again.message())[1] for _ in "ab"] == [one, more]
            assert await said.rest() == []
            # One that does not come back to the stream is one too many.
            answer = await wire.http.get(hub.url, headers=wire.headers({}))
            assert answer.status_code == 409


async def test_an_id_of_an_earlier_process_makes_no_stream_skip_anything(tmp_path):
    talker = Talker()
    async with fronted(tmp_path, "handshake", Demo(talk=talker)) as there:
        made = await there.hub.accounts.register("bob")
        await there.hub.accounts.register("alice")
        wire = await wired(there, made.token)
        await wire.ask("resources/subscribe", {"uri": INBOX})
        async with listening(wire) as said:
            heard = (await said.next()).event_id
            assert heard is not None
        _, called = await broken(wire, talker)
    async with fronted(tmp_path, "handshake", Demo(talk=Talker())) as there:
        wire.there, wire.http = there, httpx2.AsyncClient(verify=False)
        there._people.append(wire)  # type: ignore[arg-type] - it leaves like everyone
        assert (await refusal(wire, called))[0] == 404
        name, _, _ = heard.rpartition("-")
        async with listening(wire, f"{name}-57") as said:
            fresh = await said.next()
            assert (fresh.data, (fresh.event_id or "")[:16] == name[:16]) == (b"", False)
            # What may have changed meanwhile is told, since nobody knows what was heard.
            told = [(await said.message())[1] for _ in range(4)]
            assert [each["method"].rpartition("/")[2] for each in told] == [
                "list_changed", "list_changed", "list_changed", "updated",
            ]  # fmt: skip
            assert told[-1]["params"]["uri"] == INBOX
        # An invented id is answered in the same way, and opens nothing that GET would not.
        async with listening(wire, f"{'0' * 16}-l{'0' * 12}-3") as said:
            assert (await said.next()).data == b""
            assert (await said.message())[1]["method"].endswith("list_changed")


@pytest.mark.requirement("mcp.stream-resumed")
@pytest.mark.parametrize(("version", "seconds"), [("2024-11-05", 60), ("2025-11-25", 0)])
async def test_where_streams_are_not_resumed_events_have_no_ids(
    version, seconds, tmp_path, talker, backend
):
    resuming = {"resume_seconds": seconds}
    async with fronted(tmp_path, "handshake", backend, mcp=resuming) as there:
        wire = await wired(there, await there.person("ann"), version=version)
        async with calling(wire) as said:
            assert (await said.message())[0] is None
            talker.go_on.set()
            assert (await said.rest())[-1]["id"] == 1
        async with listening(wire, "7") as said:
            assert said.status == 200


@pytest.mark.long
@pytest.mark.requirement("mcp.stream-resumed", "mcp.disconnect-is-no-cancel")
async def test_the_official_client_gets_the_answer_of_a_call_whose_connection_was_cut(
    hub, talker, backend
):
    made = await hub.hub.accounts.register("ann")
    cable = Cable(lambda: asyncio.open_connection("127.0.0.1", hub.port))
    steps: list[float] = []

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)
        heard.set()

    heard = asyncio.Event()
    ann = await hub.enter(f"http://127.0.0.1:{await cable.lay()}/mcp?token={made.token}")
    call = ann.client.call_tool("demo_talk", {}, progress_callback=progressed)
    asking = asyncio.ensure_future(call)
    await heard.wait()
    cable.cut(Cut.CLOSED)
    cable.mend()
    talker.go_on.set()
    result = await asking
    assert result.content[0].text == "done"
    assert steps == [1, 2]
    await ann.leave()
    await cable.close()
    # It was asked for the rest, and did not call again.
    assert (backend.cancelled, len(backend.asked)) == ([], 1)
