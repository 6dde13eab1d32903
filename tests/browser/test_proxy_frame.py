"""The app in the double frame that hosts in browsers use: the browser says what it may keep."""

from __future__ import annotations

import pytest

from folkmoot.bridge.crypto import DeviceKey
from tests.browser.harness import STORING, Desk, Inbox, Person, expect

pytestmark = pytest.mark.browser


class InProxy(Inbox):
    """The inbox in a frame in a frame."""

    @property
    def frame(self):  # type: ignore[no-untyped-def]
        return self.page.frame_locator("iframe").frame_locator("iframe")


def opened(desk: Desk, hub: str, token: str, proxy: str, context: object = None) -> InProxy:
    return desk.open(hub, token, kind=InProxy, proxy=proxy, sandbox=STORING, context=context)  # type: ignore[return-value,arg-type]


@pytest.mark.requirement("app.proxy-frame")
def test_in_a_frame_of_the_same_site_the_key_is_kept(hub, desk):
    ada = Person(hub, "ada")
    proxy = desk.url.replace("host.html", "proxy.html")
    context = desk.context()
    inbox = opened(desk, hub, ada.token, proxy, context)
    inbox.turn_on()
    shown = inbox.frame.locator(".fingerprint").inner_text()
    inbox.page.close()
    inbox = opened(desk, hub, ada.token, proxy, context)
    inbox.open_keys()
    expect(inbox.frame.locator(".fingerprint")).to_have_text(shown)
    expect(inbox.text("On. The hub names this key as yours.")).to_be_visible()


@pytest.mark.requirement("app.proxy-frame")
def test_in_a_frame_of_another_site_nothing_is_kept_and_the_app_says_so(hub, desk):
    bob, cleo = Person(hub, "bob"), Person(hub, "cleo")
    bob.call("msg/set_profile", client_public_key=DeviceKey.fresh().public)
    cleo.call("msg/send", to="bob", body="Storage or not, mail is read.")
    # Another host for the browser, the same server.
    proxy = desk.url.replace("host.html", "proxy.html").replace("127.0.0.1", "localhost")
    inbox = opened(desk, hub, bob.token, proxy)
    storing = "() => { try { localStorage.setItem('x', '1'); } catch (e) { return e.name; } }"
    assert inbox.frame.locator("html").evaluate(storing) == "SecurityError"
    inbox.open_thread("@cleo")
    expect(inbox.frame.locator(".body")).to_have_text("Storage or not, mail is read.")
    inbox.write("Answered from there.")
    expect(inbox.frame.locator(".letter.own .body")).to_have_text("Answered from there.")
    inbox.open_keys()
    expect(inbox.text("does not let the inbox keep anything")).to_be_visible()
