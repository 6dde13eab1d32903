"""The command line against a real hub: two people, each with a file of their own."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Hub, Ran
from tests.forge.forked import Forked


class Person(NamedTuple):
    """Someone with a command line and credentials of their own."""

    run: Callable[..., Ran]
    environ: dict[str, str]
    folder: Path

    def __call__(self, *arguments: str) -> Ran:
        return self.run(*arguments, **self.environ)

    def json(self, *arguments: str) -> Any:
        ran = self(*arguments, "--json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)

    def begin(self, *arguments: str) -> Forked:
        return Forked(
            arguments,
            env={**self.run.environment, **self.environ},  # type: ignore[attr-defined]
            cwd=self.folder,
            stdout=subprocess.PIPE,
        )


@pytest.fixture
def hub(start_hub: Callable[..., Hub]) -> Hub:
    return start_hub(FOLKMOOT_RATE_LIMITS="off")


@pytest.fixture
def person(
    tmp_path: Path, folkmoot: Callable[..., Ran], environment: dict[str, str]
) -> Callable[[str], Person]:
    folkmoot.environment = environment  # type: ignore[attr-defined]

    def make(name: str) -> Person:
        return Person(folkmoot, {"FOLKMOOT_CREDENTIALS": str(tmp_path / f"{name}.json")}, tmp_path)

    return make


@pytest.fixture
def both(hub: Hub, person: Callable[[str], Person]) -> tuple[Person, Person]:
    ada, bob = person("ada"), person("bob")
    for who, name in ((ada, "ada"), (bob, "bob")):
        ran = who("register", name, "--url", hub.url)
        assert (ran.code, ran.err) == (0, "")
    return ada, bob


def read(url: str, path: str) -> tuple[int, str]:
    """What a browser gets."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request("GET", path, headers={"accept": "text/html"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_two_people_write_to_each_other(both: tuple[Person, Person]) -> None:
    ada, bob = both
    sent = ada("send", "@Bob", "The boat is ready.\n\x1b[31mAda")
    assert re.fullmatch(r"Sent to @bob: [0-9a-f]{8}\n", sent.out)
    name = sent.out.split()[-1]

    peeked = bob.json("inbox", "--peek")["messages"][0]
    assert (peeked["id"][:8], peeked["unread"]) == (name, True)
    threads = bob("threads").out
    assert threads.startswith("@ada  1  ")
    ending = f"server-assisted  {name}\n    The boat is ready.\n    \\x1b[31mAda\n"
    first, again = bob("inbox").out, bob("inbox").out
    assert first.startswith("@ada  ")
    assert first.endswith(f"  new  {ending}")
    assert again.endswith(f"  {ending}")
    assert "new" not in again
    assert bob.json("threads")["threads"][0]["unread_count"] == 0

    assert bob("reply", name, "I am coming.", "--priority", "urgent").code == 0
    conversation = ada.json("thread", "bob")
    assert [it["body"] for it in conversation["messages"]] == [
        "I am coming.", "The boat is ready.\n\x1b[31mAda",
    ]  # fmt: skip
    by_id = ada("thread", conversation["thread"]["id"][:8]).out
    assert by_id.index("@ada → @bob") < by_id.index("urgent")

    assert bob("archive", "ada").out == "Thread archived.\n"
    assert bob.json("threads", "--state", "archived")["threads"][0]["other_handle"] == "ada"
    assert bob("archive", "@ada", "--undo").out == "Thread unarchived.\n"
    assert bob("delete", name).out == f"Deleted {name}.\n"
    assert bob("reply", name, "Again?").err == "folkmoot: error: Message not found.\n"
    assert "The boat" not in bob("thread", "ada").out
    assert "The boat" in ada("thread", "bob").out
    assert bob("delete-thread", "ada", "--yes").out == "Thread deleted.\n"
    assert bob("threads").err == "No conversations.\n"


def test_waiting_ends_when_mail_comes(both: tuple[Person, Person]) -> None:
    ada, bob = both
    waiting = bob.begin("inbox", "--wait", "55", "--json")
    assert ada("send", "bob", "Now.").code == 0
    out, _ = waiting.communicate(timeout=50)
    assert [it["body"] for it in json.loads(out)["messages"]] == ["Now."]


def test_long_lists_are_shown_page_by_page(both: tuple[Person, Person]) -> None:
    ada, bob = both
    for number in range(3):
        assert ada("send", "bob", f"number {number}").code == 0
    first = bob("inbox", "--limit", "2")
    assert "number 2" in first.out
    assert "number 0" not in first.out
    after = re.search(r"--cursor (\S+)", first.err)
    assert after is not None
    rest = bob("inbox", "--cursor", after[1])
    assert "number 0" in rest.out
    assert "number 1" not in rest.out


