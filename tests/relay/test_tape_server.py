"""A tape that answers as the recorded server did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.message import Response, members
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.replay.matching import Mode
from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream
from folkmoot.relay.steps import Steps
from folkmoot.relay.tape_server import MOST_PLAYING, Replay, TapeServer
from tests.mcp_harness import modern
from tests.proxy.replay.tapes import (
    HANDSHAKE,
    HELLO,
    WELCOME,
    Said,
    answers,
    asks,
    calls,
    fails,
    message,
    tape,
    tells,
    text,
)

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}

pytestmark = pytest.mark.requirement("proxy.replay")

BOTH = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def talking(*lines: Said, **options: Any) -> AsyncIterator[TapeServer]:
    async with Replay(tape(*lines), SystemClock(), **options).connect() as server:
        yield server


async def say(server: TapeServer, *lines: Said) -> None:
    for said in lines:
        await server.send(message(said))


async def heard(server: TapeServer, number: int = 1) -> list[dict[str, Any]]:
    return [members(await server.receive()) for _ in range(number)]


async def ask(server: TapeServer, *lines: Said) -> dict[str, Any]:
    """Say something, and hear the next thing."""
    await say(server, *lines)
    return (await heard(server))[0]


async def every_chance() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_live_client_gets_the_recorded_answer_under_its_own_id():
    async with talking(*HANDSHAKE, calls(1, "a"), answers(1, text("hi"))) as server:
        told = await ask(server, calls("mine", "a"))
        assert told == members(message(answers("mine", text("hi"))))
        with pytest.raises(e.Misrouted):
            await server.send_envelope(server.envelope_of(Response(id=1, result={})))


async def test_what_came_between_comes_again_with_the_live_progress_token():
    recorded = (
        calls(1, "slow", _meta={"progressToken": "old"}),
        tells("notifications/progress", {"progressToken": "old", "progress": 1}),
        tells("notifications/message", {"data": "hm"}),
        answers(1, {}),
        tells("notifications/tools/list_changed"),
    )
    async with talking(*recorded) as server:
        await say(server, calls(5, "slow", _meta={"progressToken": 77}))
        progress, log = await heard(server, 2)
        assert progress["params"] == {"progressToken": 77, "progress": 1}
        assert log["params"] == {"data": "hm"}
        # Whoever is woken by what is told has seen to it before the answer is there.
        await every_chance()
        assert not server.waiting
        answer, changed = await heard(server, 2)
        assert answer["id"] == 5
        assert changed["method"] == "notifications/tools/list_changed"
        # Who has no token wants no progress.
        assert "method" in await ask(server, calls(6, "slow"))
        assert (await heard(server))[0]["id"] == 6


async def test_what_the_server_asks_is_asked_anew_and_its_answer_awaited():
    recorded = (
        calls(1, "a"),
        asks(1, "sampling/createMessage", {"q": 1}, side="server"),
        answers(1, {"text": "recorded"}, side="client"),
        asks(2, "sampling/createMessage", {"q": 2}, side="server"),
        answers(2, {"text": "recorded"}, side="client"),
        answers(1, text("done")),
    )
    async with talking(*recorded) as server:
        await say(server, calls(1, "a"), asks(2, "ping"))
        first, second = await heard(server, 2)
        asked, pong = (first, second) if "method" in first else (second, first)
        assert asked["params"] == {"q": 1}
        assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}
        assert not server.waiting
        again = await ask(server, answers(asked["id"], {"text": "live"}, side="client"))
        assert again["params"] == {"q": 2}
        assert again["id"] != asked["id"]
        last = await ask(server, answers(again["id"], {"text": "live"}, side="client"))
        assert last["result"] == text("done")


async def test_what_a_notification_led_to_comes_after_it():
    roots = asks("r", "roots/list", side="server"), answers("r", {"roots": []}, side="client")
    async with talking(*HANDSHAKE, *roots) as server:
        assert (await ask(server, asks(0, "initialize", HELLO)))["result"] == WELCOME
        assert not server.waiting
        asked = await ask(server, tells("notifications/initialized", side="client"))
        assert asked["method"] == "roots/list"


async def test_the_recorded_version_is_answered_whatever_is_asked_for():
    async with talking(*HANDSHAKE, mode=Mode.EXACT) as server:
        hello = {**HELLO, "protocolVersion": "2024-11-05"}
        told = await ask(server, asks(0, "initialize", hello))
        assert told["result"]["protocolVersion"] == "2025-11-25"


async def test_what_is_not_on_the_tape_is_refused_and_remembered():
    told: list[str] = []
    recorded = tape(*HANDSHAKE, calls(1, "a"), answers(1, {}))
    replay = Replay(recorded, SystemClock(), on_miss=lambda error: told.append(error.message))
    async with replay.connect() as server:
        answer = await ask(server, calls(1, "b"), tells("notifications/unheard", side="client"))
    assert answer["error"]["data"]["code"] == "not_on_tape"
    assert answer["error"]["message"] == told[0] == replay.misses[0].message
    assert [call.seq for call in replay.unasked()] == [1, 4]


async def test_a_tape_that_ends_before_an_answer_says_so():
    async with talking(calls(1, "a")) as server:
        answer = await ask(server, calls(1, "a"))
        assert answer["error"]["message"] == "The tape ends before tools/call a is answered."


# A call during which the server asks for roots.
ASKING = (
    calls(1, "a"),
    asks(1, "roots/list", side="server"),
    answers(1, {}, side="client"),
    answers(1, {}),
)


async def test_a_client_that_takes_its_request_back_hears_no_more_of_it():
    async with talking(*ASKING) as server:
        late = answers((await ask(server, calls(1, "a")))["id"], {}, side="client")
        assert (await ask(server, CANCELS, late, asks(2, "ping")))["id"] == 2
        await every_chance()
        assert not server.waiting


async def test_the_original_pauses_are_kept_at_their_scale():
    asked = calls(1, "a", _meta={"progressToken": 1})
    progress = tells("notifications/progress", {"progressToken": 1, "progress": 1})
    async with talking(asked, progress, answers(1, {}), timing=0.05) as server:
        began = asyncio.get_running_loop().time()
        await say(server, asked)
        await heard(server, 2)
        assert asyncio.get_running_loop().time() - began >= 0.099


COUNTED = {n: (calls(1, "n"), answers(1, text(n))) for n in ("1", "2")}


@pytest.mark.parametrize(
    ("recorded", "once", "told"),
    [
        ([*HANDSHAKE, *COUNTED["1"], *COUNTED["2"]], True, "11"),
        ([*HANDSHAKE, *COUNTED["1"], *HANDSHAKE, *COUNTED["2"]], False, "122"),
    ],
    ids=["of one", "of several"],
)
async def test_conversations_begin_anew_with_a_tape_of_one_and_go_on_with_one_of_several(
    recorded, once, told
):
    replay = Replay(tape(*recorded), SystemClock(), once=once)
    for number in told:
        async with replay.connect() as server:
            assert (await ask(server, calls(1, "n")))["result"] == text(number)


async def test_a_client_of_the_other_era_is_refused_as_a_live_server_would():
    replay = Replay(tape(*HANDSHAKE, calls(1, "a"), answers(1, {})), SystemClock())
    async with replay.connect() as server:
        await say(server, discovers(1), calls(2, "a", **META))
        for answer in await heard(server, 2):
            assert answer["error"]["code"] == -32022
            assert answer["error"]["data"]["supported"] == ["2025-11-25"]
    assert replay.misses == []
    modern = Replay(tape(asks(1, "tools/list", META), answers(1, {})), SystemClock())
    async with modern.connect() as server:
        refused = await ask(server, asks(1, "initialize", HELLO))
        assert refused["error"]["data"]["supported"] == ["2026-07-28"]
    assert modern.misses == []


async def test_a_recorded_refusal_of_the_other_era_is_given_again():
    async with talking(discovers(7), fails(7, -32601, "what?"), *HANDSHAKE) as server:
        assert (await ask(server, discovers(7)))["error"] == {"code": -32601, "message": "what?"}


async def test_a_subscription_carries_the_id_of_the_live_request():
    old = {"_meta": {SUBSCRIPTION: "old"}}
    agreed = tells("notifications/subscriptions/acknowledged", old)
    async with talking(asks("old", "subscriptions/listen", META), agreed) as server:
        await say(server, asks("new", "subscriptions/listen", META), asks(2, "ping"))
        first, second = await heard(server, 2)
        told = first if "method" in first else second
        assert told["params"]["_meta"] == {SUBSCRIPTION: "new"}


async def test_more_requests_than_can_be_answered_at_once_are_refused():
    async with talking(*ASKING) as server:
        await say(server, *(calls(n, "a") for n in range(MOST_PLAYING)))
        for asked in await heard(server, MOST_PLAYING):
            assert asked["method"] == "roots/list"
        refused = await ask(server, calls(MOST_PLAYING, "a"))
        assert refused["error"]["data"]["code"] == "too_many_in_flight"


async def test_after_the_end_nothing_is_said():
    async with talking(*HANDSHAKE) as server:
        await say(server, asks(0, "initialize", HELLO))
        await server.close()
        with pytest.raises(e.TransportClosed):
            await say(server, asks(1, "ping"))
        with pytest.raises(e.TransportClosed):
            await heard(server, 2)


async def test_a_tape_that_nobody_reads_stands_still():
    logs = [tells("notifications/message", {"data": n}) for n in range(3000)]
    replay = Replay(tape(calls(1, "a"), *logs), SystemClock())
    async with replay.connect() as server:
        await say(server, calls(1, "a"))
        await every_chance()
        assert replay.misses == []
        said = await heard(server, 3001)
        assert [each["params"]["data"] for each in said[:-1]] == list(range(3000))
    assert len(replay.misses) == 1


def discovers(id_: int) -> Said:
    return asks(id_, "server/discover", META)


DISCOVERED = answers(1, {"supportedVersions": ["2026-07-28"], "resultType": "complete"})
CANCELS = tells("notifications/cancelled", {"requestId": 1}, side="client")
CHANGES = {
    "no answer": [discovers(1), *HANDSHAKE],
    "cancelled": [discovers(1), CANCELS, *HANDSHAKE],
    "late answer": [discovers(1), CANCELS, HANDSHAKE[0], DISCOVERED, *HANDSHAKE[1:]],
    "late error": [discovers(1), HANDSHAKE[0], fails(1, -32601), *HANDSHAKE[1:]],
}


@pytest.mark.requirement("proxy.replay-changed-era")
@pytest.mark.parametrize("how", CHANGES)
async def test_a_client_that_changed_eras_is_led_to_the_one_it_went_on_in(how):
    replay = Replay(tape(*CHANGES[how], calls(2, "a"), answers(2, text("hi"))), SystemClock())
    async with replay.connect() as server:
        refused = (await ask(server, discovers(7)))["error"]
        assert (refused["code"], refused["data"]["supported"]) == (-32022, ["2025-11-25"])
        assert (await ask(server, asks(8, "initialize", HELLO)))["result"] == WELCOME
        assert (await ask(server, calls(9, "a")))["result"] == text("hi")
    assert (replay.misses, replay.unasked()) == ([], [])


STATELESS = (calls(4, "a", **META), answers(4, {**text("hi"), "resultType": "complete"}))
# What was discovered on tapes whose client went on in the stateless era.
STILL = {
    "open while another client shook hands": [
        discovers(1),
        asks("other", "initialize", HELLO),
        answers("other", WELCOME),
        DISCOVERED,
        *STATELESS,
    ],
    "a handshake refused after it came too late": [
        discovers(1),
        CANCELS,
        asks(2, "initialize", HELLO),
        fails(2, -32022, "Unsupported protocol version"),
        discovers(3),
        answers(3, DISCOVERED.value["result"]),
        *STATELESS,
    ],
    "by nobody": [
        asks(1, "tools/list", META),
        answers(1, {"resultType": "complete", "tools": []}),
    ],
}


@pytest.mark.requirement("proxy.replay-changed-era", "proxy.replay-both-eras")
@pytest.mark.parametrize("how", STILL)
async def test_a_tape_of_the_stateless_era_can_be_discovered(how):
    async with talking(*STILL[how]) as server:
        found = (await ask(server, discovers(7)))["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        if how == "by nobody":
            assert found["capabilities"] == {"tools": {}}


@pytest.mark.requirement("proxy.replay-both-eras")
async def test_a_tape_of_a_handshake_is_served_to_clients_that_discover_it():
    replay = Replay(tape(*HANDSHAKE, calls(1, "a"), answers(1, text("hi"))), SystemClock())
    assert replay.script.discoverable
    options = ProxyOptions(discoverable=replay.script.discoverable)
    proxy = Proxy(Upstream(replay.connect), Steps(Chain(), None, SystemClock()), options)
    async with proxy.listening("127.0.0.1", 0) as url, httpx2.AsyncClient() as http:
        for method, params in (("server/discover", {}), ("tools/call", {"name": "a"})):
            body, headers = modern(method, **params)
            answer = await http.post(f"{url}/mcp", json=body, headers=BOTH | headers)
            assert answer.status_code == 200, answer.text
            assert answer.json()["result"]["resultType"] == "complete"
