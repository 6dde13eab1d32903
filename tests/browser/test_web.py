"""Signing in on the hub's own pages, and the inbox there, against a real hub."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from folkmoot.bridge.crypto import DeviceKey, seal
from folkmoot.cli.client import HubClient
from tests.browser.console import OUT, Web
from tests.browser.harness import Person, check_axe, expect, page_server
from tests.process import Process

pytestmark = pytest.mark.browser


def folkmoot(*arguments: str, **variables: str) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "folkmoot", *arguments]
    return subprocess.check_output(command, text=True, env=variables)


@pytest.mark.requirement("web.two-people", "web.no-secret")
def test_someone_registers_by_invitation_and_two_people_write_at_once(hub, desk):
    ada = Person(hub, "ada")
    ada.call("msg/set_profile", display_name="Ada Lovelace")
    link = ada.call("msg/invite", message="Welcome to the moot.")["invite_url"]
    at_ada = Web(desk, hub).sign_in(ada.token)
    assert at_ada.secrets() == []
    guest = Web(desk, hub, link.partition("/invite")[1] + link.partition("/invite")[2])
    expect(guest.text("Ada Lovelace (@ada) invited you to Folkmoot.")).to_be_visible()
    expect(guest.text("Welcome to the moot.")).to_be_visible()
    guest.page.get_by_role("link", name="Create your account").click()
    guest.submit("Create account", {"Handle": "bob"}, says="You are @bob")
    assert guest.secrets() == []
    guest.press("Use a token instead")
    assert len(set(guest.secrets())) == 1
    guest.field("I have saved the token and the recovery code.").check()
    guest.press("Continue")
    guest.page.locator(".console").wait_for()
    guest.page.goto(f"{guest.hub}/inbox")
    guest.open_thread("Ada Lovelace")
    assert guest.secrets() == []
    expect(guest.page.locator(".body")).to_have_text("Welcome to the moot.")
    guest.write("Glad to be here.")
    # No clock of a page moves in this test: what is new is heard, not asked for.
    at_ada.open_thread("bob")
    expect(at_ada.page.locator(".letter .body").last).to_have_text("Glad to be here.")
    at_ada.write("The boat leaves at six.")
    expect(guest.page.locator(".letter .body").last).to_have_text("The boat leaves at six.")
    at_ada.page.locator(".home").click()
    guest.write("I will be there.")
    expect(at_ada.page.locator(".row").first).to_contain_text("I will be there.")
    expect(at_ada.page.locator(".bar .badge")).to_contain_text("1")
    expect(at_ada.page).to_have_title("(1) Inbox · Folkmoot")
    assert at_ada.secrets() == guest.secrets() == []


@pytest.mark.requirement("web.sign-out")
def test_signing_out_ends_the_session_and_a_wrong_token_is_refused(hub, desk):
    cleo = Person(hub, "cleo")
    web = Web(desk, hub, "/account", ignored=("401 (Unauthorized)",))
    web.field("Token").fill("sk_" + "0" * 64)
    web.field("Token").press("Enter")
    expect(web.page.get_by_role("alert")).to_contain_text("The token is not valid")
    assert web.secrets() == []
    web.sign_in_at_account(cleo.token)
    kept = web.context.cookies()
    assert [(it["httpOnly"], it["sameSite"]) for it in kept] == [(True, "Strict")]
    web.button("Sign out", exact=True).first.click()
    expect(web.text("You are signed out.")).to_be_visible()
    assert web.context.cookies() == []
    # Whoever kept the cookie has nothing.
    web.context.add_cookies([{key: kept[0][key] for key in ("name", "value", "domain", "path")}])
    web.page.reload()
    expect(web.field("Token")).to_be_visible()


def test_signing_out_among_the_browsers_asks_for_nothing_more(hub, desk):
    """The page hears of the end of its own session, and must not look for mail with it, nor count
    what is new, which it does a second after it was opened."""
    web = Web(desk, hub, "/account", token=Person(hub, "cleo_ends").token)
    web.hear_late_of_the_end()
    web.page.reload()
    web.confirm("Sign out", web.page.get_by_role("region", name="Browsers"))
    expect(web.text("This browser is signed out.")).to_be_visible()
    assert web.context.cookies() == []


@pytest.mark.requirement("web.recover")
def test_a_recovery_code_signs_in_here_and_everyone_else_out(hub, desk):
    dora = Person(hub, "dora")
    other = Web(desk, hub).sign_in(dora.token)
    other.ignored = OUT
    web = Web(desk, hub, "/sign-in")
    web.press("Use my recovery code", says="Recovering signs out every other client")
    web.submit(
        "Recover", {"Handle": "@dora", "Recovery code": dora.recovery_code}, says="You are @dora"
    )
    expect(other.text("You were signed out.")).to_be_visible()
    assert web.secrets() == []
    web.press("Use a token instead")
    assert len(set(web.secrets())) == 1
    web.field("I have saved").check()
    web.button("Continue").click()
    web.page.locator(".console").wait_for()
    assert web.secrets() == []


@pytest.mark.requirement("web.revoked", "browser.one-time-code")
def test_folkmoot_open_signs_in_once_and_the_terminal_signs_out(hub, desk, tmp_path):
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    folkmoot("register", "eve", "--url", hub, **own)
    link = folkmoot("open", "--print", **own).strip()
    path = link.partition("localhost")[2].partition("/")[2]
    assert re.fullmatch(r"sign-in#oc_[0-9a-f]{64}", path)
    web = Web(desk, hub, f"/{path}")
    web.page.locator(".threads").wait_for()
    assert web.page.url.endswith("/inbox")
    assert web.secrets() == []
    again = Web(desk, hub, ignored=("403 (Forbidden)",))
    again.page.goto(f"{again.hub}/{path}")
    expect(again.text("This link was used already or is too old.")).to_be_visible()
    web.ignored = OUT
    listed = folkmoot("tokens", "--json", **own)
    session = re.search(r'"id": "(c_\w+)",\s+"kind": "browser"', listed)
    folkmoot("tokens", "revoke", session[1], **own)
    expect(web.text("You were signed out.")).to_be_visible()


@pytest.mark.requirement("web.restart")
def test_a_page_goes_on_when_the_hub_restarts(tmp_path, desk):
    data = tmp_path / "data"
    with Process(data, FOLKMOOT_RATE_LIMITS="off") as running:
        port, hub = running.port, f"http://127.0.0.1:{running.port}"
        ann, ben = Person(hub, "ann"), Person(hub, "ben")
        web = Web(desk, hub).sign_in(ann.token)
        web.ignored = ("net::ERR_", "503")
    expect(web.text("The hub does not answer.")).to_be_visible()
    with Process(data, port=port, FOLKMOOT_RATE_LIMITS="off"):
        ben.call("msg/send", to="ann", body="The hub is back.")
        web.page.clock.fast_forward(20_000)
        expect(web.page.locator(".row")).to_contain_text("The hub is back.")
        expect(web.text("The hub does not answer.")).to_have_count(0)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A page that someone else serves on another port of this machine, and the cookies it gets."""
    sent: list[str] = []
    # Without an icon of its own the browser would ask for one, and be answered 404.
    page = '<!doctype html><link rel="icon" href="data:,"><title>Other</title><p>Other</p>'
    (tmp_path / "index.html").write_text(page)
    with page_server(tmp_path, sent) as port:
        yield f"http://localhost:{port}/index.html", sent


