"""The bus over a real NATS server: nodes that hear each other, and servers that fail or lie."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.bus import limits, make_bus
from folkmoot.bus.frames import OVERHEAD, hub_name
from folkmoot.bus.nats_client import NatsConnection, NatsReader, parse_servers
from folkmoot.core import errors
from folkmoot.core.ports import Event, Missed
from folkmoot.settings.model import ClusterSettings
from folkmoot.transports.listen import load_ca
from tests import nats
from tests.conftest import settings_of
from tests.contract.test_bus import receive, until_received
from tests.nats import NatsProcess, node, two_nodes, until

pytestmark = nats.NEEDED

MIB = 1024 * 1024


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NatsProcess]:
    """A server that a test may stop; a `settings` mark gives its configuration."""
    (tmp_path / "nats.conf").write_text(settings_of(request).get("config", ""))
    found = NatsProcess("-c", str(tmp_path / "nats.conf"))
    yield found
    found.resume()
    found.kill()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bus take a server for silent as soon as it does in a hub."""
    for name in ("ANSWER_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(f"folkmoot.bus.nats.{name}", getattr(limits, name))


class Heard(NamedTuple):
    """A message that passed a server."""

    subject: str
    data: bytes


@asynccontextmanager
async def tapped(key: bytes, url: str = "") -> Any:
    """What the nodes of one hub send through a server, and how someone without a key publishes."""
    seen: list[Heard] = []
    client = NatsConnection(lambda *heard: seen.append(Heard(*heard)))
    [server] = parse_servers(url or nats.SHARED[0].url)

    async def publish(subject: str, data: bytes) -> None:
        await client.write([b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(data), data)])

    await client.open(server, "stranger", None, [f"folkmoot.{hub_name(key)}.>"])
    try:
        yield seen, publish
    finally:
        await client.end()


def is_event(message: Any) -> bool:
    """Whether it is a frame with an event, and no pulse."""
    return ".events" in message.subject and len(message.data) > OVERHEAD


async def refused(url: str, why: str) -> str:
    """Be refused by a server, and be told so in these words."""
    with pytest.raises(errors.BusUnreachable, match=why) as refusal:
        async with node(url):
            pass
    return str(refusal.value)


async def test_an_event_reaches_every_node_once_also_one_of_a_mebibyte():
    async with two_nodes() as (one, two):
        heard: list[Event] = []
        for bus in (one, two):
            bus.listen("room.>", heard.append)
        subscription = await two.subscribe("room.*")
        one.emit("room.2", {"text": "ü"})
        assert heard == [Event("room.2", {"text": "ü"})]
        assert await receive(subscription, 1) == [Event("room.2", {"text": "ü"})]
        two.emit("done", None)
        assert heard == [Event("room.2", {"text": "ü"})] * 2
        large = "x" * (limits.MAX_EVENT - 2)
        one.emit("room.2", large)
        assert await receive(subscription, 1) == [Event("room.2", large)]
        assert one.dropped == two.dropped == {}


async def test_what_belongs_to_a_node_stays_there():
    async with two_nodes(local=["held.>"]) as (one, two):
        subscription = await two.subscribe(">")
        assert not one.has_audience("held.1")
        assert one.has_audience("room.1")
        one.emit("held.1", None)
        one.emit("room.1", None)
        assert await receive(subscription, 1) == [Event("room.1", None)]


async def test_messages_to_a_node_arrive_there_alone_in_order_and_of_any_size():
    key = secrets.token_bytes(32)
    async with node(key=key) as one, node(key=key) as two, node(key=key) as three:
        await until(lambda: one.peers == two.peers == three.peers == 2)
        got: list[tuple[Any, ...]] = []
        for bus in (two, three):
            bus.receive(lambda *message, bus=bus: got.append((bus, *message)))
        # The default server takes payloads of 1 MiB; a room message may have as much.
        sizes = (0, 1, 1_000, MIB - OVERHEAD, MIB, 3_000_000, limits.MAX_SENT_BYTES)
        sent = [secrets.token_bytes(size) for size in sizes]
        for message in sent:
            await until(partial(one.send, two.node, message))
        await until(lambda: len(got) == len(sent))
        assert got == [(two, one.node, message) for message in sent]
        with pytest.raises(errors.EventTooLarge):
            one.send(two.node, b"x" * (limits.MAX_SENT_BYTES + 1))


@pytest.mark.settings(config="max_payload: 2KB")
async def test_a_server_with_a_low_limit_is_enough(server):
    async with two_nodes(server.url) as (one, two):
        subscription = await two.subscribe("a")
        one.emit("a", "x" * 100_000)
        assert await receive(subscription, 1) == [Event("a", "x" * 100_000)]


