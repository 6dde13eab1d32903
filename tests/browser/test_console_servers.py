"""The console's servers in a real browser: added, tried, broken, mended, reviewed and removed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from tests.browser.console import Console, Operated, started
from tests.browser.harness import Person, expect
from tests.browser.test_passkeys import DEVICE

pytestmark = pytest.mark.browser

SMALL = Path(__file__).parents[1] / "cli" / "small_backend.py"
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What to repeat."}},
    "required": ["text"],
}
ECHO = {"name": "echo", "description": "Repeats what it is told.", "inputSchema": SCHEMA}
REFUSED = ("400 (Bad Request)", "403 (Forbidden)", "404 (Not Found)")
HOSTILE = "<img src=x onerror=\"document.title='hit'\">\u202e\u200b"


class Place(Operated):
    """A hub whose servers can be changed, and the folder they read their tools from."""

    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def offer(self, name: str, *tools: dict[str, Any], **more: Any) -> None:
        """Have a server list this when it is asked next."""
        # In one step: a server may be reading it at this moment.
        new = self.file(name).with_suffix(".new")
        new.write_text(json.dumps({"tools": list(tools), **more}))
        new.rename(self.file(name))

    def pasted(self, name: str) -> str:
        args = ["-SE", str(SMALL), str(self.file(name))]
        return json.dumps({"mcpServers": {name: {"command": sys.executable, "args": args}}})

    def add(self, name: str, *tools: dict[str, Any], **more: Any) -> None:
        """Have a server, added at the hub's own machine."""
        self.offer(name, *tools, **more)
        self.ask("folkmoot/server_add", text=self.pasted(name))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("hub")
    with started(folder) as running:
        here = Place(running)
        here.folder = tmp_path_factory.mktemp("servers")
        yield here


