"""The console's asks in a browser: what waits is decided once, by thumb, and what came of it."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from tests.browser.console import Console, Operated, started
from tests.browser.harness import Person, expect, shows
from tests.browser.test_passkeys import Device
from tests.cli import small_backend

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="document.title=1"> </script>\u202e' + "w" * 300
CONFIG = """
[interceptors]
rules = "{folder}/rules.toml"

[backends.tasks]
command = ["{python}", "{server}", "{folder}/tools.json", "{version}"]
everyone = true
"""
ASKED = """[asks.adding]
what = ["tasks:add"]
to = "ada"
wait_seconds = 0
reason = "Two pairs of eyes."
"""
RULES = """
[[rule]]
name = "ask first"
when = { tool = "msg/lookup", type = "request" }
action = "hold"
reason = "Who is looked up is asked first."
"""


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}


class Moot:
    """A hub with a rule and a server, its operator ada, and bob, who proposes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configure("one")
        self.running = started(folder / "hub", FOLKMOOT_CONFIG=str(folder / "config.toml"))
        self.here = Operated(self.running)
        self.ada = self.here.operator("ada")
        self.bob = Person(self.here.url, "bob")
        self.rooms = 0

    def configure(self, version: str) -> None:
        """Have the server be another version of itself, which describes its tool otherwise."""
        (self.folder / "rules.toml").write_text(RULES)
        tool = {"name": "add", "description": f"Version {version}", "inputSchema": SCHEMA}
        (self.folder / "tools.json").write_text(json.dumps({"tools": [tool]}))
        server = Path(small_backend.__file__)
        names = {"folder": self.folder, "python": sys.executable, "server": server}
        (self.folder / "config.toml").write_text(CONFIG.format(**names, version=version))

    def ask_about_tasks(self) -> None:
        """Have a rule ask ada before anyone adds a task."""
        settings = self.folder / "config.toml"
        if ASKED not in settings.read_text():
            settings.write_text(settings.read_text() + ASKED)
            self.here.ask("folkmoot/reload")

    def room(self, **settings: Any) -> str:
        self.rooms += 1
        name = f"square-{self.rooms}"
        self.ada.call("room/create", name=name, **settings)
        self.bob.call("room/join", room=name)
        return name

    def propose(self, room: str, text: str, **more: Any) -> str:
        """Ask that something is said: the hub itself does it, so nobody else must be there."""
        return self.bob.propose(room, "chat.say", {"text": text}, **more)

    def said(self, room: str, text: str) -> int:
        """How often something was said in a room."""
        read = self.ada.call("room/read", room=room, kinds=["chat"])
        return sum(message.get("text") == text for message in read["messages"])

    def hold(self, who: Person) -> threading.Thread:
        """A call that a rule holds; whoever waits for it does so in a thread."""

        def call() -> None:
            try:
                self.heard = str(who.call("msg/lookup", handle="ada"))
            except e.FolkmootError as error:
                self.heard = error.message

        self.heard = ""
        thread = threading.Thread(target=call)
        thread.start()
        return thread


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moot]:
    moot = Moot(tmp_path_factory.mktemp("asks"))
    with moot.running:
        yield moot


def card(page: Console, text: str) -> Any:
    return page.page.get_by_role("list", name="Waiting for you").locator("li").filter(has_text=text)


def test_a_proposal_of_any_room_is_approved_by_thumb_and_done_once(moot, desk):
    one, other = moot.room(), moot.room()
    page = Console(desk, moot.here.url, moot.ada.token, "/asks", width=390, has_touch=True)
    expect(page.page).to_have_url(re.compile("/decisions$"))
    expect(page.text("Nothing to decide.")).to_be_visible()
    # What is proposed appears by itself, also in the navigation.
    moot.propose(one, "Supper is ready.", reason="We are hungry.")
    moot.propose(other, "Good night.", expires_in=600)
    expect(page.page.get_by_role("link", name="Decisions 2 new")).to_be_visible()
    cards = page.page.locator(".asks > li")
    expect(cards).to_have_count(2)
    expect(cards.first).to_contain_text("Good night.")
    supper = card(page, "Supper is ready.")
    shows(supper, "Call the tool chat.say", "bob", "gateway", one, "We are hungry.", "left)")
    for button in supper.locator(".decisions button").all():
        assert button.bounding_box()["height"] >= 44
    supper.get_by_role("button", name="Approve").tap()
    expect(supper).to_contain_text("You approved it, and gateway did it.")
    assert moot.said(one, "Supper is ready.") == 1
    expect(page.page.get_by_role("link", name="Decisions 1 new")).to_be_visible()
    # What was decided stays where it was until one looks again.
    night = card(page, "Good night.")
    night.get_by_role("button", name="Reject…").tap()
    night.get_by_label("Why not?").fill("It is noon.")
    night.get_by_role("button", name="Reject", exact=True).tap()
    expect(night).to_contain_text("You rejected it.")
    expect(cards).to_have_count(2)
    page.button("Decided").tap()
    rows = page.page.get_by_role("row")
    expect(rows.filter(has_text="It is noon.")).to_contain_text("Rejected")
    expect(rows.filter(has_text="Approved")).to_contain_text("Done")
    page.page.reload()
    expect(rows.filter(has_text="Approved")).to_contain_text(one)
    page.button("Waiting").tap()
    expect(page.text("Nothing to decide.")).to_be_visible()


