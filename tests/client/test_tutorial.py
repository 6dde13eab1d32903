"""The tutorial for agent authors, done as it says."""

from __future__ import annotations

from tests.docs.pages import pages
from tests.docs.test_patterns import Cook
from tests.process import Process

PAGE = "docs/tutorials/agents.md"


def test_every_step_prints_what_the_page_shows(tmp_path, monkeypatch):
    printed, compared = "", 0
    with Process(tmp_path / "hub") as hub:
        cook = Cook(hub, tmp_path, monkeypatch)
        for block in pages()[PAGE].blocks:
            if block.language in ("sh", "python"):
                printed = cook.follow(block)
            elif block.language == "text":
                assert printed == block.text, f"line {block.line}"
                compared += 1
    assert compared == 8
