"""The operator's tutorial, followed to the letter by the real command on a terminal."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.docs.following import Reader, compared, fits
from tests.docs.pages import Block, pages

PORT = "8420"
INTERRUPTED = "^C\n"
LAST_LINE = "Press Ctrl-C"

# Enough of curl for the page, so that the test needs none.
CURL = """#!{python}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], timeout=30).read().decode())
"""


class Operator(Reader):
    """Someone who does what the page says, on any free port."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {}, curl=CURL)
        self.environ["FOLKMOOT_PORT"] = "0"
        self.folder = self.home / "hub"
        self.folder.mkdir()
        self.hub: subprocess.Popen[str] | None = None

    def follow(self, block: Block) -> str:
        """Do what a block of commands says, and answer what is printed."""
        if block.text.startswith("folkmoot serve"):
            return self._serve(block.text)
        return self.type(block.text, folder=self.folder)

    def _serve(self, command: str) -> str:
        self.hub = subprocess.Popen(
            command.split(),
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        printed = ""
        for line in self.hub.stdout:
            printed += line
            if line.startswith(LAST_LINE):
                break
        self.shown[re.search(r"http://127\.0\.0\.1:(\d+)", printed)[1]] = PORT
        return self.seen(printed)

    def interrupt(self) -> str:
        """Press Ctrl-C where the hub runs."""
        self.hub.send_signal(signal.SIGINT)
        printed, _ = self.hub.communicate(timeout=60)
        assert self.hub.returncode == 0
        self.hub = None
        return self.seen(printed)


@pytest.mark.long
def test_the_operators_tutorial_can_be_followed_to_the_letter(tmp_path):
    reader = Operator(tmp_path)
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
