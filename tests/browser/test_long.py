"""A conversation of ten thousand messages: it opens as fast as one of a page, and no
more of it is drawn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from folkmoot.app import Hub
from tests.browser.conftest import variables
from tests.browser.console import Web
from tests.browser.harness import Inbox, expect, is_like, least_of_each
from tests.mcp_harness import settings
from tests.process import Process

pytestmark = pytest.mark.browser

# As many as fill the page are drawn of either, so that what is compared is what is not drawn.
MANY, FEW = 10_000, 100
DRAWN = 120

# Opens the conversation that `window.name` names as soon as it is listed, and notes when it is
# drawn, in milliseconds from navigation.
PAINTED = """
const wanted = window.name;
let clicked = false;
const among = (selector, text) =>
  [...document.querySelectorAll(selector)].find((it) => it.textContent.includes(text));
const look = () => {
  if (among(".letter", `of ${wanted}`)) {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
  } else if (!clicked && among(".row", `@${wanted}`)) {
    clicked = true;
    among(".row", `@${wanted}`).click();
  }
};
const observer = new MutationObserver(look);
if (["few", "many"].includes(wanted)) observer.observe(document, {childList: true, subtree: true});
"""


async def write(folder: Path) -> str:
    """A mailbox with a long conversation and a short one; answers its token."""
    async with Hub(settings(folder)).running() as hub:
        made = await hub.accounts.register("ada", also=hub.mail.welcome)
        for handle, number in (("many", MANY), ("few", FEW)):
            other = (await hub.accounts.register(handle, also=hub.mail.welcome)).account
            for start in range(0, number, 200):
                await asyncio.gather(
                    *(
                        hub.mail.send(other, "ada", body=f"Message {n} of {handle}")
                        for n in range(start, min(start + 200, number))
                    )
                )
        return made.token


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, host: str) -> Iterator[tuple[str, str]]:
    """A hub with the two conversations, and the token of their reader."""
    folder = tmp_path_factory.mktemp("long")
    tokens: list[str] = []
    # The driver of the browser has this thread's event loop.
    writing = threading.Thread(target=lambda: tokens.append(asyncio.run(write(folder))))
    writing.start()
    writing.join()
    with Process(folder, **variables(host)) as running:
        yield f"http://127.0.0.1:{running.port}", tokens[0]


def seconds_to_show(inbox: Inbox, handle: str, text: str) -> float:
    inbox.frame.locator(".home").click()
    inbox.frame.locator(".row").first.wait_for()
    before = perf_counter()
    inbox.frame.locator(".row", has_text=f"@{handle}").click()
    inbox.frame.locator(".letter", has_text=text).first.wait_for()
    return perf_counter() - before


def test_ten_thousand_messages_open_like_a_hundred(place, desk):
    inbox = desk.open(*place, size=800, real_time=True)
    inbox.frame.locator(".row").nth(1).wait_for()
    # Messages of one moment are stored in no certain order.
    few, many = least_of_each(
        lambda: seconds_to_show(inbox, "few", "of few"),
        lambda: seconds_to_show(inbox, "many", "of many"),
        slack=0.05,
    )
    assert is_like(few, many, slack=0.05), (few, many)
    letters = inbox.frame.locator(".letter")
    log = inbox.frame.locator(".messages")
    shown = set()
    for _ in range(8):
        first = letters.first.inner_text()
        log.evaluate("it => it.scrollTop = 0")
        expect(letters.first).not_to_have_text(first)
        shown.update(letters.all_inner_texts())
        assert letters.count() <= DRAWN
    assert len(shown) >= 250
    assert letters.count() <= DRAWN
    inbox.frame.locator(".composer textarea").fill("Back to the end.")
    inbox.button("Send", exact=True).click()
    expect(letters.last).to_contain_text("Back to the end.")
    expect(letters.last).to_be_in_viewport()


def test_from_navigation_ten_thousand_messages_are_painted_like_a_hundred(place, desk):
    hub, token = place
    web = Web(desk, hub, real_time=True).sign_in(token)
    web.page.add_init_script(PAINTED)

    def milliseconds(handle: str) -> float:
        web.page.evaluate("name => { window.name = name; }", handle)
        web.page.goto(f"{web.hub}/inbox")
        web.page.wait_for_function("() => window.painted", timeout=60_000)
        found: float = web.page.evaluate("window.painted")
        return found

    few, many = least_of_each(lambda: milliseconds("few"), lambda: milliseconds("many"))
    assert is_like(few, many), (few, many)
