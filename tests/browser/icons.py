"""The icons of the installed app, drawn from the ring of stones: python -m tests.browser.icons."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

from folkmoot.web.discovery import ICONS
from folkmoot.web.frame import ring
from tests.browser.conftest import launch

FOLDER = Path(__file__).parents[2] / "src" / "folkmoot" / "web" / "icons"
STYLE = """
html, body { margin: 0; height: 100%; background: transparent; }
.ground { box-sizing: border-box; width: 100vw; height: 100vh; background: #f6f3ea; }
.any { padding: 9vw; border-radius: 22vw; }
.maskable { padding: 19vw; }
svg { width: 100%; height: 100%; }
.stone { fill: #8b8f80; }
.speaker { fill: #2f6846; }
.fire { fill: #ad4c1c; }
.glow { fill: #c4622d2b; }
"""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver, launch(driver) as browser:
        for name, (sizes, purpose) in ICONS.items():
            side = int(sizes.partition("x")[0])
            page = browser.new_page(viewport={"width": side, "height": side})
            drawing = ring(9, size=10)
            page.set_content(f'<style>{STYLE}</style><div class="ground {purpose}">{drawing}</div>')
            page.screenshot(path=FOLDER / name, omit_background=True)


if __name__ == "__main__":
    main()
