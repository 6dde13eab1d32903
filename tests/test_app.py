from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import msgspec
import pytest

from folkmoot import __version__
from folkmoot.app import Hub
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.datafolder import DataFolder
from folkmoot.keys import format_key, read_key
from folkmoot.settings import Settings
from folkmoot.transports import health
from folkmoot.transports.operator_socket import OperatorSocket
from tests.conftest import settings_of
from tests.faults.backends import operator
from tests.harness import Answer, ask, run
from tests.nodes import port
from tests.process import Process
from tests.transports.rooms.support import town

SECRET = "sk_" + "ab" * 32
SEMANTIC_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
)


def settings(folder: Path, **values: object) -> Settings:
    return msgspec.convert({"port": 0, "data": str(folder), **values}, Settings)


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Hub]:
    async with Hub(settings(tmp_path, **settings_of(request))).running() as made:
        yield made


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the database against every writer, as another program could.

    By the hub's own SQLite: locks of two copies of it in one process would not see each other.
    """
    with closing(apsw.Connection(str(folder / "folkmoot.db"))) as database:
        # The hub writes when it starts, in a thread of its own.
        database.set_busy_timeout(20_000)
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def get(hub: Hub, path: str, **headers: str) -> asyncio.Future[Answer]:
    return asyncio.ensure_future(ask(port(hub), path, headers=headers))


@pytest.mark.requirement("health.shape", "health.json", "health.version-semver")
async def test_health_answers_what_the_seed_says(hub):
    answer = await get(hub, "/health")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    body = answer.json()
    assert 0 <= body.pop("uptime") < 60
    assert body == {"status": "ok", "version": __version__, "users": 0}
    assert SEMANTIC_VERSION.fullmatch(body["version"])


async def test_health_tells_the_last_number_of_accounts_while_the_database_is_waited_for(
    hub, monkeypatch
):
    async def never() -> int:
        return await asyncio.Event().wait()

    await hub.accounts.register("ann")
    assert (await get(hub, "/health")).json()["users"] == 1
    monkeypatch.setattr(hub.accounts, "count", never)
    answer = await get(hub, "/health")
    assert answer.status == 200
    assert answer.json()["users"] == 1


class Hands(SystemClock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed


@pytest.mark.requirement("health.uptime-float")
async def test_the_uptime_is_a_float_that_grows_with_time(tmp_path):
    clock = Hands()
    async with Hub(settings(tmp_path), clock).running() as hub:
        for passed in (0.0, 1.0, 61.25, 1e6):
            clock.passed = passed
            uptime = (await get(hub, "/health")).json()["uptime"]
            assert isinstance(uptime, float)
            assert uptime == passed


@pytest.mark.requirement("store.survives-power-loss")
async def test_unless_told_otherwise_a_hub_syncs_every_commit(hub):
    async def modes(tx: Tx) -> list[object]:
        return [
            (await tx.fetch(f"PRAGMA {name}"))[0][0] for name in ("journal_mode", "synchronous")
        ]

    assert await hub.store.write(modes) == ["wal", 2]


async def test_ready_really_writes_and_reads_the_database(hub):
    before = hub.store.stats()
    answer = await get(hub, "/health/ready")
    after = hub.store.stats()
    assert answer.status == 200
    assert answer.json() == {
        "status": "ready",
        "checks": {"database": {"ok": True}},
        "backends": {},
        "held_tools": {},
    }
    assert after.commits > before.commits
    assert after.reads > before.reads


def assert_not_ready(answer: Answer, folder: Path, *codes: str) -> None:
    assert answer.status == 503
    assert answer.json()["status"] == "not ready"
    outcome = answer.json()["checks"]["database"]
    assert outcome["ok"] is False
    assert outcome["error"] in codes
    assert outcome["reason"].endswith(".")
    assert str(folder) not in answer.text


async def test_a_database_that_does_not_answer_in_time_is_not_ready(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(health, "READY_SECONDS", 0.1)
    with locked(tmp_path):
        assert_not_ready(await get(hub, "/health/ready"), tmp_path, "timeout")
        assert (await get(hub, "/health")).status == 200


@pytest.mark.long
async def test_a_locked_database_is_not_ready_and_says_so(tmp_path):
    clock = Hands()
    async with Hub(settings(tmp_path), clock).running() as hub:
        with locked(tmp_path):
            answer = await get(hub, "/health/ready")
            if "timeout" in answer.text:
                # What the hub itself writes when it starts waited before this; no more comes.
                clock.passed += 1
                answer = await get(hub, "/health/ready")
            assert_not_ready(answer, tmp_path, "database_locked")
        clock.passed += 1
        assert (await get(hub, "/health/ready")).status == 200


async def test_a_database_that_was_replaced_is_not_ready(hub, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"not a database")
    other.replace(tmp_path / "folkmoot.db")
    assert_not_ready(await get(hub, "/health/ready"), tmp_path, "database_corrupt")


async def test_a_database_of_garbage_is_not_ready(tmp_path):
    async with Hub(settings(tmp_path)).running():
        pass
    async with Hub(settings(tmp_path)).running() as hub:
        database = tmp_path / "folkmoot.db"
        with database.open("r+b") as file:
            file.write(b"\xff" * database.stat().st_size)
        # The upkeep of rooms may have found it first.
        found = ("database_corrupt", "database_damaged")
        assert_not_ready(await get(hub, "/health/ready"), tmp_path, *found)
        assert (await get(hub, "/health")).status == 200


async def test_metrics_tell_of_requests_store_and_bus(hub):
    await get(hub, "/health/ready")
    answer = await get(hub, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for name in (
        'folkmoot_http_requests_total{method="GET",route="/health/ready",status="200"} 1.0',
        "folkmoot_store_commits_total",
        "folkmoot_store_write_queue_depth 0.0",
        "folkmoot_store_batch_units_bucket",
        "folkmoot_bus_subscriptions 0.0",
        f'version="{__version__}"',
        "process_open_fds",
    ):
        assert name in answer.text
    fancy = await get(hub, "/metrics", accept="application/openmetrics-text")
    assert fancy.headers["content-type"].startswith("application/openmetrics-text")


async def test_metrics_tell_of_rooms_and_websockets(tmp_path):
    async with town(tmp_path) as there:
        ann, bob = await there.person("ann"), await there.person("bob")
        await there.room(ann)
        async with there.joined(ann.token) as seat, there.joined(bob.token) as other:
            await seat.say("hello")
            await seat.heard("hello")
            await other.heard("hello")
            text = (await get(there.hub, "/metrics")).text
            for line in (
                "folkmoot_rooms_live 1.0",
                "folkmoot_websocket_links 2.0",
                "folkmoot_websocket_opened_total 2.0",
                'folkmoot_http_requests_total{method="GET",route="/ws",status="101"} 2.0',
            ):
                assert line in text
            # Ann came, Bob came, and Ann said something.
            assert metric(text, "folkmoot_room_messages_total") == 3
            assert metric(text, "folkmoot_room_deliveries_total") >= 4
        closed = 'folkmoot_websocket_closed_total{code="1000"} 2.0'
        while closed not in (await get(there.hub, "/metrics")).text:
            pass


def metric(text: str, name: str) -> float:
    """The value of a metric without labels."""
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


@pytest.mark.settings(telemetry={"metrics": False})
async def test_metrics_that_are_switched_off_are_not_there(hub):
    assert (await get(hub, "/metrics")).status == 404
    assert "/metrics" not in (await get(hub, "/")).text


@pytest.mark.settings(public_url="https://moot.example", http={"allowed_hosts": ["*.lan.example"]})
async def test_public_url_and_allowed_hosts_are_answered_to(hub):
    assert "https://moot.example/mcp" in (await get(hub, "/", host="moot.example")).text
    assert (await get(hub, "/", host="box.lan.example:8420")).status == 200
    assert (await get(hub, "/", host="other.example")).status == 421


async def test_an_operator_reaches_the_hub_through_its_socket(tmp_path):
    async with Hub(settings(tmp_path)).running() as hub:
        status = await operator(hub, "folkmoot/status")
        assert (status["url"], status["pid"]) == (hub.base_url, os.getpid())
        assert (await operator(hub, "folkmoot/check"))["whole"]
    assert not (tmp_path / "control.sock").exists()


async def test_a_hub_can_be_stopped_and_started_again_on_its_data(tmp_path):
    async with Hub(settings(tmp_path)).running() as first:
        identity = first.store.identity
    with pytest.raises(e.StoreClosed):
        await first.store.ready()
    async with Hub(settings(tmp_path)).running() as second:
        assert second.store.identity.database_id == identity.database_id
        assert second.store.identity.epoch == identity.epoch


async def test_two_hubs_can_live_in_one_process(tmp_path):
    async with (
        Hub(settings(tmp_path / "a")).running() as one,
        Hub(settings(tmp_path / "b")).running() as two,
    ):
        await get(one, "/")
        assert 'route="/"' not in (await get(two, "/metrics")).text


def assert_nothing_left(folder: Path) -> None:
    DataFolder.open(folder).close()
    assert not (folder / "control.sock").exists()


async def started(chosen: Settings) -> None:
    async with Hub(chosen).running():
        pass


def start_once(folder: Path) -> None:
    run(started(settings(folder)))


def start_fails(chosen: Settings) -> e.FolkmootError:
    with pytest.raises(e.FolkmootError) as raised:
        run(started(chosen))
    return raised.value


def test_a_taken_port_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = start_fails(settings(folder, port=taken.getsockname()[1]))
    assert isinstance(error, e.PortTaken)
    assert not folder.exists()


@pytest.mark.requirement("key.mismatch")
def test_another_key_than_the_databases_own_is_refused(tmp_path):
    start_once(tmp_path)
    error = start_fails(settings(tmp_path, master_key="ab" * 32))
    assert isinstance(error, e.KeyMismatch)
    assert "ab" * 32 not in error.message
    assert_nothing_left(tmp_path)


@pytest.mark.requirement("key.not-beside-existing-database")
def test_a_hub_without_the_key_of_its_database_refuses_and_makes_no_other(tmp_path):
    start_once(tmp_path)
    key = tmp_path / "master.key"
    key.unlink()
    assert isinstance(start_fails(settings(tmp_path)), e.KeyUnusable)
    assert not key.exists()
    assert_nothing_left(tmp_path)


@pytest.mark.requirement("key.never-in-database", "key.file-made-at-first-start")
def test_the_database_has_the_id_of_the_key_and_never_the_key(tmp_path):
    start_once(tmp_path)
    key = read_key(tmp_path / "master.key")
    content = (tmp_path / "folkmoot.db").read_bytes()
    assert key.id.encode() in content
    secret = key.secret()
    for spelling in (secret, secret.hex().encode(), format_key(key).encode(), b64encode(secret)):
        assert spelling not in content


def test_a_damaged_database_stops_the_start(tmp_path):
    start_once(tmp_path)
    database = tmp_path / "folkmoot.db"
    database.write_bytes(b"\xff" * database.stat().st_size)
    assert isinstance(start_fails(settings(tmp_path)), e.DatabaseCorrupt)
    assert_nothing_left(tmp_path)


def test_traces_that_cannot_be_sent_for_want_of_a_package_stop_the_start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    error = start_fails(settings(tmp_path, telemetry={"otlp_endpoint": "http://127.0.0.1:4318"}))
    assert isinstance(error, e.SettingsError)
    assert_nothing_left(tmp_path)


async def test_a_folder_in_use_is_left_to_its_hub(hub, tmp_path):
    with pytest.raises(e.DataFolderInUse):
        async with Hub(settings(tmp_path)).running():
            pytest.fail("the second hub started")
    assert (await get(hub, "/health/ready")).status == 200
    assert (tmp_path / "control.sock").exists()


async def test_an_error_of_the_user_of_a_hub_comes_out_as_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        async with Hub(settings(tmp_path)).running():
            _ = 1 / 0
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("kind", [e.DataFolderInUse, LookupError])
async def test_a_part_that_fails_stops_the_hub_with_its_own_error(tmp_path, monkeypatch, kind):
    async def fail(_: OperatorSocket, __: object) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(later())

    async def later() -> None:
        raise kind("one sentence")

    monkeypatch.setattr(OperatorSocket, "serve", fail)
    with pytest.raises(kind, match="one sentence"):
        async with Hub(settings(tmp_path)).running():
            await asyncio.Event().wait()
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_request_in_flight_finish(tmp_path, number):
    with Process(tmp_path) as hub:
        with locked(tmp_path):
            request = await hub.held_request()
            hub.signal(number)
            await hub.refusing()
            assert not request.done()
        answer = await request
        assert answer.status == 200
        assert answer.json()["status"] == "ready"
        ended_well(hub)


def ended_well(hub: Process) -> None:
    code, output = hub.ended()
    assert code == 0, output
    assert "Traceback" not in output
    assert_nothing_left(hub.folder)


async def test_a_second_signal_does_not_wait_for_the_request(tmp_path):
    with Process(tmp_path) as hub:
        with locked(tmp_path):
            request = await hub.held_request()
            hub.signal(signal.SIGTERM)
            await hub.refusing()
            hub.signal(signal.SIGTERM)
            answer = await request
            assert answer.status == 503
            assert answer.json()["error"]["code"] == "hub_stopping"
        ended_well(hub)


async def becomes(hub: Process, status: int) -> Answer:
    """Ask whether a hub is ready until it answers so; what was found is told for a second."""
    while (answer := await ask(hub.port, "/health/ready")).status != status:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return answer


async def test_a_full_disk_is_not_ready_and_the_hub_lives_on(tmp_path):
    with Process(tmp_path) as hub:
        await becomes(hub, 200)
        unlimited = resource.prlimit(hub.child.pid, resource.RLIMIT_FSIZE, (0, -1))
        answer = await becomes(hub, 503)
        assert answer.json()["checks"]["database"]["ok"] is False
        assert str(tmp_path) not in answer.text
        assert (await ask(hub.port, "/health")).status == 200
        resource.prlimit(hub.child.pid, resource.RLIMIT_FSIZE, unlimited)
        await becomes(hub, 200)
        hub.signal(signal.SIGTERM)
        assert hub.ended()[0] == 0


@pytest.mark.requirement("log.tokens-redacted")
async def test_no_secret_a_client_sends_is_in_what_the_process_writes(tmp_path):
    with Process(tmp_path, FOLKMOOT_LOG_REQUESTS="all") as hub:
        for path in (
            f"/health?token={SECRET}",
            f"/{SECRET}",
            f"/invite/{SECRET}",
            f"/%73k_{SECRET[3:]}",
            f"/x%0a{SECRET}",
        ):
            headers = {"authorization": f"Bearer {SECRET}", "cookie": SECRET, "accept": SECRET}
            await ask(hub.port, path, headers=headers)
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(f"GET /?token={SECRET} {SECRET}\r\n\r\n".encode())
        await reader.read()
        writer.close()
        metrics = (await ask(hub.port, "/metrics")).text
        hub.signal(signal.SIGTERM)
        _, output = hub.ended()
    assert output.count('"path"') >= 6
    for text in (output, metrics):
        assert SECRET[3:] not in text


def test_a_hub_that_was_killed_starts_again(tmp_path):
    with Process(tmp_path) as hub:
        hub.child.kill()
        hub.child.wait()
        assert (tmp_path / "control.sock").exists()
    began = time.monotonic()
    with Process(tmp_path) as hub:
        assert run(ask(hub.port, "/health/ready")).status == 200
        assert time.monotonic() - began < 30
