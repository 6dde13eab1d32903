"""The tutorials for people, rooms and agents: what they have one type, pasted into a real shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.following import compared, fits, with_programs
from tests.docs.pages import Block, pages
from tests.process import Process, environment

HUB = "http://127.0.0.1:8420"
HOME = "/home/ada"
FOLKMOOT = """#!{python}
import os
from folkmoot.cli import credentials, main
# The reader's hub is on its usual port; this one is where it found a place.
credentials.LOCAL_HUB = os.environ["HUB"]
main()
"""
ELSEWHERE = {
    "docs/tutorials/operator.md": "followed by test_operator.py",
    "docs/tutorials/developer.md": "run by test_examples.py",
    "docs/tutorials/bridge.md": "followed by test_bridge.py",
    "docs/tutorials/server.md": "followed by test_server.py",
    "docs/tutorials/inbox.md": "has nothing to paste; tests/browser does what it says",
    "docs/tutorials/operation.md": "followed by test_operation.py",
}
FOLLOWED = sorted(
    name for name in pages() if name.startswith("docs/tutorials/") and name not in ELSEWHERE
)


class Shell:
    """One bash for a whole page, so that what a block exports is there for the next."""

    def __init__(self, folder: Path, hub: str) -> None:
        self._home, self._hub = folder / "home", hub
        (self._home / ".claude").mkdir(parents=True)
        own = {"HOME": str(self._home), "HUB": hub, "COLUMNS": "120", "XDG_CONFIG_HOME": ""}
        path = with_programs(folder / "programs", folkmoot=FOLKMOOT)
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self._home,
            env={**environment(), **own, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def paste(self, text: str) -> str:
        """What is printed by commands that were pasted; one that fails, fails."""
        commands = text.replace(HUB, self._hub).rstrip("\n")
        # Grouped and not in a shell below: what is exported stays.
        self._bash.stdin.write(f'set -o pipefail; {{ {commands}\n}} </dev/null; echo "\x04$?"\n')
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            before, end, code = line.partition("\x04")
            printed += before
            if end:
                assert code == "0\n", f"{text}: {printed}"
                break
        return self.seen(printed)

    def seen(self, printed: str) -> str:
        """What is printed as the page's reader would see it."""
        return compared(printed.replace(self._hub, HUB).replace(str(self._home), HOME))

    def close(self) -> None:
        self._bash.stdin.close()
        self._bash.wait(60)
        self._bash.stdout.close()


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    with Process(folder / "data") as hub:
        opened = Shell(folder, f"http://127.0.0.1:{hub.port}")
        try:
            yield opened
        finally:
            opened.close()


def session(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a block with a prompt, each with what the page shows behind it."""
    for part in block.text.split("\n$ "):
        command, _, shown = part.removeprefix("$ ").partition("\n")
        yield command, shown


@pytest.mark.long
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_blocks_of_a_tutorial_run_as_they_are_pasted(name, tmp_path):
    with shell(tmp_path) as opened:
        pasted = 0
        for block in pages()[name].blocks:
            if block.language == "sh" and not block.text.startswith("folkmoot serve"):
                opened.paste(block.text)
                pasted += 1
            elif block.language == "console":
                for command, shown in session(block):
                    printed = opened.paste(command)
                    told = f"{name}, line {block.line}: {command}\n{printed}"
                    assert not shown or fits(compared(shown), printed), told
                    pasted += 1
        assert pasted