def test_keys_decide_but_none_alone_destroys(moot, desk):
    room = moot.room()
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions")
    moot.propose(room, "By key.", expires_in=600)
    moot.propose(moot.room(), "Another.")
    first, second = card(page, "By key."), card(page, "Another.")
    expect(second).to_be_visible()
    keys = page.page.keyboard
    # The first key only shows where one is.
    keys.press("a")
    expect(first.locator(".decision")).to_be_focused()
    keys.press("j")
    expect(second.locator(".decision")).to_be_focused()
    keys.press("r")
    expect(second.get_by_label("Why not?")).to_be_focused()
    # Typing is typing.
    keys.type("jack of all trades, ?")
    expect(second.get_by_label("Why not?")).to_have_value("jack of all trades, ?")
    second.get_by_role("button", name="Reject", exact=True).click()
    expect(second).to_contain_text("You rejected it.")
    first.locator(".decision").focus()
    # What can destroy something takes another key.
    first.locator(".decision .tag").evaluate("it => it.classList.add('risk-destroys')")
    keys.press("a")
    expect(first.get_by_role("button", name="Approve")).to_be_focused()
    assert moot.said(room, "By key.") == 0
    keys.press("Enter")
    expect(first).to_contain_text("You approved it")
    assert moot.said(room, "By key.") == 1


def test_of_two_who_decide_at_once_one_is_told_that_the_other_was_faster(moot, desk):
    room = moot.room(capabilities=["*"])
    cid = Person(moot.here.url, "cid")
    cid.call("room/join", room=room)
    pages = [Console(desk, moot.here.url, who.token, "/decisions") for who in (moot.ada, cid)]
    for page in pages:
        # The loser's request is refused, which the browser tells.
        page.ignored = ("409",)
    moot.propose(room, "Only once.")
    buttons = [card(it, "Only once.").get_by_role("button", name="Approve") for it in pages]
    for button in buttons:
        expect(button).to_be_enabled()
    # Both are under way before either is answered.
    held: list[Any] = []
    for page, button in zip(pages, buttons, strict=True):
        page.page.route("**/approve*", lambda route: held.append(route))
        with page.page.expect_request("**/approve*"):
            button.click()
    while len(held) < 2:
        pages[0].page.wait_for_function("true")
    for request in held:
        request.continue_()
    said = [card(page, "Only once.") for page in pages]
    for each in said:
        expect(each).to_contain_text(re.compile("did it|was faster"))
    assert sorted("was faster" in each.inner_text() for each in said) == [False, True]
    assert moot.said(room, "Only once.") == 1


def test_a_held_message_and_a_changed_tool_are_decided_beside_proposals(moot, desk):
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions")
    waits = moot.hold(moot.bob)
    held = card(page, "ask first")
    shows(held, "msg/lookup", "@bob")
    moot.configure("two")
    moot.here.ask("folkmoot/reload")
    tool = card(page, "tasks:add")
    expect(tool).to_contain_text("Changed tool")
    expect(tool.locator("ins").first).to_be_visible()
    page.button("Tools (").click()
    expect(held).to_have_count(0)
    tool.get_by_role("button", name="Accept").click()
    expect(page.text("Accepted tasks:add.")).to_be_visible()
    expect(tool).to_have_count(0)
    page.button("All (").click()
    held.get_by_role("button", name="Drop…").click()
    held.get_by_label("Reason", exact=True).fill("Not today.")
    page.page.get_by_role("dialog").get_by_role("button", name="Drop", exact=True).click()
    expect(held).to_have_count(0)
    waits.join()
    assert "Not today." in moot.heard
    page.go("/decisions?show=decided")
    rows = page.page.get_by_role("row")
    expect(rows.filter(has_text="Not today.")).to_contain_text("Dropped")
    expect(rows.filter(has_text="tasks add")).to_contain_text("Accepted")
    # Nobody else sees either.
    waits = moot.hold(moot.ada)
    page.go("/decisions")
    plain = Console(desk, moot.here.url, moot.bob.token, "/decisions")
    expect(plain.text("Nothing to decide.")).to_be_visible()
    expect(held).to_have_count(1)
    held.get_by_role("button", name="Release", exact=True).click()
    expect(held).to_have_count(0)
    waits.join()


