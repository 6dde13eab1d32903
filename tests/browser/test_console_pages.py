"""All pages of the console together: who may see them, hostile text, the keyboard, a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.operations import OPERATIONS
from tests.browser.console import Console, Operated
from tests.browser.console_rooms import LOST
from tests.browser.harness import Person, expect
from tests.browser.test_console_servers import ECHO, SCHEMA, Place
from tests.browser.test_console_tapes import hostile
from tests.interaction.test_operator import given
from tests.operator import asked
from tests.process import Process
from tests.proxy.tape.studio import recording

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>document.title='hit'</script><svg onload=\"document.title='hit'\">"
    "<img src=x onerror=\"document.title='hit'\"> [a](javascript:document.title='hit') \u202etxet "
)
LONG = "w" * 250
TAPE = "/tapes/hostile.jsonl"
OPERATORS = (
    "/tapes",
    TAPE,
    f"{TAPE}?view=numbers",
    f"{TAPE}?view=compare&with=/plain.jsonl",
    f"{TAPE}?view=use",
    "/people",
    "/people/ada",
    "/audit",
    "/settings",
)
EVERYONES = (
    "/",
    "/rooms",
    "/rooms/square",
    "/decisions",
    "/decisions?show=decided",
    "/servers",
    "/servers/odd",
)
ASK = """async ([method, path, body]) => {
  const headers = {"folkmoot-page": "1", ...(body ? {"content-type": "application/json"} : {})};
  const answer = await fetch(path, {method, headers, body: body || null});
  const text = await answer.text();
  return [answer.status, text];
}"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    with recorded(tmp_path_factory.mktemp("pages")) as running:
        here = Place(running)
        here.folder = tmp_path_factory.mktemp("servers")
        fill(here)
        yield here


def recorded(folder: Path, port: int = 0) -> Process:
    """A hub with tapes, whose servers can be changed."""
    tapes, data = folder / "tapes", folder / "hub"
    if not port:
        tapes.mkdir()
        hostile(tapes / "hostile.jsonl")
    own = {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    settings = {"FOLKMOOT_RATE_LIMITS": "off", "FOLKMOOT_RECORD_FOLDER": str(tapes), **own}
    return Process(data, port=port, **settings)


def fill(here: Place) -> None:
    """A hub in which people and a server wrote hostile text wherever they could."""
    ada, bob = here.operator("ada"), Person(here.url, "bob")
    odd = {"name": f"echo{LONG[:40]}", "title": HOSTILE, "description": HOSTILE + LONG}
    here.add("odd", {**odd, "inputSchema": SCHEMA, "annotations": {"title": HOSTILE}}, ECHO)
    for handle in ("ada", "bob"):
        here.ask("folkmoot/grant", handle=handle, patterns=["odd"])
    for verb in ("suspend", "restore"):
        here.ask(f"folkmoot/{verb}", handle="bob", reason=HOSTILE + LONG)
    for who in (ada, bob):
        # A profile takes no characters that turn the text around.
        tame = HOSTILE.replace("\u202e", "")
        who.call("msg/set_profile", display_name=tame[:40], bio=tame + LONG)
    ada.call("room/create", name="square", capabilities=["*"])
    bob.call("room/join", room="square")
    bob.call("msg/send", to="ada", body=HOSTILE + LONG)
    for text in (HOSTILE, LONG, f"**{HOSTILE}** `{LONG}`\n\n| a | b |\n|---|---|\n| {LONG} | c |"):
        bob.call("room/say", room="square", text=text)
    reason = HOSTILE + LONG
    for _ in range(2):
        arguments = {HOSTILE: HOSTILE, LONG: LONG}
        proposal = bob.propose("square", HOSTILE[:60], arguments, to="ada", reason=reason)
    ada.call("room/decide", room="square", proposal=proposal, decision="reject", reason=reason)


def shown(page: Console) -> None:
    """Wait until a page has read what it shows, and nothing of it was taken for markup."""
    expect(page.page.locator("#page-title")).to_be_visible()
    expect(page.page.locator("[aria-busy=true]")).to_have_count(0)
    assert "hit" not in page.page.title()
    assert page.page.locator("main script, main svg[onload], main img[onerror]").count() == 0
    assert page.page.locator("main a[href^='javascript']").count() == 0


def test_an_ordinary_account_is_refused_every_operators_page_and_route(here, desk):
    web = Console(desk, here.url, Person(here.url, "plain").token)
    # Each refusal is an error in the browser's console too.
    web.ignored = ("403",)
    expect(web.page.locator("#page-title")).to_be_visible()
    rows = [row for row in OPERATIONS if row.scope == "operate"]
    assert len(rows) > 20
    for row in rows:
        request = asked(row, given(row))
        body = request.body.decode() if request.body else ""
        status, text = web.page.evaluate(ASK, [request.method, request.target, body])
        assert status == 403, (row.name, status, text)
        assert json.loads(text)["error"]["code"] in ("scope_missing", "capability_denied"), row.name
    navigation = web.page.get_by_role("navigation", name="Pages")
    expect(navigation.get_by_role("link", name="Inbox")).to_be_visible()
    web.requests.clear()
    for path in (*OPERATORS, "/people/plain"):
        web.go(path)
        expect(web.text("This page is for operators of the hub.")).to_be_visible()
        expect(navigation.locator(f"a[href='{path}']")).to_have_count(0)
    routes = ("/v1/accounts", "/v1/people", "/v1/audit")
    assert not [url for url in web.requests if url.removeprefix(web.hub).startswith(routes)]


def test_hostile_text_is_text_on_every_page_and_no_page_is_too_wide(here, desk):
    web = Console(desk, here.url, here.token("ada"))
    for path in (*EVERYONES, *OPERATORS):
        web.page.set_viewport_size({"width": 1280, "height": 800})
        web.go(path)
        shown(web)
        web.check_widths(path)


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 390, 1280, 2560])
def test_axe_finds_nothing_on_any_page(here, desk, width):
    web = Console(desk, here.url, here.token("ada"), width=width)
    found: list[Any] = []
    for path in (*EVERYONES, *OPERATORS):
        web.go(path)
        shown(web)
        if width == 390:
            web.button("More").click()
        try:
            web.check_axe(path)
        except AssertionError as error:
            found.append(str(error))
    assert not found, "\n".join(found)