ATTACK = """async (hub) => {
  const told = [];
  const fetched = async (path, options) => {
    try {
      const answer = await fetch(hub + path, {credentials: "include", ...options});
      told.push([path, answer.type, answer.status]);
    } catch { told.push([path, "refused"]); }
  };
  await fetched("/v1/me", {});
  await fetched("/v1/me", {mode: "no-cors"});
  const headers = {"folkmoot-page": "1"};
  await fetched("/v1/me", {method: "PATCH", body: '{"bio": "taken"}', headers});
  await fetched("/v1/session", {method: "DELETE", headers});
  await fetched("/v1/accounts", {method: "POST", mode: "no-cors", body: '{"handle": "mallory"}'});
  await fetched("/v1/me/codes", {method: "POST", mode: "no-cors"});
  await new Promise((done) => {
    const source = new EventSource(hub + "/v1/events", {withCredentials: true});
    source.onopen = () => { told.push(["events", "open"]); done(); };
    source.onerror = () => { told.push(["events", "refused"]); source.close(); done(); };
  });
  await new Promise((done) => {
    const socket = new WebSocket(hub.replace("http", "ws") + "/ws?room=square");
    socket.onmessage = () => { told.push(["socket", "message"]); done(); };
    socket.onclose = () => { told.push(["socket", "refused"]); done(); };
  });
  return told;
}"""


