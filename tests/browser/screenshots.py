"""Pictures of the inbox for the README and the docs, and of every view to look at.

python -m tests.browser.screenshots [FOLDER]        every view, in both themes and four widths
python -m tests.browser.screenshots --docs          the few that the docs show
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import launch, variables
from tests.browser.harness import BARE, STORING, Desk, host_server
from tests.browser.scenes import VIEWS, scene
from tests.process import Process

WIDTHS = {320: 640, 390: 760, 768: 800, 1280: 800}
IMAGES = Path(__file__).parents[2] / "docs" / "images"
DOCS = (("thread", "light", 1280), ("thread", "dark", 1280), ("list", "light", 390))
FONTS = "--serif: 'DejaVu Serif'; --sans: 'DejaVu Sans'; --mono: 'DejaVu Sans Mono'"
"""The same letters wherever the pictures are made."""


def take(
    desk: Desk, hub: str, token: str | None, view: str, theme: str, width: int, to: Path
) -> None:
    """One picture."""
    height = WIDTHS[width]
    sandbox = BARE if view == "first" else STORING
    inbox = desk.open(
        hub, token, sandbox=sandbox, width=width, height=height, theme=theme, size=height
    )
    inbox.frame.locator("html").evaluate(f"root => root.style.cssText += {FONTS!r}")
    if token:
        inbox.frame.locator(".row").first.wait_for()
        VIEWS[view](inbox)
    inbox.page.clock.run_for(500)
    inbox.page.screenshot(path=str(to))
    inbox.page.context.close()


def main(arguments: list[str]) -> None:
    docs = arguments == ["--docs"]
    folder = IMAGES if docs or not arguments else Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    with (
        host_server() as host,
        tempfile.TemporaryDirectory() as data,
        Process(Path(data), **variables(host)) as running,
        sync_playwright() as driver,
        launch(driver) as browser,
    ):
        hub = f"http://127.0.0.1:{running.port}"
        ada = scene(hub)
        desk = Desk(browser, host, [])
        for view in ("first", *VIEWS):
            for theme in ("light", "dark"):
                for width in WIDTHS:
                    if docs and (view, theme, width) not in DOCS:
                        continue
                    name = f"inbox-{view}-{theme}-{width}.png"
                    token = None if view == "first" else ada.token
                    take(desk, hub, token, view, theme, width, folder / name)


if __name__ == "__main__":
    main(sys.argv[1:])
