"""The first page's room, made and met in as it says: two terminals, an agent, a proposal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from folkmoot.cli.credentials import hub_at
from folkmoot.core.oauth.scopes import GRANTABLE
from tests.cli import allowing
from tests.cli.terminal import Terminal
from tests.conformance.node import node_or_skip
from tests.docs.following import Reader
from tests.docs.pages import pages
from tests.ports import free_port
from tests.process import Process, environment

PORT = "8420"
PAGE = "README.md"
SPOKEN = "Ask me about the tide."
ANSWER = "High water at Rye: six o'clock."


class Visitor(Reader):
    """Someone who follows the page, with a hub on any free port."""

    def __init__(self, hub: Process, folder: Path) -> None:
        super().__init__(folder, {str(hub.port): PORT})
        self._credentials = folder / "credentials.json"
        self.environ["HUB"] = f"http://127.0.0.1:{hub.port}"
        # Ada at her browser, who lets her terminal do all it asks for.
        ada = hub_at(self.environ["HUB"]).create_account("ada").token
        opens = (sys.executable, allowing.__file__, ada, ",".join(GRANTABLE), "%s")
        self._own = {
            "FOLKMOOT_CREDENTIALS": str(self._credentials),
            "TERM": "xterm-256color",
            "BROWSER": " ".join(opens),
        }
        self.environ |= self._own
        shell = [block.text for block in pages()[PAGE].blocks if block.language == "sh"]
        self._said = [*pages()[PAGE].code, *"\n".join(shell).splitlines()]

    def says(self, line: str) -> str:
        """A line that the page has."""
        assert line in self._said, f"the page does not say {line}"
        return line

    def does(self, line: str) -> None:
        """Run a command of the page."""
        self.type(self.says(line))

    def at_terminal(self, line: str) -> Terminal:
        """Run a command of the page that stays."""
        words = shlex.split(self.says(line))[1:]
        return Terminal(words, env=environment(**self._own), cwd=self.home, columns=120)

    @contextmanager
    def agent(self) -> Iterator[None]:
        """Run the program of the page, as the account that was made last."""
        (program,) = (block.text for block in pages()[PAGE].blocks if block.language == "python")
        accounts = json.loads(self._credentials.read_text(encoding="utf-8"))["accounts"]
        running = subprocess.Popen(
            [sys.executable, "-c", self.real(program)],
            env={**self.environ, "FOLKMOOT_TOKEN": accounts[-1]["token"]},
        )
        try:
            yield
        finally:
            running.kill()
            running.wait()


def test_the_readme_leads_into_a_room_where_a_proposal_is_decided(tmp_path):
    with Process(tmp_path / "hub") as hub:
        reader = Visitor(hub, tmp_path)
        reader.does(f"folkmoot login http://127.0.0.1:{PORT}")
        reader.does("folkmoot room create square")
        with reader.at_terminal("folkmoot room join square") as ada:
            reader.does("folkmoot register bob")
            with reader.at_terminal("folkmoot room join square --as bob") as bob:
                ada.wait_for("2 here · live")
                bob.wait_for("2 here · live")
                reader.does("folkmoot register tides --agent")
                with reader.agent():
                    ada.wait_for(SPOKEN)
                    bob.wait_for(SPOKEN)
                    asked = "/call high_water harbour=Rye"
                    bob.type(f"{reader.says(asked)}\r")
                    ada.wait_for("1 proposal: Tab").type("\t").wait_for("a approve").type("a")
                    ada.wait_for(ANSWER)
                    bob.wait_for(ANSWER)


@pytest.mark.long
def test_the_blocks_of_the_readme_about_servers_run_as_they_are_pasted(tmp_path):
    node = node_or_skip()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npx").write_text(NPX.format(node=node.binary, modules=node.modules))
    (programs / "npx").chmod(0o755)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    port = str(free_port())
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = environment(
        PATH=path, HOME=str(tmp_path), FOLKMOOT_CREDENTIALS=str(tmp_path / "keys.json")
    )
    environ.pop("GITHUB_TOKEN", None)

    def pasted(beginning: str, *, fails: bool = False, **changes: str) -> str:
        """What is printed by a block that ends."""
        running = paste(beginning, **changes)
        printed, _ = running.communicate(timeout=60)
        assert bool(running.returncode) is fails, printed
        return printed

    def paste(beginning: str, **changes: str) -> subprocess.Popen[str]:
        (text,) = (
            block.text
            for block in pages()[PAGE].blocks
            if block.language == "sh" and beginning in block.text
        )
        for old, new in {"127.0.0.1:8400": f"127.0.0.1:{port}", **changes}.items():
            text = text.replace(old, new)
        return subprocess.Popen(
            ["/bin/bash", "-ec", text], cwd=tmp_path, env=environ, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    with Process(tmp_path / ".folkmoot") as hub:
        hub_at(f"http://127.0.0.1:{hub.port}").create_account("bob")
        pasted("backends add files")
        assert (tmp_path / "notes").is_dir()
        proxy = paste("folkmoot proxy")
        try:
            while f":{port}" not in (line := proxy.stdout.readline()):
                assert line, "the proxy ended"
            out = pasted("folkmoot tape show")
            assert "Echo: hello" in out
            assert "tools/call echo" in out
            # The page says that this one needs a token; without it, nothing is half done.
            url = f"http://127.0.0.1:{port}/mcp"
            github = "https://api.githubcopilot.com/mcp/"
            out = pasted("backends add github", fails=True, **{github: url})
            assert "the variable GITHUB_TOKEN is not set" in out
            environ["GITHUB_TOKEN"] = "ghp_of_a_test"
            pasted("backends add github", **{github: f"{url} --no-test"})
        finally:
            proxy.terminate()
            proxy.communicate(timeout=60)


NPX = """#!/bin/sh
# As npx does with packages that are there already.
shift
package=$1
shift
exec {node} {modules}/$package/dist/index.js "$@"
"""


def test_every_block_of_the_readme_for_a_new_terminal_finds_the_command():
    blocks = [block.text for block in pages()[PAGE].blocks if block.language == "sh"]
    first = {text.splitlines()[0] for text in blocks if re.search("^folkmoot ", text, re.MULTILINE)}
    # Those without it go on in a terminal that another block opened.
    assert first == {
        ". .venv/bin/activate",
        "folkmoot room create square",
        "mkdir -p ~/notes",
        "folkmoot backends add github --url https://api.githubcopilot.com/mcp/ \\",
    }
    assert {"1 proposal: Tab", "export GITHUB_TOKEN=…"} <= set(pages()[PAGE].code)
