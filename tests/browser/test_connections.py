"""People sign in to a server behind the hub in a real browser: by a link, and on the console."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from folkmoot.cli.client import HubClient
from tests.browser.console import Console, Web, started
from tests.browser.harness import Person, check_axe, expect
from tests.peers.protected import Memory, protected

pytestmark = pytest.mark.browser


class Willing(Memory):
    """An authorization server that lets in whoever comes."""

    async def authorize(self, client, params):
        await super().authorize(client, params)
        return self.allow(len(self.asked) - 1, "ada")


@contextmanager
def apart(memory: Memory) -> Iterator[str]:
    """The server, in a thread of its own; the answer is its address."""
    found: list[str] = []
    ready, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with protected(memory) as url:
            found.append(url)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    memory = Willing()
    with apart(memory) as url:
        config = folder / "config.toml"
        config.write_text(f'[backends.diary]\nurl = "{url}"\nauth = "oauth"\neveryone = true\n')
        config.chmod(0o600)
        with started(folder) as running:
            yield f"http://127.0.0.1:{running.port}", memory


def link_of(hub, person):
    return HubClient(hub, person.token).begin_connection(namespace="diary").url


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_a_link_leads_to_the_server_and_back(place, desk, theme, width):
    hub, _ = place
    ada = Person(hub, f"ada{width}")
    link = urlsplit(link_of(hub, ada))
    web = Web(desk, hub, link.path, width=width, color_scheme=theme)
    expect(web.text("Sign in to continue.")).to_be_visible()
    web.field("Token").fill(ada.token)
    web.field("Token").press("Enter")
    expect(web.page.get_by_role("heading", name="Sign in to a server")).to_be_visible()
    web.fits()
    check_axe(web.page, web.page.url)
    go = web.button("Continue")
    go.focus()
    go.press("Enter")
    expect(web.page.get_by_role("status")).to_contain_text("You are signed in to diary.")
    # The code stays in no history.
    assert urlsplit(web.page.url)[2:4] == ("/oauth/callback", "")
    web.fits()
    check_axe(web.page, web.page.url)


def test_the_link_of_another_signs_nobody_in(place, desk):
    hub, memory = place
    ada, eve = Person(hub, "ada"), Person(hub, "eve")
    link = urlsplit(link_of(hub, eve))
    before = len(memory.asked)
    web = Web(desk, hub, link.path, token=ada.token, ignored=("403 (Forbidden)",))
    web.button("Continue").click()
    expect(web.page.get_by_role("alert")).to_contain_text("not for your account")
    assert len(memory.asked) == before


def test_the_console_shows_who_is_signed_in_and_forgets(place, desk):
    hub, memory = place
    bea = Person(hub, "bea")
    console = Console(desk, hub, bea.token, "/servers")
    console.button("Sign in").click()
    expect(console.page.get_by_role("status")).to_contain_text("You are signed in to diary.")
    console.go("/servers")
    expect(console.text("Signed in")).to_be_visible()
    console.check_axe("servers")
    console.confirm("Forget")
    expect(console.button("Sign in")).to_be_visible()
    assert memory.revoked
