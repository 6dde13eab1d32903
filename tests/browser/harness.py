"""What browser tests share: a hub in its own process, Chromium, and a host that shows the inbox."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from folkmoot.cli.client import HubClient

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Page

HERE = Path(__file__).parent
AXE = HERE.parents[1] / "app" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
RUN = """async () => {
  // A page that is drawn anew while it is looked at is looked at again.
  let found, before;
  for (let tries = 0; tries < 10 && before !== document.documentElement.outerHTML; tries += 1) {
    before = document.documentElement.outerHTML;
    found = (await axe.run(document, {resultTypes: ["violations"]})).violations;
    if (!found.length) break;
  }
  return found.map(({id, impact, nodes}) => [impact, id, nodes.map(it => it.html)]);
}"""
STORING = "allow-scripts allow-same-origin"
BARE = "allow-scripts"
# Milliseconds to wait for what must come, however busy the machine is.
PATIENCE = 60_000
# How often the inbox asks for what is new, in milliseconds.
POLL = 15_000


def missing(what: str) -> NoReturn:
    """Skip a test; in CI, which must have everything, fail it."""
    if os.environ.get("APP_REQUIRED"):
        pytest.fail(what)
    pytest.skip(what)


def chromium() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def shows(locator: Any, *texts: str) -> None:
    """Wait until all of it is there."""
    for text in texts:
        expect(locator).to_contain_text(text)


def expect(locator: Any) -> Any:
    """Playwright's own, imported when a test runs: tests are collected without it."""
    from playwright.sync_api import expect as expectation

    return expectation(locator)


def check_axe(view: Page | Frame, what: str) -> None:
    """Fail for whatever axe-core finds in a page that has read what it shows."""
    if not AXE.exists():
        missing("needs axe-core, which 'make app' installs")
    expect(view.locator("h1").first).to_be_visible()
    expect(view.locator("[aria-busy=true]")).to_have_count(0)
    if view.evaluate("!window.axe"):
        view.evaluate(AXE.read_text())
    found = view.evaluate(RUN)
    assert not found, f"{what}: {json.dumps(found, indent=1)}"


def least_of_each(
    few: Callable[[], float], many: Callable[[], float], slack: float = 0
) -> tuple[float, float]:
    """The least time of each, measured in turns: what else runs on a machine only adds to them.

    They are measured five times, and more often while the one is not like the other.
    """
    times = [(few(), many()) for _ in range(5)]

    def least() -> tuple[float, float]:
        return min(each[0] for each in times), min(each[1] for each in times)

    while len(times) < 30 and not is_like(*least(), slack):
        times.append((few(), many()))
    return least()


def is_like(few: float, many: float, slack: float = 0) -> bool:
    """Whether much takes no longer than little does."""
    return many <= 1.5 * few + slack


