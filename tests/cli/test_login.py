"""`folkmoot login`: someone at a browser signs a computer in, and it stays so until it is ended."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from folkmoot.cli.credentials import Login
from folkmoot.cli.output import ExitCode
from tests.cli import allowing
from tests.cli.conftest import Cli, Hub, Ran
from tests.cli.served import Served
from tests.mcp_harness import META, rpc

SCOPES = "account.read contacts mail.read mail.send rooms tools"
DEAD = "at_" + "0" * 64


class Computer(Cli):
    """A computer of ada's on which nothing is saved yet."""

    @property
    def file(self) -> Path:
        return Path(self.environ["FOLKMOOT_CREDENTIALS"])

    def login(self, hub: Hub, token: str, scopes: str = SCOPES, *more: str) -> Ran:
        """Sign in, with ada at the browser."""
        words = (sys.executable, allowing.__file__, token, scopes.replace(" ", ","), "%s")
        return self("login", hub.url, *more, BROWSER=" ".join(words))

    def saved(self) -> Any:
        [account] = json.loads(self.file.read_text())["accounts"]
        return account

    def change(self, **members: Any) -> None:
        """Change what is saved, as if time had passed."""
        self.file.write_text(json.dumps({"accounts": [self.saved() | members]}))


@pytest.fixture
def laptop(ada: Cli, tmp_path: Path) -> Computer:
    (tmp_path / "laptop").mkdir()
    keys = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "laptop" / "credentials.json")}
    return Computer(ada.folder, {**ada.environ, **keys}, "ada", ada.hub)


@pytest.fixture
def token(ada: Cli) -> str:
    return ada.says("account", "token", "ada").strip()


def connected(someone: Cli) -> list[Any]:
    return [it for it in someone.json("tokens") if it["kind"] == "device"]


def test_a_computer_signs_in_works_is_listed_and_signs_out(hub, ada, laptop, token):
    ran = laptop.login(hub, token)
    place = f"Signed in as @ada on {hub.url}. Saved in {laptop.file}, which only you can read.\n"
    assert (ran.code, ran.out) == (0, place)
    code = r"[A-Z]{4}-[A-Z]{4}"
    link = rf"Open {hub.url}/device\?user_code=({code})\n"
    waits = (
        r"and check that it shows the code \1\.\nWaiting until you allow it\. Ctrl-C gives up\.\n"
    )
    assert re.fullmatch(link + waits, ran.err), ran.err
    assert laptop.file.stat().st_mode & 0o777 == 0o600
    assert not any(laptop.saved()[name] in ran.out + ran.err for name in ("token", "refresh_token"))

    assert laptop.json("account", "whoami")["handle"] == "ada"
    ada.says("room", "create", "planning")
    laptop.says("room", "say", "planning", "from my laptop")
    [grant] = connected(ada)
    assert (grant["scope"], grant["label"][:15]) == (SCOPES, "Command line on")
    assert [it["id"] for it in laptop.json("tokens") if it["current"]] == [grant["id"]]
    assert re.search(r"Command line on .* app\n", ada.says("tokens"))
    laptop.fails("tokens", "revoke", "c_", told=f"Revoke others at {hub.url}/account.")
    assert laptop.says("account", "token", "ada").startswith("at_")

    again = laptop.login(hub, token, SCOPES, "--json")
    assert json.loads(again.out) == {"handle": "ada", "hub": hub.url}
    assert [it["id"] == grant["id"] for it in connected(ada)] == [False]
    assert laptop.says("logout") == f"Signed out of @ada on {hub.url}.\n"
    assert connected(ada) == []
    told = "'folkmoot login URL' signs you in with a browser"
    laptop.fails("account", "whoami", told=told, code=ExitCode.SIGNED_OUT)
    laptop.fails("bridge", told=told, code=ExitCode.SIGNED_OUT)


@pytest.mark.parametrize(
    ("scopes", "told"),
    [
        ("-", "It was not allowed. Nothing was saved."),
        ("mail.read", "Your token lacks the scope account.read."),
    ],
)
def test_what_is_not_allowed_is_said_and_leaves_nothing(hub, ada, laptop, token, scopes, told):
    ran = laptop.login(hub, token, scopes)
    assert (ran.code, told in ran.err) == (ExitCode.FAILED, True)
    assert laptop.json("account", "list") == []
    assert connected(ada) == []


