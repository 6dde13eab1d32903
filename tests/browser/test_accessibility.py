"""Every view with axe-core, in both themes, narrow and wide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import variables
from tests.browser.harness import AXE, Desk, Inbox, expect, missing
from tests.browser.scenes import VIEWS, scene
from tests.process import Process

pytestmark = pytest.mark.browser

RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map(({id, impact, nodes}) => [impact, id, nodes.map(it => it.html)]);
}"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(
    tmp_path: Path, host: str, desk: Desk, theme: str, width: int
) -> None:
    if not AXE.exists():
        missing("needs axe-core, which 'make app' installs")
    with Process(tmp_path, **variables(host)) as running:
        hub = f"http://127.0.0.1:{running.port}"
        first = desk.open(hub, theme=theme, width=width, size=700)
        first.field("Handle").wait_for()
        check(first, "first")
        inbox = desk.open(hub, scene(hub).token, theme=theme, width=width, size=700)
        inbox.frame.locator(".row").first.wait_for()
        for name, show in VIEWS.items():
            inbox.frame.locator(".home").click()
            show(inbox)
            check(inbox, name)
        first.page.close()
        inbox.page.close()


def check(inbox: Inbox, view: str) -> None:
    """Fail for whatever axe-core finds."""
    expect(inbox.frame.get_by_role("heading", level=1)).to_be_visible()
    frame = inbox.page.frames[1]
    frame.evaluate(AXE.read_text())
    findings = frame.evaluate(RUN)
    assert not findings, f"{view}: {json.dumps(findings, indent=1)}"