@pytest.mark.settings(config="max_payload: 8MB")
async def test_what_is_forged_cut_replayed_or_too_large_is_dropped_and_counted(server):
    key = secrets.token_bytes(32)
    tap = tapped(key, server.url)
    async with two_nodes(server.url, key) as (one, two), tap as (seen, publish):
        heard: list[Event] = []
        got: list[bytes] = []
        two.listen(">", heard.append)
        two.receive(lambda _, message: got.append(message))
        one.emit("a", 1)
        one.send(two.node, b"hello")
        await until(lambda: heard and got)
        await until(
            lambda: any(map(is_event, seen)) and any(two.node in each.subject for each in seen)
        )
        events = next(filter(is_event, seen))
        message = next(each for each in seen if two.node in each.subject)
        for sent in (events, message):
            changed = sent.data[:-1] + bytes([sent.data[-1] ^ 1])
            for data in (sent.data, changed, sent.data[:20], b"", b"x" * 2_000_000):
                await publish(sent.subject, data)
        await publish(events.subject, message.data)
        await publish(message.subject, events.data)
        await until(lambda: two.dropped.total() == 12)
        assert two.dropped == {"replayed": 2, "forged": 4, "cut": 4, "oversized": 2}
        assert (heard, got) == ([Event("a", 1)], [b"hello"])
        one.emit("a", 2)
        await until(lambda: len(heard) == 2)


async def test_frames_of_a_process_that_ended_are_not_accepted_by_one_that_started_later():
    key = secrets.token_bytes(32)
    async with tapped(key) as (seen, publish):
        async with node(key=key) as ended:
            ended.emit("a", 1)
            await until(lambda: any(map(is_event, seen)))
        async with node(key=key) as later:
            heard: list[Event] = []
            later.listen(">", heard.append)
            recorded = [each for each in seen if ".events" in each.subject]
            for each in recorded * 3:
                await publish(each.subject, each.data)
            await until(lambda: later.dropped["unknown_sender"] == 3)
            assert (later.peers, heard) == (0, [])


async def test_hubs_on_one_server_do_not_hear_each_other():
    async with node() as one, two_nodes() as (two, three):
        heard: list[Event] = []
        one.listen(">", heard.append)
        subscription = await three.subscribe("a")
        two.emit("a", 1)
        await receive(subscription, 1)
        assert (one.peers, heard, one.dropped) == (0, [], {})


async def test_a_flood_costs_events_at_most_and_they_are_told_as_missed():
    key = secrets.token_bytes(32)
    async with two_nodes(key=key) as (one, two), tapped(key) as (seen, publish):
        subscription = await two.subscribe("a")
        one.emit("a", 0)
        assert await receive(subscription, 1) == [Event("a", 0)]
        await until(lambda: any(map(is_event, seen)))
        subject = next(each.subject for each in seen if ".events" in each.subject)
        for number in range(1, 101):
            for _ in range(300):
                await publish(subject, b"y" * 100)
            one.emit("a", number)
            await asyncio.sleep(0)
        found: list[Event | Missed] = []
        while Event("a", 100) not in found and not any(isinstance(e, Missed) for e in found):
            found += await receive(subscription, 1)
        await until(lambda: two.dropped["forged"])
        # Some of the flood may still wait there, and cost this one too.
        await until_received(one, subscription, "after")
        assert two.is_connected


async def test_a_queue_that_is_full_drops_and_the_others_learn_of_it(monkeypatch):
    monkeypatch.setattr("folkmoot.bus.nats.MAX_OUTBOX", 4)
    async with two_nodes() as (one, two):
        subscription = await two.subscribe("a")
        # A pulse would take a place.
        await until(lambda: not one._outbox)
        for number in range(10):
            one.emit("a", number)
        assert not one.send(two.node, b"hello")
        found = await receive(subscription, 5)
        assert [each for each in found if isinstance(each, Event)] == [
            Event("a", number) for number in range(4)
        ]
        assert Missed(6) in found
        assert one.dropped == {"unsent": 7}


async def test_what_a_node_says_while_it_alone_lacks_the_server_is_missed_by_the_others():
    async with two_nodes() as (one, two):
        subscription = await two.subscribe("a")
        await until(lambda: not one._outbox)
        client, one._client = one._client, None
        one.emit("a", "unsent")
        one._client = client
        assert one.dropped == {"unsent": 1}
        one.emit("a", "sent")
        assert await receive(subscription, 1) == [Missed(1)]
        assert await receive(subscription, 1) == [Event("a", "sent")]