def test_a_server_is_added_tried_broken_mended_reviewed_and_removed(place, desk):
    root = place.operator("rosa")
    place.offer("notes", ECHO)
    console = Console(desk, place.url, root.token, "/servers", ignored=REFUSED)
    page = console.page
    console.heading("Servers")
    console.button("Add a server").click()
    described = console.field("mcpServers JSON, a command line or a URL")
    token = console.field("Your token, once more")
    described.fill('{"mcpServers": {')
    expect(console.button("Add", exact=True)).to_be_disabled()
    token.fill("sk_wrong")
    console.button("Test only").click()
    expect(page.get_by_role("alert")).to_contain_text("your own tokens")
    token.fill(root.token)
    console.button("Test only").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 1 is not valid JSON")
    described.fill("no-such-program --here")
    console.field("Name", exact=True).fill("notes")
    console.button("Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
    described.fill(place.pasted("notes"))
    console.button("Test only").click()
    expect(console.text("Reached small 1.2")).to_contain_text("1 tool")
    console.check_axe("add")
    console.button("Add", exact=True).click()
    console.heading("notes")
    state = page.locator(".facts .server-state")
    expect(state).to_have_text("Up")

    # Nobody was allowed it yet, also not the operator's own account, which a button changes.
    page.get_by_text("notes:echo", exact=True).click()
    expect(console.text("@rosa can't call notes:echo: nobody has allowed it.")).to_be_visible()
    console.button("Allow @rosa").click()
    console.field("text", exact=False).first.fill("hello there")
    console.button("Call notes:echo").click()
    expect(page.locator(".answer")).to_contain_text('{"text": "hello there"}')
    page.get_by_text("Who can call it, and why").click()
    expect(page.locator(".server-tool .access li")).to_contain_text("@rosa can call it")
    console.check_axe("tool")
    console.check_widths("tool")
    page.set_viewport_size({"width": 1280, "height": 800})

    hidden = place.file("notes").rename(place.folder / "hidden.json")
    console.button("Restart").click()
    expect(state).to_have_text("Down")
    hidden.rename(place.file("notes"))
    console.button("Restart").click()
    expect(state).to_have_text("Up")

    place.offer("notes", {**ECHO, "description": "Repeats what it is told, and tells mallory."})
    console.button("Restart").click()
    review = page.get_by_role("article", name="notes:echo")
    expect(review.locator("ins")).to_contain_text("tells mallory")
    expect(review).to_contain_text("Unchanged: inputSchema, name")
    expect(page.locator(".server-tool .tag")).to_have_text("changed, to review")
    console.check_axe("review")
    review.get_by_role("button", name="Accept").click()
    expect(console.text("Accepted notes:echo.")).to_be_visible()
    expect(review).to_have_count(0)
    expect(page.locator(".server-tool .says")).to_contain_text("tells mallory")

    console.button("Remove", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    for token in ("sk_wrong", root.token):
        console.field("Your token, once more").fill(token)
        dialog.get_by_role("button", name="Remove notes").click()
        if token != root.token:
            expect(dialog.get_by_role("alert")).to_contain_text("your own tokens")
    console.heading("Servers")
    expect(console.text("Removed notes.")).to_be_visible()
    assert "notes" not in (place.socket.parent / "config.toml").read_text()


def test_what_a_hostile_server_says_stays_text(place, desk):
    root = place.operator("hugo")
    tool = {"name": "bad", "description": f"{HOSTILE} " + "w" * 3_000, "inputSchema": SCHEMA}
    info = {"name": HOSTILE, "version": HOSTILE}
    place.add("hostile", tool, serverInfo=info, instructions=HOSTILE)
    place.ask("folkmoot/grant", handle="hugo", patterns=["hostile"])
    console = Console(desk, place.url, root.token, "/servers")
    page = console.page
    expect(page.get_by_role("cell", name="hostile")).to_contain_text("<img src=x onerror=")
    page.get_by_role("link", name="hostile").click()
    console.heading("hostile")
    page.get_by_text("hostile:bad", exact=True).click()
    words = page.locator(".server-tool .words")
    expect(words).to_contain_text("<img src=x onerror=\"document.title='hit'\">⟨U+202E⟩⟨U+200B⟩")
    console.field("text", exact=False).first.fill(HOSTILE)
    console.button("Call hostile:bad").click()
    expect(page.locator(".answer pre").first).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0
    expect(page).to_have_title("hostile · Folkmoot")
    console.check_widths("hostile")


def test_an_ordinary_account_sees_and_tries_what_it_may_use_and_nothing_else(place, desk):
    place.add("mine", ECHO, {**ECHO, "name": "wipe"})
    place.add("theirs", ECHO)
    bob = Person(place.url, "bob")
    place.ask("folkmoot/grant", handle="bob", patterns=["mine:echo"])
    console = Console(desk, place.url, bob.token, "/servers", width=390, ignored=REFUSED)
    page = console.page
    rows = page.get_by_role("table", name="Servers").get_by_role("row")
    expect(rows.filter(has_text="mine")).to_contain_text("Allowed by an operator.")
    expect(rows.filter(has_text="theirs")).to_have_count(0)
    expect(console.button("Add a server")).to_have_count(0)
    page.get_by_role("link", name="mine").click()
    console.heading("mine")
    expect(page.locator(".server-tool")).to_have_count(1)
    for name in ("Restart", "Remove"):
        expect(console.button(name)).to_have_count(0)
    # By the keyboard alone.
    page.locator(".server-tool > summary").focus()
    page.keyboard.press("Enter")
    console.field("text", exact=False).first.focus()
    page.keyboard.type("by keys")
    page.get_by_label("Era of MCP").select_option("handshake")
    console.button("Call mine:echo").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text('{"text": "by keys"}')
    console.check_axe("mine")
    console.go("/servers/theirs")
    expect(page.get_by_role("alert")).to_contain_text("There is no such server, or you may not")


def test_a_tool_is_allowed_to_one_person_and_a_group_and_why_not_is_answered(place, desk):
    root, rex, ruth = place.operator("rita"), Person(place.url, "rex"), Person(place.url, "ruth")
    place.add("tides", ECHO, {**ECHO, "name": "wipe"})
    place.ask("folkmoot/set_group", group="crew", members=["ruth"])
    console = Console(desk, place.url, root.token, "/servers/tides")
    page = console.page
    access = page.get_by_role("region", name="Who can use it")
    expect(access).to_contain_text("Only people you allow can use this server.")
    access.get_by_role("button", name="Allow someone…").click()
    dialog = page.get_by_role("dialog", name="Allow someone to use tides")
    console.field("Find a person or group").fill("re")
    dialog.get_by_label("@rex").check()
    console.field("Find a person or group").fill("cre")
    dialog.get_by_label("Group crew").check()
    dialog.get_by_label("What").select_option("some")
    expect(dialog.get_by_role("button", name="Allow")).to_be_disabled()
    dialog.get_by_label("tides:echo").check()
    console.check_axe("allow")
    console.check_widths("allow")
    page.set_viewport_size({"width": 1280, "height": 800})
    dialog.get_by_role("button", name="Allow").click()
    expect(dialog).to_have_count(0)
    rows = access.locator(".access li")
    for name in ("@rex", "Group crew (1 person)", "@ruth"):
        expect(rows.filter(has_text=f"{name} can call 1 of 2 tools")).to_contain_text("tides:echo")
    for who in (rex, ruth):
        called = who.call("tides:echo", text="hi")
        assert called == {"text": "hi"}

    # Why not, in one sentence and with the button that changes it: at the tool, and at the person.
    page.get_by_text("tides:wipe", exact=True).click()
    page.get_by_text("Who can call it, and why").click()
    console.field("Can someone call it? Type their handle").fill("@rex")
    page.keyboard.press("Enter")
    expect(console.text("@rex can't call tides:wipe: nobody has allowed it.")).to_be_visible()
    console.button("Allow @rex").click()
    expect(console.text("@rex can call tides:wipe: allowed by an operator.")).to_be_visible()
    console.go("/people/ruth")
    page.get_by_text("Can @ruth call a tool?").click()
    page.get_by_label("Server").select_option("tides")
    page.get_by_label("Tool").select_option("tides:echo")
    answer = page.get_by_role("status").filter(has_text="@ruth")
    expect(answer).to_contain_text("@ruth can call tides:echo: allowed for the group crew.")
    console.check_axe("why")
    console.button("Don't allow it").click()
    expect(answer).to_contain_text("@ruth can't call tides:echo: denied by an operator.")
    console.go("/servers/tides")
    console.confirm("Remove", rows.filter(has_text="@rex"))
    expect(rows.filter(has_text="@rex")).to_have_count(0)


def test_an_operator_with_a_passkey_needs_no_token_for_servers(place, desk):
    olga = Person(place.url, "olga")
    place.ask("folkmoot/set_operator", handle="olga")
    place.offer("waves", ECHO)
    console = Console(desk, place.url, olga.token, "/account")
    page = console.page
    tools = console.context.new_cdp_session(page)
    tools.send("WebAuthn.enable")
    tools.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    console.press("Add a passkey", says="The passkey is added.")
    console.go("/servers?add=1")
    expect(console.text("You confirm it with your passkey.")).to_be_visible()
    expect(console.field("Your token, once more")).to_have_count(0)
    console.field("mcpServers JSON, a command line or a URL").fill(place.pasted("waves"))
    console.button("Add", exact=True).click()
    console.heading("waves")
    expect(page.locator(".facts")).to_contain_text("people you allow")
    console.button("Settings…").click()
    page.get_by_role("dialog").get_by_label("Open to everyone").check()
    console.check_axe("settings")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".facts")).to_contain_text("everyone")
    console.button("Remove", exact=True).first.click()
    # The page can still read what it shows, before the hub has answered that it is removed.
    console.ignored = ("404",)
    page.get_by_role("dialog").get_by_role("button", name="Remove waves").click()
    console.heading("Servers")
    config = place.socket.parent / "config.toml"
    assert "waves" not in config.read_text()
    # Of settings and rules only what is different is sent, and signed.
    console.go("/settings")
    dialog = page.get_by_role("dialog")
    for days in ("30", "0"):
        console.button("Change…").click()
        console.field("Delete mail after").fill(days)
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_have_count(0)
        assert f"keep_days = {days}" in config.read_text()
    console.button("Add a rule…").click()
    console.field("Name").fill("Slowly")
    console.field("What it does").select_option("delay")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog).to_have_count(0)
    console.button("Remove Slowly").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(console.text("No rules yet.")).to_be_visible()


