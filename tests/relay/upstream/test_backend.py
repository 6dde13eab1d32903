"""One server behind the hub: reached again when it fails, and never in the way of others."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core.session import Era
from folkmoot.gateway.history import BOUNDS
from folkmoot.gateway.model import BackendState, UpstreamRequest
from folkmoot.relay.upstream import backend as backends
from folkmoot.relay.upstream import links, requests, watching
from folkmoot.relay.upstream.backend import LiveBackend
from folkmoot.settings.backends import SecretReference
from folkmoot.telemetry.logs import name_backend
from tests.harness import reached
from tests.mcp.client.saying import is_running
from tests.relay.upstream.scripted import (
    CLOCK,
    FORM,
    Told,
    both_eras,
    call,
    leave,
    resumed,
    running,
    seen,
    spec,
)

ASKING: dict[str, Any] = {"asks": "elicitation/create", "capabilities": FORM}


@both_eras
async def test_a_server_that_died_is_started_again_and_what_may_be_repeated_is(there, era):
    before = there.process
    os.kill(before, signal.SIGKILL)
    answer = await there.ask("echo", a=1, repeatable=True)
    assert answer["said"] == {"a": 1}
    assert answer["pid"] != before
    await there.arrivals.until(lambda all_: len(all_) == 2)
    assert there.losses.things == []
    view = there.backend.view()
    assert (view.state, view.era, view.tools, view.restarts) == ("up", era, 2, 1)


@both_eras
async def test_a_server_has_an_era_and_is_told_of_again_once_its_lists_are_in_the_catalogue(era):
    told: list[str] = []
    listed, composed = asyncio.Event(), asyncio.Event()

    async def compose(*_: object) -> None:
        told.append("lists")
        listed.set()
        await composed.wait()

    def tell(_: str, state: str) -> None:
        told.append(state)

    follow: Any = {"on_inventory": compose, "on_lost": Told(), "on_state": tell}
    backend = LiveBackend(spec("demo", era), CLOCK, environ={}, **follow)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(backend.run())
        await listed.wait()
        assert (backend.view().era, told) == ("", ["up", "lists"])
        composed.set()
        await backend.first_heard.wait()
        assert (backend.view().era, told) == (era, ["up", "lists", "up"])
        task.cancel()


async def test_what_broke_off_and_may_not_be_repeated_is_done_once_and_told_as_such(tmp_path):
    did = tmp_path / "did"
    async with running(spec(env={"JOURNAL": str(did)})) as there:
        with pytest.raises(e.BackendFailed, match="may or may not have been done"):
            await there.ask("die")
        assert "echo" in {tool["name"] for tool in there.arrivals.things[-1].tools}
        assert (await there.ask("echo"))["content"] == []
        assert there.backend.view().errors == 1
    assert did.read_text().splitlines() == ["began", "done", "began"]


@pytest.mark.settings(call_seconds=0.3)
async def test_a_call_that_takes_too_long_is_cancelled_and_breaks_nothing(there):
    with pytest.raises(e.BackendTimeout, match=r"demo did not answer within 0\.3"):
        await there.ask("hang")
    assert (await there.ask("echo", seconds=20))["pid"] == there.process
    assert await seen(there.backend, "notifications/cancelled")
    assert there.backend.state is BackendState.UP


async def test_a_server_that_says_nothing_at_all_any_more_is_given_up_and_started_again(
    monkeypatch,
):
    monkeypatch.setattr(backends, "ALIVE_SECONDS", 0.3)
    async with running(spec(call_seconds=20)) as there:
        before = there.process
        with pytest.raises(e.BackendTimeout):
            await there.ask("stuck", seconds=0.2)
        assert (await there.ask("echo"))["pid"] != before


@pytest.mark.settings(most_calls=2)
async def test_only_so_many_calls_are_in_flight_at_once(there):
    waiting = asyncio.gather(there.ask("hang"), there.ask("hang"))
    await asyncio.sleep(0)
    with pytest.raises(e.BackendBusy, match="too many open requests"):
        await there.ask("echo")
    await leave(waiting)
    assert (await there.ask("echo"))["content"] == []
    assert there.backend.in_flight == 0


async def test_a_server_that_fails_again_and_again_is_refused_at_once_until_it_is_reached(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.05)
    program = tmp_path / "server"
    async with running(spec(command=(str(program),)), reached=False) as there:
        missing = r"demo is not available: .* not found"
        with pytest.raises(e.BackendUnavailable, match=missing) as why:
            await there.ask("echo")
        assert there.losses.things[0][0] == "demo"
        await there.until(lambda b: b.state is BackendState.BROKEN)
        with pytest.raises(e.BackendUnavailable):
            await there.ask("echo")
        program.write_text(f"#!/bin/sh\nexec {shlex.join(spec().command)}\n")
        program.chmod(0o755)
        await there.until(lambda b: b.state is BackendState.UP)
        assert (await there.ask("echo"))["content"] == []
        assert len(there.losses.things) == 1
        assert why.value.data.get("retry_after", 0) >= 0


async def test_a_server_that_dies_of_every_call_is_broken_though_it_can_be_reached(
    there, monkeypatch
):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.02)
    for _ in range(backends.MOST_FAILURES):
        with pytest.raises(e.BackendFailed):
            await there.ask("die")
    await there.until(lambda b: b.state is BackendState.BROKEN)


@pytest.mark.settings(connections=2)
async def test_calls_go_to_the_least_busy_connection_and_input_to_whom_it_is_for(there):
    await there.until(lambda b: all(line.ready for line in b.lines))
    wanted = call("ask", **ASKING)
    asked = await there.backend.request(wanted)
    answers = {key: {"action": "decline"} for key in asked.result["inputRequests"]}
    busy = asyncio.gather(*(there.ask("hang") for _ in range(3)))
    await asyncio.sleep(0)
    done = await there.backend.request(resumed(wanted, asked, answers))
    assert done.result["answered"]["result"] == {"action": "decline"}
    assert len({(await there.ask("echo"))["pid"] for _ in range(3)}) == 1
    await leave(busy)


@pytest.mark.requirement("gateway.tasks")
@pytest.mark.settings(connections=2)
@both_eras
async def test_a_task_is_asked_about_where_it_was_made_and_in_its_era_alone(there, era):
    backend, spoken, handshake = there.backend, Era(era), era == "handshake"
    await there.until(lambda b: all(line.ready for line in b.lines))
    params = {"name": "begin", **({"task": {}} if handshake else {})}
    begin = UpstreamRequest(method="tools/call", params=params, era=spoken, tasks=handshake)
    made = (await backend.request(begin)).result
    task_id = (made["task"] if handshake else made)["taskId"]
    pid = int(task_id.rpartition(" ")[2])
    conversations = {}
    for line in backend.lines:
        answer = await line.conversation.request(call("echo"), 20)
        conversations[answer.result["pid"]] = line.conversation
    # Whatever is asked goes elsewhere, where less is asked.
    conversation = conversations[pid]
    busy = asyncio.gather(*(conversation.request(call("hang"), 20) for _ in "abc"))
    await asyncio.sleep(0)
    assert (await there.ask("echo"))["pid"] != pid

    about = UpstreamRequest(method="tasks/get", params={"taskId": task_id}, era=spoken, tasks=True)
    assert (await backend.request(about)).result["taskId"] == task_id
    await leave(busy)
    # Nobody waits, and yet it is kept for the task.
    assert conversation.busy
    # An id that only looks so in a call leads nowhere.
    stray = UpstreamRequest(method="tools/call", params={"name": "echo", "taskId": task_id})
    await backend.request(stray)
    other = Era.STATELESS if handshake else Era.HANDSHAKE
    with pytest.raises(e.TaskUnsupported, match="from one era to the other"):
        await backend.request(msgspec.structs.replace(about, era=other))


@pytest.mark.requirement("gateway.shared-link", "gateway.server-requests")
async def test_each_person_may_have_a_connection_of_their_own(monkeypatch):
    monkeypatch.setattr(backends, "MOST_PERSONS", 2)
    async with running(spec(per_user=True)) as there:

        async def process(person: str) -> int:
            return int((await there.ask("echo", person=person))["pid"])

        ada, bob = await process("ada"), await process("bob")
        assert len({ada, bob, await process("ada"), there.process}) == 3
        asking = (there.ask("hang", person=who, **ASKING) for who in ("ada", "bob"))
        waiting = asyncio.gather(*asking)
        await asyncio.sleep(0)
        with pytest.raises(e.BackendBusy, match="Too many people"):
            await process("eve")
        await leave(waiting)
        await process("eve")
        assert there.backend.view().connections == 3
        assert await process("bob") == bob
        assert await process("ada") != ada


@pytest.mark.settings(per_user=True)
async def test_a_connection_of_ones_own_is_closed_when_it_is_not_used(there, monkeypatch):
    # However long it takes to open one, it is used before it is idle.
    monkeypatch.setattr(links, "IDLE_SECONDS", 0.001)
    answer = await there.ask("echo", person="ada")
    await reached(lambda: there.backend.view().connections == 1)
    assert (await there.ask("echo", person="ada"))["pid"] != answer["pid"]


@both_eras
async def test_changed_lists_are_read_again_once_it_is_quiet(there, era, monkeypatch):
    monkeypatch.setattr(watching, "AT_MOST_EVERY", 0.5)
    began = time.monotonic()
    for number in range(30):
        await there.ask("grow", name=f"tool_{number}")
    await there.arrivals.until(lambda all_: len(all_[-1].tools) == 32)
    assert len(there.arrivals.things) <= 4 + (time.monotonic() - began) / 0.5
    assert there.backend.view().tools == 32


@both_eras
async def test_a_watched_resource_is_watched_again_after_the_server_came_back(there, era):
    changed = Told()
    stop = await there.backend.watch("note://1", lambda: changed(1))
    await there.ask("touch", uri="note://1")
    await changed.until(bool)
    changed.things.clear()
    os.kill(there.process, signal.SIGKILL)
    # It may have changed while nobody listened.
    await changed.until(bool)
    changed.things.clear()
    await there.ask("touch", uri="note://1")
    await changed.until(bool)
    stop()
    stop()
    changed.things.clear()
    await there.ask("touch", uri="note://1")
    await there.ask("echo")
    assert changed.things == []


async def test_a_server_is_asked_once_for_what_several_watch(there):
    told, also = Told(), Told()
    stop = await there.backend.watch("note://1", lambda: told(1))
    end = await there.backend.watch("note://1", lambda: also(1))
    assert len(await seen(there.backend, "resources/subscribe")) == 1
    await there.ask("touch", uri="note://1")
    await told.until(bool)
    await also.until(bool)
    stop()
    also.things.clear()
    await there.ask("touch", uri="note://1")
    await also.until(bool)
    end()
    assert there.backend._watching._watches == {}


async def test_a_server_that_tells_of_no_changes_cannot_be_watched():
    async with running(spec("demo", "handshake", "deaf")) as there:
        with pytest.raises(e.BackendFailed, match="does not announce changes"):
            await there.backend.watch("nothing://here", lambda: None)


async def test_a_server_that_floods_is_heard_slowly_and_others_notice_nothing():
    async with running(spec("noisy")) as noisy, running(spec("calm")) as calm:
        flooded = time.monotonic()
        await noisy.backend.request(call("flood"))
        slowest = 0.0
        for _ in range(200):
            began = time.monotonic()
            await calm.backend.request(call("echo"))
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 20
        most = requests.BURST + requests.A_SECOND * (time.monotonic() - flooded) + 1000
        assert 0 < noisy.backend.view().dropped <= most


async def test_a_child_knows_what_its_settings_name_and_nothing_of_the_hub(tmp_path):
    (tmp_path / "key").write_text("from a file\n")
    secrets = {"FROM_ENV": SecretReference(env="THEIR_KEY")}
    secrets["FROM_FILE"] = SecretReference(file=str(tmp_path / "key"))
    settings = spec(cwd=str(tmp_path), env={"PLAIN": "as written", **secrets})
    needed = {"PATH": "/bin", "LC_ALL": "C", "LC_TIME": "C", "HOME": "/home/me"}
    ours = {
        **needed,
        "THEIR_KEY": "from the environment",
        "FOLKMOOT_MASTER_KEY": "ours",
        "AWS_SECRET_ACCESS_KEY": "ours too",
        "HTTPS_PROXY": "http://user:ours@proxy",
    }
    async with running(settings, ours) as there:
        found = await there.ask("environment")
        kept = {name: value for name, value in found["environment"].items() if "__" not in name}
        assert kept == {
            **needed,
            "PLAIN": "as written",
            "FROM_ENV": "from the environment",
            "FROM_FILE": "from a file",
        }
        assert found["cwd"] == str(tmp_path)


async def test_a_missing_secret_is_named_and_read_again_when_it_is_there(monkeypatch):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.02)
    ours: dict[str, str] = {}
    settings = spec(env={"TOKEN": SecretReference(env="SESAME")})
    async with running(settings, ours, reached=False) as there:
        await there.until(lambda b: b.state is BackendState.BROKEN)
        with pytest.raises(e.BackendUnavailable, match="the variable SESAME is not set"):
            await there.ask("echo")
        ours["SESAME"] = "open"
        await there.until(lambda b: b.state is BackendState.UP)


@pytest.mark.requirement("gateway.warnings-named")
async def test_what_is_logged_about_a_server_names_it(caplog):
    caplog.handler.addFilter(name_backend)

    def is_stray(record: logging.LogRecord) -> bool:
        return "not a message" in record.getMessage()

    try:
        settings = msgspec.structs.replace(spec("demo"), command=("echo", "hello"))
        async with running(settings, reached=False):
            await reached(lambda: any(map(is_stray, caplog.records)))
    finally:
        caplog.handler.removeFilter(name_backend)
    assert {vars(each)["backend"] for each in filter(is_stray, caplog.records)} == {"demo"}


async def test_a_backend_that_is_switched_off_runs_nothing_and_refuses():
    async with running(spec(enabled=False), reached=False) as there:
        await asyncio.sleep(0)
        with pytest.raises(e.BackendUnavailable, match="switched off"):
            await there.ask("echo")
        assert (there.backend.view().state, there.losses.things) == ("off", [])


async def test_the_end_of_a_backend_ends_its_processes_also_one_that_is_just_starting():
    async with running(spec(per_user=True)) as running_:
        processes = [running_.process, (await running_.ask("echo", person="ada"))["pid"]]
        waiting = asyncio.ensure_future(running_.backend.request(call("hang")))
        await asyncio.sleep(0)
    with pytest.raises((e.BackendFailed, e.BackendUnavailable)):
        await waiting
    assert not any(map(is_running, processes))
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(children.read_text().split())
    silent = spec("demo", "handshake", "silent", connect_seconds=60)
    async with running(silent, reached=False) as starting:
        await reached(lambda: set(children.read_text().split()) > before)
        started = [int(each) for each in set(children.read_text().split()) - before]
        assert starting.backend.state is BackendState.STARTING
    # It was killed; when it is gone is for the system to say.
    await reached(lambda: not any(map(is_running, started)))


async def test_a_backend_counts_what_came_of_its_requests_and_how_long_they_took():
    async with running(spec(call_seconds=20)) as there:
        backend = there.backend
        await there.ask("echo")
        # What the hub itself asks is wanted by nobody.
        ping = UpstreamRequest(method="ping", params={})
        assert (await backend.request(ping)).result["resultType"] == "complete"
        await backend.request(UpstreamRequest(method="prompts/get", params={"name": "none"}))
        await backend.request(UpstreamRequest(method="resources/read", params={"uri": "note://1"}))
        with pytest.raises(e.BackendTimeout):
            await there.ask("hang", seconds=0.01)
        leaving = asyncio.ensure_future(there.ask("hang"))
        await reached(lambda: bool(backend.in_flight))
        await leave(leaving)
        view = backend.view()
        assert view.outcomes == {"ok": 2, "error": 2, "backend_timeout": 1, "cancelled": 1}
        assert (sum(view.buckets), len(view.buckets)) == (4, len(BOUNDS) + 1)
        assert 0 < view.seconds < 20


@pytest.mark.long
async def test_a_server_that_is_to_run_once_has_ended_before_it_is_started_again(tmp_path):
    journal = tmp_path / "journal"
    async with running(spec(env={"JOURNAL": str(journal)}, single=True)) as there:
        with pytest.raises(e.BackendFailed):
            await there.ask("linger")
        await reached(lambda: len(journal.read_text().splitlines()) == 3)
    assert journal.read_text().splitlines()[:3] == ["began", "ended", "began"]
