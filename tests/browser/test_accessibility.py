"""Every view with axe-core, in both themes, narrow and wide."""

from __future__ import annotations

import pytest

from tests.browser.conftest import variables
from tests.browser.harness import check_axe
from tests.browser.scenes import VIEWS, scene
from tests.process import Process

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(tmp_path, host, desk, theme, width):
    with Process(tmp_path, **variables(host)) as running:
        hub = f"http://127.0.0.1:{running.port}"
        first = desk.open(hub, theme=theme, width=width, size=700)
        first.field("Handle").wait_for()
        check_axe(first.page.frames[1], "first")
        inbox = desk.open(hub, scene(hub).token, theme=theme, width=width, size=700)
        inbox.frame.locator(".row").first.wait_for()
        for name, show in VIEWS.items():
            # By the keyboard: on a phone an open thread covers it.
            inbox.frame.locator(".home").press("Enter")
            show(inbox)
            check_axe(inbox.page.frames[1], name)
        first.page.close()
        inbox.page.close()