def test_hostile_text_is_text_and_the_page_is_accessible_at_every_width(moot, desk):
    room = moot.room()
    moot.propose(room, HOSTILE, reason=HOSTILE)
    waits = moot.hold(moot.bob)
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions")
    hostile = card(page, "<img src=x")
    expect(hostile).to_have_count(1)
    expect(card(page, "ask first")).to_have_count(1)
    expect(page.page).to_have_title("Decisions · Folkmoot")
    page.check_axe("asks")
    page.check_widths("asks")
    page.page.set_viewport_size({"width": 1280, "height": 800})
    # Everything is reached by the keyboard.
    hostile.get_by_role("button", name="Reject…").focus()
    page.page.keyboard.press("Enter")
    hostile.get_by_label("Why not?").fill(HOSTILE)
    hostile.get_by_role("button", name="Reject", exact=True).focus()
    page.page.keyboard.press("Enter")
    expect(hostile).to_contain_text("You rejected it.")
    card(page, "ask first").get_by_role("button", name="Release", exact=True).click()
    waits.join()
    page.go("/decisions?show=decided")
    expect(page.page.get_by_role("row").filter(has_text="<img src=x")).to_have_count(1)
    page.check_axe("decided")
    page.check_widths("decided")


def test_what_a_program_asks_is_shown_exactly_and_decided_by_who_was_asked(moot, desk):
    asked = {"tool": "shell", "arguments": {"command": HOSTILE}, "why": HOSTILE, "to": "ada"}
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions", width=390, has_touch=True)
    expect(page.text("Nothing to decide.")).to_be_visible()
    first, second = (moot.bob.call("ask/create", **asked)["ask_id"] for _ in range(2))
    cards = card(page, "Call the tool shell")
    expect(cards).to_have_count(2)
    shows(cards.first, "@bob", "Why, in its words", "Unknown risk")
    page.fits()
    page.check_axe("asked")
    cards.first.get_by_role("button", name="Approve").click()
    expect(cards.first.get_by_text("You approved it. The program is told.")).to_be_visible()
    cards.last.get_by_role("button", name="Reject…").click()
    cards.last.get_by_label("Why not? The program reads it.").fill("Ask again tomorrow.")
    cards.last.get_by_role("button", name="Reject", exact=True).click()
    expect(cards.last.get_by_text("You rejected it.")).to_be_visible()
    told = [moot.bob.call("ask/result", ask=each) for each in (first, second)]
    assert {each["state"] for each in told} == {"approved", "rejected"}
    assert {each["reason"] for each in told} == {None, "Ask again tomorrow."}
    page.press("Decided")
    expect(page.page.get_by_text("@bob was told")).to_have_count(2)


def test_what_ones_own_program_asks_needs_ones_passkey(moot, desk):
    page = Device(desk, moot.here.url.replace("127.0.0.1", "localhost"), "/sign-in")
    dia = Person(moot.here.url, "dia")
    page.sign_in(dia.token, ".threads")
    page.page.goto(f"{page.hub}/account")
    page.press("Add a passkey", says="The passkey is added.")
    id_ = dia.call("ask/create", tool="shell", arguments={"command": "make"})["ask_id"]
    page.page.goto(f"{page.hub}/decisions")
    own = card(page, "Call the tool shell")
    expect(own.get_by_text("a program of yours")).to_be_visible()
    own.get_by_role("button", name="Approve…").click()
    expect(own.get_by_text("You confirm it with your passkey.")).to_be_visible()
    own.get_by_role("button", name="Approve", exact=True).click()
    expect(own.get_by_text("You approved it. The program is told.")).to_be_visible()
    told = dia.call("ask/result", ask=id_)
    assert (told["state"], told["presence"]) == ("approved", "passkey")


