"""The first page's room, made and met in as it says: two terminals, an agent, a proposal."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.docs.pages import pages
from tests.forge import forked
from tests.process import Process, environment

PORT = "8420"
PAGE = "README.md"
SPOKEN = "Ask me about the tide."
ANSWER = "High water at Rye: six o'clock."


class Visitor:
    """Someone who follows the page, with a hub on any free port."""

    def __init__(self, hub: Process, folder: Path) -> None:
        self._port = str(hub.port)
        self._folder = folder
        self._credentials = folder / "credentials.json"
        self._environ = environment(
            FOLKMOOT_CREDENTIALS=str(self._credentials), TERM="xterm-256color"
        )
        self._said = pages()[PAGE].code
        self._lines = [
            line
            for block in pages()[PAGE].blocks
            if block.language == "sh"
            for line in block.text.splitlines()
        ]

    def says(self, line: str) -> str:
        """A line that the page has."""
        assert line in [*self._lines, *self._said], f"the page does not say {line}"
        return line

    def does(self, line: str) -> None:
        """Run a command of the page."""
        words = shlex.split(self.says(line))[1:]
        if words[0] == "register":
            words += ["--url", f"http://127.0.0.1:{self._port}"]
        done = forked.run(words, cwd=self._folder, env=self._environ, timeout=60)
        assert done.returncode == 0, done.stderr

    def at_terminal(self, line: str) -> Terminal:
        """Run a command of the page that stays."""
        words = shlex.split(self.says(line))[1:]
        return Terminal(words, env=self._environ, cwd=self._folder, columns=120)

    @contextmanager
    def agent(self) -> Iterator[None]:
        """Run the program of the page, as the account that was made last."""
        (program,) = (block.text for block in pages()[PAGE].blocks if block.language == "python")
        accounts = json.loads(self._credentials.read_text(encoding="utf-8"))["accounts"]
        running = subprocess.Popen(
            [sys.executable, "-c", program.replace(PORT, self._port)],
            env={**self._environ, "FOLKMOOT_TOKEN": accounts[-1]["token"]},
            cwd=self._folder,
        )
        try:
            yield
        finally:
            running.kill()
            running.wait()


def test_the_readme_leads_into_a_room_where_a_proposal_is_decided(tmp_path: Path) -> None:
    with Process(tmp_path / "hub") as hub:
        reader = Visitor(hub, tmp_path)
        reader.does("folkmoot register ada")
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