def test_people_are_found_kept_and_kept_away(both: tuple[Person, Person]) -> None:
    ada, bob = both
    assert bob("account", "profile", "--name", "Bob B", "--bio", "Builds\nboats").out == (
        "Profile updated.\n"
    )
    assert ada("search", "bo").out == "@bob  Bob B  Builds\\x0aboats\n"
    assert "Bob B" in ada("lookup", "bob").out
    assert ada("contacts", "add", "bob", "--nickname", "Bobby").code == 0
    assert ada("contacts").out.startswith("@bob  Bob B  Bobby  ")
    assert ada("contacts", "remove", "bob").code == 0
    assert ada("contacts") == (0, "", "No contacts.\n")
    assert ada("block", "bob").code == 0
    refused = bob("send", "ada", "Hello?")
    assert refused == (
        ExitCode.FAILED, "", "folkmoot: error: Cannot send message to this user.\n",
    )  # fmt: skip
    assert ada("unblock", "bob").code == 0
    assert bob("send", "ada", "Hello!").code == 0
    assert ada("lookup", "nobody").err == "folkmoot: error: User not found.\n"


@pytest.mark.requirement("invite.page-valid", "invite.page-claimed", "invite.page-invalid")
def test_someone_is_invited_and_finds_the_words_that_were_left(
    hub: Hub, both: tuple[Person, Person], person: Callable[[str], Person]
) -> None:
    ada, _ = both
    link = ada("invite", "--message", "Welcome, Cy!").out.strip()
    path = urlsplit(link).path
    code = path.rsplit("/", 1)[1]
    status, page = read(hub.url, path)
    assert status == 200
    assert "This invite is valid. Use it in your MCP client to register." in page
    assert "@ada invites you" in page
    assert "Welcome, Cy!" in page
    assert f"folkmoot register yourname --invite {link}" in page
    cy = person("cyd")
    assert cy("register", "cyd", "--invite", link).code == 0
    assert cy.json("inbox")["messages"][0]["body"] == "Welcome, Cy!"
    assert read(hub.url, path)[0] == 410
    assert read(hub.url, path)[1].count("This invite has already been claimed.") == 1
    assert read(hub.url, "/invite/AAAAAAAAAAAAAAAAAAAAAA")[0] == 404
    late = person("dora")("register", "dora", "--invite", code, "--url", hub.url)
    assert late.code == ExitCode.FAILED
    stopped = hub.stop()
    assert code not in stopped.err
    assert "/invite/[redacted]" in stopped.err
    assert "sk_" not in stopped.err.replace("sk_[", "")


def test_a_lost_token_is_replaced_and_the_old_one_ends(
    hub: Hub, both: tuple[Person, Person], person: Callable[[str], Person], tmp_path: Path
) -> None:
    ada, _ = both
    stolen = person("thief")
    copied = tmp_path / "thief.json"
    copied.touch(0o600)
    copied.write_text((tmp_path / "ada.json").read_text())
    assert stolen("account", "whoami").code == 0
    assert "connect CLIENT --force" in ada("account", "recover", "ada").out
    assert ada("account", "whoami").code == 0
    assert stolen("account", "whoami").code == ExitCode.SIGNED_OUT


def test_a_handle_is_changed_and_an_account_left(both: tuple[Person, Person]) -> None:
    ada, bob = both
    assert ada("account", "change-handle", "countess").code == 0
    assert "@countess" in ada("account", "whoami").out
    assert bob("send", "ada", "Still you?").code == 0
    assert "Still you?" in ada("inbox").out
    assert "Still you?" in bob("thread", "ada").out
    assert bob("contacts", "add", "ada").out == "Added @countess to your contacts.\n"
    assert bob("contacts", "remove", "ada").out == "Removed @countess from your contacts.\n"
    assert bob("block", "ada").out == "@countess can no longer write to you.\n"
    assert bob("unblock", "ada").out == "@countess can write to you again.\n"
    assert ada("account", "change-handle", "bob").err == "folkmoot: error: Handle already taken.\n"
    assert ada("account", "delete", "--yes").code == 0
    assert ada("inbox").code == ExitCode.SIGNED_OUT
    assert bob("send", "countess", "Gone?").err == "folkmoot: error: User not found.\n"


def test_the_page_of_the_hub_answers_beside_the_mail(hub: Hub) -> None:
    status, page = read(hub.url, "/")
    assert status == 200
    assert f"{hub.url}/mcp" in page
    status, document = read(hub.url, "/.well-known/mmp.json")
    assert json.loads(document)["mcp_endpoint"] == "/mcp"


def test_someone_downloads_all_that_is_theirs(
    hub: Hub, person: Callable[[str], Person], tmp_path: Path
) -> None:
    ada = person("ada")
    assert ada("register", "ada", "--url", hub.url).code == 0
    file = tmp_path / "ada-copy.json"
    ran = ada("account", "export", "-o", str(file))
    assert (ran.code, ran.out) == (0, f"Exported your data to {file}.\n")
    assert "holds decrypted mail" in ran.err
    assert json.loads(file.read_bytes())["account"]["handle"] == "ada"
    assert file.stat().st_mode & 0o777 == 0o600
    again = ada("account", "export", "-o", str(file))
    assert (again.code, "--overwrite replaces it" in again.err) == (ExitCode.FAILED, True)
    assert ada("account", "export", "-o", str(file), "--overwrite").code == 0
    nowhere = ada("account", "export", "-o", str(tmp_path / "no" / "file"))
    assert (nowhere.code, "no such file" in nowhere.err) == (ExitCode.FAILED, True)
    assert sorted(tmp_path.glob(".ada-copy*")) == []