@pytest.mark.parametrize("how", ["killed", "paused"])
@pytest.mark.usefixtures("brief")
async def test_after_a_server_was_gone_everyone_is_told_that_events_were_missed(server, how):
    async with two_nodes(server.url) as (one, two):
        both = [await bus.subscribe("a") for bus in (one, two)]
        doubts: list[Any] = []
        for bus in (one, two):
            bus.listen_missed(partial(doubts.append, bus))
        (server.kill if how == "killed" else server.pause)()
        await until(lambda: not one.is_connected and not two.is_connected)
        one.emit("a", "while it was gone")
        assert not one.send(two.node, b"hello")
        found: list[Event | Missed] = []
        while Event("a", "while it was gone") not in found:
            found += await receive(both[0], 1)
        # Whoever waits looks now and then.
        doubts.clear()
        await until(lambda: set(doubts) == {one, two})
        assert one.dropped["unsent"] >= 2
        (server.start if how == "killed" else server.resume)()
        doubts.clear()
        await until(lambda: one.is_connected and two.is_connected)
        for subscription in both:
            [missed] = await receive(subscription, 1)
            assert isinstance(missed, Missed)
        await until(lambda: set(doubts) == {one, two})
        # The gap in what the first one published may be noticed and told once more.
        one.emit("a", "again")
        while Event("a", "again") not in found:
            found += await receive(both[1], 1)


async def test_a_server_that_is_slow_to_answer_is_kept_and_whoever_waits_looks_meanwhile(
    server, monkeypatch
):
    monkeypatch.setattr("folkmoot.bus.nats.ANSWER_SECONDS", 600.0)
    async with node(server.url) as bus:
        client = bus._client
        doubts: list[bool] = []
        bus.listen_missed(lambda: doubts.append(True))
        server.pause()
        doubts.clear()
        await until(lambda: len(doubts) >= 2)
        assert bus._is_silent
        server.resume()
        await until(lambda: not bus._is_silent)
        assert bus._client is client


async def test_time_in_which_this_process_does_not_run_is_not_the_servers(server, monkeypatch):
    from folkmoot.bus import nats as module

    ask: Any = module.NatsConnection.ask
    asked: list[Any] = []

    def pause() -> None:
        # The server comes back a little later than this process does.
        time.sleep(limits.ANSWER_SECONDS + 0.5)
        asyncio.get_running_loop().call_later(0.1, server.resume)

    async def ask_and_pause(client: Any) -> bool:
        asked.append(client)
        if len(asked) == 1:
            server.pause()
            asyncio.get_running_loop().call_later(0.1, pause)
        return await ask(client)

    async with node(server.url) as bus:
        client = bus._client
        monkeypatch.setattr(module, "ANSWER_SECONDS", limits.ANSWER_SECONDS)
        monkeypatch.setattr(module.NatsConnection, "ask", ask_and_pause)
        # The next to be asked is the same connection, or a new one if it was given up.
        await until(lambda: len(asked) > 1)
        assert asked[1] is client


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="not on this system")
async def test_the_system_gives_a_connection_up_whose_other_end_is_gone(secured):
    for url in (nats.SHARED[0].url, secured.url):
        async with node(url, tls=secured.trusting) as bus:
            assert bus._client is not None
            found = bus._client._transport.get_extra_info("socket")
            limit = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert limit == 1000 * limits.SILENT_SECONDS


async def test_a_bus_goes_to_another_server_when_its_own_is_gone(server):
    other = nats.SHARED[0]
    url = f"{server.url},127.0.0.1:{other.port}"
    async with node(url) as bus:
        doubts: list[bool] = []
        bus.listen_missed(lambda: doubts.append(True))
        server.kill()
        await until(lambda: doubts and bus.is_connected)


@pytest.mark.settings(config='lame_duck_duration: "30s"\nlame_duck_grace_period: "100ms"')
async def test_a_bus_leaves_a_server_that_shuts_down_gently(server):
    """The server tells its clients, and ends their connections one by one."""
    url, key = f"{server.url},127.0.0.1:{nats.SHARED[0].port}", secrets.token_bytes(32)
    async with node(url, key) as one, node(key=key) as two:
        subscription = await two.subscribe("a")
        before = one._client
        os.kill(server.pid, signal.SIGUSR2)
        await until(lambda: one._client not in (before, None))
        await until_received(one, subscription, "after")


@pytest.mark.usefixtures("brief")
async def test_closing_while_the_server_is_silent_does_not_wait_for_it(server):
    async with asyncio.timeout(300):
        async with two_nodes(server.url) as (one, two):
            server.pause()
            for _ in range(30):
                one.send(two.node, b"x" * 1_000_000)
                await asyncio.sleep(0.01)


