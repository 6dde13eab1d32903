"""Handshake sessions on many nodes: a client may send each request of its session to another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from folkmoot.cluster.forwarding import ForwardedRequest, Marks, encode
from folkmoot.core import errors as e
from folkmoot.core.events import EXCESS, subject
from folkmoot.core.ports import NodeHome
from folkmoot.transports.address import Addresses
from folkmoot.transports.limits import KNOWN_HOME_SECONDS
from folkmoot.transports.mcp.forwarding import MARK_HEADER, PATH, PROBE
from folkmoot.transports.mcp.notices import INBOX
from folkmoot.transports.mcp.session_ids import full_hash
from tests import nats, postgres
from tests.apps import CLIENT, connect
from tests.conftest import settings_of
from tests.mcp_harness import INITIALIZE, Meeting, until
from tests.nodes import Nodes, move, several
from tests.transports.mcp.gateway_support import Demo, Wire, payload, settle, wired
from tests.transports.mcp.test_resuming import Talker, broken, calling, listening, refusal

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

PING = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
# More than a stranger may send.
LONG = "x" * 70_000


class Meetings(list[Meeting]):
    """The nodes of one hub, as those see them who come to one of them."""

    def __init__(self, nodes: Nodes, demo: Demo | None) -> None:
        super().__init__(Meeting(hub, "handshake") for hub in nodes)
        self.stop = nodes.stop
        self.demo = demo

    async def enter(self, handle: str, **options: Any) -> Wire:
        """Someone with a session at the first node."""
        return await wired(self[0], (await self[0].hub.accounts.register(handle)).token, **options)


@pytest.fixture
def talker() -> Talker:
    """What the server behind the hub says, where a test asks for it."""
    return Talker()


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Meetings]:
    """Two nodes, or as many as a `settings` mark says, with a server behind where one talks."""
    talks = "talker" in request.fixturenames
    demo = Demo(talk=request.getfixturevalue("talker")) if talks else None
    async with several(tmp_path, **settings_of(request)) as nodes:
        made = Meetings(nodes, demo)
        for there, stack in zip(made, nodes.stacks, strict=True):
            stack.push_async_callback(there.everyone_leaves)
            if demo is not None:
                there.hub.behind.gateway.attach(demo)
                await there.hub.behind.gateway.arrived(demo.spec.namespace, demo.inventory())
                await settle(there, everyone=True)
        yield made


def held(there: Meeting) -> int:
    """How many sessions a node has."""
    return there.hub.mcp.open_sessions


def forwarded(there: Meeting) -> int:
    """How many requests a node has forwarded."""
    return there.hub._forwarding.forwarded


def at(wire: Wire, there: Meeting) -> Wire:
    """The same client at another node."""
    other = Wire(there, wire.token, wire.session)
    there._people.append(other)  # it leaves like everyone
    return other


async def whoami(wire: Wire, id_: int = 1) -> str:
    """The handle of whoever asks."""
    told = await wire.ask("tools/call", {"name": "msg_whoami", "arguments": {}}, id_=id_)
    assert "result" in told, told
    return str(payload(told["result"])["handle"])


@pytest.mark.settings(count=3)
async def test_a_session_answers_at_every_node_and_is_at_one(hub):
    wire = await hub.enter("ann")
    for there in hub:
        assert await whoami(at(wire, there)) == "ann"
    assert [held(there) for there in hub] == [1, 0, 0]
    assert [forwarded(there) for there in hub] == [0, 1, 1]


async def test_a_stream_at_another_node_tells_and_a_call_there_is_heard(hub, talker):
    wire = await hub.enter("ann", capabilities={"elicitation": {}})
    there = at(wire, hub[1])
    async with listening(there) as heard, calling(there, ask=True) as said:
        assert (heard.status, said.status) == (200, 200)
        assert (await said.message())[1]["params"]["progress"] == 1
        talker.go_on.set()
        while (asked := (await said.message())[1])["method"] != "elicitation/create":
            pass
        # The answer to the question comes by a third way: the first node itself.
        answer = {"action": "accept", "content": {"name": "Ann"}}
        told = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
        assert (await wire.post(told)).status == 202
        assert (await said.rest())[-1]["result"]["content"][0]["text"] == "done Ann"


@pytest.mark.settings(count=3)
async def test_a_stream_that_broke_at_one_node_is_resumed_at_another(hub, talker):
    wire = await hub.enter("ann")
    _, last = await broken(at(wire, hub[1]), talker)
    talker.go_on.set()
    async with listening(at(wire, hub[2]), last) as said:
        answer = (await said.rest())[-1]
    assert answer["result"]["content"][0]["text"] == "done"
    assert (hub.demo.cancelled, len(hub.demo.asked)) == ([], 1)


async def test_a_client_that_leaves_one_node_has_left_the_node_of_its_session(hub):
    async with listening(at(await hub.enter("ann"), hub[1])):
        assert len(hub[0].hub.mcp._exchanges) == 1
    forwarding: Any = hub[1].hub._forwarding
    await nats.until(lambda: not hub[0].hub.mcp._exchanges and not forwarding._passages)


@pytest.mark.settings(count=3)
async def test_a_session_that_is_closed_at_one_node_is_closed_at_all(hub):
    wire = await hub.enter("ann")
    assert (await hub[1].ask("DELETE", headers=wire.headers({}))).status == 200
    for there in hub:
        assert (await at(wire, there).post(PING)).status == 404
    # Also when its node is gone, and its id could be opened anew.
    await hub.stop(0)
    for there in (hub[1], hub[2]):
        assert (await at(wire, there).post(PING)).status == 404


@pytest.mark.settings(count=3)
async def test_a_session_whose_node_stopped_goes_on_at_one_other(hub):
    wire = await hub.enter("ann")
    assert await whoami(at(wire, hub[1])) == "ann"
    await hub.stop(0)
    for there in (hub[1], hub[2], hub[1]):
        assert await whoami(at(wire, there)) == "ann"
    assert held(hub[1]) + held(hub[2]) == 1


async def test_a_stream_whose_node_is_gone_is_answered_so_that_a_client_opens_a_new_session(
    hub, talker
):
    wire = await hub.enter("ann")
    async with listening(wire) as said:
        heard = (await said.next()).event_id
    _, last = await broken(wire, talker)
    await hub.stop(0)
    status, body = await refusal(at(wire, hub[1]), last)
    error = json.loads(body)["error"]
    assert (status, error["data"]) == (404, {"code": "session_not_found"})
    assert "Open a new session" in error["message"]
    # Whoever goes on with the session instead can: only the call is lost.
    assert await whoami(at(wire, hub[1])) == "ann"
    # What the session listens on begins anew, and tells what may have changed.
    async with listening(at(wire, hub[1]), heard) as said:
        assert said.status == 200
        assert (await said.message())[1]["method"].endswith("list_changed")


@pytest.mark.settings(count=3)
async def test_of_many_requests_at_once_one_node_takes_a_session_over(hub):
    wire = await hub.enter("ann")
    await hub.stop(0)
    asked = [whoami(at(wire, hub[1 + n % 2]), n) for n in range(16)]
    assert await asyncio.gather(*asked) == ["ann"] * 16
    assert held(hub[1]) + held(hub[2]) == 1


@pytest.mark.settings(count=3)
async def test_a_node_that_another_cannot_reach_loses_the_session_to_it(hub):
    wire = await hub.enter("ann")
    # Nothing listens there.
    await move(hub[0].hub, "http://127.0.0.1:9")
    assert await whoami(at(wire, hub[1])) == "ann"
    await nats.until(lambda: held(hub[0]) == 0)
    # The node that had it forwards now.
    assert await whoami(wire) == "ann"
    assert await whoami(at(wire, hub[2])) == "ann"
    assert [held(there) for there in hub] == [0, 1, 0]


@pytest.mark.settings(count=3)
async def test_a_stranger_who_registers_at_one_node_is_known_at_the_others(hub):
    wire = await wired(hub[0], "")
    made = await at(wire, hub[1]).ask(
        "tools/call", {"name": "msg_register", "arguments": {"handle": "eve"}}
    )
    assert payload(made["result"])["handle"] == "eve"
    assert await whoami(at(wire, hub[2])) == "eve"
    # Nor is she a stranger there whose requests have to be small.
    long = {"jsonrpc": "2.0", "id": 6, "method": "ping", "params": {"_meta": {"x": LONG}}}
    assert (await at(wire, hub[2]).post(long)).status == 200
    await hub.stop(0)
    for there in (hub[2], hub[1]):
        assert await whoami(at(wire, there)) == "eve"


async def test_another_credential_does_not_open_a_session_at_another_node(hub):
    ann = await hub[0].hub.accounts.register("ann")
    eve = await hub[0].hub.accounts.register("eve")
    wire = await wired(hub[0], ann.token)
    assert (await at(Wire(hub[0], eve.token, wire.session), hub[1]).post(PING)).status == 404
    assert await whoami(at(wire, hub[1])) == "ann"


async def status_of(wire: Wire) -> int:
    return (await wire.post(PING)).status


async def test_a_session_of_an_app_goes_on_at_another_node_with_its_next_token_alone(hub):
    accounts, elsewhere = hub[0].hub.accounts, hub[1].hub.accounts
    ann = (await accounts.register("ann")).account
    pair, other = [await connect(accounts, ann, scope="account.read") for _ in range(2)]
    wire = await wired(hub[0], pair.access_token)
    assert await whoami(wire) == "ann"
    pair = await elsewhere.apps.refresh(pair.refresh_token, client_id=CLIENT)
    wire.token = pair.access_token
    there = at(wire, hub[1])
    assert await whoami(there) == "ann"
    assert [held(each) for each in hub] == [1, 0]
    wrong = at(Wire(hub[0], other.access_token, wire.session), hub[1])
    assert (await wrong.post(PING)).status == 404
    await accounts.apps.revoke(pair.access_token, client_id=CLIENT)
    for each in (wire, there):
        await until(partial(status_of, each), 401)


class Balanced(httpx2.AsyncBaseTransport):
    """Sends each request to the next node, like a load balancer that knows nothing."""

    def __init__(self, meetings: list[Meeting]) -> None:
        self._ports = [there.port for there in meetings]
        self._next = 0
        self._inner = httpx2.AsyncHTTPTransport(verify=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._next += 1
        request.url = request.url.copy_with(port=self._ports[self._next % len(self._ports)])
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def has_stream(there: Meeting) -> bool:
    """Whether a session has its stream open."""
    return any(session.listens for session in there.hub.mcp._sessions._sessions.values())


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.settings(count=3)
async def test_the_sdks_client_works_behind_a_balancer_that_knows_nothing(hub, talker):
    ann = await hub[0].hub.accounts.register("ann")
    bob = await hub[0].hub.accounts.register("bob")
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    http = httpx2.AsyncClient(transport=Balanced(hub), timeout=60)
    async with (
        http,
        Client(
            streamable_http_client(f"{hub[0].url}?token={ann.token}", http_client=http),
            mode="legacy",
            message_handler=hear,
        ) as client,
    ):
        talker.go_on.set()
        for _ in range(6):
            told = await client.call_tool("msg_whoami", {})
            assert json.loads(told.content[0].text)["handle"] == "ann"
            assert not (await client.call_tool("demo_talk", {})).is_error
        await until(lambda: any(map(has_stream, hub)))
        await client.subscribe_resource(INBOX)
        writer = await wired(hub[1], bob.token)
        said = {"name": "msg_send", "arguments": {"to": "ann", "body": "hello"}}
        assert "result" in await writer.ask("tools/call", said)
        await nats.until(lambda: any("resources/updated" in str(each) for each in heard))
    # Bob's is still open; the client closed its own.
    assert sum(map(held, hub)) == 1


def request_of(wire: Wire, **changes: Any) -> ForwardedRequest:
    """A ping in a session, as another node would forward it."""
    headers = wire.headers(PING) | {"host": "localhost"}
    given = ForwardedRequest(
        "POST",
        "/mcp",
        headers=tuple((name.encode(), value.encode()) for name, value in headers.items()),
        client=("192.0.2.9", 1),
        server=("127.0.0.1", 80),
        body=json.dumps(PING).encode(),
    )
    return msgspec.structs.replace(given, **changes)


async def test_what_no_node_has_marked_is_not_served(hub):
    async with httpx2.AsyncClient(verify=False) as http:
        wire = await hub.enter("ann")
        marks, clock = hub[1].hub._forwarding.marks, hub[1].hub.clock
        home = hub[0].hub.bus.node
        written = encode(request_of(wire))

        async def send(mark: str, body: bytes, method: str = "POST", **headers: str) -> int:
            named = {MARK_HEADER: mark, **headers}
            where = f"{hub[0].hub.base_url}{PATH}"
            return (await http.request(method, where, headers=named, content=body)).status_code

        def mark(body: bytes = written, to: str = home, late: float = 0.0) -> str:
            return marks.make(to, body, clock.now() - late)

        good = mark()
        assert await send(good, written) == 200
        assert await send(good, written) == 404, "repeated"
        assert await send(mark(), written[:-1]) == 404, "cut"
        assert await send(mark(), encode(request_of(wire, method="DELETE"))) == 404, "altered"
        assert await send(mark(late=3600), written) == 404, "old"
        assert await send(mark(to="ab" * 16), written) == 421, "for another process"
        forged = Marks(b"?" * 32, hub[1].hub.bus.node).make(home, written, clock.now())
        assert await send(forged, written) == 404, "forged"
        assert await send("", written) == 404, "not marked"
        assert await send(mark(b""), b"", method="GET") == 404, "not posted"
        strange = b"no request"
        assert await send(mark(strange), strange) == 404
        elsewhere = encode(request_of(wire, path="/v1/rooms"))
        assert await send(mark(elsewhere), elsewhere) == 404, "another path"
        assert hub[0].hub._forwarding.refused >= 7
        assert await whoami(at(wire, hub[1])) == "ann"


async def test_forwarded_requests_are_bounded_in_size_and_number(hub, monkeypatch):
    async with httpx2.AsyncClient(verify=False) as http:
        wire = await hub.enter("ann")
        here, there = (each.hub._forwarding for each in hub)
        large = b"x" * (here._most_bytes + 1)
        mark = there.marks.make(hub[0].hub.bus.node, large, hub[1].hub.clock.now())
        where = f"{hub[0].hub.base_url}{PATH}"
        told = await http.post(where, headers={MARK_HEADER: mark}, content=large)
        assert told.status_code == 413
        monkeypatch.setattr("folkmoot.transports.mcp.forwarding.MAX_FORWARDED", 1)
        async with listening(at(wire, hub[1])):
            told_too = await at(wire, hub[1]).post(PING)
            assert (told_too.status, told_too.json()["error"]["data"]["code"]) == (503, "hub_full")
            passages = set(there._passages)
            there._passages.clear()
            assert (await at(wire, hub[1]).post(PING)).status == 503, "refused by its node"
            # A node that is full is not taken for one that is gone.
            there._passages |= passages
            (passage,) = passages
            await there._probe(passage.home)
            answer = await there._ask(passage.home, PROBE)
            answer.close()
            assert answer.status == 204
            assert passage.carrying._why is None


@pytest.mark.settings(count=3)
async def test_a_request_is_forwarded_once_and_not_in_a_circle(hub):
    wire = await hub.enter("ann")
    # The second believes that the third has it, and the third that the second has it.
    homes = [each.hub.mcp._homes for each in hub]
    for one, other in ((1, 2), (2, 1)):
        home = NodeHome(hub[other].hub.bus.node, hub[other].hub.base_url)
        homes[one]._known[wire.session] = home, hub[one].hub.clock.monotonic()
    assert await whoami(at(wire, hub[1])) == "ann"
    assert [forwarded(there) for there in hub] == [0, 2, 0]


class Stranger:
    """Something else that has come to the address of a node, and its answers."""

    def __init__(self, *answers: bytes) -> None:
        self.asked = 0
        self._answers = answers

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._answers[min(self.asked, len(self._answers) - 1)])
        self.asked += 1
        writer.close()

    @asynccontextmanager
    async def instead_of(self, there: Meeting) -> AsyncIterator[NodeHome]:
        with closing(await asyncio.start_server(self.answer, "127.0.0.1", 0)) as server:
            port = server.sockets[0].getsockname()[1]
            yield NodeHome(there.hub.bus.node, f"http://127.0.0.1:{port}")


async def test_a_node_that_redirects_or_breaks_off_is_not_followed(hub):
    redirect = b"HTTP/1.1 307 Go\r\nlocation: /mcp\r\ncontent-length: 0\r\n\r\n"
    stranger, homes = Stranger(redirect, b""), hub[1].hub.mcp._homes
    async with stranger.instead_of(hub[0]) as home:
        wire = await hub.enter("ann")
        for _ in range(2):
            homes._known[wire.session] = home, hub[1].hub.clock.monotonic()
            told = await at(wire, hub[1]).post(PING)
            assert told.status == 502
            assert "may have been done" in told.json()["error"]["message"]
    assert stranger.asked == 2


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
async def test_whatever_has_come_to_the_address_of_a_node_is_not_believed(hub, status):
    stranger = Stranger(b"HTTP/1.1 %b\r\ncontent-length: 2\r\n\r\n{}" % status.encode())
    homes: Any = hub[1].hub.mcp._homes
    clock = hub[1].hub.clock
    async with stranger.instead_of(hub[0]) as home:
        wire = await hub.enter("ann")
        # After a while it is not even asked.
        homes._known[wire.session] = home, clock.monotonic() - KNOWN_HOME_SECONDS - 1
        assert await whoami(at(wire, hub[1])) == "ann"
        assert (stranger.asked, held(hub[1])) == (0, 0)
        homes._known[wire.session] = home, clock.monotonic()
        assert await whoami(at(wire, hub[1])) == "ann"
        assert (stranger.asked, held(hub[1])) == (1, 1)


async def test_a_node_that_stops_finishes_the_calls_of_a_session_that_goes_on_elsewhere(
    hub, talker
):
    wire = await hub.enter("ann")
    async with calling(wire) as said:
        assert (await said.message())[1]["params"]["progress"] == 1
        hub[0].hub.mcp.stop()
        shared = hub[1].hub.store.session_homes
        home = hub[0].hub.bus.node
        assert await shared.take(full_hash(wire.session), home, home)
        await nats.until(lambda: held(hub[0]) == 0)
        talker.go_on.set()
        assert (await said.rest())[-1]["result"]["content"][0]["text"] == "done"


async def test_a_session_that_was_closed_is_not_taken_over(hub):
    ann = await hub[0].hub.accounts.register("ann")
    one, other = [await wired(hub[0], ann.token) for _ in range(2)]
    assert (await hub[0].ask("DELETE", headers=one.headers({}))).status == 200
    shared, home = hub[1].hub.store.session_homes, hub[0].hub.bus.node
    assert not await shared.take(full_hash(one.session), home, home)
    assert await shared.take(full_hash(other.session), home, home)


PROXIES = [
    pytest.param(trusted, found, marks=pytest.mark.settings(http={"trusted_proxies": trusted}))
    for trusted, found in ((["127.0.0.1"], "192.0.2.77"), ([], "127.0.0.1"))
]


@pytest.mark.parametrize(("trusted", "found"), PROXIES)
async def test_the_first_node_says_where_a_client_is_whichever_proxies_others_trust(
    hub, trusted, found
):
    wire = await wired(hub[0], "")
    arrivals: Any = hub[0].hub.mcp._arrivals
    arrivals.addresses = Addresses([] if trusted else ["127.0.0.1"])
    arrivals._may_be_direct = True
    callers: list[Any] = []
    make = arrivals.exchange

    async def note(*given: Any) -> Any:
        exchange = await make(*given)
        callers.append(exchange.caller)
        return exchange

    arrivals.exchange = note
    for headers in ({"x-forwarded-for": "192.0.2.77"}, {}):
        assert (await at(wire, hub[1]).post(PING, headers=headers)).status == 200
    assert [each.address for each in callers] == [found, "127.0.0.1"]
    # Whoever is on the machine of one node is not on that of another.
    assert not any(each.is_direct() for each in callers)


async def test_forwarded_requests_wait_for_the_turn_of_whoever_asks(hub):
    ann = await hub[0].hub.accounts.register("ann")
    wires = [await wired(hub[0], token) for token in (ann.token, "")]
    house = hub[0].hub._server._protocols.open_connections
    begin, turns = house.turns.begin, []

    def note(who: str, start: Any) -> None:
        turns.append(who)
        begin(who, start)

    house.turns.begin = note
    for wire in wires:
        there = at(wire, hub[1])
        for _ in range(2):
            assert (await there.post(PING)).status == 200
    # The first request of a connection is read before it is known to be a node's.
    assert turns.count(ann.account.id) == 2
    assert turns.count("127.0.0.1") >= 3
    assert turns.count("nodes") >= 3


async def opening(there: Meeting, token: str = "") -> int:
    """The status of one more `initialize`."""
    return (await there.post(INITIALIZE, query=f"?token={token}" if token else "")).status


@pytest.mark.settings(quotas={"sessions_per_account": 3})
async def test_an_account_has_so_many_sessions_at_all_nodes_together(hub, monkeypatch):
    monkeypatch.setattr("folkmoot.transports.mcp.session_counts.EXCESS_SECONDS", 60.0)
    ann = await hub[0].hub.accounts.register("ann")
    wires = [await wired(hub[0], ann.token) for _ in range(3)]
    # One more ends the one that was not used for longest, though it is elsewhere.
    await wired(hub[1], ann.token)
    assert [held(there) for there in hub] == [2, 1]
    assert [(await at(wire, hub[1]).post(PING)).status for wire in wires] == [404, 200, 200]


@pytest.mark.settings(quotas={"sessions_per_account": 1})
async def test_sessions_in_use_elsewhere_are_not_ended_for_another(hub):
    wire = await hub.enter("ann")
    async with listening(wire):
        assert await opening(hub[1], wire.token) == 429
    assert await whoami(at(wire, hub[1])) == "ann"
    pool, process = hub[0].hub.store._pool, hub[1].hub.bus.node
    count = "SELECT SUM(number) FROM session_counts WHERE process = $1"
    # What was refused counts no longer.
    await until(lambda: pool.fetchval(count, process), 0)


@pytest.mark.settings(count=1)
async def test_a_session_is_not_ended_for_one_that_nobody_waits_for(hub):
    ann = await hub[0].hub.accounts.register("ann")
    bob = await hub[0].hub.accounts.register("bob")
    for account in (ann, bob):
        await wired(hub[0], account.token)
    bus, now = hub[0].hub.bus, hub[0].hub.clock.now()
    where = subject(EXCESS, bus.node)
    await bus.publish(where, {"account": ann.account.id, "at": now - 3600})
    await bus.publish(where, {"account": bob.account.id, "at": now + 3600})
    await nats.until(lambda: held(hub[0]) == 1)
    left = hub[0].hub.mcp._sessions._sessions.values()
    assert [session.user_id for session in left] == [ann.account.id]


@pytest.mark.settings(count=1)
async def test_counts_that_the_database_did_not_take_are_told_again(hub):
    counts, shared = hub[0].hub.mcp._arrivals.counts, hub[0].hub.store.session_homes
    report, asked = shared.report, 0

    async def fail_once(key: str, number: int) -> int:
        nonlocal asked
        asked += 1
        if asked <= 2:
            raise e.StoreOverloaded("full")
        return await report(key, number)

    shared.report = fail_once
    counts._note("account x", -1)
    await nats.until(lambda: asked >= 4)
    # Of many numbers for one key the last is stored, not the largest.
    await asyncio.gather(*(report("account y", number) for number in (1, 3, 2)))
    count = "SELECT number FROM session_counts WHERE number > 0"
    assert [row[0] for row in await hub[0].hub.store._pool.fetch(count)] == [2]


@pytest.mark.settings(count=3, mcp={"max_anonymous_sessions": 2})
async def test_an_address_has_so_many_sessions_without_an_account_at_all_nodes(hub):
    assert await opening(hub[0]) == 200
    assert await opening(hub[1]) == 200
    assert await opening(hub[2]) == 429
    await hub.stop(0)
    assert await opening(hub[2]) == 200


@pytest.mark.settings(mcp={"max_sessions": 2})
async def test_a_hub_has_so_many_sessions_at_all_nodes_and_counts_again(hub, monkeypatch):
    monkeypatch.setattr("folkmoot.transports.mcp.session_counts.RECOUNT_SECONDS", 0.0)
    ann = await hub[0].hub.accounts.register("ann")
    await wired(hub[0], ann.token)
    wire = await wired(hub[1], ann.token)
    pool = hub[0].hub.store._pool
    # As after a crash of the database's server.
    await pool.execute("TRUNCATE session_counts")
    await until(lambda: pool.fetchval("SELECT count(*) FROM session_counts WHERE number = 1"), 4)
    assert [await opening(there, ann.token) for there in hub] == [503, 503]
    assert (await hub[0].ask("DELETE", headers=wire.headers({}))).status == 200
    await until(lambda: opening(hub[0], ann.token), 200)
