"""`folkmoot watch`: a line, a command or a notice for what is new."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import urlopen

import pytest

from folkmoot.client import Hub
from tests.cli.conftest import Cli, Ran

TRIES = 40


def woken(who: Cli, happens: Any, *options: str, **variables: str) -> Ran:
    """How `watch --once` ends, when something happens again and again."""
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(who, "watch", "--once", *options, **variables)
        for _ in range(TRIES):
            happens()
            try:
                return watching.result(0.5)
            except TimeoutError:
                continue
    raise AssertionError("nothing was told")


def asking(who: Cli, to: str) -> str:
    created = who(
        "asks", "create", "shell", "--to", to, "--arguments", '{"command": "ls"}', "--json"
    )
    return str(json.loads(created.out)["id"])


def test_mail_is_a_line_or_an_object(ada, bob):
    ran = woken(ada, lambda: bob.says("send", "ada", "Lunch?\nNow?"))
    assert (ran.code, ran.out, ran.err) == (0, "mail: @bob: Lunch? Now?\n", "")
    ran = woken(ada, lambda: bob.says("send", "ada", "\x1b[2JTea?"), "--json")
    told = json.loads(ran.out)
    assert (told["about"], told["by"]) == ("mail", "bob")
    assert "\x1b" not in told["text"]
    # It is not read by that.
    assert "new" in ada.says("inbox", "--peek")


def test_what_one_is_asked_and_what_was_answered(ada, bob):
    ran = woken(ada, lambda: asking(bob, "ada"), "--only", "ask")
    assert ran.out == 'ask: @bob asks: shell {"command":"ls"}\n'
    ran = woken(
        bob, lambda: ada.says("asks", "reject", asking(bob, "ada")), "--only", "answer,mail"
    )
    assert ran.out == 'answer: rejected: shell {"command":"ls"}\n'


def test_rooms_wake_whom_they_mention_and_ask(ada, bob, room):
    ran = woken(ada, lambda: bob.says("room", "say", "planning", "Here, @ada"), "--only", "mention")
    assert ran.out == "mention: You were mentioned in planning.\n"
    proposal = ("room", "propose", "planning", "chat.say", "text=Supper")
    ran = woken(ada, lambda: bob.says(*proposal), "--only", "ask")
    assert ran.out.startswith("ask: @bob proposes in planning: "), ran


def test_a_command_gets_it_without_a_shell_and_one_that_fails_is_told_of(ada, bob):
    code = "import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(3)"
    ran = woken(
        ada, lambda: bob.says("send", "ada", "$(touch x) `id`"),
        "--json", "--", sys.executable, "-c", code, "--sound", "a b",
    )  # fmt: skip
    told, got = ran.out.splitlines()
    assert got == f"['--sound', 'a b'] {told}"
    assert ran.err == f"{sys.executable} ended with exit code 3.\n"
    assert not (ada.folder / "x").exists()


def test_a_notice_on_the_desktop_is_text(ada, bob):
    notify = ada.folder / "notify-send"
    notify.write_text(f"#!{sys.executable}\nimport sys; print(sys.argv[1:])\n")
    notify.chmod(0o755)
    ran = woken(
        ada, lambda: bob.says("send", "ada", "<b>--help"), "--desktop", PATH=str(ada.folder)
    )
    assert "'--', 'Folkmoot', '@bob: &lt;b&gt;--help']" in ran.out


def test_a_hub_that_was_away_is_waited_for(ada, bob, hub, start_hub):
    running = [hub]

    def restarted_and_sent() -> None:
        if running[-1] is hub:
            while b"folkmoot_event_streams 1.0" not in urlopen(f"{hub.url}/metrics").read():
                time.sleep(0.05)
            hub.stop()
            running.append(start_hub("--port", str(hub.port), FOLKMOOT_RATE_LIMITS="off"))
        bob.says("send", "ada", "Back?")

    ran = woken(ada, restarted_and_sent)
    assert (ran.out, "The hub is away" in ran.err) == ("mail: @bob: Back?\n", True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--only", "post"],
            "--only must be of mail, mention, invitation, ask, answer, not 'post'",
        ),
        (["no-such-command"], "no-such-command: there is no such command"),
        (["--desktop"], "--desktop needs notify-send, which libnotify has"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(ada, given, told):
    ada.fails("watch", *given, told=told, code=2, PATH=str(ada.folder))


def test_a_program_follows_events_and_goes_on_where_it_was(ada, bob, hub):
    class Enough(Exception):
        pass

    told: list[tuple[str, str]] = []

    def take(name: str, id_: str, data: Any) -> None:
        # The first one has no name: it says where the stream begins.
        if name:
            told.append((name, id_))
            raise Enough

    token = ada.json("account", "token", "ada")["token"]
    with ThreadPoolExecutor(1) as pool:
        for place in ("", None):
            after = told[-1][1] if place is None else ""
            following = pool.submit(Hub(hub.url, token).follow, take, after)
            for _ in range(TRIES):
                bob.says("send", "ada", "Hello")
                if following.done():
                    break
            with pytest.raises(Enough):
                following.result(10)
    assert {name for name, _ in told} == {"mail.received"}
    assert told[0][1] != told[1][1]
