"""The link to a server on standard input and output, against real processes."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import time

import pytest

from folkmoot.clock import SystemClock
from folkmoot.cluster.lease import boot_time
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import Notification, Response, decode_message
from folkmoot.core.strict import Limits
from folkmoot.core.transport import StdioMetadata
from folkmoot.mcp.client import stdio
from folkmoot.mcp.client.stdio import Starting, StdioLink
from tests.harness import MAX_STRETCH, longest_stretch
from tests.mcp.client.saying import (
    answer,
    ask,
    at_rest,
    failure,
    is_running,
    notice,
    open_descriptors,
    python,
    refusal,
    request,
)
from tests.mcp.server.played import until

CLOCK = SystemClock()

# Says every message back; what was a request comes as one.
ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""

SERVER = r"""
import json, os, sys
say = lambda text: (sys.stdout.write(text + "\n"), sys.stdout.flush())
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked.get("params") or {}
    if method == "say":
        for each in params["lines"]: say(each)
    elif method == "die":
        os._exit(3)
    elif method == "log":
        for each in params["lines"]: print(each, file=sys.stderr, flush=True)
    if "id" in asked and not params.get("silent"):
        say(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"pid": os.getpid()}}))
"""


@pytest.mark.requirement("proxy.slow-start")
async def test_a_server_that_is_slow_to_start_is_waited_for_and_told_of(monkeypatch):
    monkeypatch.setattr(stdio, "SLOW_SECONDS", 0.05)
    told: list[str] = []
    slow = asyncio.Event()
    starting = Starting(60, slow.set, lambda _: told.append("there"))
    silent_once = f"import sys; sys.stdin.buffer.readline(){ECHO}"
    async with StdioLink(python(silent_once), CLOCK, starting=starting) as link:
        await link.send(request("tools/call", 1))
        async with asyncio.timeout(30):
            await slow.wait()
        assert link.start_seconds == 60
        await link.send(request("tools/call", 2))
        await link.receive()
        assert link.start_seconds == 0
        await link.send(request("tools/call", 3))
        await link.receive()
    assert told == ["there"]


@pytest.mark.requirement("proxy.slow-start")
async def test_a_server_that_dies_before_it_says_anything_is_not_waited_for():
    starting = Starting(3600, lambda: None, lambda _: None)
    async with StdioLink(python("input()"), CLOCK, starting=starting) as link:
        told = await refusal(link, request("tools/call", 1))
        assert told[2] == {"code": "server_unreachable"}


@pytest.mark.requirement("proxy.stdio", "proxy.connection-info")
async def test_envelopes_go_to_the_server_and_come_back_with_the_context_of_its_process():
    async with StdioLink(python(ECHO), CLOCK) as link:
        raw = b'{ "method":"notifications/cancelled", "jsonrpc":"2.0","new":[1.50,"\\u00e9"]}'
        await link.send(decode_message(raw))
        await link.send(request("tools/call", "seven"))
        first, second = await link.receive_envelope(), await link.receive_envelope()
        assert first.message.raw == raw
        assert isinstance(first.message, Notification)
        assert second.message == request("tools/call", "seven")
        ours = link.current_context()
        for envelope in (first, second):
            assert envelope.context.direction is MessageDirection.SERVER_TO_CLIENT
            assert envelope.context.transport is ours
        assert link.process_id is not None
        assert ours.metadata == StdioMetadata(link.process_id)
        assert ours.connection is not None
        with pytest.raises(e.Misrouted):
            await link.send_envelope(first)
        await link.send(decode_message(b'{"jsonrpc":"2.0",\r\n "method":"a\\nb"}'))
        assert (await link.receive()).raw == b'{"jsonrpc":"2.0",   "method":"a\\nb"}'
    assert link.returncode == 0
    with pytest.raises(e.TransportClosed):
        await link.send(notice("late"))


async def test_a_server_that_dies_leaves_no_request_without_an_answer():
    async with StdioLink(python(SERVER), CLOCK) as link:
        await link.send(request("wait", 1, silent=True))
        await link.send(request("wait", "1", silent=True))
        await link.send(request("wait", 2, silent=True))
        await link.send(notice("notifications/cancelled", requestId=2))
        await link.send(request("say", 4, lines=[]))
        await link.send(request("die", 3))
        assert (await answer(link)).id == 4
        lost = [failure(await link.receive()) for _ in range(3)]
        assert [each[0] for each in lost] == [1, "1", 3]
        assert {each[1] for each in lost} == {"The server ended before it answered."}
        with pytest.raises(e.TransportClosed):
            await link.receive()
        with pytest.raises(e.TransportClosed):
            await link.send(request("more", 5))
    assert link.returncode == 3


async def test_what_is_not_a_message_is_told_once_of_each_kind_and_passed_over(caplog):
    lines = ["server started", "", "token=hunter2 loaded", "[]", '{"jsonrpc":"2.0"}', "\x7f" * 9]
    with caplog.at_level(logging.WARNING):
        async with StdioLink(python(SERVER), CLOCK) as link:
            await ask(link, request("say", 1, lines=lines))
            assert link.invalid_messages.count == 5
    assert len([each for each in caplog.records if each.name == "folkmoot.proxy"]) == 3
    assert "hunter2" not in caplog.text + str([record.__dict__ for record in caplog.records])


async def test_many_short_lines_that_are_no_messages_let_others_have_their_turn():
    async with StdioLink(python(SERVER), CLOCK) as link, asyncio.TaskGroup() as tasks:
        stretch = tasks.create_task(longest_stretch(stop := asyncio.Event()))
        await ask(link, request("say", 1, lines=["x\n" * 8_000]))
        stop.set()
        assert link.invalid_messages.count == 8_000
    assert stretch.result() < MAX_STRETCH


@pytest.mark.parametrize(
    "said",
    [
        '{{"jsonrpc":"2.0","id":2,"result":{{"a":"{}"}}}}',
        '{{"result":{{"a":"{}"}},"jsonrpc":"2.0","id":2}}',
    ],
    ids=["id first", "id last"],
)
async def test_an_answer_that_is_too_long_is_an_error_for_who_asked_among_others(said):
    async with StdioLink(python(SERVER), CLOCK, limits=Limits(4000)) as link:
        await link.send(request("hang", 1, silent=True))
        await link.send(request("hang", 2, silent=True))
        too_long = request("say", 3, lines=[said.format("x" * 6000)], silent=True)
        about, words, _ = await refusal(link, too_long)
        assert about == 2
        assert "more than the 4,000 bytes" in words


async def test_an_answer_that_cannot_be_read_is_an_error_for_who_asked():
    twice = '{"jsonrpc":"2.0","id":7,"result":1,"result":2}'
    async with StdioLink(python(SERVER), CLOCK) as link:
        silent = request("say", 7, lines=[twice], silent=True)
        message_id, sentence, data = await refusal(link, silent)
        assert (message_id, data) == (7, {"code": "server_answer_invalid"})
        assert sentence.startswith("The server's answer cannot be read: ")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/to-be-found", "--key=hunter2"], "to-be-found cannot be started: it was not"),
        (["no-such-command-at-all"], "no-such-command-at-all cannot be started: it was not"),
        (["FILE"], "cannot be started: it may not be executed"),
        ([], "The server's command is empty"),
        (["nul\0byte"], "null character"),
        (["true", "in a folder"], "there is no folder"),
    ],
)
async def test_a_command_that_cannot_be_started_says_why(tmp_path, command, reason):
    plain = tmp_path / "plain"
    plain.write_text("hello")
    plain.chmod(stat.S_IRUSR)
    descriptors = open_descriptors()
    folder = tmp_path / "gone" if "in a folder" in command else None
    parts = [str(plain) if part == "FILE" else part for part in command]
    link = StdioLink(parts, CLOCK, cwd=folder)
    with pytest.raises(e.ServerUnreachable, match=reason) as raised:
        await link.open()
    assert "hunter2" not in raised.value.message
    await link.close()
    assert open_descriptors() == descriptors


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    time.sleep(1000)
print('{"jsonrpc":"2.0","method":"ready","params":{"child":%d}}' % child, flush=True)
while True:
    time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_server_that_will_not_end_is_killed_with_its_children(how):
    link = StdioLink(python(STUBBORN), CLOCK, grace=0.1 if how == "closed" else 30)
    await link.open()
    child = (await link.receive()).params["child"]  # type: ignore[union-attr, index, call-overload]
    closing = asyncio.ensure_future(link.close())
    if how == "cancelled":
        await asyncio.sleep(0)
        closing.cancel()
    await asyncio.wait([closing])
    assert link.process_id is not None
    await until(lambda: not (is_running(child) or is_running(link.process_id)))


@pytest.mark.parametrize("end", ["in time", "later", "with us"])
async def test_a_server_ends_at_its_time_or_with_whoever_started_it(end):
    async with StdioLink(python(ECHO), CLOCK, until=boot_time() + 600) as link:
        for number in (1, 2):
            await link.send(request("ping", number))
            assert (await link.receive_envelope()).message == request("ping", number)
            link.extend(boot_time() + 1200)
        if end == "in time":
            await link.close()
            assert link.returncode == 0
            return
        if end == "later":
            link.extend(boot_time() + 0.1)
        else:
            # So it is when this process is killed.
            link._close_guard()
        # What was asked meanwhile is answered before that.
        with pytest.raises(e.TransportClosed, match="SIGKILL"):
            await read_on(link)


async def read_on(link: StdioLink) -> None:
    while isinstance(await link.receive(), Response):
        pass


async def test_a_server_whose_time_is_over_is_not_started(tmp_path):
    touch = python(f"open({str(tmp_path / 'started')!r}, 'w')")
    async with StdioLink(touch, CLOCK, until=boot_time() - 1, stderr=print) as link:
        with pytest.raises(e.TransportClosed):
            await link.receive_envelope()
    assert not (tmp_path / "started").exists()


async def test_a_server_whose_child_keeps_its_output_open_has_ended_all_the_same():
    code = "import os, time\nif not os.fork(): time.sleep(1000)"
    async with StdioLink(python(code), CLOCK, grace=0.1) as link:
        with pytest.raises(e.TransportClosed):
            await link.receive()


async def test_the_servers_log_is_passed_on_line_by_line():
    lines = ["one", "x" * 100_000, "three"]
    told: list[bytes] = []
    async with StdioLink(python(SERVER), CLOCK, stderr=told.append) as link:
        await link.send(request("log", 1, lines=lines))
        await link.receive()
    assert told[0] == b"one"
    assert b"".join(told) == "".join(lines).encode()


@pytest.mark.parametrize("megabytes", [5, pytest.param(50, marks=pytest.mark.long)])
async def test_many_megabytes_pass_in_both_directions(megabytes):
    async with StdioLink(python(ECHO), CLOCK) as link:
        body = "x" * (megabytes * 1024 * 1024)
        began = time.process_time()
        message = request("large", 1, body=body)
        _, back = await asyncio.gather(link.send(message), link.receive())
        assert back.raw == message.raw
        # Searching or joining it anew for every piece would take minutes.
        assert time.process_time() - began < 20


async def test_a_flood_waits_for_whoever_is_slower_and_nothing_is_lost():
    count = 20_000
    async with StdioLink(python(ECHO), CLOCK) as link:
        sent = 0

        async def send() -> None:
            nonlocal sent
            for number in range(count):
                await link.send(notice("tick", number=number, padding="x" * 200))
                sent = number

        sending = asyncio.ensure_future(send())
        # Between the two there is room for what the buffers hold, and for no more.
        assert await at_rest(lambda: sent) < count * 0.8
        for number in range(count):
            message = await link.receive()
            assert message.params["number"] == number  # type: ignore[union-attr, index, call-overload]
        await sending
        assert not link.waiting


async def test_what_was_received_already_is_known_to_wait():
    async with StdioLink(python(SERVER), CLOCK) as link:
        message = '{"jsonrpc":"2.0","method":"a"}'
        await link.send(request("say", 1, lines=[message, "noise", message, "noise"]))
        seen = [await link.receive()]
        while link.waiting:
            seen.append(await link.receive())
        while not isinstance(seen[-1], Response):
            seen.append(await link.receive())
        assert len(seen) == 3
        assert not link.waiting


async def test_a_signal_to_us_does_not_reach_the_server():
    async with StdioLink(python(SERVER), CLOCK) as link:
        assert link.process_id is not None
        assert os.getpgid(link.process_id) == link.process_id != os.getpgrp()
        os.kill(link.process_id, signal.SIGTERM)
        with pytest.raises(e.TransportClosed):
            await link.receive()
    assert link.returncode == -signal.SIGTERM
