"""A server that one node links for all: every node uses it, and there is one link at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from folkmoot import app
from folkmoot.app import Hub
from folkmoot.cli.doctor_data import check_place
from folkmoot.cli.operator import running
from folkmoot.cli.serve import hub_report, readiness
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.ports import NodeHome
from folkmoot.core.session import Era
from folkmoot.datafolder import Paths
from folkmoot.gateway.model import BackendState, UpstreamRequest
from folkmoot.relay.upstream import fleet, single
from folkmoot.relay.upstream.node_messages import NodeCall, encode_json
from folkmoot.relay.upstream.nodes import LinkService
from folkmoot.relay.upstream.single import SingleBackend
from folkmoot.settings import GatewaySpec
from folkmoot.store.postgres.backends import NodeBackends
from folkmoot.transports import limits
from folkmoot.transports.mcp import forwarding
from tests import nats, postgres
from tests.conftest import settings_of as marked
from tests.faults.backends import operator
from tests.harness import ask
from tests.interaction.room_client import ROOM, chat, joined
from tests.mcp_harness import Meeting, settings, until
from tests.nodes import KEY, Nodes, move, node, port, several
from tests.process import Process
from tests.relay.upstream.scripted import SERVER, Told, call, resumed, seen, spec
from tests.transports.mcp.gateway_support import wired
from tests.transports.rest.support import Asker

pytestmark = [*postgres.NEEDED, *nats.NEEDED]


class LinkedNodes:
    """Nodes of a hub with one server that only one of them links."""

    def __init__(self, hubs: Nodes) -> None:
        self.hubs = hubs
        self.stop = hubs.stop

    def __getitem__(self, place: int) -> SingleBackend:
        backend = self.hubs[place].behind.fleet.backends["demo"]
        assert isinstance(backend, SingleBackend)
        return backend

    def view(self, place: int) -> Any:
        return self.hubs[place].behind.fleet.views()[0]

    async def up(self, *places: int) -> None:
        """Wait until nodes use the server."""
        for place in places:
            await until(lambda place=place: self.uses(place))

    def uses(self, place: int) -> bool:
        parts = self.hubs[place].behind.gateway.catalogue.parts
        return self[place].state is BackendState.UP and "demo" in parts

    async def homes(self) -> list[int]:
        """The nodes that link the server."""
        return [place for place, _ in enumerate(self.hubs) if self[place].is_home]


async def pid(backend: SingleBackend) -> int:
    """The process of the server that answers."""
    return int((await backend.request(call("echo", repeatable=True))).result["pid"])


async def answers_anew(backend: SingleBackend, before: int) -> None:
    """Wait until another process of the server answers."""

    async def other() -> bool:
        with suppress(e.BackendUnavailable, e.BackendFailed):
            return await pid(backend) != before
        return False

    await until(other)


async def begun_call(backend: SingleBackend) -> asyncio.Task[Any]:
    """A call that the server has begun, and never answers."""
    told = Told()
    wanted = call("log", level="info", data="begun", only=True, log_level="info", tell=told)
    calling = asyncio.create_task(backend.request(wanted))
    await told.until(bool)
    return calling


SINGLE = GatewaySpec(backends={"demo": spec(single=True, everyone=True, new_tools="list")})


@pytest.fixture
async def there(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[LinkedNodes]:
    """Two nodes and a server, or as many nodes as a `settings` mark says."""
    async with linked(tmp_path, **marked(request)) as made:
        yield made


@asynccontextmanager
async def linked(folder: Path, count: int = 2, **options: Any) -> AsyncIterator[LinkedNodes]:
    """Nodes of which the first links the server."""

    async def begun(nodes: Nodes) -> None:
        await LinkedNodes(nodes).up(len(nodes) - 1)

    async with several(folder, count, begun=begun, gateway=SINGLE, **options) as nodes:
        yield LinkedNodes(nodes)


async def test_on_one_node_such_a_server_is_like_any_other(tmp_path):
    wanted = GatewaySpec(backends={"demo": spec(single=True)})
    async with Hub(settings(tmp_path), gateway=wanted).running() as hub:
        backend = hub.behind.fleet.backends["demo"]
        assert not isinstance(backend, SingleBackend)
        assert (await backend.request(call("echo", a=1))).result["said"] == {"a": 1}
        assert hub.behind.fleet.views()[0].node == ""


@pytest.mark.settings(count=3)
async def test_one_node_links_it_and_all_of_them_use_it(there):
    assert len({await pid(there[place]) for place in range(3)}) == 1
    assert await there.homes() == [0]
    first = there.hubs[0].settings.cluster.address
    assert [there.view(place).node for place in range(3)] == [first] * 3
    assert [there.view(place).connections for place in range(3)] == [1, 0, 0]
    assert {there.view(place).server for place in range(3)} == {"scripted"}
    large = {"text": "x" * 300_000, "number": 2**60}
    assert (await there[2].request(call("echo", large=large))).result["said"] == {"large": large}
    # What it lists anew is listed everywhere.
    await there[1].request(call("grow", name="more"))
    gateways = [hub.behind.gateway for hub in there.hubs]
    await nats.until(
        lambda: all("demo:more" in each.catalogue.parts["demo"].tools for each in gateways)
    )
    # The operator of another node can have it linked anew.
    before = await pid(there[1])
    await operator(there.hubs[1], "folkmoot/server_restart", namespace="demo")
    await answers_anew(there[1], before)
    await there.up(0, 1, 2)
    assert len(await there.homes()) == 1


async def test_progress_logs_questions_and_cancellation_pass_between_nodes(there):
    backend, told = there[1], Told()
    await backend.request(call("progress", times=3, progress=True, tell=told))
    assert told.said("progress") == [0, 1, 2]
    told = Told()
    await backend.request(call("log", level="info", data="hello", log_level="info", tell=told))
    assert told.said("data") == ["hello"]

    wanted = call(
        "ask",
        asks="elicitation/create",
        about={"message": "Which?", "requestedSchema": {"type": "object"}},
        capabilities={"elicitation": {}},
        era=Era.STATELESS,
    )
    wish = await backend.request(wanted)
    (key,) = wish.result["inputRequests"]
    answers = {key: {"action": "accept", "content": {"which": "this"}}}
    done = await backend.request(resumed(wanted, wish, answers))
    assert done.result["answered"]["result"]["content"] == {"which": "this"}

    calling = await begun_call(backend)
    assert not await seen(backend, "notifications/cancelled")
    calling.cancel()
    await until(lambda: seen(backend, "notifications/cancelled"))
    # An error of the server's own, and one of the node that links it.
    answer = await backend.request(UpstreamRequest(method="nothing/such", params={}))
    assert "Method not found" in str(answer.error)


async def test_someone_at_another_node_is_asked_by_the_server(there):
    hub = there.hubs[1]
    ann = await hub.accounts.register("ann")
    meeting = Meeting(hub, "handshake")
    wire = await wired(meeting, ann.token, capabilities={"elicitation": {}})
    arguments = {
        "asks": "elicitation/create",
        "about": {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    asking = wire.message("tools/call", {"name": "demo_ask", "arguments": arguments}, 7, None)
    await there[1].request(call("grow", name="ask"))

    async def listed() -> bool:
        tools = await wire.ask("tools/list", {})
        return "demo_ask" in {each["name"] for each in tools["result"]["tools"]}

    await until(listed)
    answer: dict[str, Any] = {"action": "accept", "content": {"which": "this"}}
    async with wire.streamed(asking) as events:
        async for message in events:
            if message.get("method") == "elicitation/create":
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
                assert (await wire.post(reply)).status == 202
            elif message.get("id") == 7:
                break
    assert message["result"]["answered"]["result"] == answer, message
    await meeting.everyone_leaves()


async def test_who_watches_a_resource_hears_of_it_wherever_it_is_linked(there):
    changes = [Told(), Told()]
    stops = [
        await there[place].watch("note://1", lambda place=place: changes[place](1))
        for place in range(2)
    ]
    await there[1].request(call("touch", uri="note://1"))
    for each in changes:
        await each.until(bool)
    await there.hubs[0].behind.fleet.hand_over()
    await there.up(0, 1)
    assert await there.homes() == [1]
    for place in range(2):
        changes[place].things.clear()

    async def heard(place: int) -> bool:
        await there[place].request(call("touch", uri="note://1"))
        return bool(changes[place].things)

    for place in range(2):
        await until(lambda place=place: heard(place))
    for stop in stops:
        stop()


@pytest.mark.settings(lease_seconds=20.0)
async def test_a_node_that_is_drained_gives_the_link_away_when_its_calls_are_done(
    there, monkeypatch
):
    monkeypatch.setattr(app, "DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(single, "HAND_OVER_SECONDS", 60.0)
    before = await pid(there[0])
    slow = [asyncio.create_task(there[place].request(call("slow", nap=1.0))) for place in range(2)]
    await nats.until(lambda: there[0].in_flight == 2)
    await operator(there.hubs[0], "folkmoot/drain")
    assert {(await each).result["pid"] for each in slow} == {before}
    await until(there.homes, [1])
    await there.up(0, 1)
    after = await pid(there[1])
    assert after != before
    assert await pid(there[0]) == after
    second = there.hubs[1].settings.cluster.address
    assert there.view(0).node == second


async def test_a_node_that_stops_leaves_the_link_to_another(there):
    before = await pid(there[1])
    await there.stop(0)
    # Nobody waits for the end of its lease.
    await there.up(1)
    assert there[1].is_home
    assert await pid(there[1]) != before


async def test_a_node_that_stops_does_not_warn_of_the_one_that_links_it(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(forwarding, "FORWARD_PROBE_SECONDS", 60)
    async with linked(tmp_path) as there:
        caplog.clear()
        await there.stop(1)
        assert await pid(there[0])
    changes = [each for each in caplog.records if each.message == "a backend changed"]
    assert not [each.__dict__ for each in changes if each.levelno > logging.INFO]


async def test_rooms_of_a_node_that_stops_go_on_until_its_calls_have_ended(there, monkeypatch):
    monkeypatch.setattr(single, "HAND_OVER_SECONDS", 60.0)
    monkeypatch.setattr(fleet, "MOST_HAND_OVER_SECONDS", 60.0)
    hub = there.hubs[0]
    ann = await hub.accounts.register("ann")
    await Asker(port(hub), ann.token).create(ROOM)
    calling = await begun_call(there[0])
    async with joined(port(hub), ann.token) as seat:

        async def talk() -> int:
            try:
                await there[0]._nodes.leaving.wait()
                await seat.said(chat("meanwhile"))
            finally:
                calling.cancel()
            return await seat.closed()

        talking = asyncio.create_task(talk())
        await there.stop(0)
        assert await talking == CloseCode.RESTARTING
    await there.up(1)


@pytest.mark.settings(count=1)
async def test_who_gives_it_away_is_not_without_it_until_it_has_looked_twice(there, monkeypatch):
    backend, states = there[0], list[BackendState]()
    find = NodeBackends.find

    async def note(homes: NodeBackends, namespace: str) -> NodeHome | None:
        states.append(backend.state)
        return await find(homes, namespace)

    monkeypatch.setattr(NodeBackends, "find", note)
    await there.hubs[0].behind.fleet.hand_over()
    await nats.until(lambda: len(states) > 2)
    starting, down = BackendState.STARTING, BackendState.DOWN
    assert states[:3] == [starting, starting, down]


@pytest.mark.settings(count=1)
async def test_a_node_that_leaves_while_it_has_a_server_linked_anew_does_not_stop_that(
    there, monkeypatch
):
    before, links = await pid(there[0]), there.hubs[0].behind.fleet
    stop, left = links._stop, asyncio.Event()

    async def receive() -> dict[str, str]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    async def stop_and_leave(names: list[str]) -> None:
        await stop(names)
        left.set()
        for _ in range(10):
            await asyncio.sleep(0)

    monkeypatch.setattr(links, "_stop", stop_and_leave)
    service = LinkService(links._single, links.restart)
    await service(encode_json(NodeCall(what="restart", namespace="demo")), receive, send)
    assert left.is_set()
    await there.up(0)
    assert await pid(there[0]) != before


async def test_another_node_takes_over_when_the_one_that_links_it_is_killed(tmp_path):
    first = tmp_path / "first"
    first.mkdir(mode=0o700)
    (first / "server.py").write_text(SERVER)
    starting = [sys.executable, str(first / "server.py"), "handshake"]
    config = first / "folkmoot.toml"
    config.write_text(
        f"[backends.demo]\ncommand = {json.dumps(starting)}\n"
        'single = true\neveryone = true\nnew_tools = "list"\n'
    )
    at = nats.free_port()
    variables = {
        "FOLKMOOT_CONFIG": str(config),
        "FOLKMOOT_MASTER_KEY": KEY,
        "FOLKMOOT_STORE_URL": await postgres.schema_of(tmp_path),
        "FOLKMOOT_BUS_URL": nats.SHARED[0].url,
        "FOLKMOOT_CLUSTER_ADDRESS": f"http://127.0.0.1:{at}",
        "FOLKMOOT_CLUSTER_LEASE_SECONDS": "10",
    }
    process = await asyncio.to_thread(lambda: Process(first, port=at, **variables))
    try:
        async with linked(tmp_path, 1, lease_seconds=10.0) as there:
            assert not there[0].is_home
            before = await pid(there[0])
            # It is in flight when the node dies, and nobody knows what came of it.
            calling = await begun_call(there[0])
            process.signal(signal.SIGKILL)
            with pytest.raises(e.BackendFailed, match="may or may not have been done"):
                await calling
            await nats.until(lambda: there[0].is_home)
            await there.up(0)
            assert await pid(there[0]) != before
    finally:
        process.__exit__()


async def test_a_node_whose_lease_was_over_asks_nothing_over_its_old_link(there):
    before = await pid(there[0])
    lease: Any = there.hubs[0].store._lease
    lease._lease.ended()
    assert not there[0].is_here
    with pytest.raises(e.BackendUnavailable):
        await there[0].request_here(call("echo"))
    async with there.hubs[0].store._pool.acquire() as connection:
        await lease.renew(connection)
    await answers_anew(there[1], before)
    await there.up(0, 1)
    assert len(await there.homes()) == 1
    assert await pid(there[0]) == await pid(there[1])


@pytest.mark.settings(count=1)
async def test_a_node_that_cannot_reach_the_one_that_links_it_says_so(there, tmp_path, monkeypatch):
    monkeypatch.setattr(single, "WAIT_SECONDS", 0.5)
    nowhere = f"http://127.0.0.1:{nats.free_port()}"
    await move(there.hubs[0], nowhere)
    async with (await node(tmp_path, 1, gateway=SINGLE)).running() as hub:
        backend = hub.behind.fleet.backends["demo"]
        await nats.until(lambda: backend.state is BackendState.DOWN)
        with pytest.raises(e.BackendUnavailable) as refused:
            await backend.request(call("echo"))
        assert "The node that links it does not answer." in refused.value.message
        assert "127.0.0.1" not in refused.value.message
        assert nowhere in backend.view().why
        # Only one node links it, though another cannot reach that one.
        assert there[0].is_home
        assert await pid(there[0])
        # The reason is that of now.
        elsewhere = f"http://127.0.0.1:{nats.free_port()}"
        await move(there.hubs[0], elsewhere)
        await nats.until(lambda: elsewhere in backend.view().why)


async def test_a_node_whose_own_address_is_wrong_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(forwarding, "OWN_ADDRESS_ATTEMPTS", 1)
    monkeypatch.setattr(forwarding, "OWN_ADDRESS_SECONDS", 86_400)
    # A busy machine is not an answer that does not come.
    monkeypatch.setattr(forwarding, "FORWARD_PROBE_SECONDS", 60)
    monkeypatch.setattr(limits, "FORWARD_CONNECT_SECONDS", 60)

    def warned() -> list[str]:
        found = (each for each in caplog.records if each.levelno == logging.WARNING)
        return [each.address for each in found if hasattr(each, "address")]

    right = (await node(tmp_path, 0)).settings
    nowhere = f"http://127.0.0.1:{nats.free_port()}"
    cluster = msgspec.structs.replace(right.cluster, address=nowhere)
    wrong = msgspec.structs.replace(right, cluster=cluster)
    async with Hub(wrong, gateway=GatewaySpec()).running() as hub:
        await nats.until(lambda: warned() == [nowhere])
        # It is ready all the same: its clients are served, and operators are told.
        answer = await ask(port(hub), "/health/ready")
        assert answer.status == 200
        assert json.loads(answer.body)["address"] == {"url": nowhere, "ok": False}
        report = await asyncio.to_thread(hub_report, running(Paths(wrong.data_folder)))
        assert readiness(report) == [("Address", f"{nowhere}: does not answer (cluster.address)")]
        for known, level in ((wrong, "problem"), (right, "ok")):
            found = await asyncio.to_thread(list, check_place(known, Paths(known.data_folder)))
            assert [each.level for each in found if each.subject == "address"] == [level]
        # It knows itself where it is.
        await hub._forwarding.check_own(NodeHome(hub.bus.node, right.cluster.address))
        assert warned() == [nowhere]
        assert hub._forwarding.answers_at_own
        assert json.loads((await ask(port(hub), "/health/ready")).body)["address"]["ok"]
        report = await asyncio.to_thread(hub_report, running(Paths(wrong.data_folder)))
        assert readiness(report) == []


@pytest.mark.settings(count=3)
async def test_of_nodes_that_take_it_at_once_one_has_it(there):
    homes = [hub.store.backend_homes for hub in there.hubs]
    for number in range(20):
        found = await asyncio.gather(
            *(each.take(f"other{number}") for each in homes if each is not None)
        )
        assert len({each.process for each in found if each is not None}) == 1
    first = homes[0]
    await first.release("other0")
    found = await asyncio.gather(*(each.find("other0") for each in homes if each))
    assert all(each is None or each.process != first.process for each in found)
