"""An app is connected in a browser, against a real hub: sign in, consent, the way back, the end."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.browser.console import Web
from tests.browser.harness import Person, check_axe, expect
from tests.transports.rest.test_apps import BACK, CHALLENGE

pytestmark = pytest.mark.browser


def asking(hub, name="Claude", **changed):
    """The address that an app opens, once it has registered."""
    told = {"client_name": name, "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
    sent = Request(f"{hub}/register", json.dumps(told).encode())
    sent.add_header("content-type", "application/json")
    with urlopen(sent) as answer:
        client_id = json.load(answer)["client_id"]
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": BACK,
        "state": "s",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": f"{hub}/mcp",
        **changed,
    }
    return f"/authorize?{urlencode(asked)}"


def sent_back(web, press):
    """What the app is sent, which is not there to hear it."""
    web.page.route(f"{BACK}*", lambda route: route.fulfill(body="Done."))
    with web.page.expect_request(re.compile(re.escape(BACK))) as request:
        press()
    web.page.wait_for_url(f"{BACK}*")
    return {name: value for name, (value,) in parse_qs(urlsplit(request.value.url).query).items()}


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_a_person_signs_in_lets_an_app_in_by_keyboard_and_ends_it(hub, desk, theme, width):
    ada = Person(hub, f"ada{width}")
    web = Web(desk, hub, asking(hub), width=width, color_scheme=theme)
    expect(web.text("An app asks to use your account. Sign in first.")).to_be_visible()
    web.field("Token").fill(ada.token)
    web.field("Token").press("Enter")
    expect(web.page.get_by_role("heading", name="Connect Claude?")).to_be_visible()
    expect(web.page.get_by_label("Approve, reject and withdraw proposals.")).not_to_be_checked()
    web.fits()
    check_axe(web.page, web.page.url)
    web.page.get_by_label("Send mail and answer it.").press("Space")
    connect = web.button("Connect")
    connect.focus()
    back = sent_back(web, lambda: connect.press("Enter"))
    assert (back["state"], back["iss"]) == ("s", hub)
    assert back["code"].startswith("ac_")
    assert not [url for url in web.requests if ada.token in url]


def test_nobody_is_sent_to_an_app_unasked(hub, desk):
    web = Web(desk, hub, asking(hub, response_type="token"), token=Person(hub, "ada_wrong").token)
    expect(web.text("Nothing was connected.")).to_be_visible()
    back = web.button(f"Back to {urlsplit(BACK).netloc}")
    assert sent_back(web, back.click)["error"] == "unsupported_response_type"


def test_a_person_who_says_no_or_is_someone_else_connects_nothing(hub, desk):
    ada = Person(hub, "ada_no")
    web = Web(desk, hub, asking(hub), token=ada.token)
    expect(web.text("nobody has checked it")).to_be_visible()
    assert sent_back(web, web.button("Cancel").click)["error"] == "access_denied"
    web.page.goto(web.hub + asking(hub, name="<b>Codex</b>"))
    expect(web.page.get_by_role("heading", name="Connect <b>Codex</b>?")).to_be_visible()
    web.button(re.compile("Sign in as someone else")).click()
    expect(web.field("Token")).to_be_visible()
    wrong = asking(hub, redirect_uri="http://127.0.0.1:7777/other")
    web = Web(desk, hub, wrong, token=ada.token, ignored=("400 (Bad Request)",))
    expect(web.page.get_by_role("alert")).to_contain_text("did not register")
    assert web.page.url.startswith(web.hub)


def test_a_double_click_consents_once(hub, desk):
    ada = Person(hub, "ada_twice")
    web = Web(desk, hub, asking(hub), token=ada.token)
    back = sent_back(web, web.button("Connect").dblclick)
    assert back["code"].startswith("ac_")
    assert sum(url.endswith("/v1/authorization") for url in web.requests) == 1


@pytest.mark.parametrize(("theme", "width"), [("dark", 1280), ("light", 390)])
def test_a_person_types_the_code_of_a_device_by_keyboard_and_lets_it_in(hub, desk, theme, width):
    ada = Person(hub, f"ada_device{width}")
    client_id = parse_qs(urlsplit(asking(hub, name="Kettle")).query)["client_id"][0]

    def asked(path, **members):
        sent = Request(f"{hub}{path}", urlencode({"client_id": client_id, **members}).encode())
        with urlopen(sent) as answer:
            return json.load(answer)

    codes = asked("/device_authorization")
    web = Web(
        desk, hub, "/device", token=ada.token, width=width, color_scheme=theme,
        ignored=("403 (Forbidden)",),
    )  # fmt: skip
    web.field("Code").fill("bbbb bbbb")
    web.fits()
    check_axe(web.page, web.page.url)
    web.field("Code").press("Enter")
    expect(web.page.get_by_role("alert")).to_contain_text("There is no such code")
    web.button("Type the code again").press("Enter")
    web.field("Code").fill(codes["user_code"].lower())
    web.field("Code").press("Enter")
    expect(web.page.get_by_role("heading", name="Connect Kettle?")).to_be_visible()
    web.fits()
    check_axe(web.page, web.page.url)
    web.button("Connect").press("Enter")
    expect(web.text("The device is connected.")).to_be_visible()
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    assert asked("/token", grant_type=grant, device_code=codes["device_code"])["refresh_token"]
