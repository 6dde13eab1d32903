"""What browser tests of the console share: a hub with its operator's socket, and its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from folkmoot.cli.operator import ask_socket
from tests.browser.harness import Desk, Person, check_axe, expect
from tests.browser.test_web import Web
from tests.process import Process

WIDTHS = (320, 390, 768, 1280, 2560)
OVER = """async (width) => {
  const frame = () => new Promise(requestAnimationFrame);
  while (innerWidth !== width) await frame();
  // One frame later, whatever follows the size of the window has done so.
  await frame();
  await frame();
  return document.documentElement.scrollWidth - innerWidth;
}"""


class Operated:
    """A hub in its own process, and whoever runs it."""

    def __init__(self, running: Process) -> None:
        self.port = running.port
        self.url = f"http://127.0.0.1:{running.port}"
        self.socket = running.folder / "control.sock"

    def ask(self, operation: str, **arguments: Any) -> Any:
        """What the operator asks for at the hub's own machine."""
        return ask_socket(self.socket, operation, arguments)

    def token(self, handle: str, scope: str = "* operate") -> str:
        """A token of someone's that may run the hub."""
        made = self.ask("folkmoot/create_token_for", handle=handle, scope=scope)
        token: str = made["token"]
        return token

    def operator(self, handle: str) -> Person:
        """Someone with an account and a token that may run the hub."""
        person = Person(self.url, handle)
        person.token = self.token(handle)
        return person


class Console(Web):
    """A page of the console, signed in; everything that goes wrong in it fails the test."""

    def __init__(self, desk: Desk, hub: str, token: str, path: str = "/", **options: Any) -> None:
        options.setdefault("real_time", True)
        first = f"/sign-in?next={quote(path)}" if token else path
        super().__init__(desk, hub, first, **options)
        self.requests: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        if token:
            self.enter(token)

    def enter(self, token: str) -> None:
        """Sign in on the page where one was sent to, and come back from there."""
        self.field("Token").fill(token)
        self.button("Sign in", exact=True).click()
        self.page.locator(".console").wait_for()

    def go(self, path: str) -> None:
        self.page.goto(f"{self.hub}{path}")
        self.page.locator(".console").wait_for()

    def heading(self, text: str) -> None:
        """Wait for a page by its heading."""
        expect(self.page.get_by_role("heading", level=1, name=text)).to_be_visible()

    def check_axe(self, what: str = "") -> None:
        """Fail for whatever axe-core finds, in either theme."""
        for theme in ("light", "dark"):
            # A colour on its way from one theme to the other has no contrast to judge.
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            check_axe(self.page, f"{what} {theme}")

    def check_widths(self, what: str = "") -> None:
        """Fail where a page is wider than the window."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 800})
            over = self.page.evaluate(OVER, width)
            assert over <= 0, f"{what} at {width} px: {over} px too wide"


def started(folder: Path, **variables: str) -> Process:
    """A hub for such tests."""
    return Process(folder, FOLKMOOT_RATE_LIMITS="off", **variables)
