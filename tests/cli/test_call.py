"""`folkmoot call` and `folkmoot backends call`: a server used by hand."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from folkmoot.clock import SystemClock
from folkmoot.relay import caller
from folkmoot.relay.proxy import ProxiedServer, ProxyOptions
from tests.cli import call_server
from tests.mcp.client.places import Asked, Place
from tests.relay.listening import listening

PATH = str(Path(call_server.__file__))
ERAS = ("handshake", "stateless")


def start(era: str) -> list[str]:
    return [sys.executable, "-IS", PATH, era]


@pytest.mark.parametrize("era", ERAS)
def test_without_a_tool_everything_a_server_offers_is_listed(cli, era):
    ran = cli("call", "--", *start(era))
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "tool  tide     port= [hours=integer] [exact=boolean|null] [more=]  High water.",
        "tool  noisy",
        "tool  fail",
        "tool  refuse",
        "tool  picture",
        "resource  harbour://log",
        "prompt  greet  [who=]",
    ]
    version = {"handshake": "2025-11-25", "stateless": "2026-07-28"}[era]
    assert ran.err.startswith(f"harbour\\x1b[2J 2: {era} era ({version}), reached in ")
    told = json.loads(cli("call", "--json", "--", *start(era)).out)
    assert (told["era"], told["version"], len(told["tools"])) == (era, version, 5)


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_is_called_with_values_as_its_schema_wants_them(cli, era):
    given = ["port=12", "hours=3", "exact=null", "more=[1]", 'x:="7"']
    out = cli.says("call", "tide", *given, "--", *start(era))
    assert json.loads(out) == {"port": "12", "hours": 3, "exact": None, "more": [1], "x": "7"}
    whole = cli("call", "tide", "--arguments", '{"port": "Rye", "hours": 1}', "hours=2",
                     "--json", "--", *start(era))  # fmt: skip
    assert json.loads(whole.out)["structuredContent"] == {"port": "Rye", "hours": 2}


def test_resources_are_read_and_prompts_got(cli):
    read = cli("call", "--read", "harbour://log", "--", *start("stateless"))
    assert read.out == '[harbour://log -]\n{\n  "calm": true\n}\n'
    got = cli("call", "--prompt", "greet", "who=1", "--", *start("handshake"))
    assert got.out == "user:\n  Greet 1\n"
    shown = cli("call", "picture", "--", *start("handshake"))
    assert shown.out == "[image image/png, 3.0 KiB]\n[link harbour://log log]\n"


def test_what_a_server_says_and_asks_meanwhile_is_told_and_refused(cli):
    ran = cli("call", "noisy", "--", *start("handshake"))
    assert (ran.out, ran.err) == ("asked, and got -32601\n", "info: dredging\\x07\n1 of 2 half\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fail"], 1, "fail failed; what it says is above."),
        (["refuse"], 1, "The server says: Not today. (-32602)"),
        (["tid"], 1, "The server has no tool tid. Did you mean tide?"),
        (["tide", "hours=soon"], 2, "hours must be an integer, not 'soon'; hours:=JSON"),
        (["tide", "nonsense"], 2, "arguments are written name=value, not 'nonsense'"),
        (["tide", "--arguments", "@none"], 2, "No such file or directory: none"),
        (["--era", "stateless"], 1, "The server says: Method not found (-32601)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_goes_wrong_is_told_in_a_line(cli, words, code, said):
    ran = cli("call", *words, "--", *start("handshake"))
    assert ran.code == code
    assert said in ran.err.splitlines()[0]


def test_a_server_that_cannot_be_had_is_told_in_a_line(cli):
    for words, said in (
        (["--", "no-such-server"], "no-such-server cannot be started"),
        (["--", sys.executable, "-IS", "-c", ""], "The server ended before it answered"),
        (["http://127.0.0.1:9/mcp"], "cannot be reached: connection refused"),
    ):
        cli.fails("call", *words, told=said)


def test_denied_and_a_dead_token_are_told_from_no_such_tool(hub, ada):
    reader = ada.json("tokens", "create", "--scope", "mail.read")["token"]

    def called(token: str, tool: str, era: str) -> str:
        bearer = ("--header", f"Authorization: Bearer {token}")
        ran = ada("call", f"{hub.url}/mcp", tool, "to=bob", "body=Hello.", "--era", era, *bearer)
        assert ran.code == 1
        return ran.out + ran.err

    for era in ERAS:
        denied = called(reader, "msg_send", era)
        assert "Your token lacks the scope mail.send." in denied
        assert "does not list this tool" in denied
        assert "The token is not valid" in called("sk_" + "0" * 64, "msg_send", era)
        none = called(reader, "msg_inboxes", era)
        assert "The server has no tool msg_inboxes. Did you mean msg_inbox" in none


async def test_a_server_that_wants_to_know_who_calls_is_told_once(cli):
    async def do(asked: Asked) -> None:
        await asked.say(401, b"no", content_type="text/plain")

    async with Place(do).open() as place:
        said = "folkmoot: error: The server requires authorization (401).\n"
        await asyncio.to_thread(cli.fails, "call", place.url, told=said)


@asynccontextmanager
async def calling(*command: str, **options: float) -> AsyncIterator[Any]:
    """A server that a command starts, as the command line calls it."""
    async with (
        ProxiedServer(command).upstream(SystemClock(), ProxyOptions()) as there,
        caller.calling(there.connect, **options) as one,
    ):
        yield one


async def test_a_server_that_is_silent_to_discovery_is_an_older_one(monkeypatch):
    monkeypatch.setattr(caller, "PROBE_SECONDS", 0.2)
    async with calling(*start("silent")) as one:
        assert one.version == "2025-11-25"
        assert len(await one.listed("tools/list", "tools")) == 5


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_over_http_is_used_in_the_era_it_speaks(era, cli):
    async with listening(*start(era)) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        done = await asyncio.to_thread(cli, "call", url, "tide", "port=Rye")
        assert json.loads(done.out) == {"port": "Rye"}, done.err
        assert (await asyncio.to_thread(cli.json, "call", url))["era"] == era


def test_a_backend_is_used_by_its_own_names_and_the_hubs(cli, tmp_path):
    command = json.dumps(start("handshake"))
    (tmp_path / "config.toml").write_text(f"[backends.tides]\ncommand = {command}\n")
    config = ["--config", "config.toml"]
    for name in ("tide", "tides_tide"):
        ran = cli("backends", "call", "tides", name, "port=Rye", *config)
        assert (ran.code, json.loads(ran.out)) == (0, {"port": "Rye"}), ran.err
    cli.fails(
        "backends", "call", "nobody", "x", *config, told="The settings have no backend nobody."
    )


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_things_stand_below_each_other_and_fit(columns, cli):
    listing = cli.shown("call", "--", *start("handshake"), columns=columns, NO_COLOR="1")
    rows = [row.rstrip() for row in listing.splitlines() if row.strip()]
    at = rows.index("Tools:")
    takes = "    port= [hours=integer] [exact=boolean|null] [more=]"
    wrapped = ["    port= [hours=integer]", "    [exact=boolean|null] [more=]"]
    wanted = [takes] if columns == 80 else wrapped
    assert rows[at + 1 : at + 3 + len(wanted)] == ["  tide", *wanted, "    High water."]
    assert {"Resources:", "Prompts:"} <= set(rows)


def test_a_name_that_is_wider_than_the_terminal_is_not_cut(cli):
    listing = cli.shown("call", "--", *start("handshake"), columns=12, NO_COLOR="1")
    assert "  harbour://log" in "".join(row.rstrip() for row in listing.splitlines())


@pytest.mark.requirement("proxy.slow-start")
@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_is_slow_to_start_is_waited_for_beyond_the_timeout(era, monkeypatch):
    monkeypatch.setattr(caller, "PROBE_SECONDS", 0.05)
    slow = f"import time; time.sleep(2); exec(open({PATH!r}).read())"
    async with calling(sys.executable, "-IS", "-c", slow, era, seconds=1) as client:
        assert client.era.value == era


def test_a_tool_that_no_client_may_use_is_left_out_and_told_of(cli):
    listed = cli("call", "--json", "--", *start("stateless"), "odd")
    assert [each["name"] for each in json.loads(listed.out)["tools"]][-1:] == ["picture"]
    assert "warning: mismarked is left out: in its schema, x-mcp-header is on a" in listed.err
    told = "mismarked cannot be called: in its schema, x-mcp-header is on a"
    cli.fails("call", "mismarked", "--", *start("stateless"), "odd", told=told)


def test_a_server_that_refuses_a_version_it_supports_is_asked_again(cli):
    ran = cli("call", "--json", "--", *start("stateless"), "odd")
    assert json.loads(ran.out)["era"] == "stateless"
