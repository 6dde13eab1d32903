"""What browser tests of the hub's own pages share: a hub with its operator, and its pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Self

from tests.browser.harness import Controls, Desk, Person, check_axe, expect
from tests.operator import ask_socket
from tests.process import Process

SECRET = re.compile(r"(sk|bs|oc)_[0-9a-f]{64}")
# What the console of a page says whose session was taken away.
OUT = ("401 (Unauthorized)", "ERR_INCOMPLETE_CHUNKED_ENCODING")
# What the front page says to those who are not signed in.
FRONT = "A place where everyone can speak."
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


class Web(Controls):
    """A page of the hub in a browser profile of its own; with a token, one is signed in."""

    def __init__(
        self,
        desk: Desk,
        hub: str,
        path: str = "/inbox",
        *,
        token: str = "",
        ignored: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.hub = hub.replace("127.0.0.1", "localhost")
        self.context = desk.context(**options)
        if token:
            headers = {"folkmoot-page": "1", "origin": self.hub}
            url = f"{self.hub}/v1/session"
            answer = self.context.request.post(url, data={"token": token}, headers=headers)
            assert answer.ok, answer.text()
        self.ignored = ignored
        self.page = desk.page(self.context, lambda: self.ignored)
        self.requests: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{self.hub}{path}")

    def sign_in(self, token: str, there: str = ".threads") -> Self:
        """Sign in on the page, and wait for what is there then."""
        self.submit("Sign in", {"Token": token})
        self.page.locator(there).first.wait_for()
        return self

    def sign_in_at_account(self, token: str) -> Self:
        self.field("Token").fill(token)
        self.field("Token").press("Enter")
        expect(self.text("this browser", exact=True)).to_be_visible()
        return self

    def hear_late_of_the_end(self) -> None:
        """Have the page hear a while after the hub ended its session."""

        def hold(route: Any) -> None:
            answer = route.fetch()
            if route.request.method == "DELETE":
                self.page.wait_for_timeout(1_500)
            route.fulfill(response=answer)

        self.page.route("**/v1/session", hold)

    def write(self, text: str) -> None:
        super().write(text)
        expect(self.page.locator(".letter.own .body").last).to_have_text(text)

    def fits(self) -> None:
        """Fail where the page is wider than the window."""
        over = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{self.page.url}: {over} px too wide"

    def secrets(self) -> list[str]:
        """Every token that the page can read, or that stands in its address."""
        seen = self.page.evaluate(
            """() => [
              document.documentElement.outerHTML,
              ...[...document.querySelectorAll("input, textarea")].map((it) => it.value),
              JSON.stringify(localStorage), JSON.stringify(sessionStorage),
              document.cookie, location.href, JSON.stringify(history.state),
            ].join("\\n")"""
        )
        return [found.group() for found in SECRET.finditer(seen)]


class Console(Web):
    """A page of the console; everything that goes wrong in it fails the test."""

    def __init__(self, desk: Desk, hub: str, token: str, path: str = "/", **options: Any) -> None:
        super().__init__(desk, hub, path, token=token, **{"real_time": True, **options})

    def enter(self, token: str) -> None:
        """Sign in on the page where one was sent to, and come back from there."""
        self.sign_in(token, ".console")

    def live(self) -> Self:
        expect(self.page.get_by_text("Live.")).to_be_visible()
        return self

    def message(self, text: str) -> Any:
        return self.page.locator(".message", has_text=text)

    def say(self, text: str) -> None:
        self.submit("Send", {"Message to the room": text})

    def numbers(self) -> list[int]:
        """The numbers of the messages that are shown."""
        ids: list[str] = self.page.locator(".message").evaluate_all("all => all.map(it => it.id)")
        return [int(each.removeprefix("m-")) for each in ids]

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