class Pages(SimpleHTTPRequestHandler):
    """Serves the pages of a folder, and notes the cookies it gets."""

    def __init__(self, cookies: list[str], *given: Any, **named: Any) -> None:
        self._cookies = cookies
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        self._cookies.append(self.headers.get("cookie", ""))
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def page_server(folder: Path, cookies: list[str]) -> Iterator[int]:
    """The port where a folder's pages are."""
    handler = partial(Pages, cookies, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def host_server() -> Iterator[str]:
    """Where the host's page is."""
    with page_server(HERE, []) as port:
        yield f"http://127.0.0.1:{port}/host.html"


class Person:
    """Someone with an account, who also calls the hub without a browser."""

    def __init__(self, hub: str, handle: str, **arguments: Any) -> None:
        self.hub, self.handle = hub, handle
        made = HubClient(hub).call("msg/register", {"handle": handle, **arguments})
        self.token: str = made["token"]
        self.recovery_code: str = made["recovery_code"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool answers."""
        return HubClient(self.hub, self.token).call(tool, arguments)

    def propose(
        self, room: str, tool: str, arguments: dict[str, Any], to: str = "gateway", **more: Any
    ) -> str:
        """Ask in a room that a tool is called; the hub has those of the gateway itself."""
        params = {"name": tool, "arguments": arguments}
        wanted = {"method": "tools/call", "params": params, "to": to, **more}
        return str(self.call("room/propose", room=room, **wanted)["proposal"])

    def last(self) -> dict[str, Any]:
        """The newest message of theirs, which stays unread."""
        message: dict[str, Any] = self.call("msg/inbox", limit=1, peek=True)["messages"][0]
        return message


class Controls:
    """What someone sees and uses in a page, or in a frame of it."""

    page: Page

    @property
    def frame(self) -> Any:
        return self.page

    def text(self, text: str, **options: Any) -> Any:
        return self.frame.get_by_text(text, **options)

    def button(self, name: str, **options: Any) -> Any:
        return self.frame.get_by_role("button", name=name, **options)

    def field(self, label: str, **options: Any) -> Any:
        return self.frame.get_by_label(label, **options)

    def press(self, button: str, *, says: str | tuple[str, ...] = ()) -> None:
        """Press a button, and wait for what is said then."""
        dialog = self.frame.get_by_role("dialog")
        within = dialog if dialog.count() else self.frame
        within.get_by_role("button", name=button, exact=True).click()
        for text in (says,) if isinstance(says, str) else says:
            expect(self.text(text)).to_be_visible()

    def confirm(self, name: str, within: Any = None, *, says: str = "") -> None:
        """Press a button, and again where it asks whether one is sure."""
        (within or self.frame).get_by_role("button", name=name).first.click()
        self.frame.get_by_role("dialog").get_by_role("button", name=name).click()
        if says:
            expect(self.text(says)).to_be_visible()

    def submit(
        self,
        button: str,
        fields: dict[str, str],
        *,
        exact: bool = False,
        says: str | tuple[str, ...] = (),
    ) -> None:
        """Fill fields in, press a button, and wait for what is said then."""
        for label, value in fields.items():
            self.field(label, exact=exact).fill(value)
        self.press(button, says=says)

    def open_thread(self, name: str) -> None:
        self.frame.locator(".row", has_text=name).first.click()
        self.frame.locator(".messages").wait_for()

    def write(self, text: str) -> None:
        self.frame.locator(".composer textarea").fill(text)
        self.press("Send")

    def open_keys(self) -> None:
        """Go to where encryption is set."""
        self.button("Settings").click()
        self.button("Keys and backup").click()

    def turn_on(self) -> None:
        """Make a key in the page."""
        self.open_keys()
        self.press("Turn on", says="On. The hub names this key as yours.")


class Inbox(Controls):
    """The inbox in a host's frame, and everything that went wrong in the page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe")

    def host(self, member: str) -> Any:
        """What the host has heard from the app."""
        return self.page.evaluate(f"window.host.{member}")

    def poll(self) -> None:
        """Let the time of one poll pass."""
        self.page.clock.fast_forward(POLL)


class Desk:
    """A browser, from which tests open the inbox as often as they like."""

    def __init__(self, browser: Browser, host: str, problems: list[str]) -> None:
        self.browser = browser
        self.url = host
        self.problems = problems
        self._contexts: list[BrowserContext] = []

    def context(
        self, *, width: int = 1280, height: int = 800, real_time: bool = False, **options: Any
    ) -> BrowserContext:
        """A browser profile of its own, with a clock that tests can turn unless told."""
        viewport = {"width": width, "height": height}
        context = self.browser.new_context(viewport=viewport, **options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        if not real_time:
            context.clock.install()
        self._contexts.append(context)
        return context

    def open(
        self,
        hub: str,
        token: str | None = None,
        *,
        sandbox: str = STORING,
        context: BrowserContext | None = None,
        width: int = 1280,
        height: int = 800,
        size: int | None = None,
        real_time: bool = False,
        kind: type[Inbox] = Inbox,
        **options: Any,
    ) -> Inbox:
        """The inbox of whoever has this token; of nobody without one."""
        context = context or self.context(width=width, height=height, real_time=real_time)
        page = self.page(context, lambda: ("can escape its sandbox",))
        page.on("requestfailed", lambda failed: self.problems.append(f"failed: {failed.url}"))
        page.goto(self.url)
        given = {"url": f"{hub}/mcp", "token": token, "sandbox": sandbox, "height": size, **options}
        page.evaluate("options => window.openInbox(options)", given)
        inbox = kind(page)
        inbox.frame.locator(".app").wait_for()
        return inbox

    def page(self, context: BrowserContext, ignored: Callable[[], tuple[str, ...]]) -> Page:
        """A page of which everything that goes wrong is noted, but for what is ignored by then."""

        def look(message: Any) -> None:
            bad = message.type in ("error", "warning")
            if bad and not any(words in message.text for words in ignored()):
                self.problems.append(f"{message.type}: {message.text} ({message.location['url']})")

        page = context.new_page()
        page.on("console", look)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()
