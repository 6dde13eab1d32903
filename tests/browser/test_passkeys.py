"""Passkeys in a real browser, with an authenticator that its developer tools stand in for."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from hashlib import sha256

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from folkmoot.cli.client import HubClient
from tests.browser.console import OUT, Web
from tests.browser.harness import Desk, Person, check_axe, chromium, expect
from tests.certificates import certificate
from tests.ports import free_port
from tests.process import Process

pytestmark = pytest.mark.browser
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device(Web):
    """A page in a browser that has an authenticator of its own."""

    def __init__(self, desk, hub, path="/sign-in", **options):
        super().__init__(desk, hub, path, real_time=True, **options)
        self.tools = self.context.new_cdp_session(self.page)
        self.tools.send("WebAuthn.enable")
        made = self.tools.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
        self.id = {"authenticatorId": made["authenticatorId"]}

    def kept(self):
        """The passkeys of the device, as a cloud would carry them to another."""
        return self.tools.send("WebAuthn.getCredentials", self.id)["credentials"]

    def take(self, passkeys):
        for each in passkeys:
            self.tools.send("WebAuthn.addCredential", {**self.id, "credential": each})

    def verifies(self, *, user):
        self.tools.send("WebAuthn.setUserVerified", {**self.id, "isUserVerified": user})

    def enter(self):
        """Sign in by the keyboard alone: the button has the focus."""
        expect(self.button("Sign in with a passkey")).to_be_focused()
        self.page.keyboard.press("Enter")

    def enters_again(self):
        """Sign out, and in anew in this browser."""
        out = self.page.get_by_role("navigation", name="Pages").get_by_text("Sign out")
        if not out.is_visible():
            self.press("More")
        out.click()
        expect(out).to_have_count(0)
        assert self.context.cookies() == []
        self.page.goto(f"{self.hub}/sign-in")
        self.enter()
        self.page.locator(".threads").wait_for()

    def checked(self):
        self.fits()
        check_axe(self.page, self.page.url)


def spki(path):
    """What Chromium knows a certificate by that it is to trust."""
    key = x509.load_pem_x509_certificate(path.read_bytes()).public_key()
    known = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return b64encode(sha256(known).digest()).decode()


@pytest.fixture
def public(browser, host, tmp_path):
    """A hub with TLS at a name, and a desk whose browser finds it there."""
    name, port = "hub.example.org", free_port()
    cert, key = certificate(tmp_path / "tls", host=name)
    hub = f"https://{name}:{port}"
    values = {"PUBLIC_URL": hub, "TLS_CERTIFICATE": str(cert), "TLS_KEY": str(key)}
    values |= {"REGISTRATION": "open", "RATE_LIMITS": "off"}
    flags = [
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        f"--ignore-certificate-errors-spki-list={spki(cert)}",
        f"--host-resolver-rules=MAP {name} 127.0.0.1",
    ]
    problems = []
    settings = {f"FOLKMOOT_{each}": value for each, value in values.items()}
    with Process(tmp_path / "hub", port=port, **settings):
        launched = browser.browser_type.launch(executable_path=chromium(), args=flags)
        desk = Desk(launched, host, problems)
        yield hub, desk
        desk.close()
        launched.close()
    assert not problems, problems


def test_passkeys_work_at_a_name_with_tls(public):
    hub, desk = public
    web = Device(desk, hub)
    web.press("I am new here")
    web.submit("Create account", {"Handle": "ada"}, says="You are @ada")
    web.press("Make a passkey", says="Your passkey is ready.")
    web.field("I have saved the recovery code.").check()
    web.press("Continue")
    web.page.locator(".console").wait_for()
    web.enters_again()
    [cookie] = web.context.cookies()
    assert (cookie["name"][:7], cookie["secure"]) == ("__Host-", True)
    web.page.goto(f"{hub}/account")
    expect(web.text("at hub.example.org")).to_be_visible()
    web.submit("Create", {"New token: what is it for?": "laptop"}, says="Copy the token now.")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_a_person_registers_with_a_passkey_and_signs_in_on_two_devices(hub, desk, theme, width):
    handle = f"ada{width}"
    one = Device(desk, hub, width=width, color_scheme=theme, ignored=("403 (Forbidden)",))
    one.checked()
    one.button("I am new here").click()
    one.submit("Create account", {"Handle": handle})
    expect(one.page.get_by_role("heading", name=f"You are @{handle}")).to_be_visible()
    expect(one.button("Continue")).to_be_disabled()
    one.checked()
    one.press("Make a passkey", says="Your passkey is ready.")
    assert not one.secrets(), "a token is shown only to those who ask for one"
    one.field("I have saved the recovery code.").check()
    one.checked()
    one.press("Continue")
    one.page.locator(".console").wait_for()
    one.enters_again()
    two = Device(desk, hub, width=width, color_scheme=theme, ignored=("403 (Forbidden)",))
    two.take(one.kept())
    two.enter()
    two.page.locator(".threads").wait_for()
    two.page.goto(f"{two.hub}/account")
    expect(two.text("at localhost")).to_be_visible()
    two.checked()
    two.button("Rename").click()
    two.field("Name of the passkey").fill("Both")
    two.field("Name of the passkey").press("Enter")
    expect(two.text("The passkey has a new name.")).to_be_visible()
    two.press("Remove")
    two.submit("Remove it", {"One of your tokens, or your recovery code": "wrong"})
    expect(two.page.get_by_role("alert")).to_contain_text("last passkey")
    two.checked()
    assert not [url for url in one.requests + two.requests if "sk_" in url]


def test_a_passkey_is_added_in_the_account_and_another_removed(hub, desk):
    ada = Person(hub, "ada_adds")
    web = Device(desk, hub, "/account", token=ada.token)
    web.press("Add a passkey", says="The passkey is added.")
    web.press("Add a passkey", says="This device has a passkey for your account already.")
    web.press("Remove")
    fields = {"One of your tokens, or your recovery code": ada.recovery_code}
    web.submit("Remove it", fields, says=("The passkey is removed.", "None yet."))


def test_a_person_who_is_not_verified_or_unknown_stays_out(hub, desk):
    ada = Person(hub, "ada_out")
    web = Device(desk, hub, "/account", token=ada.token)
    web.press("Add a passkey", says="The passkey is added.")
    other = Device(desk, hub, ignored=("403 (Forbidden)",))
    other.take(web.kept())
    other.verifies(user=False)
    other.enter()
    expect(other.page.get_by_role("alert")).to_contain_text("cancelled, or took too long")
    other.verifies(user=True)
    web.press("Remove")
    fields = {"One of your tokens, or your recovery code": ada.token}
    web.submit("Remove it", fields, says="The passkey is removed.")
    other.press("Sign in with a passkey", says="This passkey did not work here.")


def test_a_page_at_a_number_is_opened_at_the_name_where_passkeys_work(hub, desk):
    context = desk.context()
    page = desk.page(context, tuple)
    page.goto(f"{hub}/sign-in?next=/account")
    expect(page).to_have_url(f"{hub.replace('127.0.0.1', 'localhost')}/sign-in?next=/account")
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_visible()


def test_a_person_decides_with_presence_by_keyboard_and_has_a_token(hub, desk):
    ada = Person(hub, "ada_decides")
    web = Device(desk, hub, "/account", token=ada.token, width=390, ignored=("403 (Forbidden)",))
    expect(web.field("One of your tokens, once more")).to_be_visible()
    web.press("Add a passkey", says="The passkey is added.")
    expect(web.field("One of your tokens, once more")).to_have_count(0)
    what = web.field("New token: what is it for?")
    web.verifies(user=False)
    what.fill("laptop")
    what.press("Enter")
    expect(web.page.get_by_role("alert")).to_contain_text("cancelled, or took too long")
    assert not web.secrets()
    web.verifies(user=True)
    what.press("Enter")
    expect(web.text("Copy the token now.")).to_be_visible()
    web.checked()
    [token] = set(web.secrets())
    assert HubClient(hub, token).call("msg/whoami", {})["handle"] == "ada_decides"
    assert not [url for url in web.requests if "sk_" in url]
    web.press("I have saved it")
    assert not web.secrets()


@pytest.mark.parametrize(("theme", "width"), [("dark", 1280), ("light", 390)])
def test_whoever_is_invited_makes_a_passkey_and_sees_no_token(hub, desk, theme, width):
    invited = Person(hub, f"host{width}").call("msg/invite")
    path = f"/invite/{invited['invite_url'].rpartition('/')[2]}"
    web = Device(desk, hub, path, width=width, color_scheme=theme)
    headline = f"@host{width} invited you to Folkmoot."
    expect(web.page.get_by_role("heading", name=headline)).to_be_visible()
    web.checked()
    web.page.get_by_role("link", name="Create your account").press("Enter")
    expect(web.field("Handle")).to_be_focused()
    assert web.page.url == f"{web.hub}/sign-in"
    web.checked()
    web.page.keyboard.type(f"ben{width}")
    web.page.keyboard.press("Enter")
    expect(web.page.get_by_role("heading", name=f"You are @ben{width}")).to_be_visible()
    web.checked()
    web.press("Make a passkey", says="Your passkey is ready.")
    assert not web.secrets()
    web.field("I have saved the recovery code.").check()
    web.press("Continue")
    expect(web.page).to_have_url(f"{web.hub}/")
    phone = Device(desk, hub)
    phone.take(web.kept())
    phone.enter()
    phone.page.locator(".threads").wait_for()


def test_a_lost_passkey_is_replaced_by_the_recovery_code_which_ends_the_others(hub, desk):
    ada = Person(hub, "ada_lost")
    lost = Device(desk, hub, "/account", token=ada.token)
    lost.press("Add a passkey", says="The passkey is added.")
    lost.ignored = ("403 (Forbidden)", *OUT)
    web = Device(desk, hub)
    web.press("Use my recovery code")
    web.submit("Recover", {"Handle": "ada_lost", "Recovery code": ada.recovery_code})
    expect(web.text("your old passkeys are gone")).to_be_visible()
    web.press("Make a passkey", says="Your passkey is ready.")
    assert not web.secrets()
    web.press("Continue")
    web.page.goto(f"{web.hub}/account")
    expect(web.button(re.compile("^Rename "))).to_have_count(1)
    expect(lost.text("You were signed out.")).to_be_visible()
    lost.press("Sign in with a passkey", says="This passkey did not work here.")
    web.enters_again()


def test_a_person_names_several_passkeys_and_removes_all_but_the_last(hub, desk):
    ada = Person(hub, "ada_several")
    phone = Device(desk, hub, "/account", token=ada.token)
    phone.press("Add a passkey", says="The passkey is added.")
    web = Device(desk, hub, "/account", token=ada.token)
    web.press("Add a passkey", says="The passkey is added.")
    web.button(re.compile("^Rename ")).first.click()
    web.field("Name of the passkey").fill("Phone")
    web.field("Name of the passkey").press("Enter")
    expect(web.text("The passkey has a new name.")).to_be_visible()
    row = web.page.locator("li", has_text="Phone")
    web.confirm("Remove", row, says="The passkey is removed.")
    expect(row).to_have_count(0)
    web.press("Remove")
    expect(web.text("This is your last passkey.")).to_be_visible()
    web.press("Keep")
    web.enters_again()
    gone = Device(desk, hub, ignored=("403 (Forbidden)",))
    gone.take(phone.kept())
    gone.press("Sign in with a passkey", says="This passkey did not work here.")


def test_without_tls_the_page_says_why_and_takes_a_token(hub, desk):
    """Chromium has no passkeys on a page that came over http from a name that is not this one."""
    context = desk.context(width=390)
    page = desk.page(context, lambda: ("insecure", "untrustworthy", "401 (Unauthorized)"))
    plain = "http://hub.example"

    def served(route):
        headers = {**route.request.headers, "origin": hub}
        answer = route.fetch(url=route.request.url.replace(plain, hub), headers=headers)
        route.fulfill(response=answer)

    page.route(f"{plain}/**", served)
    page.goto(f"{plain}/sign-in")
    expect(page.get_by_text("Passkeys need https, and this page came without it.")).to_be_visible()
    expect(page.get_by_text("Sign in with a link or a token")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_have_count(0)
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    check_axe(page, page.url)
    page.get_by_role("button", name="I am new here").click()
    page.get_by_label("Handle").fill("ben_plain")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("textbox", name="Token")).to_have_value(re.compile("^sk_"))