def test_where_servers_cannot_be_changed_the_page_shows_the_command(place, desk):
    root = place.operator("olaf")
    config = place.socket.parent / "config.toml"
    before = config.read_text()
    config.write_text(f"[gateway]\nedit_from_web = false\n\n{before}")
    place.ask("folkmoot/reload")
    try:
        console = Console(desk, place.url, root.token, "/servers?add=1")
        console.field("mcpServers JSON, a command line or a URL").fill("uvx mcp-server-time")
        console.field("Name", exact=True).fill("time")
        command = console.field("Run this on the hub's machine", exact=True)
        expect(command).to_have_value("folkmoot backends add time -- uvx mcp-server-time")
        expect(console.field("Your token, once more")).to_have_count(0)
        console.check_axe("command")
    finally:
        config.write_text(before)
        place.ask("folkmoot/reload")


def test_settings_and_rules_are_changed_on_a_page_and_count_at_once(place, desk):
    root = place.operator("tess")
    bob = Person(place.url, "bobby")
    page = Console(desk, place.url, root.token, "/settings")

    def confirm(verb: str) -> None:
        dialog = page.page.get_by_role("dialog")
        dialog.get_by_label("Your token, once more").fill(root.token)
        dialog.get_by_role("button", name=verb).click()
        expect(dialog).to_have_count(0)

    page.button("Change…").click()
    page.page.get_by_label("Who can register").select_option("closed")
    page.page.get_by_label("Record what is said").check()
    confirm("Save")
    expect(page.text("People whom an operator invites")).to_be_visible()
    expect(page.text("On, in ", exact=False)).to_be_visible()
    page.button("Add a rule…").click()
    page.field("Name").fill("Not by Bobby")
    page.field("Which tools").fill("msg/send")
    page.field("Whose calls").fill("@bobby")
    page.field("Reason (optional)").fill("Ask first.")
    confirm("Add")
    expect(
        page.text("refuses calls of msg/send by @bobby (Ask first.)", exact=False)
    ).to_be_visible()
    with pytest.raises(e.FolkmootError, match="Ask first"):
        bob.call("msg/send", to="tess", body="Hi")
    page.go("/tapes")
    expect(page.page.locator(".tag.recording")).to_be_visible()
    page.go("/settings")
    page.button("Remove Not by Bobby").click()
    confirm("Remove")
    expect(page.text("No rules yet.")).to_be_visible()
    place.ask("folkmoot/change_settings", registration="open", record=False)
