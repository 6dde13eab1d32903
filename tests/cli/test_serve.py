"""`folkmoot serve`: what it says, how it stops, and how it fails."""

from __future__ import annotations

import json
import re
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.cli.serve import reachable, welcome
from folkmoot.keys import MasterKey
from folkmoot.settings import load
from folkmoot.store import inspect_database
from tests.cli.conftest import StartHub, execute
from tests.forge.forked import Forked
from tests.harness import ask, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("number", "begin"),
    [
        pytest.param(signal.SIGINT, execute, marks=pytest.mark.long),
        (signal.SIGINT, Forked),
        (signal.SIGTERM, Forked),
        (signal.SIGHUP, Forked),
    ],
)
def test_a_hub_says_where_it_is_serves_and_stops_in_good_order(
    start_hub: StartHub, tmp_path: Path, number: int, begin: Callable[..., Any]
):
    # Whoever runs the tests with `nohup` has the hub ignore it too.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        hub = start_hub("--data", "here", begin=begin)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert re.search(rf"Listening on +{re.escape(hub.url)}\n", hub.said)
    page = hub.url.replace("127.0.0.1", "localhost")
    assert re.search(rf"\n\nSet up this hub: {re.escape(page)}/set-up#[\w-]{{40,200}}\n", hub.said)
    assert re.search(rf"Data in +{re.escape(str(tmp_path / 'here'))}\n", hub.said)
    assert "/mcp" not in hub.said
    assert run(ask(hub.port, "/health")).status == 200
    ended = hub.stop(number)
    assert (ended.code, ended.out) == (ExitCode.OK, "Folkmoot has stopped.\n")
    logged = [json.loads(line)["message"] for line in ended.err.splitlines()]
    assert (logged[0], logged[-1]) == ("listening", "stopped")


def test_a_hub_that_was_told_to_outlive_its_terminal_does(start_hub):
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hub = start_hub()
    finally:
        signal.signal(signal.SIGHUP, ignored)
    hub.process.send_signal(signal.SIGHUP)
    assert run(ask(hub.port, "/health")).status == 200
    assert hub.stop().code == ExitCode.OK


def test_options_win_over_the_environment_and_the_file(start_hub, tmp_path):
    (tmp_path / "moot.toml").write_text('data = "of_file"\n\n[log]\nlevel = "error"\n')
    hub = start_hub("--config", "moot.toml", "--data", "of_option", FOLKMOOT_DATA="of_variable")
    assert re.search(r"Settings in +moot\.toml\n", hub.said)
    assert (tmp_path / "of_option").is_dir()
    assert not (tmp_path / "of_variable").exists()
    assert not (tmp_path / "of_file").exists()
    assert hub.stop().err == ""