def test_what_a_rule_asks_about_the_hub_calls_once_it_is_approved(moot, desk):
    moot.ask_about_tasks()
    asked = moot.bob.call("tasks:add", title="Paint the fence")
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions", width=390, has_touch=True)
    shown = card(page, "Call the tool tasks:add")
    shows(shown, "Paint the fence", "Asked by the rule", "adding", "Two pairs of eyes.")
    page.fits()
    page.check_axe("asked by a rule")
    shown.get_by_role("button", name="Approve", exact=True).click()
    expect(shown.get_by_text("You approved it. The hub makes the call.")).to_be_visible()
    told = moot.bob.call("ask/result", ask=asked["ask_id"], wait=20)
    assert told["state"] == "done"
    assert not told["result"].get("isError")


def test_what_is_asked_is_approved_with_other_arguments(moot, desk):
    asked = moot.bob.call(
        "ask/create", tool="shell", arguments={"command": "rm -r ."}, to="ada", why="Tidy."
    )
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions", width=390, has_touch=True)
    shown = card(page, "rm -r .")
    shown.get_by_role("button", name="Edit…").click()
    field, approve = shown.get_by_label("All arguments"), shown.get_by_text("Approve as edited")
    expect(approve).to_be_disabled()
    field.fill("[]")
    shows(shown, "This must be a JSON object.", "@bob reads what you changed.")
    expect(approve).to_be_disabled()
    page.fits()
    page.check_axe("editing what is asked")
    field.fill('{"command": "rm -r build"}')
    shown.get_by_label("Why?").fill("Only what was built.")
    approve.click()
    done = page.page.locator(".asks > li").filter(has_text="You approved other arguments.")
    shows(done, "rm -r build", "The program is told.")
    old = moot.bob.call("ask/result", ask=asked["ask_id"], wait=20)
    assert (old["state"], old["reason"]) == ("edited", "Only what was built.")
    new = moot.bob.call("ask/result", ask=old["edited_as"])
    assert (new["state"], new["arguments"]) == ("approved", {"command": "rm -r build"})
    page.press("Decided")
    rows = page.page.get_by_role("row").filter(has_text="Only what was built.")
    expect(rows).to_contain_text("Approved, edited")


def test_a_call_of_the_hub_with_other_arguments_needs_who_decides_in_person(moot, desk):
    moot.ask_about_tasks()
    asked = moot.bob.call("tasks:add", title="Mow the lawn")
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions")
    shown = card(page, "Mow the lawn")
    shown.get_by_role("button", name="Edit…").click()
    approve = shown.get_by_role("button", name="Approve as edited")
    shown.get_by_label("Your token, once more").fill(moot.ada.token)
    expect(approve).to_be_disabled()
    shown.get_by_label("All arguments").fill('{"title": "Mow half of it"}')
    approve.click()
    done = page.page.locator(".asks > li").filter(has_text="You approved other arguments.")
    shows(done, "Mow half of it", "The hub makes the call with them.")
    new = moot.bob.call("ask/result", ask=asked["ask_id"])["edited_as"]
    made = moot.bob.call("ask/result", ask=new, wait=20)
    assert (made["state"], made["arguments"]) == ("done", {"title": "Mow half of it"})


def test_what_is_approved_for_longer_is_listed_and_can_be_ended(moot, desk):
    moot.ask_about_tasks()
    asked = moot.bob.call("tasks:add", title="Sweep the yard")
    page = Console(desk, moot.here.url, moot.ada.token, "/decisions", width=390, has_touch=True)
    shown = card(page, "Sweep the yard")
    shown.get_by_role("button", name="Approve for longer").click()
    shown.get_by_label("For how long?").select_option("For one hour")
    expect(shown.get_by_label("title")).to_be_checked()
    shows(shown, "@bob can make this very call again.")
    shown.get_by_label("title").uncheck()
    shows(shown, "with any arguments")
    page.fits()
    page.check_axe("approved for longer")
    shown.get_by_label("Your token, once more").fill(moot.ada.token)
    shown.get_by_role("button", name="Approve", exact=True).click()
    expect(shown.get_by_text("You approved it and calls like it.")).to_be_visible()
    assert moot.bob.call("ask/result", ask=asked["ask_id"], wait=20)["state"] == "done"
    again = moot.bob.call("tasks:add", title="Rake the leaves")
    assert "ask_id" not in again
    page.press("Decided")
    lasting = page.page.get_by_role("region", name="Approved for longer")
    shows(lasting, "tasks:add", "for @bob", "with any arguments")
    page.fits()
    page.check_axe("a list of what was approved for longer")
    lasting.get_by_role("button", name="End").click()
    expect(lasting).to_have_count(0)
    assert moot.bob.call("tasks:add", title="Rake the leaves")["status"] == "asked"