@pytest.mark.requirement("browser.origin")
def test_a_page_on_another_port_can_do_nothing(hub, desk, stranger):
    finn = Person(hub, "finn")
    finn.call("room/create", name="square")
    web = Web(desk, hub).sign_in(finn.token)
    other = web.context.new_page()
    seen: list[int] = []
    other.goto(stranger[0])
    # What the browser keeps from the page, since its origin is another, is no response to it.
    wire = web.context.new_cdp_session(other)
    wire.on("Network.responseReceivedExtraInfo", lambda told: seen.append(told["statusCode"]))
    wire.send("Network.enable")
    # Browsers send the cookie to every port: it is the hub that refuses.
    assert "folkmoot_" in stranger[1][0]
    told = other.evaluate(ATTACK, web.hub)
    assert [it for it in told if it[-1] not in ("refused", 0)] == []
    # Without the cookie the answer would have been 401; 400 is that to a preflight.
    assert 403 in seen
    assert set(seen) <= {400, 403}
    assert finn.call("msg/whoami")["bio"] == ""
    web.page.reload()
    web.page.locator(".threads").wait_for()


@pytest.mark.requirement("web.account")
def test_the_account_page_shows_what_opens_the_account_and_ends_it(hub, desk):
    gus = Person(hub, "gus")
    gus.call("msg/invite")
    web = Web(desk, hub, "/account").sign_in_at_account(gus.token)
    web.confirm("Withdraw", says="None. You invite people from the inbox")
    web.submit("Save", {"Name": "Gus the Great"}, says="Your profile is saved.", exact=True)
    assert gus.call("msg/whoami")["display_name"] == "Gus the Great"
    web.field("New token: what is it for?").fill("laptop")
    again = web.field("One of your tokens, once more")
    web.ignored = ("403",)
    again.fill("sk_wrong")
    web.button("Create", exact=True).click()
    expect(web.page.get_by_role("alert")).to_contain_text("your own tokens")
    again.fill(gus.token)
    web.button("Create", exact=True).click()
    made = web.field("Token", exact=True).input_value()
    web.button("I have saved it").click()
    assert web.secrets() == []
    assert HubClient(hub, made).call("msg/whoami", {})["handle"] == "gus"
    entry = web.page.locator("li", has_text="laptop")
    web.confirm("Revoke", entry, says="The token is revoked.")
    expect(entry).to_have_count(0)
    with web.page.expect_download() as download:
        web.page.get_by_role("link", name="Download").click()
    assert download.value.path().stat().st_size > 0
    web.ignored = OUT
    web.submit("Delete", {"Type gus to confirm": "gus"}, says="Account deleted.")
    assert web.page.evaluate("fetch('/v1/session').then(it => it.json())")["handle"] is None


def test_every_page_has_the_same_navigation_with_what_waits(hub, desk):
    kim, lea = Person(hub, "kim"), Person(hub, "lea")
    kim.call("room/create", name="kims")
    lea.call("room/join", room="kims")
    web = Web(desk, hub, real_time=True).sign_in(kim.token)
    ways = web.page.get_by_role("navigation", name="Pages")
    names = ["Home", "Inbox", "Rooms", "Decisions", "Servers", "Documentation", "@kim"]
    for path, here in (("/inbox", "Inbox"), ("/account", "@kim"), ("/rooms", "Rooms")):
        # The mail and the account are one page, between which nothing is loaded.
        ways.get_by_role("link", name=here).click()
        expect(web.page).to_have_url(f"{web.hub}{path}")
        expect(ways.locator(".place .name")).to_have_text([*names, "Sign out", "More"])
        expect(ways.locator("[aria-current=page]")).to_have_text(here)
        expect(web.page.get_by_role("heading", level=1)).to_contain_text(
            {"@kim": "Account"}.get(here, here)
        )
    web.page.goto(f"{web.hub}/inbox")
    lea.call("msg/send", to="kim", body="Are you there?")
    lea.propose("kims", "chat.say", {"text": "Hello"})
    expect(ways.get_by_role("link", name="Inbox 1 new")).to_be_visible()
    expect(ways.get_by_role("link", name="Decisions 1 new")).to_be_visible()
    web.page.set_viewport_size({"width": 390, "height": 760})
    expect(ways.get_by_role("link", name="Servers")).to_be_hidden()
    web.button("More").click()
    expect(ways.get_by_role("link", name="Servers")).to_be_visible()
    web.page.keyboard.press("Escape")
    expect(ways.get_by_role("link", name="Servers")).to_be_hidden()
    expect(web.button("More")).to_be_focused()
    # The bar covers nothing of the inbox.
    web.open_thread("lea")
    bar = ways.bounding_box()
    written = web.page.locator(".composer").bounding_box()
    assert bar
    assert written
    assert written["y"] + written["height"] <= bar["y"]
    # Most of a phone's screen is for what was written.
    web.page.set_viewport_size({"width": 390, "height": 844})
    assert web.page.locator(".messages").bounding_box()["height"] >= 0.7 * 844


