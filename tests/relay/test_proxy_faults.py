"""What a proxy does when one of its sides ends, floods it, or its disk is full."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from folkmoot.proxy.tape import read_tape
from tests.forge import forked
from tests.forge.forked import Forked
from tests.mcp.client.places import Asked, Place, agree, told
from tests.mcp.client.saying import python
from tests.mcp.server.played import until
from tests.mcp_harness import INITIALIZE, rpc
from tests.process import environment
from tests.relay.standing import BOTH, Standing, before, standing

SECONDS = 60
MEGABYTES = 50 * 1024 * 1024

SERVER = """
import json, os, sys
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {},
                  "serverInfo": {"name": "small", "version": "1"}, "pid": os.getpid()}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
if len(sys.argv) > 1:
    open(sys.argv[1], "w").write("the input has ended")
"""

# Answers each request with the bytes of its params.
ECHO = """
import sys
for line in sys.stdin.buffer:
    head, _, params = line.partition(b',"params":')
    number = head.partition(b'"id":')[2].partition(b",")[0]
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":%b,"result":%b\\n' % (number, params.rstrip()))
    sys.stdout.buffer.flush()
"""


async def opened(proxy: Standing) -> tuple[str, int]:
    """A session, and the process of the server in it."""
    got = await proxy.post(INITIALIZE)
    session = got.headers["mcp-session-id"]
    await proxy.post(told("notifications/initialized"), mcp_session_id=session)
    return session, got.json()["result"]["pid"]


async def test_a_server_that_is_killed_leaves_no_call_without_an_answer():
    async with before(python(SERVER)) as proxy:
        session, pid = await opened(proxy)
        asking = (proxy.post(rpc("wait", id_=each), mcp_session_id=session) for each in (1, "1"))
        calls = asyncio.gather(*asking)
        await until(lambda: len(proxy.tape.carried) >= 4)
        os.kill(pid, signal.SIGKILL)
        told_ = [answer.json() for answer in await calls]
        lost = "server_unreachable"
        assert [(it["id"], it["error"]["data"]["code"]) for it in told_] == [(1, lost), ("1", lost)]
        assert (await proxy.post(rpc("wait", id_=2), mcp_session_id=session)).status_code == 404
        assert (await proxy.post(INITIALIZE)).status_code == 200


async def test_a_client_that_ends_its_session_ends_the_server_that_was_started_for_it(tmp_path):
    ended = tmp_path / "ended"
    async with before((*python(SERVER), str(ended))) as proxy:
        session, _ = await opened(proxy)
        call = asyncio.ensure_future(proxy.post(rpc("wait", id_=9), mcp_session_id=session))
        await until(lambda: len(proxy.tape.carried) >= 4)
        await proxy.http.delete(proxy.url, headers={"mcp-session-id": session})
        assert (await call).content == b""
        await until(lambda: ended.exists() and not len(proxy.proxy.sessions))


def test_the_end_of_a_clients_input_ends_the_server_and_then_the_proxy(tmp_path):
    ended = tmp_path / "ended"
    with proxy_on_pipes("--", *python(SERVER), str(ended)) as child:
        out, err = child.communicate(json.dumps(INITIALIZE) + "\n", SECONDS)
    assert json.loads(out)["id"] == INITIALIZE["id"]
    assert (err, child.returncode) == ("", 0)
    assert ended.read_text() == "the input has ended"


def call_with(params: bytes, id_: int = 1) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (id_, params)


def huge_params() -> bytes:
    text = "Grüße ✓ \\u2028 ".encode() + b"x" * 1000
    return b'{ "odd" : 1.50, "text":"%b"}' % (text * (MEGABYTES // len(text)))


@pytest.mark.long
@pytest.mark.requirement("proxy.unknown-members", "proxy.stdio")
def test_fifty_megabytes_pass_between_pipes_byte_for_byte():
    params = huge_params()
    with proxy_on_pipes("--", *python(ECHO)) as child:
        out, err = child.communicate(call_with(params) + b"\n", SECONDS)
    assert err == ""
    assert out.encode() == b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % params


@pytest.mark.long
async def test_fifty_megabytes_pass_over_http_byte_for_byte():
    params = huge_params()
    answer = b'{"jsonrpc":"2.0","id":1,"result":%b}' % params

    async def do(asked: Asked) -> None:
        if asked.body == call_with(params):
            await asked.say(200, answer, content_type="application/json")
        else:
            await asked.events(b"id: 1\ndata: " + answer + b"\n\n")

    async with standing(do) as (proxy, _):
        got = await proxy.post(call_with(params))
        assert (got.headers["content-type"], got.content) == ("application/json", answer)
        got = await proxy.post(call_with(b"{}"))
        assert got.content.endswith(b"id: 1\ndata: " + answer + b"\n\n")


@pytest.mark.long
def test_ten_thousand_messages_at_once_arrive_all_and_in_order(tmp_path):
    count, tape = 10_000, tmp_path / "tape.jsonl"
    calls = [call_with(b'{"n":%d}' % each, each) for each in range(count)]
    with proxy_on_pipes("--record", str(tape), "--", *python(ECHO)) as child:
        out, err = child.communicate(b"\n".join([*calls, b""]).decode(), SECONDS)
    assert err == ""
    assert [json.loads(line)["id"] for line in out.splitlines()] == list(range(count))
    recorded = read_tape(tape)
    assert len(recorded.entries) == 2 * count
    asked = [each.envelope.message for each in recorded.entries]
    assert [each.id for each in asked if hasattr(each, "method")] == list(range(count))


def proxy_on_pipes(*arguments: str, room: int | None = None) -> Forked:
    limits = {} if room is None else {resource.RLIMIT_FSIZE: (room, room)}
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return Forked(["proxy", *arguments], env=environment(), limits=limits, **pipes)


def test_on_a_full_disk_nothing_passes_that_is_not_on_the_tape(tmp_path):
    tape, room = tmp_path / "tape.jsonl", 20_000
    calls = [call_with(b'{"n":"%b"}' % (b"x" * 500), each) for each in range(100)]
    said = b"\n".join([*calls, b""]).decode()
    with proxy_on_pipes("--record", str(tape), "--", *python(ECHO), room=room) as child:
        out, err = child.communicate(said, SECONDS)
    answers = [json.loads(line) for line in out.splitlines()]
    refused = [each["error"]["data"]["code"] for each in answers if "error" in each]
    assert refused
    assert set(refused) == {"tape_unwritable"}
    assert child.returncode not in (0, None)
    assert "Traceback" not in err
    assert "cannot be written" in err
    recorded = [each.message for each in read_tape(tape).entries]
    answered = {each.id for each in recorded if not hasattr(each, "method")}
    assert {each["id"] for each in answers if "result" in each} <= answered

    other = tmp_path / "other.jsonl"
    options = ("--record", str(other), "--record-best-effort", "--", *python(ECHO))
    with proxy_on_pipes(*options, room=room) as child:
        out, err = child.communicate(said, SECONDS)
    assert [json.loads(line)["id"] for line in out.splitlines()] == list(range(100))
    assert child.returncode == 0


async def test_a_listening_proxy_on_a_full_disk_answers_503_and_ends(tmp_path):
    async with Place(agree).open() as place, httpx2.AsyncClient(verify=False) as http:
        listens = ("--listen", "127.0.0.1:0", "--eras", "pass")
        upstream = ("--upstream-transport", "http", "--upstream", place.url)
        record = ("--record", str(tmp_path / "tape.jsonl"))
        with proxy_on_pipes(*listens, *upstream, *record, room=20_000) as child:
            assert child.stdout
            assert child.stderr
            line = await asyncio.to_thread(child.stdout.readline)
            url = "http://127.0.0.1:" + line.partition("/mcp")[0].rpartition(":")[2] + "/mcp"
            statuses = []
            with suppress(httpx2.HTTPError):
                while 503 not in statuses:
                    answer = await http.post(url, json=rpc("m", {"x": "y" * 500}), headers=BOTH)
                    statuses.append(answer.status_code)
            assert {200} <= set(statuses) <= {200, 503}
            code = await asyncio.to_thread(child.wait, SECONDS)
            err = child.stderr.read()
    assert code not in (0, None)
    assert "cannot be written" in err
    assert "Traceback" not in err


def test_a_file_of_rules_that_cannot_be_read_starts_nothing_and_is_told_by_its_line(tmp_path):
    rules, started = tmp_path / "rules.toml", tmp_path / "started"
    rules.write_text('[[rule]]\nname = "one"\naction = "block\n')
    command = ["proxy", "--rules", str(rules), "--", "touch", str(started)]
    done = forked.run(command, env=environment(), timeout=SECONDS)
    assert done.returncode not in (0, None)
    assert "line 3" in done.stderr
    assert str(rules) in done.stderr
    assert done.stderr.count("\n") == 1
    assert not started.exists()
