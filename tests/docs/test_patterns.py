"""The recipes, done as the page says: its commands by the real command, its programs by Python."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.following import Reader
from tests.docs.pages import Block, pages
from tests.process import Process

PAGE = "docs/patterns.md"
PORT = "8420"
# Enough of curl for the page: what was sent must come back.
CURL = """#!{python}
import json, sys, urllib.request
*options, url = sys.argv[1:]
headers = dict(given.split(": ") for name, given in zip(options, options[1:]) if name == "-H")
sent = options[options.index("-d") + 1]
asking = urllib.request.Request(url, sent.encode(), headers)
answer = json.load(urllib.request.urlopen(asking, timeout=60))
sys.exit(any(answer.get(name) != value for name, value in json.loads(sent).items()))
"""


class Cook(Reader):
    """Someone who follows a page of recipes, with a hub on any free port."""

    def __init__(self, hub: Process, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, {str(hub.port): PORT}, curl=CURL)
        self._credentials = folder / "credentials.json"
        self.environ["HUB"] = f"http://127.0.0.1:{hub.port}"
        self.environ["FOLKMOOT_CREDENTIALS"] = str(self._credentials)
        self._monkeypatch = monkeypatch
        self._names: dict[str, Any] = {}

    def follow(self, block: Block) -> str:
        """Do what a block says, and answer what is printed."""
        if block.language == "sh":
            self.type(block.text)
            accounts = json.loads(self._credentials.read_text(encoding="utf-8"))["accounts"]
            for account in accounts:
                self.environ[account["handle"].upper()] = account["token"]
                self._monkeypatch.setenv(account["handle"].upper(), account["token"])
            return ""
        program = compile("\n" * block.line + self.real(block.text), PAGE, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, self._names)
        return printed.getvalue()


@pytest.mark.long
@pytest.mark.requirement("room.patterns-documented")
def test_every_recipe_does_what_the_page_says(tmp_path, monkeypatch):
    printed, compared = "", 0
    with Process(tmp_path / "hub") as hub:
        cook = Cook(hub, tmp_path, monkeypatch)
        for block in pages()[PAGE].blocks:
            if block.language in ("sh", "python"):
                printed = cook.follow(block)
            elif block.language == "text":
                assert printed == block.text, f"line {block.line}"
                compared += 1
        assert compared >= 6
