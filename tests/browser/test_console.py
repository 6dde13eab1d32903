"""The console against a real hub: its ways in and out, people, the audit log, the home page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.browser.console import FRONT, OUT, Console, Operated, Web, started
from tests.browser.harness import Person, expect, shows

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    with started(tmp_path_factory.mktemp("hub")) as running:
        yield Operated(running)


def test_whoever_is_signed_out_signs_in_and_comes_to_the_page_they_wanted(here, desk):
    ann = Person(here.url, "ann")
    web = Console(desk, here.url, "", "/")
    expect(web.text(FRONT)).to_be_visible()
    web.page.get_by_role("link", name="Open Folkmoot").click()
    web.enter(ann.token)
    web.heading("Hello, ann")
    assert web.page.url == f"{web.hub}/"
    # Between the pages of the hub one goes by links, and back.
    web.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Inbox").click()
    web.page.locator(".threads").wait_for()
    web.page.get_by_role("link", name="Home").click()
    web.heading("Hello, ann")
    web.press("Sign out", says=FRONT)
    web.page.goto(f"{web.hub}/audit?by=ann&follow=no")
    expect(web.text("Sign in to continue.")).to_be_visible()
    web.enter(ann.token)
    assert web.page.url == f"{web.hub}/audit?by=ann&follow=no"
    # An address may not lead away from the hub.
    for next_ in ("//evil.example/", "/\\evil.example", "https://evil.example/", "/sign-in"):
        web.page.goto(f"{web.hub}/sign-in?next={next_}")
        web.page.locator(".threads").wait_for()
        assert web.page.url == f"{web.hub}/inbox"
    assert web.secrets() == []


def test_signing_out_in_a_room_asks_for_nothing_more(here, desk):
    """Neither the events nor the room are connected to again, and nothing is read or marked."""
    ann = Person(here.url, "ann_ends")
    ann.call("room/create", name="ends")
    web = Console(desk, here.url, ann.token, "/rooms/ends")
    web.say("Good night.")
    expect(web.message("Good night.")).to_be_visible()
    web.hear_late_of_the_end()
    web.press("Sign out", says=FRONT)
    assert web.context.cookies() == []


def test_an_operators_link_opens_the_console_with_the_pages_of_operators(here, desk):
    Person(here.url, "olga")
    link = here.ask("folkmoot/create_code_for", handle="olga", operate=True)["url"]
    web = Console(desk, here.url, "", link.partition(str(here.port))[2])
    web.heading("Hello, olga")
    assert web.page.url == f"{web.hub}/"
    navigation = web.page.get_by_role("navigation", name="Pages")
    expect(navigation.get_by_role("link", name="People")).to_be_visible()
    # By keyboard: along the links, and whoever arrives is at the heading.
    web.page.keyboard.press("Tab")
    expect(web.text("Skip to the page")).to_be_focused()
    navigation.get_by_role("link", name="Audit").focus()
    web.page.keyboard.press("Enter")
    expect(web.page.get_by_role("heading", level=1, name="Audit log")).to_be_focused()
    expect(web.page).to_have_title("Audit log · Folkmoot")
    web.page.go_back()
    expect(web.page.get_by_role("heading", level=1, name="Hello, olga")).to_be_focused()
    web.go("/people/a/b")
    web.heading("Page not found")


def test_a_suspended_persons_open_pages_end_at_once(here, desk):
    root, bob = here.operator("rhea"), Person(here.url, "bob")
    console, inbox = Console(desk, here.url, bob.token), Web(desk, here.url).sign_in(bob.token)
    console.ignored = inbox.ignored = OUT
    web = Console(desk, here.url, root.token, "/people?text=bo")
    web.page.get_by_role("link", name="@bob").click()
    web.heading("@bob")
    expect(web.page.get_by_role("table", name="Tokens and browsers")).to_contain_text("Chrome")
    web.button("Suspend").click()
    web.field("Reason, for the audit log").fill("asked to")
    web.page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    expect(web.text("Suspended @bob.")).to_be_visible()
    expect(console.page.get_by_role("heading", name="Signed out")).to_be_visible()
    expect(console.text("Hello, bob")).to_have_count(0)
    expect(inbox.text("You were signed out.")).to_be_visible()
    web.confirm("Restore", says="Restored @bob.")
    # The session is good again, so nobody is asked for a token.
    console.page.get_by_role("link", name="Sign in again").click()
    console.heading("Hello, bob")
    # A browser that the operator signs out ends as well, and no other.
    table = web.page.get_by_role("table", name="Tokens and browsers")
    browser = table.get_by_role("row").filter(has_text="Browser").first
    web.confirm("Sign out", browser, says="That browser is signed out.")
    expect(console.page.get_by_role("heading", name="Signed out")).to_be_visible()


def test_the_home_page_shows_what_is_new_and_operators_how_the_hub_is(here, desk):
    nora, otto = Person(here.url, "nora"), here.operator("otto")
    nora.call("room/create", name="harbour")
    web = Console(desk, here.url, nora.token)
    main = web.page.locator("main")
    shows(main, "No unread messages.", "Nothing to decide.")
    expect(main.get_by_role("link", name="harbour")).to_be_visible()
    # It is told as it happens, and whoever does not run the hub hears nothing of how it is.
    otto.call("msg/send", to="nora", body="The tide is late.")
    shows(main, "1 unread message in 1 conversation", "From @otto.")
    expect(web.page.get_by_role("navigation", name="Pages")).to_contain_text("1 new")
    expect(web.text("The hub", exact=True)).to_have_count(0)
    root = Console(desk, here.url, otto.token)
    shows(root.page.get_by_role("region", name="The hub"), "running for", "free")


def test_an_operator_makes_a_group_changes_and_removes_it_and_backs_up(here, desk):
    web = Console(desk, here.url, here.operator("gwen").token, "/people")
    Person(here.url, "gina")
    web.button("New group…").click()
    dialog = web.page.get_by_role("dialog", name="New group")
    web.field("Name", exact=True).fill("crew")
    dialog.get_by_label("@gina").check()
    web.check_axe("group")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    crew = web.page.get_by_role("listitem", name="crew")
    expect(crew.get_by_role("link", name="@gina")).to_be_visible()
    crew.get_by_role("button", name="Members…").click()
    dialog = web.page.get_by_role("dialog", name="Members of crew")
    dialog.get_by_label("@gina").uncheck()
    dialog.get_by_label("@gwen").check()
    dialog.get_by_role("button", name="Save").click()
    expect(crew.get_by_role("link", name="@gwen")).to_be_visible()
    web.check_widths("groups")
    web.confirm("Remove", crew, says="No groups yet.")
    web.go("/")
    hub = web.page.get_by_role("region", name="The hub")
    expect(hub).to_contain_text("No backup yet.")
    hub.get_by_role("button", name="Back up now").click()
    expect(hub).to_contain_text("Backed up just now.")


def test_an_operator_invites_adds_grants_and_removes(here, desk):
    web = Console(desk, here.url, here.operator("boss").token, "/people")
    web.button("Invite").click()
    web.submit("Create the link", {"Handle": "@Carol"}, exact=True)
    link = web.field("Invitation for @carol", exact=True).input_value()
    assert "/invite/" in link
    waiting = web.page.get_by_role("table", name="Open invitations")
    expect(waiting).to_contain_text("@carol")
    web.confirm("Withdraw", waiting, says="No open invitations.")
    web.button("Add", exact=True).click()
    web.field("Handle", exact=True).fill("robot")
    web.field("A program uses it").check()
    web.button("Add the account").click()
    token = web.field("Token", exact=True).input_value()
    assert token.startswith("sk_")
    web.button("I have saved them").click()
    assert web.secrets() == []
    # Someone who registers meanwhile is in the list without a reload.
    Person(here.url, "zoe")
    web.page.get_by_role("table", name="People").get_by_role("link", name="@zoe").wait_for()
    web.page.get_by_role("link", name="@robot").click()
    web.heading("@robot")
    web.page.get_by_text("Advanced: patterns").click()
    grant = web.field("Allow a pattern", exact=False)
    grant.fill("!msg/send")
    grant.press("Enter")
    rights = web.page.get_by_role("table", name="Patterns", exact=True)
    shows(rights, "!mcp.request.tools/call:msg/send", "allowed by an operator")
    web.confirm("Revoke", rights, says="Nothing beyond what every account can do.")
    web.ignored = ("400", "404")
    grant.fill("no such pattern :")
    grant.press("Enter")
    expect(web.page.get_by_role("alert")).to_be_visible()
    web.button("Remove").click()
    dialog = web.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Remove")).to_be_disabled()
    web.field("Type robot to confirm").fill("robot")
    dialog.get_by_role("button", name="Remove").click()
    web.heading("People")
    expect(web.page.get_by_role("link", name="@robot")).to_have_count(0)
    web.go("/people/robot")
    expect(web.text("Nobody has the handle @robot.")).to_be_visible()


def test_the_audit_log_is_filtered_followed_and_saved(here, desk, tmp_path):
    auditor = here.operator("auditor")
    Person(here.url, "dora")
    for verb in ("suspend", "restore") * 3:
        here.ask(f"folkmoot/{verb}", handle="dora", reason="<b>tested</b>")
    web = Console(desk, here.url, auditor.token, "/audit?about=dora&action=account.*")
    table = web.page.get_by_role("table", name="Audit log")
    rows = table.get_by_role("row")
    expect(rows).to_have_count(7)
    expect(table).to_contain_text("<b>tested</b>")
    web.field("Action").fill("account.suspended")
    web.field("Action").press("Enter")
    expect(rows).to_have_count(4)
    assert web.page.url.endswith("/audit?about=dora&action=account.suspended")
    # What happens now is shown now; and a link shows the same to whoever may see it.
    here.ask("folkmoot/suspend", handle="dora", reason="again")
    expect(rows).to_have_count(5)
    # Only what was not there is read.
    assert any("&after=" in url for url in web.requests)
    web.field("Follow").uncheck()
    web.page.reload()
    expect(rows).to_have_count(5)
    with web.page.expect_download() as saved:
        web.button("Download").click()
    file = tmp_path / "audit.jsonl"
    saved.value.save_as(file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["action"] for line in lines] == ["account.suspended"] * 4
    assert lines[-1]["detail"] == {"detail": "again"}
    web.field("Who").fill("nobody")
    web.field("Who").press("Enter")
    expect(web.text("No matching lines.")).to_be_visible()
    web.button("Clear the filters").click()
    expect(rows.nth(6)).to_be_visible()
    assert re.fullmatch(r".*/audit\?follow=no", web.page.url)