def test_a_taken_port_is_one_line(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = cli("serve", "--port", str(port))
    assert (ran.code, ran.out) == (ExitCode.LISTEN, "")
    assert ran.err.startswith(f"folkmoot: error: Port {port} on 127.0.0.1 is in use")
    assert ran.err.count("\n") == 1


def test_an_address_that_is_not_ours_is_one_line(cli):
    ran = cli("serve", "--host", "192.0.2.1", "--port", "0")
    assert (ran.code, ran.out) == (ExitCode.LISTEN, "")
    warning, error = ran.err.splitlines()
    assert "tls.certificate" in warning
    assert error.startswith("folkmoot: error: Cannot listen on 192.0.2.1")


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_used_is_one_line(cli, tmp_path, folder):
    (tmp_path / "file").touch()
    told = f"folkmoot: error: {tmp_path / folder}: "
    ran = cli.fails("serve", "--port", "0", "--data", folder, told=told, code=ExitCode.DATA)
    assert ran.err.count("\n") == 1


def test_a_second_hub_on_the_same_folder_is_one_line(start_hub, cli):
    hub = start_hub()
    told = f"in use by another hub (process {hub.process.pid})"
    assert cli.fails("serve", "--port", "0", told=told, code=ExitCode.DATA).err.count("\n") == 1


@pytest.mark.requirement("key.from-environment")
def test_the_key_in_the_environment_is_the_one_used_and_no_file_is_made(start_hub, tmp_path):
    key = "5f" * 32
    start_hub("--data", "here", FOLKMOOT_MASTER_KEY=key).stop()
    assert not (tmp_path / "here/master.key").exists()
    recorded = inspect_database(tmp_path / "here/folkmoot.db").master_key_id
    assert recorded == MasterKey(bytes.fromhex(key)).id


@pytest.mark.requirement("key.malformed")
def test_a_master_key_that_is_none_is_one_line_without_the_key_and_leaves_nothing_behind(
    cli, tmp_path
):
    told = "folkmoot: error: FOLKMOOT_MASTER_KEY: is not a master key"
    for key in ("hush", "shorty12345"):
        ran = cli.fails("serve", told=told, code=ExitCode.DATA, FOLKMOOT_MASTER_KEY=key)
        assert (ran.err.count("\n"), key in ran.err) == (1, False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://0.0.0.0:8420", "http://127.0.0.1:8420"),
        ("http://[::]:8420", "http://[::1]:8420"),
        ("http://127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("http://[fe80::1]:8420", "http://[fe80::1]:8420"),
    ],
)
def test_a_client_is_given_an_address_it_can_connect_to(url, expected):
    assert reachable(url) == expected


def test_behind_a_proxy_a_client_is_given_the_public_url():
    loaded = load(environ={"FOLKMOOT_PUBLIC_URL": "https://hub.example/moot/"})
    said = welcome("http://0.0.0.0:8420", loaded, "secret")
    # Below a path there are no pages to set it up at.
    assert "secret" not in said
    assert "\n  https://hub.example/moot/mcp\n" in said
    assert "http://0.0.0.0:8420 (all network interfaces)" in said


@pytest.mark.requirement("hub.registration-told")
def test_where_not_everyone_may_register_the_commands_are_shown():
    public = {"FOLKMOOT_PUBLIC_URL": "https://hub.example/moot"}
    folder = {"data": "/var/lib/the hub"}
    said = welcome("http://127.0.0.1:8420", load(options=folder, environ=public), "secret")
    assert "Registration is by invitation. Make your own account, then invite others:" in said
    assert "  folkmoot people add HANDLE --data '/var/lib/the hub'\n" in said
    assert "  folkmoot invite --for HANDLE --data '/var/lib/the hub'\n" in said
    later = welcome("http://127.0.0.1:8420", load(environ=public), "")
    assert "Registration is by invitation. Invite someone with:" in later
    assert "  folkmoot invite --for HANDLE\n" in later
    assert "people add" not in later
    closed = load(environ={"FOLKMOOT_REGISTRATION": "closed"})
    assert "Registration is closed." in welcome("http://127.0.0.1:8420", closed, "")
    assert "Registration" not in welcome("http://127.0.0.1:8420", load(environ={}), "")


def test_a_hub_without_an_account_prints_the_link_to_set_it_up_and_nothing_to_do_before():
    public = load(environ={"FOLKMOOT_PUBLIC_URL": "https://hub.example"})
    for loaded, link in (
        (public, "https://hub.example/set-up#s3cret"),
        (load(environ={}), "http://localhost:8420/set-up#s3cret"),
    ):
        said = welcome("http://0.0.0.0:8420", loaded, "s3cret")
        assert f"\n\nSet up this hub: {link}\n\nPress Ctrl-C to stop." in said
        for later in ("Inbox", "/mcp", "invite"):
            assert later not in said
            assert "Set up" not in welcome("http://0.0.0.0:8420", loaded, "")
    assert "\n  http://127.0.0.1:8420/mcp\n" in welcome("http://0.0.0.0:8420", load(environ={}), "")
