"""The tutorials for people, rooms and agents: what they have one type, pasted into a real shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import Block, pages
from tests.docs.test_operator import fits
from tests.process import Process, environment

HUB = "http://127.0.0.1:8420"
HOME = "/home/ada"
FOLKMOOT = f"""#!{sys.executable}
import os
from folkmoot.cli import credentials, main
# The reader's hub is on its usual port; this one is where it found a place.
credentials.LOCAL_HUB = os.environ["HUB"]
main()
"""
VARYING = {
    "CODE": re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}\b"),
    "TIME": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?"),
    "sk_…": re.compile(r"\bsk_[0-9a-f]{64}"),
    "gi_…": re.compile(r"\bgi_\S{8,}"),
    "N TIME": re.compile(r"^\d+ TIME", re.MULTILINE),
}
"""What is different each time, and what it is compared as."""

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
        programs = folder / "programs"
        for made in (self._home, programs, self._home / ".claude"):
            made.mkdir()
        (programs / "folkmoot").write_text(FOLKMOOT, encoding="utf-8")
        (programs / "folkmoot").chmod(0o700)
        own = {"HOME": str(self._home), "HUB": hub, "COLUMNS": "120", "XDG_CONFIG_HOME": ""}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
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
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
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
        assert self._bash.stdin is not None
        self._bash.stdin.close()
        self._bash.wait(60)
        assert self._bash.stdout is not None
        self._bash.stdout.close()


def compared(text: str) -> str:
    """A text in which what varies is always the same."""
    for name, pattern in VARYING.items():
        text = pattern.sub(name, text)
    return text


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
def test_the_blocks_of_a_tutorial_run_as_they_are_pasted(name: str, tmp_path: Path) -> None:
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
