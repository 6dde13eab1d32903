"""Signing in with a company's account, in a real browser at a real provider."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.browser.console import Web
from tests.browser.harness import check_axe, expect
from tests.conformance.node import node_or_skip
from tests.peers.test_company import SCRIPT, SECRET
from tests.ports import free_port
from tests.process import Process

pytestmark = pytest.mark.browser
# Of the provider's pages, which have fonts from elsewhere.
IGNORED = ("Failed to load resource",)


@pytest.fixture(scope="module")
def hub(tmp_path_factory) -> Iterator[str]:
    """A hub whose people sign in elsewhere: `localhost` and `127.0.0.1` are different sites."""
    folder, node, port = tmp_path_factory.mktemp("company"), node_or_skip(), free_port()
    script = shutil.copy(SCRIPT, folder)
    (folder / "node_modules").symlink_to(node.modules)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [node.binary, script, f"http://localhost:{port}"]
    with subprocess.Popen(command, **pipes) as provider:
        oidc = {
            "ISSUER": provider.stdout.readline().strip(),
            "CLIENT_ID": "hub",
            "CLIENT_SECRET": SECRET,
            "NAME": "Example Inc.",
        }
        variables = {f"FOLKMOOT_SIGN_IN_OIDC_{name}": value for name, value in oidc.items()}
        with Process(folder / "hub", port=port, **variables):
            yield f"http://127.0.0.1:{port}"
        provider.stdin.close()


@pytest.mark.parametrize(
    ("path", "there", "width"), [("/account", "/account", 390), ("/sign-in?next=/", "/", 1280)]
)
def test_a_person_signs_in_at_the_provider_and_is_where_they_were_going(
    hub, desk, path, there, width
):
    web = Web(desk, hub, path, real_time=True, width=width, ignored=IGNORED)
    button = web.button("Sign in with Example Inc.")
    expect(button).to_be_visible()
    web.fits()
    check_axe(web.page, path)
    button.focus()
    web.page.keyboard.press("Enter")
    web.page.locator("input[name=login]").fill("ada.byron")
    web.page.locator("input[name=password]").fill("any")
    web.page.locator("[type=submit]").click()
    web.page.locator("[type=submit]").click()
    web.page.wait_for_url(f"{web.hub}{there}")
    expect(web.page.get_by_role("navigation").first).to_be_visible()
    assert "code=" not in web.page.evaluate("document.referrer")