def test_keys_lead_everywhere_but_not_while_someone_types(hub, desk):
    mia, ned = Person(hub, "mia"), Person(hub, "ned")
    for text, to in (("One", "mia"), ("Two", "mia")):
        ned.call("msg/send", to=to, body=text)
    mia.call("msg/send", to="ned", body="Three")
    mia.call("room/create", name="mias")
    web = Web(desk, hub, real_time=True).sign_in(mia.token)
    keys, dialog = web.page.keyboard, web.page.get_by_role("dialog")
    # The list is moved in without being clicked on first; my own last message is marked so.
    keys.press("j")
    expect(web.page.locator(".row").first).to_be_focused()
    expect(web.page.locator(".row").first).to_contain_text("You: Three")
    keys.press("?")
    expect(dialog).to_contain_text("Move in the list")
    check_axe(web.page, "keys")
    keys.press("j")
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    expect(web.page.locator(".row").first).to_be_focused()
    web.field("Search conversations").focus()
    keys.type("j?c")
    expect(web.field("Search conversations")).to_have_value("j?c")
    expect(dialog).to_have_count(0)
    keys.press("Control+k")
    chosen = dialog.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("Home")
    keys.type("ia")
    expect(chosen).to_contain_text("miasRoom")
    check_axe(web.page, "palette")
    keys.press("Enter")
    expect(web.page).to_have_url(f"{web.hub}/rooms/mias")


@pytest.mark.requirement("app.key-generation")
def test_a_key_made_in_the_page_stays_in_this_browser(hub, desk):
    ivy, jon = Person(hub, "ivy"), Person(hub, "jon")
    key = DeviceKey.fresh()
    jon.call("msg/set_profile", client_public_key=key.public)
    web = Web(desk, hub).sign_in(ivy.token)
    web.turn_on()
    box = seal(key, ivy.call("msg/whoami")["client_public_key"], b"For this browser alone.")
    payload = {"ciphertext": box.ciphertext, "nonce": box.nonce, "sender_public_key": key.public}
    jon.call("msg/send", to="ivy", encrypted_payload=payload)
    web.page.reload()
    web.open_thread("jon")
    expect(web.page.locator(".letter .body")).to_have_text("For this browser alone.")
    expect(web.page.locator(".letter .end_to_end")).to_have_text("End-to-end")
    elsewhere = Web(desk, hub).sign_in(ivy.token)
    elsewhere.open_thread("jon")
    expect(elsewhere.page.locator(".unreadable")).to_contain_text("Your key is not here")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages(hub, desk, theme, width):
    hal = Person(hub, f"hal_{theme}_{width}")
    web = Web(desk, hub, "/sign-in", width=width, color_scheme=theme)
    for way in ("Use my recovery code", "I am new here", "I have an account"):
        expect(web.button(way)).to_be_visible()
        check_axe(web.page, way)
        web.button(way).click()
    web.sign_in(hal.token)
    check_axe(web.page, "inbox")
    web.page.goto(f"{web.hub}/account")
    expect(web.text("this browser", exact=True)).to_be_visible()
    check_axe(web.page, "account")