def test_a_saved_token_stays_and_is_no_matter_of_signing_out(hub, ada, token):
    computer = Computer(*ada)
    ran = computer.login(hub, token)
    assert "is saved here with a token, which is kept" in ran.err
    assert connected(ada) == []
    ada.fails("logout", told="'folkmoot account forget ada' removes it from this computer")


CODES = {
    "device_code": "d",
    "user_code": "BCDF-GHJK",
    "verification_uri": "http://localhost/device",
    "verification_uri_complete": "file:///etc/passwd",
    "expires_in": 600,
}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({}, "nobody can sign in there. Is it the hub's address?"),
        ({"/register": "<html>"}, "nobody can sign in there."),
        ({"/register": {"client_id": "c"}}, "the hub's answer cannot be understood."),
        (
            {"/register": {"client_id": "c"}, "/device_authorization": CODES},
            "Nobody allowed it in time. Run 'folkmoot login' again.",
        ),
    ],
)
def test_what_is_no_hub_or_too_late_is_said_and_only_pages_are_opened(cli, answers, told):
    late = {"/token": (400, {"error": "expired_token"}), "/device_authorization": {}}
    with Served({**(late if answers else {}), **answers}) as server:
        ran = cli("login", server.url, BROWSER=f"mkdir {cli.folder}/opened %s")
    assert not (cli.folder / "opened").exists()
    assert (ran.code != 0, ran.out, told in ran.err) == (True, "", True), ran
    cli.fails("login", server.url, told="no hub answers there (connection refused)", code=7)


@pytest.mark.parametrize("aged", [{"expires_at": 0}, {"token": DEAD}], ids=["late", "refused"])
def test_five_commands_at_once_renew_the_pair_once_and_all_work(hub, laptop, token, aged):
    laptop.login(hub, token)
    before = laptop.saved()
    laptop.change(**aged)
    with ThreadPoolExecutor(5) as pool:
        ran = list(pool.map(lambda _: laptop("account", "whoami"), range(5)))
    assert [it.code for it in ran] == [0] * 5, ran
    after = laptop.saved()
    assert before["refresh_token"] != after["refresh_token"]
    assert laptop.file.stat().st_mode & 0o777 == 0o600
    # Whoever came later found what the first had got.
    assert laptop.json("tokens")
    assert laptop.saved() == after


def test_a_bridge_renews_its_token_and_says_what_to_do_when_it_was_ended(hub, ada, laptop, token):
    laptop.login(hub, token)
    laptop.change(token=DEAD)
    calls = [
        rpc("tools/call", {"name": name, "arguments": {}, "_meta": META}, number)
        for number, name in enumerate(("msg/whoami", "msg/set_profile"), 1)
    ]
    ran = laptop("bridge", given="".join(f"{json.dumps(call)}\n" for call in calls))
    answers = {
        it["id"]: it["result"]["content"][0]["text"] for it in map(json.loads, ran.out.splitlines())
    }
    assert json.loads(answers[1])["handle"] == "ada"
    assert json.loads(answers[2])["scope_needed"] == "account"
    assert "The hub does not take this device's key (Your token lacks the scope account)" in ran.err
    assert laptop.saved()["token"] != DEAD

    ada.says("tokens", "revoke", connected(ada)[0]["id"])
    laptop.fails(
        "bridge",
        told=f"'folkmoot login {hub.url}' signs in again.",
        code=ExitCode.SIGNED_OUT,
        given=f"{json.dumps(calls[0])}\n",
    )


def test_no_client_is_given_a_token_that_only_this_computer_renews(hub, laptop, token):
    laptop.login(hub, token)
    out = laptop("connect", "codex", "--file", "codex.toml").out
    assert "No token was written. The client signs you in with a browser" in out
    assert "Bearer" not in (laptop.folder / "codex.toml").read_text()
    told = "Leave --scope out: you choose what the client can do when it signs in."
    laptop.fails("connect", "codex", "--file", "other.toml", "--scope", "rooms", told=told)


def test_signing_out_of_a_hub_that_does_not_answer_says_what_is_left_to_do(hub, laptop, token):
    laptop.login(hub, token)
    hub.stop()
    told = "no hub answers there"
    laptop.fails("logout", told=told, code=ExitCode.UNREACHABLE)
    assert laptop.json("account", "list") == [{"handle": "ada", "hub": hub.url}]


def test_a_saved_account_shows_no_secret():
    login = Login("http://h", "ada", "at_x", refresh_token="rt_x", client_id="c")
    assert repr(login) == "Login(@ada on http://h)"