async def test_a_server_that_cannot_be_used_is_named_without_its_password(server):
    locked = NatsProcess("--user", "hub", "--pass", "right%word")
    try:
        address = f"127.0.0.1:{locked.port}"
        told = await refused(f"nats://hub:secret@{address}", "it refuses this login")
        assert address in told
        assert "secret" not in told
        async with node(f"nats://hub:right%25word@{address}") as bus:
            assert bus.is_connected
    finally:
        locked.kill()
    server.kill()
    await refused(server.url, str(server.port))


async def test_a_password_is_not_sent_to_a_server_without_tls():
    came: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576}\r\n')
        came.append(await reader.read(1000))
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        await refused(f"tls://hub:secret@127.0.0.1:{port}", "no TLS")
        await until(lambda: came)
    assert came == [b""]


async def test_a_server_with_tls_is_used_when_it_is_trusted(secured, monkeypatch):
    # It gets it also where its address does not say so.
    for url in (secured.url, secured.process.url):
        async with two_nodes(url, tls=secured.trusting) as (one, two):
            assert one._client is not None
            assert one._client._transport.get_extra_info("ssl_object") is not None
            subscription = await two.subscribe("a")
            one.emit("a", "x" * 500_000)
            assert await receive(subscription, 1) == [Event("a", "x" * 500_000)]
    # Also how long it waits for a connection that was refused to end.
    monkeypatch.setattr("folkmoot.bus.nats.ANSWER_SECONDS", 0.5)
    await refused(secured.url, "certificate")
    ca = load_ca(ClusterSettings(ca_file=str(secured.chain)))
    await make_bus(secured.url, tls=ca).check()


class CutConnection(NatsConnection):
    """Gets what its server says in pieces of any size, and keeps all of it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.said = bytearray()
        self._chance = random.Random(0)

    def data_received(self, data: bytes) -> None:
        self.said += data
        while data:
            size = self._chance.choice((1, 2, 3, 10, 1_000, 100_000))
            super().data_received(data[:size])
            data = data[size:]


async def test_whatever_is_published_is_received_however_it_comes():
    chance = random.Random(1)
    sent = [chance.randbytes(int(2 ** chance.uniform(0, 17))) for _ in range(300)]
    sent += [b"", b"\r\n", b"PING\r\n", b"MSG folkmoot.test 1 5\r\n"]
    chance.shuffle(sent)
    [server] = parse_servers(nats.SHARED[0].url)
    subject, came = f"folkmoot.{secrets.token_hex(8)}", []
    reader = CutConnection(lambda _, data: came.append(data))
    writer = NatsConnection(lambda *_: None)
    await reader.open(server, "reader", None, [subject])
    await writer.open(server, "writer", None, [])
    for data in sent:
        await writer.write([b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(data), data)])
    await until(lambda: len(came) == len(sent))
    assert came == sent
    assert await reader.ask()
    for client in (reader, writer):
        await client.end()
    # And with whatever else in its place, it is read or refused.
    for _ in range(200):
        said = bytearray(reader.said[: chance.randrange(20_000)])
        for _ in range(chance.randrange(1, 5)):
            said[chance.randrange(len(said))] = chance.randrange(256)
        damaged = NatsReader()
        damaged.feed(bytes(said))
        with suppress(ValueError):
            while damaged.read() is not None:
                pass


async def test_headers_that_a_stranger_adds_are_left_out():
    came: list[bytes] = []
    [server] = parse_servers(nats.SHARED[0].url)
    client = NatsConnection(lambda _, data: came.append(data))
    subject = f"folkmoot.{secrets.token_hex(8)}"
    await client.open(server, "reader", None, [subject])
    _, writer = await asyncio.open_connection(server.host, server.port)
    head = b"NATS/1.0\r\na: b\r\n\r\n"
    sizes = len(head), len(head) + 5
    writer.write(b'CONNECT {"headers":true}\r\n')
    writer.write(b"HPUB %b %d %d\r\n%bhello\r\n" % (subject.encode(), *sizes, head))
    await until(lambda: came == [b"hello"])
    writer.close()
    await client.end()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://localhost",
        "nats://",
        "nats://a,",
        "nats://a:port",
        "nats://a:99999",
        "nats://a/b",
        "nats://a?b",
        "nats://a,tls://b",
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(errors.SettingsError):
        parse_servers(url)


def test_an_address_names_servers_and_shows_no_password():
    found = parse_servers("tls://hub:p%40ss@one,two:1,other:word@[::1]:2")
    assert [str(each) for each in found] == ["tls://one:4222", "tls://two:1", "tls://[::1]:2"]
    logins = [(each.user, each.password) for each in found]
    assert logins == [("hub", "p@ss"), ("hub", "p@ss"), ("other", "word")]
    assert "p@ss" not in repr(found)
