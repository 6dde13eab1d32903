"""The service worker: pages open without the hub, only they are kept, a new build replaces them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import folkmoot
from tests.browser.console import Web
from tests.browser.harness import Person, expect
from tests.process import Process, environment

pytestmark = pytest.mark.browser

ACTIVE = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  return active.scriptURL;
}"""
KEPT = """async () => {
  const kept = {};
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    kept[name] = {};
    for (const request of await cache.keys()) {
      const answer = await cache.match(request);
      kept[name][new URL(request.url).pathname] = await answer.text();
    }
  }
  return kept;
}"""
AWAY = ("net::ERR_", "503", "Failed to load resource")


def kept(web: Web) -> dict[str, dict[str, str]]:
    """Everything the browser keeps for the hub, by cache and path."""
    found: dict[str, dict[str, str]] = web.page.evaluate(KEPT)
    return found


@pytest.mark.requirement("web.offline", "web.shell-only")
def test_without_the_hub_the_pages_open_and_say_so_and_hold_no_mail(tmp_path, desk):
    with Process(tmp_path, FOLKMOOT_RATE_LIMITS="off") as running:
        port, hub = running.port, f"http://127.0.0.1:{running.port}"
        ada, bob = Person(hub, "ada"), Person(hub, "bob")
        bob.call("msg/send", to="ada", body="A secret of Bob's.")
        web = Web(desk, hub).sign_in(ada.token)
        web.ignored = AWAY
        assert web.page.evaluate(ACTIVE) == f"{web.hub}/worker.js"
        web.open_thread("bob")
        expect(web.text("A secret of Bob's.").first).to_be_visible()
        # Loaded once more, now that the worker sees every request.
        web.page.reload()
        web.open_thread("bob")
        ((name, paths),) = kept(web).items()
        assert name.startswith("folkmoot-shell-")
        assert set(paths) == {"/inbox", "/rooms"}
        assert all("A secret" not in text and ada.token not in text for text in paths.values())
    for path in ("/inbox", "/account", "/people", "/rooms/square", "/"):
        web.page.goto(f"{web.hub}{path}")
        expect(web.page.get_by_role("alert").first).to_contain_text("The hub does not answer.")
    assert set(*kept(web).values()) == {"/inbox", "/rooms"}
    web.page.goto(f"{web.hub}/inbox")
    with Process(tmp_path, port=port, FOLKMOOT_RATE_LIMITS="off"):
        # Without a click: the page tries again by itself.
        web.page.clock.fast_forward(6_000)
        expect(web.page.locator(".row")).to_contain_text("A secret of Bob's.")


@contextmanager
def other_build(tmp_path: Path, data: Path, port: int) -> Iterator[None]:
    """A hub of another build of the pages, on the same address."""
    package = tmp_path / "other" / "folkmoot"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(folkmoot.__file__).parent, package, ignore=ignored)
    page = package / "web" / "built" / "web.html"
    page.write_text(page.read_text().replace("<title>Folkmoot<", "<title>Folkmoot 2<"))
    command = [sys.executable, "-m", "folkmoot", "serve", "--port", str(port), "--data", str(data)]
    pipe: Any = subprocess.PIPE
    variables = environment(PYTHONPATH=str(package.parent), FOLKMOOT_RATE_LIMITS="off")
    with subprocess.Popen(command, stdout=pipe, text=True, env=variables) as process:
        try:
            assert process.stdout
            while not re.search(r"Press Ctrl-C", process.stdout.readline()):
                assert process.poll() is None
            yield
        finally:
            process.terminate()


@pytest.mark.requirement("web.new-build")
def test_a_new_build_replaces_what_was_kept_of_the_old_one(tmp_path, desk):
    data = tmp_path / "data"
    with Process(data) as running:
        port = running.port
        web = Web(desk, f"http://127.0.0.1:{port}", "/sign-in", ignored=AWAY)
        web.page.evaluate(ACTIVE)
        ((old, paths),) = kept(web).items()
        assert "<title>Folkmoot<" in paths["/inbox"]
    with other_build(tmp_path, data, port):
        web.page.goto(f"{web.hub}/sign-in")
        expect(web.field("Token")).to_be_visible()
        while old in (names := web.page.evaluate("caches.keys()")) or len(names) != 1:
            pass
        ((new, paths),) = kept(web).items()
        assert new != old
        assert "<title>Folkmoot 2<" in paths["/inbox"]
