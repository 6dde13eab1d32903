"""The recipes, done as the page says: its commands by the real command, its programs by Python."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import Block, pages
from tests.forge import forked
from tests.process import Process, environment

PAGE = "docs/patterns.md"
PORT = "8420"
EXPORTED = re.compile(r"export [A-Z]+=\$\((folkmoot account token \w+)\)")
"""How a page has the token of an account in the environment."""


class Cook:
    """Someone who follows a page of recipes, with a hub on any free port."""

    def __init__(self, hub: Process, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._port = str(hub.port)
        self._folder = folder
        self._credentials = folder / "credentials.json"
        self._environ = environment(FOLKMOOT_CREDENTIALS=str(self._credentials))
        self._names: dict[str, Any] = {}
        self._runs: dict[str, Callable[[list[str]], None]] = {
            "folkmoot": self._folkmoot,
            "curl": self._curl,
        }

    @property
    def tokens(self) -> dict[str, str]:
        """The tokens of all accounts, as the page has them in the environment."""
        accounts = json.loads(self._credentials.read_text(encoding="utf-8"))["accounts"]
        return {account["handle"].upper(): account["token"] for account in accounts}

    def follow(self, block: Block) -> str:
        """Do what a block says, and answer what is printed."""
        text = block.text.replace(PORT, self._port)
        if block.language == "python":
            return self._python(text, block.line)
        for line in text.replace("\\\n", "").splitlines():
            exported = EXPORTED.fullmatch(line)
            program, *words = shlex.split(exported[1] if exported else line)
            self._runs[program](words)
        for name, token in self.tokens.items():
            self._monkeypatch.setenv(name, token)
        return ""

    def _python(self, text: str, line: int) -> str:
        program = compile("\n" * line + text, PAGE, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, self._names)
        return printed.getvalue()

    def _folkmoot(self, words: list[str]) -> None:
        if words[0] == "register":
            # Where the page's reader needs to say nothing, the hub being on its usual port.
            words = [*words, "--url", f"http://127.0.0.1:{self._port}"]
        done = forked.run(words, cwd=self._folder, env=self._environ, timeout=60)
        assert done.returncode == 0, done.stderr

    def _curl(self, words: list[str]) -> None:
        """Enough of curl for the page."""
        *options, url = (Template(word).substitute(self.tokens) for word in words)
        given = dict(zip(options[1::2], options[2::2], strict=True))
        headers = dict(
            header.split(": ")
            for name, header in zip(options[1::2], options[2::2], strict=True)
            if name == "-H"
        )
        parts = urlsplit(url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("POST", parts.path, given["-d"], headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        sent = json.loads(given["-d"])
        assert {name: answer.get(name) for name in sent} == sent


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
