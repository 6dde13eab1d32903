"""A conversation of ten thousand messages: it opens as fast as a short one, and stays smooth."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from folkmoot.app import Hub
from tests.browser.conftest import variables
from tests.browser.harness import Desk, Inbox, expect
from tests.browser.test_web import Web
from tests.mcp_harness import settings
from tests.process import Process

pytestmark = pytest.mark.browser

MANY, FEW = 10_000, 10
RUNS = 5
DRAWN = 120
FRAMES = """async () => {
  const box = document.querySelector(".messages");
  let late = 0, last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < 120; n += 1) {
    box.scrollTop -= 120;
    const now = await new Promise(requestAnimationFrame);
    if (now - last > 50) late += 1;
    last = now;
  }
  return late / 120;
}"""


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
"""Opens the conversation that `window.name` names as soon as it is listed, and notes when it is
drawn, in milliseconds from navigation."""


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


def least(measure: Callable[[], float], bound: float) -> float:
    """The least of up to three measurements: what else runs on this machine only adds to them."""
    measured: list[float] = []
    while len(measured) < 3 and (not measured or min(measured) > bound):
        measured.append(measure())
    return min(measured)


def test_ten_thousand_messages_open_like_ten_and_stay_smooth(
    place: tuple[str, str], desk: Desk
) -> None:
    inbox = desk.open(*place, size=800, real_time=True)
    inbox.frame.locator(".row").nth(1).wait_for()

    def excess() -> float:
        """By how much the long conversation is slower, in seconds."""
        # Messages of one moment are stored in no certain order.
        few, many = (
            median(seconds_to_show(inbox, handle, f"of {handle}") for _ in range(RUNS))
            for handle in ("few", "many")
        )
        return many - 1.5 * few

    assert least(excess, 0.05) <= 0.05
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
    frame = inbox.page.frames[1]
    assert least(lambda: median(frame.evaluate(FRAMES) for _ in range(RUNS)), 0.05) <= 0.05
    assert letters.count() <= DRAWN
    inbox.frame.locator(".composer textarea").fill("Back to the end.")
    inbox.button("Send", exact=True).click()
    expect(letters.last).to_contain_text("Back to the end.")
    expect(letters.last).to_be_in_viewport()


def test_from_navigation_ten_thousand_messages_are_painted_like_ten(
    place: tuple[str, str], desk: Desk
) -> None:
    hub, token = place
    web = Web(desk, hub, real_time=True).sign_in(token)
    web.page.add_init_script(PAINTED)

    def milliseconds(handle: str) -> float:
        web.page.evaluate("name => { window.name = name; }", handle)
        web.page.goto(f"{web.hub}/inbox")
        web.page.wait_for_function("() => window.painted", timeout=60_000)
        found: float = web.page.evaluate("window.painted")
        return found

    def ratio() -> float:
        """How much longer the long conversation takes; in turns, as a machine is busy in waves."""
        pairs = [(milliseconds("few"), milliseconds("many")) for _ in range(RUNS)]
        few, many = (median(times) for times in zip(*pairs, strict=True))
        return many / few

    assert least(ratio, 1.5) <= 1.5
