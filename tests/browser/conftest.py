"""Chromium once for all browser tests, a hub once for each file of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import PATIENCE, Desk, chromium, host_server, missing
from tests.process import Process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without it, or the package that drives it, the tests are skipped."""
    try:
        driver = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError:
        missing("needs playwright, which 'make browser' installs")
    if chromium() is None:
        missing("needs Chromium")
    # On a busy machine a page takes its time; what never comes is told just as well.
    driver.expect.set_options(timeout=PATIENCE)
    with driver.sync_playwright() as running, launch(running) as launched:
        yield launched


@contextmanager
def launch(driver: Playwright) -> Iterator[Browser]:
    """This machine's Chromium."""
    # As root, Chromium runs without its sandbox or not at all.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    launched = driver.chromium.launch(executable_path=chromium(), args=flags)
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def host() -> Iterator[str]:
    with host_server() as url:
        yield url


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, host: str) -> Iterator[str]:
    """Where a hub is, which runs in a process of its own."""
    with Process(tmp_path_factory.mktemp("hub"), **variables(host)) as running:
        yield f"http://127.0.0.1:{running.port}"


def variables(host: str) -> dict[str, str]:
    """The settings of a hub that the host's page may call."""
    origin = host.removesuffix("/host.html")
    return {"FOLKMOOT_RATE_LIMITS": "off", "FOLKMOOT_HTTP_ALLOWED_ORIGINS": origin}


@pytest.fixture
def desk(browser: Browser, host: str, tmp_path: Path) -> Iterator[Desk]:
    """A browser in which nothing may go wrong: no error, warning, violation or failed request.

    It is closed before what a test made in its folder is removed: a page may still show that.
    """
    problems: list[str] = []
    desk = Desk(browser, host, problems)
    yield desk
    desk.close()
    assert not problems, problems
