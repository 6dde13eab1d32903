"""The operator's tutorial, followed to the letter by the real command on a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.docs.following import compared, fits, on_terminal, with_programs
from tests.docs.pages import Block, pages

FOLDER = "/home/ada/hub"
PORT = "8420"
INTERRUPTED = "^C\n"
LAST_LINE = "Press Ctrl-C"

CURL = """#!{python}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], timeout=30).read().decode())
"""
"""Enough of curl for the page, so that the test needs none."""

FOLKMOOT = """#!{python}
import pytest

from folkmoot.cli import main
main()
"""


class Reader:
    """Someone who does what the page says, in a folder and on any free port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "hub"
        self.folder.mkdir()
        self.port = PORT
        kept = {name: value for name, value in os.environ.items() if "FOLKMOOT" not in name}
        path = with_programs(folder / "programs", curl=CURL, folkmoot=FOLKMOOT)
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self._environ = {**kept, **home, "PATH": path, "FOLKMOOT_PORT": "0"}
        self.hub: subprocess.Popen[str] | None = None

    def follow(self, block: Block) -> str:
        """Do what a block of commands says, and answer what is printed."""
        if block.text.startswith("folkmoot serve"):
            return self._serve(block.text)
        script = block.text.replace(PORT, self.port)
        return self._seen(on_terminal(script, self.folder, self._environ))

    def _serve(self, command: str) -> str:
        self.hub = subprocess.Popen(
            command.split(),
            cwd=self.folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        printed = ""
        for line in self.hub.stdout:
            printed += line
            if line.startswith(LAST_LINE):
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)", printed)
        assert found is not None, printed
        self.port = found[1]
        return self._seen(printed)

    def interrupt(self) -> str:
        """Press Ctrl-C where the hub runs."""
        self.hub.send_signal(signal.SIGINT)
        printed, _ = self.hub.communicate(timeout=60)
        assert self.hub.returncode == 0
        self.hub = None
        return self._seen(printed)

    def _seen(self, printed: str) -> str:
        return printed.replace(str(self.folder), FOLDER).replace(self.port, PORT)


@pytest.mark.long
def test_the_operators_tutorial_can_be_followed_to_the_letter(tmp_path):
    reader = Reader(tmp_path)
    printed = ""
    shown = 0
    try:
        for block in pages()["docs/tutorials/operator.md"].blocks:
            if block.language == "sh" and not block.text.startswith("make "):
                printed = reader.follow(block)
            elif block.text.startswith(INTERRUPTED):
                assert reader.interrupt() == block.text.removeprefix(INTERRUPTED)
            elif block.language == "text":
                wanted, got = compared(block.text), compared(printed)
                assert fits(wanted, got), f"line {block.line}: {printed}"
                shown += 1
        assert shown >= 14
    finally:
        if reader.hub is not None:
            reader.interrupt()