MARK = """() => {
  // Of radio buttons Tab reaches the one that is chosen, and arrows the others.
  const found = [...document.querySelectorAll("a[href], button, select, textarea, summary,"
    + "input:not([type=radio]:not(:checked)), [tabindex='0']")];
  const reached = found.filter((it) => it.checkVisibility() && !it.disabled && it.tabIndex >= 0);
  reached.forEach((it, at) => it.setAttribute("data-tab", at));
  return reached.length;
}"""
FOCUSED = """() => {
  const it = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(it);
  const seen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return [it.getAttribute("data-tab"), seen, it.outerHTML.slice(0, 120)];
}"""
LEFT = """(reached) => [...document.querySelectorAll("[data-tab]")]
  .filter((it) => !reached.includes(it.getAttribute("data-tab")))
  .map((it) => it.outerHTML.slice(0, 120))"""


@pytest.mark.long
def test_every_control_of_every_page_is_reached_by_keyboard_and_shows_that_it_has_the_focus(
    here, desk
):
    web = Console(desk, here.url, here.token("ada"))
    for path in (*EVERYONES, *OPERATORS, "/inbox", "/account"):
        web.page.goto(f"{web.hub}{path}")
        expect(web.page.locator("#page-title")).to_be_visible()
        expect(web.page.locator("[aria-busy=true]")).to_have_count(0)
        if path == "/account":
            web.page.locator(".clients input").first.wait_for()
        there = web.page.evaluate(MARK)
        assert there > 8, path
        reached: set[str] = set()
        # Twice around: something may have come meanwhile, or moved to a place that was passed.
        for _ in range(2 * there + 30):
            web.page.keyboard.press("Tab")
            tab, seen, html = web.page.evaluate(FOCUSED)
            if tab is not None:
                assert seen, (path, html)
                reached.add(tab)
            if len(reached) == there:
                break
        assert not web.page.evaluate(LEFT, list(reached)), path


PRESSED = """async (button) => {
  button.click();
  for (let turn = 0; turn < 5; turn++) await null;
  return document.activeElement.localName;
}"""


def test_escape_closes_a_question_and_the_focus_is_where_it_was(here, desk):
    web = Console(desk, here.url, here.token("ada"))
    for path, name, opened in (
        ("/people/bob", "Suspend", ".dialog"),
        ("/servers/odd", "Remove", ".dialog"),
        ("/decisions", "Reject…", ".decide input"),
    ):
        web.go(path)
        button = web.button(name, exact=True).first
        button.focus()
        web.page.keyboard.press("Enter")
        expect(web.page.locator(opened)).to_be_visible()
        expect(web.page.locator("main :focus")).to_have_count(1)
        web.page.keyboard.press("Escape")
        expect(web.page.locator(opened)).to_have_count(0)
        expect(button).to_be_focused()
        # The focus is in the question before anything is painted: no key falls in between.
        assert button.evaluate(PRESSED) in ("button", "input", "textarea")


# What each page shows of what happened while the hub was away, or that it is there again.
MEANWHILE = {
    "/": "@meanwhile",
    "/inbox": "Mail of meanwhile",
    "/rooms": "meanwhiles",
    "/rooms/square": "Words of meanwhile",
    "/decisions": "Asked by meanwhile",
    "/servers": "later",
    "/servers/odd": "Up",
    "/tapes": "meanwhile.jsonl",
    TAPE: "resources/read",
    "/people": "@meanwhile",
    "/people/bob": "Suspend",
    "/audit": "meanwhile",
}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_pages_of_every_kind_go_on_when_the_hub_was_killed_and_started_again(tmp_path, desk):
    with recorded(tmp_path) as running:
        here = Place(running)
        here.folder = tmp_path
        fill(here)
        ada = here.operator("eve")
        ada.call("room/join", room="square")
        # Pages of one profile share a few connections; each of these has a profile of its own.
        pages = {path: Console(desk, here.url, ada.token, path, ignored=LOST) for path in MEANWHILE}
        for page in pages.values():
            expect(page.page.locator("#page-title")).to_be_visible()
    for path, page in pages.items():
        lost = "does not answer" if path == "/inbox" else "The connection"
        expect(page.page.get_by_role("alert").filter(has_text=lost).first).to_be_visible()
    with recording(tmp_path / "tapes" / "meanwhile.jsonl") as studio:
        studio.tool(1, "greet", "Hello")
    with recorded(tmp_path, here.port):
        other = Person(here.url, "meanwhile")
        other.call("msg/send", to="eve", body="Mail of meanwhile")
        other.call("room/create", name="meanwhiles")
        other.call("room/join", room="square")
        other.call("room/say", room="square", text="Words of meanwhile")
        other.propose("square", "chat.say", {"text": "Asked by meanwhile"})
        here.add("later", ECHO)
        for path, page in pages.items():
            expect(page.page.locator("main")).to_contain_text(MEANWHILE[path])
            expect(page.page.get_by_text("connection to the hub is lost")).to_have_count(0)
        # And goes on from there.
        Person(here.url, "latest")
        expect(pages["/people"].page.get_by_role("link", name="@latest")).to_be_visible()
