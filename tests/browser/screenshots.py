"""Pictures of the pages for the README and the docs, and of every view to look at.

python -m tests.browser.screenshots FOLDER          every view, in both themes and four widths
python -m tests.browser.screenshots FOLDER NAME…    only views whose name begins so: `web-account`
python -m tests.browser.screenshots --docs          the few that the docs show
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import launch, variables
from tests.browser.console import Operated, Web
from tests.browser.harbour import harbour, tapes
from tests.browser.harness import BARE, STORING, Desk, Inbox, Person, host_server
from tests.browser.scenes import VIEWS, scene
from tests.browser.test_apps import asking
from tests.process import Process

WIDTHS = {320: 640, 390: 760, 768: 800, 1280: 800}
IMAGES = Path(__file__).parents[2] / "src" / "folkmoot" / "web" / "images"
# What the README and the docs show.
DOCS = (
    ("web-thread", "light", 1280),
    ("inbox-thread", "dark", 1280),
    ("web-inbox", "light", 390),
    ("web-account", "light", 768),
    ("web-consent", "light", 768),
    ("console-home", "light", 1280),
    ("console-room", "dark", 1280),
    ("console-asks", "light", 390),
    ("console-programs", "light", 390),
    ("console-server", "light", 1280),
    ("console-tape", "light", 1280),
    ("console-numbers", "dark", 1280),
    ("console-people", "light", 768),
)
# The same letters wherever the pictures are made: P052 is the Palatino of fonts-urw-base35.
FONTS = {"--serif": "P052", "--sans": "Nimbus Sans", "--mono": "DejaVu Sans Mono"}
DRESS = """async (root, fonts) => {
  for (const [name, font] of Object.entries(fonts)) root.style.setProperty(name, font);
  // It has no medium weight, for which a browser would take another font instead of the regular.
  const faces = [
    ["P052-Roman", "100 500", "normal"],
    ["P052-Bold", "501 900", "normal"],
    ["P052-Italic", "100 900", "italic"],
  ].map(([local, weight, style]) => new FontFace("P052", `local("${local}")`, { weight, style }));
  for (const face of faces) document.fonts.add(await face.load());
}"""


class Stage(NamedTuple):
    """A hub with something to see, and a browser."""

    desk: Desk
    hub: str
    ada: Person
    # A token of Ada's that may run the hub.
    operator: str


# Opens a view in a theme and a width, ready to be taken.
Draw = Callable[[Stage, str, int], Page]


def dress(page: Page, inbox: Inbox | None = None) -> None:
    """Set the fonts, in the page or in the frame in it."""
    root = inbox.frame.locator("html") if inbox else page.locator("html")
    root.evaluate(DRESS, FONTS)


def in_host(view: str) -> Draw:
    """A view of the inbox in a host's frame."""

    def draw(stage: Stage, theme: str, width: int) -> Page:
        first = view == "first"
        inbox = stage.desk.open(
            stage.hub,
            None if first else stage.ada.token,
            sandbox=BARE if first else STORING,
            width=width,
            height=WIDTHS[width],
            theme=theme,
            size=WIDTHS[width],
        )
        dress(inbox.page, inbox)
        if not first:
            inbox.frame.locator(".row").first.wait_for()
            VIEWS[view](inbox)
        inbox.page.clock.run_for(500)
        return inbox.page

    return draw


class OnHub(NamedTuple):
    """A page of the hub: where it is, what is there once it is drawn, and who looks at it."""

    path: str
    ready: str
    show: Callable[[Page], None] = lambda _: None
    who: str = "ada"

    def __call__(self, stage: Stage, theme: str, width: int) -> Page:
        token = {"ada": stage.ada.token, "operator": stage.operator, "nobody": ""}[self.who]
        size = {"width": width, "height": WIDTHS[width], "color_scheme": theme}
        page = Web(stage.desk, stage.hub, self.path, token=token, real_time=True, **size).page
        dress(page)
        page.locator(self.ready).first.wait_for()
        page.locator("[aria-busy=true]").first.wait_for(state="detached")
        self.show(page)
        page.evaluate("document.fonts.ready.then(() => scrollTo(0, 0))")
        return page


OnConsole = partial(OnHub, who="operator")


def show_browsers(page: Page) -> None:
    page.get_by_role("heading", name="Browsers").evaluate("it => it.scrollIntoView()")


def open_bob(page: Page) -> None:
    page.locator(".row", has_text="Bob Weaver").first.click()
    page.locator(".letter").last.wait_for()


def only_programs(page: Page) -> None:
    page.get_by_role("button", name="Programs").click()
    page.wait_for_timeout(300)


def add_a_server(page: Page) -> None:
    page.get_by_role("button", name="Add a server").click()


def add_a_rule(page: Page) -> None:
    page.get_by_role("button", name="Add a rule").click()


def open_a_tool(page: Page) -> None:
    page.locator(".server-tool summary").first.click()


