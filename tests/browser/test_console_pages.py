"""All pages of the console together: who may see them, and what hostile text does to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from folkmoot.cli.operator import asked
from folkmoot.operations import OPERATIONS
from tests.browser.console import Console, Operated, started
from tests.browser.harness import Desk, Person, expect
from tests.interaction.test_operator import given

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>document.title='hit'</script><svg onload=\"document.title='hit'\">"
    "<img src=x onerror=\"document.title='hit'\"> [a](javascript:document.title='hit') \u202etxet "
)
LONG = "w" * 250
OPERATORS = ("/tapes", "/people", "/people/ada", "/audit")
EVERYONES = ("/", "/rooms", "/rooms/square", "/asks", "/asks?show=decided", "/servers")
ASK = """async ([method, path, body]) => {
  const headers = {"folkmoot-page": "1", ...(body ? {"content-type": "application/json"} : {})};
  const answer = await fetch(path, {method, headers, body: body || null});
  const text = await answer.text();
  return [answer.status, text];
}"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    with started(tmp_path_factory.mktemp("pages")) as running:
        here = Operated(running)
        fill(here)
        yield here


def fill(here: Operated) -> None:
    """A hub in which people wrote hostile text wherever they could."""
    ada, bob = here.operator("ada"), Person(here.url, "bob")
    for who in (ada, bob):
        # A profile takes no characters that turn the text around.
        tame = HOSTILE.replace("\u202e", "")
        who.call("msg/set_profile", display_name=tame[:40], bio=tame + LONG)
    ada.call("room/create", name="square", capabilities=["*"])
    bob.call("room/join", room="square")
    bob.call("msg/send", to="ada", body=HOSTILE + LONG)
    for text in (HOSTILE, LONG, f"**{HOSTILE}** `{LONG}`\n\n| a | b |\n|---|---|\n| {LONG} | c |"):
        bob.call("room/say", room="square", text=text)
    params = {"name": HOSTILE[:60], "arguments": {HOSTILE: HOSTILE, LONG: LONG}}
    wanted = {"method": "tools/call", "params": params, "to": "ada", "reason": HOSTILE + LONG}
    first = bob.call("room/propose", room="square", **wanted)["proposal"]
    bob.call("room/propose", room="square", **wanted)
    reason = {"decision": "reject", "reason": HOSTILE + LONG}
    ada.call("room/decide", room="square", proposal=first, **reason)


def shown(page: Console) -> None:
    """Wait until a page has read what it shows, and nothing of it was taken for markup."""
    expect(page.page.locator("#page-title")).to_be_visible()
    expect(page.page.locator("[aria-busy=true]")).to_have_count(0)
    assert "hit" not in page.page.title()
    assert page.page.locator("main script, main svg[onload], main img[onerror]").count() == 0
    assert page.page.locator("main a[href^='javascript']").count() == 0


@pytest.mark.requirement("console.ordinary")
def test_an_ordinary_account_is_refused_every_operators_page_and_route(
    here: Operated, desk: Desk
) -> None:
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
    for path in OPERATORS:
        web.go(path)
        expect(web.text("This page is for operators of the hub.")).to_be_visible()
        expect(navigation.locator(f"a[href='{path}']")).to_have_count(0)


@pytest.mark.requirement("console.hostile")
def test_hostile_text_is_text_on_every_page_and_no_page_is_too_wide(
    here: Operated, desk: Desk
) -> None:
    web = Console(desk, here.url, here.token("ada"))
    for path in (*EVERYONES, *OPERATORS):
        web.page.set_viewport_size({"width": 1280, "height": 800})
        web.go(path)
        shown(web)
        web.check_widths(path)


@pytest.mark.long
@pytest.mark.requirement("console.hostile")
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_on_any_page(here: Operated, desk: Desk, width: int) -> None:
    web = Console(desk, here.url, here.token("ada"), width=width)
    found: list[Any] = []
    for path in (*EVERYONES, *OPERATORS):
        web.go(path)
        shown(web)
        try:
            web.check_axe(path)
        except AssertionError as error:
            found.append(str(error))
    assert not found, "\n".join(found)
