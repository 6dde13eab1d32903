"""Manifest, icons and worker: a browser may install the pages, and keeps nothing but them."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pytest

from folkmoot.web.discovery import Installable, Shell
from folkmoot.web.pages import APP, CONSOLE, Pages
from tests.harness import ask, serving
from tests.web.test_documentation import get


def worker(*pages: bytes) -> bytes:
    return Installable([Shell(page, "/a", ("/a",)) for page in pages])._worker


@pytest.mark.requirement("web.installable")
def test_the_manifest_names_icons_that_are_there_in_the_size_they_say():
    answer = get("/manifest.webmanifest")[0]
    assert answer.headers["content-type"] == "application/manifest+json"
    manifest = answer.json()
    assert (manifest["start_url"], manifest["scope"]) == ("/inbox", "/")
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
    icons = manifest["icons"]
    for icon, found in zip(icons, get(*(icon["src"] for icon in icons)), strict=True):
        assert found.headers["content-type"] == "image/png"
        assert found.body[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", found.body[16:24])
        assert icon["sizes"] == f"{width}x{height}"
    assert {icon["sizes"] for icon in manifest["icons"]} == {"192x192", "512x512"}


@pytest.mark.requirement("web.installable")
def test_the_pages_name_the_manifest_and_allow_one_worker():
    allowed = {"manifest-src 'self'", "worker-src 'self'", "trusted-types folkmoot-worker"}
    for answer in get("/inbox", "/rooms"):
        assert '<link rel="manifest" href="/manifest.webmanifest" />' in answer.text
        assert allowed <= set(answer.headers["content-security-policy"].split("; "))


def shells(script: str) -> list[dict[str, Any]]:
    found = re.match(r'const BUILD = "[0-9a-f]{16}", SHELLS = (.*);\n', script)
    listed: list[dict[str, Any]] = json.loads(found[1])
    return listed


@pytest.mark.requirement("web.shell-only")
def test_the_worker_keeps_the_pages_of_the_app_and_no_answer_of_the_hub():
    answer = get("/worker.js")[0]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"] == "default-src 'none'; connect-src 'self'"
    listed = shells(answer.text)
    paths = {path for shell in listed for path in shell["paths"]}
    assert paths == {"/", *APP, *(f"/{name}{end}" for name in CONSOLE for end in ("", "/*"))}
    assert not [path for path in paths if path.startswith(("/v1", "/mcp", "/ws", "/invite"))]
    assert {page.status for page in get(*(shell["from"] for shell in listed))} == {200}


@pytest.mark.requirement("web.new-build")
def test_another_build_has_another_worker():
    assert worker(b"one", b"two") == worker(b"one", b"two")
    assert len({worker(b"one", b"two"), worker(b"one", b"2"), worker(b"two", b"one")}) == 3


def test_what_has_no_icon_of_its_own_gets_one():
    assert get("/favicon.ico")[0].headers["content-type"].startswith("image/svg+xml")


@pytest.mark.requirement("web.below-a-path")
async def test_below_a_path_the_pages_say_why_they_are_not_there():
    async with serving(pages=Pages(version="0", public_url="https://x.example/moot/")) as hub:
        inbox, rooms, landing = [await ask(hub.port, path) for path in ("/inbox", "/rooms", "/")]
    for answer in (inbox, rooms):
        assert answer.status == 404
        assert "a host name of its own" in answer.text
    assert '"/inbox"' not in landing.text
    assert not re.search(r'href="/(?!moot/)', landing.text)
