"""End-to-end mail between the app, the bridge and any client of MMP v0.1, and its keys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from folkmoot.bridge.crypto import DeviceKey, fingerprint, seal
from tests.bridge.test_process import Home
from tests.browser.harness import BARE, Inbox, Person, expect

pytestmark = pytest.mark.browser

PASSPHRASE = "five words picked at random"


def turn_on(inbox: Inbox) -> str:
    """Make a key in the page; answers its fingerprint."""
    inbox.turn_on()
    expect(inbox.text("If its data is cleared")).to_be_visible()
    kept = inbox.frame.locator("html").evaluate("() => localStorage.getItem('mmp_private_key')")
    shown: str = inbox.frame.locator(".fingerprint").inner_text()
    assert shown == fingerprint(DeviceKey.read(kept, "The page").public)
    return shown


def compose(inbox: Inbox, to: str, text: str) -> None:
    inbox.button("Write", exact=True).click()
    inbox.field("To", exact=True).fill(to)
    inbox.field("To", exact=True).press("Enter")
    expect(inbox.frame.locator(".composer .end_to_end")).to_be_visible()
    inbox.write(text)
    expect(inbox.frame.locator(".letter.own .body").last).to_have_text(text)


class Bridge:
    """`folkmoot bridge`, spoken to as a client does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._ids = count(1)
        hello = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": hello}
        self._ask("initialize", params)
        self._write({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers through the bridge."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        asked = next(self._ids)
        self._write({"id": asked, "method": method, "params": params})
        assert self._process.stdout
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == asked:
                return answer["result"]
        raise AssertionError("the bridge ended")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


@contextmanager
def bridging(home: Home) -> Iterator[Bridge]:
    command = [sys.executable, "-m", "folkmoot", "bridge"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=home.env
    ) as process:
        yield Bridge(process)
        assert process.stdin
        process.stdin.close()
        process.wait(30)


@pytest.mark.requirement("app.key-generation", "app.key-warning", "app.shows-mode")
def test_the_app_and_the_bridge_read_each_other(hub, desk, tmp_path):
    ada = Person(hub, "ada")
    inbox = desk.open(hub, ada.token)
    mine = turn_on(inbox)
    home = Home(tmp_path / "bob", hub, "bob")
    with bridging(home) as bob:
        bob.call("msg_send", to="ada", body="From the bridge.")
        inbox.poll()
        expect(inbox.frame.locator(".row")).to_contain_text("From the bridge.")
        # What was encrypted is the reader's to share.
        inbox.page.wait_for_function("window.host.contexts.length === 1")
        (context,) = inbox.host("contexts")
        assert "end-to-end encrypted" in context
        assert "From the bridge." not in context
        inbox.open_thread("@bob")
        expect(inbox.frame.locator(".letter .end_to_end")).to_have_text("End-to-end")
        inbox.write("From the page.")
        expect(inbox.frame.locator(".letter.own .body")).to_have_text("From the page.")
        inbox.button("Answer this message").first.click()
        inbox.write("An answer.")
        expect(inbox.frame.locator(".letter.own .body").last).to_have_text("An answer.")
        answer, first = bob.call("msg_inbox", limit=2)["messages"]
        assert (first["body"], answer["body"]) == ("From the page.", "An answer.")
        assert first["bridge"]["mode"] == answer["bridge"]["mode"] == "e2e"
        assert answer["bridge"]["bound"] is True
        assert answer["reply_to"]
        inbox.button("Encryption keys").click()
        shown = inbox.frame.locator(".fingerprint")
        theirs = fingerprint(ada.call("msg/lookup", handle="bob")["client_public_key"])
        expect(shown).to_have_text([theirs, mine])
        inbox.button("They are the same").click()
        expect(inbox.frame.locator(".letter .end_to_end").last).to_have_text(
            "End-to-end, key compared"
        )
        inbox.press("Draft a reply with my assistant", says="This shares the decrypted text")
        assert inbox.host("messages") == []
        inbox.button("Share and draft").click()
        inbox.page.wait_for_function("window.host.messages.length === 1")
    stored = ada.call("msg/inbox", limit=3, peek=True)["messages"]
    assert {message["body"] for message in stored} == {None}


@pytest.mark.requirement("app.encrypts", "app.decrypts")
def test_the_app_and_a_plain_client_read_each_other(hub, desk):
    cleo, dan = Person(hub, "cleo"), Person(hub, "dan")
    inbox = desk.open(hub, cleo.token)
    turn_on(inbox)
    pair = inbox.page.evaluate("() => window.plain.keyPair()")
    dan.call("msg/set_profile", client_public_key=pair["public"])
    compose(inbox, "dan", "Grüße an dich ☂")
    sealed = dan.last()["encrypted_payload"]
    opened = inbox.page.evaluate("([box, own]) => window.plain.open(box, own)", [sealed, pair])
    assert opened == "Grüße an dich ☂"
    theirs = dan.call("msg/lookup", handle="cleo")["client_public_key"]
    box = inbox.page.evaluate(
        "([to, own]) => window.plain.seal('Plain and simple.', to, own)", [theirs, pair]
    )
    dan.call("msg/send", to="cleo", encrypted_payload=box)
    inbox.poll()
    expect(inbox.frame.locator(".letter .body").last).to_have_text("Plain and simple.")
    inbox.frame.locator(".composer").get_by_role("checkbox").uncheck()
    inbox.write("This the hub may read.")
    expect(inbox.frame.locator(".letter.own .server")).to_be_visible()
    assert dan.last()["body"] == "This the hub may read."


def test_a_changed_key_stops_the_writer_until_it_is_accepted(hub, desk):
    eva, finn = Person(hub, "eva"), Person(hub, "finn")
    old, new = DeviceKey.fresh(), DeviceKey.fresh()
    finn.call("msg/set_profile", client_public_key=old.public)
    context = desk.context()
    inbox = desk.open(hub, eva.token, context=context)
    turn_on(inbox)
    compose(inbox, "finn", "To the old key.")
    finn.call("msg/set_profile", client_public_key=new.public)
    box = seal(new, eva.call("msg/whoami")["client_public_key"], b"From the new key.")
    payload = {"ciphertext": box.ciphertext, "nonce": box.nonce, "sender_public_key": new.public}
    finn.call("msg/send", to="eva", encrypted_payload=payload)
    inbox.page.close()
    inbox = desk.open(hub, eva.token, context=context)
    inbox.open_thread("@finn")
    expect(inbox.text("The key of @finn has changed.", exact=True)).to_be_visible()
    expect(inbox.frame.locator(".unreadable")).to_contain_text(fingerprint(new.public))
    expect(inbox.frame.locator(".letter.own .body")).to_have_text("To the old key.")
    inbox.frame.locator(".composer textarea").fill("Is it you?")
    expect(inbox.button("Send", exact=True)).to_be_disabled()
    inbox.button("Trust the new key").click()
    expect(inbox.frame.locator(".letter .body").last).to_have_text("From the new key.")
    expect(inbox.frame.locator(".letter.own .body")).to_have_text("To the old key.")
    inbox.button("Send", exact=True).click()
    expect(inbox.frame.locator(".letter.own .body").last).to_have_text("Is it you?")


def test_a_key_is_backed_up_and_restored_where_nothing_is_kept(hub, desk, tmp_path):
    gil, hal = Person(hub, "gil"), Person(hub, "hal")
    key = DeviceKey.fresh()
    hal.call("msg/set_profile", client_public_key=key.public)
    inbox = desk.open(hub, gil.token)
    turn_on(inbox)
    compose(inbox, "hal", "Only for us.")
    inbox.open_keys()
    inbox.submit("Make a backup", {"New passphrase": "short"}, says="Use at least 12 characters")
    inbox.submit("Make a backup", {"New passphrase": PASSPHRASE})
    saving = inbox.button("Save folkmoot-key-gil.json")
    while not saving.count():
        inbox.page.clock.run_for(100)
    saving.click()
    inbox.page.wait_for_function("window.host.files.length === 1")
    (file,) = inbox.host("files")
    assert "Only for us" not in file

    bare = desk.open(hub, gil.token, sandbox=BARE)
    bare.open_thread("@hal")
    expect(bare.frame.locator(".unreadable")).to_contain_text("Your key is not here")
    bare.open_keys()
    expect(bare.text("does not let the inbox keep anything")).to_be_visible()
    expect(bare.text("Your key is on another device.")).to_be_visible()
    bare.field("Backup", exact=True).fill(file)
    bare.field("Its passphrase").fill("another long passphrase")
    bare.button("Restore", exact=True).click()
    wait_for(bare, "The passphrase is wrong")
    bare.submit("Restore", {"Its passphrase": PASSPHRASE})
    wait_for(bare, "The key of @gil is here.")
    bare.open_thread("@hal")
    expect(bare.frame.locator(".letter.own .body")).to_have_text("Only for us.")

    # The bridge reads the same file.
    saved = tmp_path / "key.json"
    saved.write_text(file)
    saved.chmod(0o600)
    home = Home(tmp_path / "elsewhere", hub, "someone_else")
    command = [sys.executable, "-m", "folkmoot", "bridge", "key", "import", str(saved)]
    done = subprocess.run(
        [*command, "--passphrase-fd", "0"],
        input=PASSPHRASE, text=True, capture_output=True, env=home.env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"The key of @gil on {hub} is here" in done.stdout.replace("\n", " ")


def wait_for(inbox: Inbox, text: str) -> None:
    """Wait for what comes after a passphrase was made a key, which goes by the page's clock."""
    while not inbox.text(text).count():
        inbox.page.clock.run_for(100)
