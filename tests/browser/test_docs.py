"""The documentation as people read it: navigation, search, both themes, narrow and wide."""

from __future__ import annotations

import re

import pytest

from tests.browser.console import Web
from tests.browser.harness import check_axe, expect

pytestmark = pytest.mark.browser

READ = ("/docs", "/docs/tutorials/inbox", "/docs/reference/settings", "/docs/search?q=backup")


@pytest.mark.requirement("docs.pages", "docs.search")
def test_someone_finds_a_page_by_the_navigation_and_by_searching(hub, desk):
    web = Web(desk, hub, "/")
    web.page.get_by_role("link", name="Documentation").click()
    expect(web.page).to_have_title("Documentation · Folkmoot")
    contents = web.page.get_by_role("navigation", name="Documentation")
    contents.get_by_role("link", name="Backup and restore").click()
    expect(web.page.get_by_role("heading", level=1)).to_have_text("Backup and restore")
    current = contents.locator("[aria-current=page]")
    expect(current).to_have_text("Backup and restore")
    web.page.get_by_label("Search the documentation").fill("one-time code")
    web.page.get_by_label("Search the documentation").press("Enter")
    expect(web.page.get_by_role("heading", level=1)).to_have_text("Search")
    first = web.page.locator(".found a").first
    expect(first).to_be_visible()
    first.click()
    expect(web.page).to_have_url(re.compile(r"/docs/[a-z/-]+#[\w-]+$"))
    code = web.page.locator(".paste").first
    web.page.goto(f"{web.hub}/docs/tutorials/person")
    expect(code.get_by_role("button", name="Copy")).to_be_visible()
    web.page.goto(f"{web.hub}/docs/tutorials/inbox")
    picture = web.page.locator(".prose img").first
    picture.scroll_into_view_if_needed()
    web.page.wait_for_function("document.querySelector('.prose img').naturalWidth > 0")


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_documentation(hub, desk, theme, width):
    web = Web(desk, hub, "/docs", width=width, color_scheme=theme)
    for path in READ:
        web.page.goto(f"{web.hub}{path}")
        check_axe(web.page, path)
        web.fits()
