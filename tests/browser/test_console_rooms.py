"""The console's rooms: reading, writing, deciding and managing, against a real hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.console import Console
from tests.browser.console_rooms import LOST, Agent, Crowd
from tests.browser.harness import Person, check_axe, expect, shows
from tests.process import Process

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.hacked=1"> [a](javascript:window.hacked=1) </script>\u202e'


class Moot:
    """A room that ada owns, with bob in it and an agent that writes files."""

    def __init__(self, hub: str) -> None:
        self.hub = hub
        self.ada, self.bob, self.cleo = (Person(hub, name) for name in ("ada", "bob", "cleo"))
        self.files = Person(hub, "files", account_type="agent")
        self.made = 0

    def room(self, **settings: object) -> str:
        """A new room, which bob and the agent may enter."""
        self.made += 1
        name = f"square-{self.made}"
        self.ada.call("room/create", name=name, **settings)
        return name


@pytest.fixture(scope="module")
def moot(hub: str) -> Moot:
    return Moot(hub)


@pytest.fixture
def files(moot: Moot, room: str) -> Iterator[Agent]:
    """The agent, in the room."""
    with Agent(moot.hub, moot.files.token, room) as agent:
        yield agent


def open_tool(page: Console, name: str) -> None:
    page.press("Tools")
    page.press("List the tools")
    page.button(name).click()


@pytest.fixture
def room(moot: Moot) -> str:
    name = moot.room()
    for who in (moot.bob, moot.cleo):
        who.call("room/join", room=name)
    return name


def test_a_proposal_is_approved_by_thumb_and_done_once(moot, room, files, desk):
    moot.bob.propose(
        room, "write_file", {"path": "first.md", "text": "Hello"}, "files", reason="We need it."
    )
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}", width=390, has_touch=True)
    expect(page.text("1 thing waits for you")).to_be_visible()
    page.button("Decide").tap()
    card = page.page.locator("article.proposal")
    shows(card, "Call the tool write_file", "bob", "files", "first.md", "Hello", "We need it.")
    shows(card, "The first of its kind here.")
    card.get_by_role("button", name="Approve").tap()
    shows(card, "You approved it, and files did it.", "Approved by you")
    shows(card, "files answered in", "Wrote first.md: Hello")
    page.page.reload()
    shows(card, "Approved by you", "files answered in", "Wrote first.md: Hello")
    assert files.done == ["first.md"]
    expect(page.text("waits for you")).to_have_count(0)
    moot.bob.propose(room, "write_file", {"path": "second.md", "text": "Hello"}, "files")
    second = page.page.locator("article.proposal", has_text="second.md")
    expect(second).to_contain_text("Changed since the last one")
    expect(second.locator(".since")).to_contain_text("arguments.path")
    second.get_by_role("button", name="Reject…").tap()
    expect(second.get_by_role("button", name="Reject", exact=True)).to_be_disabled()
    second.get_by_label("Why not?").fill("Not this one.")
    second.get_by_role("button", name="Reject", exact=True).tap()
    expect(second).to_contain_text("Rejected by you")
    expect(page.message("rejected a proposal: Not this one.")).to_be_visible()
    assert files.done == ["first.md"]
    page.fits()


def test_twenty_words_among_a_thousand_lines_of_protocol_are_read_on_two_screens(moot, room, desk):
    with Crowd(moot.hub, [moot.bob.token], room) as crowd:
        crowd.mumble(words=20, between=50)
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    expect(page.message("Word 19")).to_be_visible()
    words = page.page.locator(".about-chat")
    expect(words).to_have_count(20)
    stream = page.page.locator(".stream")
    height, screen = stream.evaluate("it => [it.scrollHeight, innerHeight]")
    assert height <= 2 * screen, (height, screen)
    fold = page.page.locator(".folded", has_text="50 protocol messages").nth(1)
    first = page.numbers()[0]
    expect(page.page.locator(".about-rights")).to_have_count(0)
    fold.get_by_role("button").click()
    expect(fold.locator(".message")).to_have_count(50)
    expect(fold.locator(".message").first).to_contain_text("status: busy")
    # A message that is folded can be linked to.
    page.page.goto(f"{page.hub}/rooms/{room}#m-{first + 5}")
    page.page.reload()
    expect(page.page.locator(".folded .message.marked")).to_be_in_viewport()


def test_a_page_that_is_reloaded_leaves_no_trace(moot, room, desk):
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    before = moot.bob.call("room/read", room=room)["last_seq"]
    for _ in range(3):
        page.page.reload()
        page.live()
    page.say("Still here.")
    expect(page.message("Still here.")).to_be_visible()
    assert moot.bob.call("room/read", room=room)["last_seq"] == before + 1


def test_what_one_wrote_is_edited_and_deleted_for_everyone(moot, room, desk):
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    bob = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}").live()
    ada.say("We leave at **five**.")
    mine = ada.message("We leave at five.")
    theirs = bob.message("We leave at five.")
    expect(theirs.get_by_role("button", name=re.compile("^(Edit|Delete)"))).to_have_count(0)
    ada.field("Message to the room").fill("A draft")
    mine.get_by_role("button", name=re.compile("^Edit message")).click()
    expect(ada.field("Message to the room")).to_have_value("We leave at **five**.")
    ada.field("Message to the room").fill("We leave at **six**.")
    ada.button("Save").click()
    expect(bob.message("We leave at six.")).to_contain_text("edited")
    expect(ada.field("Message to the room")).to_have_value("A draft")
    bob.page.reload()
    expect(bob.live().message("We leave at six.")).to_contain_text("edited")
    changed = ada.message("We leave at six.")
    changed.get_by_role("button", name=re.compile("^Delete message")).click()
    ada.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    for page in (ada, bob):
        expect(page.message("This message was deleted.")).to_have_count(1)
        expect(page.message("We leave at")).to_have_count(0)
    said = moot.bob.call("room/read", room=room, kinds=["chat"])["messages"]
    assert not [it for it in said if "leave" in it["text"]]


def test_of_two_who_decide_at_once_the_second_is_told_who_was_faster(moot, room, files, desk):
    first = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    rights = ["mcp.request.*", "mcpx.reject.proposal"]
    first.page.get_by_text("cleo", exact=True).first.click()
    first.button("Grant…").click()
    first.field("Capabilities").fill(" ".join(rights))
    first.button("Grant", exact=True).click()
    expect(first.text("cleo can do that now.")).to_be_visible()
    second = Console(desk, moot.hub, moot.cleo.token, f"/rooms/{room}", ignored=("409",)).live()
    moot.bob.propose(room, "write_file", {"path": "both.md", "text": "Hello"}, "files")
    cards = [each.page.locator("article.proposal") for each in (first, second)]
    for card in cards:
        expect(card.get_by_role("button", name="Approve")).to_be_visible()
    # The second one's decision is on its way when the first one's arrives.
    held: list[Any] = []
    second.page.route("**/approve*", lambda route: held.append(route))
    cards[1].get_by_role("button", name="Approve").click()
    expect(cards[1].get_by_role("button", name="Approving…")).to_be_disabled()
    cards[0].get_by_role("button", name="Approve").click()
    expect(cards[0]).to_contain_text("You approved it, and files did it.")
    held[0].continue_()
    expect(cards[1].get_by_role("alert")).to_contain_text("ada was faster. Approved by ada")
    assert files.done == ["both.md"]


def test_a_page_goes_on_without_a_gap_when_the_hub_was_killed(tmp_path, desk):
    settings = {"FOLKMOOT_RATE_LIMITS": "off"}
    with Process(tmp_path, **settings) as running:
        port, hub = running.port, f"http://127.0.0.1:{running.port}"
        ann, ben = Person(hub, "ann"), Person(hub, "ben")
        ann.call("room/create", name="square")
        page = Console(desk, hub, ann.token, "/rooms/square", ignored=LOST).live()
        for number in range(5):
            ben.call("room/say", room="square", text=f"Before {number}")
        expect(page.message("Before 4")).to_be_visible()
    expect(page.text("Connection lost. Reconnecting…")).to_be_visible()
    page.say("Written meanwhile.")
    expect(page.text("Sends when the connection is back.")).to_be_visible()
    with Process(tmp_path, port=port, **settings):
        for number in range(5):
            ben.call("room/say", room="square", text=f"After {number}")
        page.live()
        expect(page.message("After 4")).to_be_visible()
        expect(page.message("Written meanwhile.")).to_have_count(1)
        for number in range(5):
            expect(page.message(f"After {number}")).to_have_count(1)


def test_a_tool_is_called_from_a_form_if_one_may_and_proposed_if_not(moot, room, files, desk):
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    bob = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}").live()
    for page in (ada, bob):
        open_tool(page, "write_file")
    ada.press("Call", says="Not sent: see the fields above.")
    ada.field("path").fill("called.md")
    ada.field("text", exact=True).fill("Words")
    ada.page.get_by_label(re.compile("^mode")).select_option("append")
    ada.page.get_by_label(re.compile("^lines")).fill("3")
    ada.button("Call", exact=True).click()
    expect(ada.message("Wrote called.md: Words (append, 3)")).to_be_visible()
    expect(ada.text("Answered.", exact=False).first).to_be_visible()
    assert files.done == ["called.md"]
    expect(bob.button("Call", exact=True)).to_have_count(0)
    bob.button("JSON", exact=True).click()
    bob.field("Arguments as JSON").fill('{"path": "proposed.md", "text": "x"}')
    bob.field("Why should it be done?").fill("Please.")
    bob.button("Propose", exact=True).click()
    expect(bob.text("Proposed. Someone who can approve it will decide.")).to_be_visible()
    card = ada.page.locator("article.proposal", has_text="proposed.md")
    expect(card).to_contain_text("Please.")
    assert files.done == ["called.md"]
    own = bob.page.locator("article.proposal", has_text="proposed.md")
    expect(own.get_by_role("button", name="Approve")).to_have_count(0)
    own.get_by_role("button", name="Withdraw").click()
    expect(card).to_contain_text("Withdrawn")


def test_people_write_with_mentions_and_reply_and_read_markdown(moot, room, desk):
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    bob = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}", color_scheme="dark").live()
    field = ada.field("Message to the room")
    field.press_sequentially("**Morning** @b")
    expect(ada.page.get_by_role("option", name="@bob")).to_be_visible()
    field.press("Tab")
    expect(field).to_have_value("**Morning** @bob ")
    field.press("Enter")
    heard = bob.message("Morning")
    expect(heard.locator("strong", has_text="Morning")).to_be_visible()
    expect(heard.locator("mark")).to_have_text("@bob")
    expect(heard).to_contain_text("mentions you")
    heard.hover()
    heard.get_by_role("button", name="Reply to ada").click()
    bob.say("To you too.")
    reply = ada.message("To you too.")
    expect(reply.get_by_role("link", name="In reply to ada")).to_be_visible()
    ada.page.get_by_role("button", name="as JSON").last.focus()
    ada.page.keyboard.press("Enter")
    expect(ada.page.locator("pre.raw")).to_contain_text('"text": "To you too."')


def test_messages_are_filtered_and_any_of_them_can_be_gone_to(moot, room, desk):
    for number in range(1, 81):
        who = moot.cleo if number == 20 else moot.bob
        thread = {"thread_id": "boats"} if number == 30 else {}
        who.call("room/say", room=room, text=f"Word {number}", **thread)
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    expect(page.message("Word 80")).to_be_visible()
    expect(page.message("Word 20")).to_have_count(0)
    page.button("Find").click()
    page.field("Kind").select_option("chat")
    page.field("Person").fill("@cleo")
    page.button("Search", exact=True).click()
    expect(page.message("Word 20")).to_be_visible()
    expect(page.page.locator(".message")).to_have_count(1)
    expect(page.page).to_have_url(re.compile(r"kind=chat&from=cleo"))
    page.page.reload()
    expect(page.page.locator(".message")).to_have_count(1)
    page.button("Show all").click()
    expect(page.message("Word 80")).to_be_visible()
    page.field("Text").fill("word 7")
    page.field("Text").press("Enter")
    expect(page.page.locator(".message")).to_have_count(11)
    seq = page.numbers()[0]
    page.button("Show all").click()
    expect(page.message("Word 80")).to_be_visible()
    page.field("Text").fill(f"#{seq}")
    page.field("Text").press("Enter")
    expect(page.page.locator(f"#m-{seq}.marked")).to_be_in_viewport()
    page.button("To the newest").click()
    expect(page.message("Word 80")).to_be_in_viewport()
    linked = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}#m-{seq}")
    expect(linked.page.locator(f"#m-{seq}.marked")).to_be_in_viewport()
    expect(linked.message("Word 7").first).to_be_visible()
    # The end is reached again by scrolling.
    linked.page.locator(".stream").evaluate("it => it.scrollTop = it.scrollHeight")
    expect(linked.message("Word 80")).to_have_count(1)
    page.page.goto(f"{page.hub}/rooms/{room}?thread=boats")
    expect(page.page.locator(".message")).to_have_count(1)
    expect(page.text("In the thread boats")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1280, 600), (390, 760), (320, 640)])
def test_send_stays_on_the_screen_while_one_searches_and_much_waits(
    moot, room, desk, width, height
):
    for number in range(4):
        moot.bob.propose(room, "write_file", {"path": f"{number}.md", "text": "x"}, "files")
    size = {"width": width, "height": height}
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}", **size).live()
    page.button("Find").click()
    expect(page.text("4 things wait for you")).to_be_in_viewport()
    for name in ("Send", "Decide", "Search"):
        expect(page.button(name, exact=True)).to_be_in_viewport(ratio=1)
    share = page.page.locator(".stream").evaluate("it => it.clientHeight / innerHeight")
    assert share > 0.15
    page.fits()


def test_rooms_are_listed_made_and_entered(moot, desk):
    closed = moot.room(access="invite")
    private = moot.room(access="private")
    bob = Console(desk, moot.hub, moot.bob.token, "/rooms", ignored=("404",))
    entry = bob.page.locator(".room-entry", has_text=closed)
    expect(entry).to_contain_text("By invitation")
    expect(entry.get_by_role("link")).to_have_count(0)
    expect(bob.page.locator(".room-entry", has_text=private)).to_have_count(0)
    for name in (closed, private):
        moot.ada.call("room/invite", room=name, handle="bob")
    expect(bob.page.locator(".room-entry", has_text=private)).to_contain_text("You are invited")
    entry.get_by_role("link").click()
    bob.button("Enter the room").click()
    bob.live()
    bob.page.goto(f"{bob.hub}/rooms/there-is-none")
    expect(bob.text("There is no such room")).to_be_visible()
    bob.page.get_by_role("link", name="See your rooms").click()
    bob.button("Create a room").click()
    bob.submit("Create", {"Name": "Bad name!"}, says="Use 1 to 64 lower-case letters", exact=True)
    bob.submit("Create", {"Name": "bobs-own"}, exact=True)
    bob.live()
    bob.say("Mine.")
    expect(bob.message("Mine.")).to_be_visible()
    bob.page.goto(f"{bob.hub}/rooms")
    own = bob.page.locator(".room-entry", has_text="bobs-own")
    shows(own, "You own it", "bob: Mine.")


def test_a_guest_enters_one_room_by_a_link_and_sees_nothing_else(moot, room, desk):
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    ada.button("A guest").click()
    ada.submit("Invite", {"The guest's name": "kim"})
    link = ada.page.get_by_role("textbox", name="The guest's link").input_value()
    path = link.removeprefix(ada.hub)
    token = link.partition("#invite=")[2]
    assert path == f"/rooms/{room}#invite={token}"
    kim = Console(desk, moot.hub, "", path)
    expect(kim.text(f"You are invited to {room}")).to_be_visible()
    assert kim.page.url == f"{kim.hub}/rooms/{room}"
    kim.button("Enter as a guest").click()
    kim.live()
    expect(kim.text("You're a guest in this room.")).to_be_visible()
    kim.say("Hello from outside")
    expect(ada.message("Hello from outside")).to_be_visible()
    # The secret is in no address, nor anywhere that a page reads.
    assert token not in " ".join(kim.requests)
    seen = kim.page.evaluate(
        "[location.href, document.cookie, JSON.stringify([localStorage, sessionStorage, "
        "history.state]), document.documentElement.outerHTML].join()"
    )
    assert not re.search("g[ik]_[0-9a-f]{8}", seen)
    places = kim.page.get_by_role("navigation", name="Pages")
    expect(places.locator(".place")).to_have_text([room])
    for elsewhere in ("/rooms", "/people", "/asks", "/rooms/another"):
        kim.page.goto(f"{kim.hub}{elsewhere}")
        expect(kim.text("Other pages are for people with an account.")).to_be_visible()
    # Used up: in another browser the link opens nothing.
    eve = Console(desk, moot.hub, "", path, ignored=("401",))
    eve.button("Enter as a guest").click()
    expect(eve.page.get_by_role("alert")).to_contain_text("was used before")
    kim.page.goto(f"{kim.hub}/rooms/{room}")
    kim.live()
    kim.ignored = ("401", "WebSocket")
    person = ada.page.locator(".people > li", has_text="kim")
    person.locator("summary").click()
    person.get_by_role("button", name="Remove…").click()
    person.get_by_role("button", name="Remove", exact=True).click()
    expect(kim.text("guest access has ended").or_(kim.text("You were removed"))).to_be_visible()


def test_owners_manage_a_room_and_members_are_not_offered_it(moot, room, desk):
    # A page can ask once more for a room that its reader was removed from, or that is deleted.
    gone = ("403 (Forbidden)", "404 (Not Found)")
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}", ignored=gone).live()
    bob = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}", ignored=gone).live()
    person = ada.page.locator(".people > li", has_text="bob")
    person.locator("summary").click()
    expect(person).to_contain_text("propose anything")
    person.get_by_role("button", name="Grant…").click()
    person.get_by_role("button", name="invite people").click()
    person.get_by_role("button", name="Grant", exact=True).click()
    expect(person).to_contain_text("Granted by ada:")
    expect(bob.field("Handle")).to_be_visible()
    ada.confirm("Take back", person)
    expect(person.get_by_text("Granted by ada:")).to_have_count(0)
    expect(bob.field("Handle")).to_have_count(0)
    bob.page.locator(".people > li", has_text="cleo").locator("summary").click()
    expect(bob.text("As member, cleo can:")).to_be_visible()
    for name in ("Grant…", "Remove…"):
        expect(bob.button(name)).to_have_count(0)
    bob.button("Room", exact=True).click()
    expect(bob.text("About this room").first).to_be_visible()
    expect(bob.button("Save")).to_have_count(0)
    expect(bob.button("Delete the room…")).to_have_count(0)
    ada.button("A guest").click()
    ada.submit("Invite", {"The guest's name": "kim"})
    token = ada.page.get_by_role("textbox", name="The guest's token")
    expect(token).to_have_value(re.compile("^gi_"))
    person.get_by_role("button", name="Remove…").click()
    person.get_by_label("Reason").fill("Too loud.")
    person.get_by_role("button", name="Remove", exact=True).click()
    expect(ada.message("removed bob: Too loud.")).to_be_visible()
    expect(bob.text("You were removed from this room.")).to_be_visible()
    ada.button("Room", exact=True).click()
    waited = ada.page.get_by_role("region", name="Open invitations")
    expect(waited).to_contain_text("kim, a guest invited by @ada")
    ada.confirm("Withdraw", waited)
    expect(waited).to_contain_text("No pending invitations.")
    ada.field("Who can enter").select_option("private")
    ada.submit("Save", {"Rejections that close": "2"}, says="closed by 2 rejections")
    ada.button("Delete the room…").click()
    expect(ada.button("Delete", exact=True)).to_be_disabled()
    ada.submit("Delete", {f"Type {room} to confirm": room})
    expect(ada.page).to_have_url(re.compile("/rooms$"))
    expect(ada.page.locator(".room-entry", has_text=f"{room} ")).to_have_count(0)


def test_hostile_text_in_every_field_stays_text(moot, room, files, desk):
    page = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    agent = files.room
    for style in ("plain", "markdown"):
        files.run(agent.say(f"{style} {HOSTILE}", format=style, thread_id=HOSTILE[:60]))  # type: ignore[arg-type]
    files.run(agent.send("reasoning.start", {"text": HOSTILE}))
    files.run(agent.send("reasoning.thought", {HOSTILE: HOSTILE}))
    files.run(agent.send("participant.status", {"status": HOSTILE}))
    agent.tool(lambda: HOSTILE, name="bad_tool", description=HOSTILE)  # type: ignore[call-overload]
    given = {HOSTILE: HOSTILE, "__proto__": {"a": HOSTILE}}
    moot.bob.propose(room, "write_file", given, "files", reason=HOSTILE)
    card = page.page.locator("article.proposal")
    expect(card.locator(".arguments th")).to_have_count(2)
    expect(card).to_contain_text("<img src=x onerror=")
    open_tool(page, "bad_tool")
    page.button("Call", exact=True).click()
    expect(page.page.locator(".result", has_text="<img src=x")).to_be_visible()
    page.page.locator(".reasoning summary").first.click()
    expect(page.page.locator(".reasoning", has_text="<img src=x").first).to_be_visible()
    for each in page.page.get_by_role("button", name="as JSON").all():
        each.focus()
        page.page.keyboard.press("Enter")
    expect(page.page.locator("pre.raw").first).to_be_visible()
    page.button("Find").click()
    page.field("Text").fill(HOSTILE)
    page.field("Text").press("Enter")
    expect(page.page.locator(".message").first).to_be_visible()
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator(".console img, .console a[href^='javascript']").count() == 0


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1280), pytest.param("dark", 390, marks=pytest.mark.long)],
)
def test_axe_finds_nothing_in_rooms(moot, room, files, desk, theme, width):
    moot.bob.propose(room, "write_file", {"path": "seen.md", "text": "Hello"}, "files")
    moot.bob.call("room/say", room=room, text="# A\n\n| a |\n|---|\n| `b` |", format="markdown")
    page = Console(
        desk, moot.hub, moot.ada.token, f"/rooms/{room}", width=width, color_scheme=theme
    ).live()
    expect(page.button("Approve")).to_be_visible()
    page.button("Find").click()
    check_axe(page.page, "room")
    page.button("Find").click()
    open_tool(page, "write_file")
    page.button("Call", exact=True).click()
    check_axe(page.page, "tools")
    page.button("Room", exact=True).click()
    check_axe(page.page, "settings")
    page.button("People").click()
    page.page.locator(".people > li", has_text="files").locator("summary").click()
    page.button("Grant…").click()
    check_axe(page.page, "people")
    page.page.goto(f"{page.hub}/rooms")
    expect(page.page.locator(".room-entry").first).to_be_visible()
    page.button("Create a room").click()
    check_axe(page.page, "rooms")
    assert files.done == []


def test_whoever_is_away_is_told_of_mentions_and_invitations_until_they_come(moot, desk):
    room, other = moot.room(), moot.room(access="private")
    moot.cleo.call("room/join", room=room)
    cleo = Console(desk, moot.hub, moot.cleo.token, "/")
    place = cleo.page.get_by_role("link", name=re.compile("^Rooms"))
    home = cleo.page.locator(".section", has=cleo.page.get_by_role("heading", name="Rooms"))
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    ada.say("Morning, all.")
    expect(home.locator("li", has_text=room)).to_contain_text("1 unread")
    expect(place.locator(".badge.quiet")).to_be_visible()
    ada.say("Are you there, @cleo?")
    expect(home.locator("li", has_text=room)).to_contain_text("@ 1")
    expect(place.locator(".badge:not(.quiet)")).to_contain_text("1")
    expect(cleo.page).to_have_title(re.compile(r"^\(1\) "))
    ada.go(f"/rooms/{other}")
    ada.submit("Invite", {"Handle": "cleo"}, says="@cleo has been invited.", exact=True)
    expect(home.locator("li", has_text=other)).to_contain_text("You are invited")
    expect(place.locator(".badge:not(.quiet)")).to_contain_text("2")
    place.click()
    entries = cleo.page.locator(".room-entry")
    expect(entries.nth(0)).to_contain_text(other)
    expect(entries.nth(1)).to_contain_text(room)
    cleo.check_axe("rooms with news")
    cleo.check_widths("rooms with news")
    entries.nth(1).get_by_role("link").first.click()
    expect(cleo.live().message("Are you there")).to_be_visible()
    expect(place.locator(".badge:not(.quiet)")).to_contain_text("1")
    place.click()
    entries.nth(0).get_by_role("link").first.click()
    cleo.button("Enter the room").click()
    cleo.live()
    expect(place.locator(".badge:not(.quiet)")).to_have_count(0)
    expect(cleo.page).to_have_title(re.compile("^square"))


def test_members_who_are_away_are_listed_below_and_completed(moot, desk):
    room = moot.room()
    for who in (moot.bob, moot.cleo):
        who.call("room/say", room=room, text="I was here.")
    moot.cleo.call("room/join", room=room)
    ada = Console(desk, moot.hub, moot.ada.token, f"/rooms/{room}").live()
    here, away = (ada.page.get_by_label(name) for name in ("Participants", "Members who are away"))
    expect(here.locator("li")).to_have_count(2)
    expect(away.locator("li")).to_have_text([re.compile("^bob")])
    # Who comes back is not listed twice.
    with Crowd(moot.hub, [moot.bob.token], room):
        expect(here.locator("li")).to_have_count(3)
        expect(away).to_have_count(0)
    bob = Console(desk, moot.hub, moot.bob.token, f"/rooms/{room}").live()
    expect(bob.page.get_by_label("Participants").locator("li", has_text="bob")).to_be_visible()
    expect(bob.page.get_by_label("Members who are away")).to_have_count(0)
    bob.page.goto(f"{bob.hub}/")
    expect(away.locator("li")).to_have_text([re.compile("^bob")])
    field = ada.field("Message to the room")
    field.press_sequentially("@b")
    expect(ada.page.get_by_role("option", name="@bob away")).to_be_visible()
    field.press("Tab")
    field.press("Enter")
    expect(ada.message("@bob")).to_be_visible()
    (found,) = [one for one in moot.bob.call("room/list")["rooms"] if one["name"] == room]
    assert found["mentions"] == 1


NOTED = """() => {
  window.noted = [];
  window.Notification = class {
    static permission = "default";
    static requestPermission = async () => (Notification.permission = window.allowed ?? "granted");
    constructor(text) { window.noted.push(text); }
  };
  Object.defineProperty(document, "hidden", { get: () => !!window.isAway });
}"""


def test_the_browser_notifies_whoever_wants_it_and_looks_elsewhere(moot, desk):
    room, other = moot.room(), moot.room(access="private")
    moot.bob.call("room/join", room=room)
    bob = Console(desk, moot.hub, moot.bob.token, "/rooms")
    bob.page.evaluate(NOTED)
    toggle = bob.page.get_by_role("checkbox", name="Notify me on this device")
    bob.page.evaluate("window.allowed = 'denied'")
    toggle.click()
    expect(bob.text("The browser does not allow notifications of this site.")).to_be_visible()
    expect(toggle).not_to_be_checked()
    bob.page.evaluate("window.allowed = 'granted'")
    toggle.check()
    moot.ada.call("room/say", room=room, text="@bob looks at it")
    expect(bob.page.locator(".room-entry", has_text=room)).to_contain_text("@ 1")
    bob.page.evaluate("window.isAway = true")
    moot.ada.call("room/say", room=room, text="nobody in particular")
    moot.ada.call("room/say", room=room, text="@bob looks elsewhere")
    moot.ada.call("room/invite", room=other, handle="bob")
    bob.page.wait_for_function("window.noted.length == 2")
    noted = [f"You were mentioned in {room}", f"You are invited to {other}"]
    assert bob.page.evaluate("window.noted") == noted
    bob.page.evaluate("window.isAway = false")
    toggle.uncheck()
    assert bob.page.evaluate("Object.keys(localStorage).filter(it => it.includes('notify'))") == []