def open_a_call(page: Page) -> None:
    page.locator(".moment", has_text="tools/call route").first.click()
    page.get_by_role("region", name="Message").wait_for()


def consent(stage: Stage, theme: str, width: int) -> Page:
    """What someone is asked for whom an app has opened the hub's page."""
    asked = OnHub(asking(stage.hub, "Claude Code"), "text=It can:")
    return asked(stage, theme, width)


# Every view. Another page of the hub is another row.
VIEW: dict[str, Draw] = {
    **{f"inbox-{view}": in_host(view) for view in ("first", *VIEWS)},
    "web-inbox": OnHub("/inbox", ".row"),
    "web-thread": OnHub("/inbox", ".row", open_bob),
    "web-account": OnHub("/account", "text=this browser", show_browsers),
    "web-consent": consent,
    "web-sign-in": OnHub("/sign-in", "text=Use my recovery code", who="nobody"),
    "web-front": OnHub("/", ".hero", who="nobody"),
    "console-home": OnConsole("/", "main h1"),
    "console-rooms": OnConsole("/rooms", "main a[href^='/rooms/']"),
    "console-room": OnConsole("/rooms/harbour", ".decision .button"),
    "console-asks": OnConsole("/decisions", ".asks > li"),
    "console-programs": OnConsole("/decisions", ".asks > li", only_programs),
    "console-decided": OnConsole("/decisions?show=decided", "main h1"),
    "console-servers": OnConsole("/servers", "table td"),
    "console-add": OnConsole("/servers", "table td", add_a_server),
    "console-server": OnConsole("/servers/boats", ".decision"),
    "console-tool": OnConsole("/servers/charts", ".server-tool", open_a_tool),
    "console-tapes": OnConsole("/tapes", "table td"),
    "console-tape": OnConsole("/tapes/monday.jsonl", ".moment", open_a_call),
    "console-numbers": OnConsole("/tapes/monday.jsonl?view=numbers", ".plot svg"),
    "console-compare": OnConsole(
        "/tapes/monday.jsonl?view=compare&with=/tuesday.jsonl", ".pairs li"
    ),
    "console-use": OnConsole("/tapes/monday.jsonl?view=use", ".copy"),
    "console-people": OnConsole("/people", "table td"),
    "console-person": OnConsole("/people/grace", "main h2"),
    "console-settings": OnConsole("/settings", ".facts dd"),
    "console-rule": OnConsole("/settings", ".facts dd", add_a_rule),
    "console-audit": OnConsole("/audit", "table td"),
    "web-docs": OnHub("/docs/tutorials/person", "h1", who="nobody"),
}


def hub_of(folder: Path, **settings: str) -> Process:
    """A hub that has tapes and takes servers."""
    (folder / "recorded").mkdir()
    tapes(folder / "recorded")
    return Process(
        folder / "hub", FOLKMOOT_RECORD_FOLDER=str(folder / "recorded"),
        PATH=f"{folder}:{os.environ['PATH']}",
        XDG_RUNTIME_DIR=str(folder), XDG_STATE_HOME=str(folder / "state"), **settings,
    )  # fmt: skip


@contextmanager
def staged() -> Iterator[Stage]:
    with (
        host_server() as host,
        tempfile.TemporaryDirectory() as data,
        hub_of(Path(data), **variables(host)) as running,
        sync_playwright() as driver,
        launch(driver) as browser,
    ):
        hub = f"http://127.0.0.1:{running.port}"
        ada = scene(hub)
        operated = Operated(running)
        harbour(operated, ada, Path(data))
        laptop = {"handle": "ada", "label": "laptop", "scope": "mail.read"}
        operated.ask("folkmoot/create_token_for", **laptop)
        yield Stage(Desk(browser, host, []), hub, ada, operated.token("ada"))


def main(arguments: list[str]) -> None:
    if not arguments:
        raise SystemExit(__doc__)
    missing_fonts()
    docs = arguments == ["--docs"]
    folder = IMAGES if docs else Path(arguments[0])
    chosen = tuple(arguments[1:])
    folder.mkdir(parents=True, exist_ok=True)
    with staged() as stage:
        for name, draw in VIEW.items():
            for theme in ("light", "dark"):
                for width in WIDTHS:
                    wanted = (name, theme, width) in DOCS if docs else name.startswith(chosen or "")
                    if wanted:
                        page = draw(stage, theme, width)
                        page.screenshot(path=folder / f"{name}-{theme}-{width}.png")
                        page.context.close()


def missing_fonts() -> None:
    """End where a font is missing: the browser would take another without a word."""
    lister = shutil.which("fc-list") or "fc-list"
    known = subprocess.run([lister, ":", "family"], capture_output=True, text=True, check=True)
    if absent := [font for font in FONTS.values() if font not in known.stdout]:
        raise SystemExit(
            f"Not installed: {', '.join(absent)}. Debian: fonts-urw-base35, fonts-dejavu."
        )


if __name__ == "__main__":
    main(sys.argv[1:])
