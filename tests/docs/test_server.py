"""The tutorial for authors of servers, followed to the letter: a server made, run, a tool renamed.

Only the installing of packages is left out: the new environment is a folder whose programs use the
packages that these tests have.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.following import Reader, compared, fits
from tests.docs.pages import Block, pages
from tests.ports import free_port
from tests.process import Process

PAGE = "docs/tutorials/server.md"
PORT = "8000"
LAST_OF_BUILD = "\n    return mcp\n"
PYTHON = """#!{python}
import os, sys
from pathlib import Path
if sys.argv[1:3] != ["-m", "venv"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
programs = Path(sys.argv[3]).absolute() / "bin"
programs.mkdir(parents=True)
(programs / "activate").write_text(f'PATH="{{programs}}:$PATH"\\n')
source = programs.parents[1] / "src"
made = dict(
    pip="exit 0",
    pytest=f"exec {python} -m pytest -q -p no:cacheprovider",
)
made["team-tasks"] = f"PYTHONPATH={{source}}:$PYTHONPATH exec {python} -m team_tasks \\"$@\\""
for name, line in made.items():
    (programs / name).write_text(f"#!/bin/sh\\n{{line}}\\n")
    (programs / name).chmod(0o700)
"""


class Author(Reader):
    """Someone who does what the page says; where they are and what is active stays as it is."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._port = str(free_port())
        super().__init__(folder, {self._port: PORT}, python=PYTHON)
        (self.home / "hub").mkdir()
        self._stack = stack
        self._state = folder / "state"
        self._state.write_text("")
        self._server: subprocess.Popen[bytes] | None = None
        self._added = ""

    def follow(self, block: Block, *, finds: bool = False) -> str:
        """Do what a block of commands says, and answer what is printed; one that finds, fails."""
        text = f"{block.text.rstrip()}{' || true' if finds else ''}\n"
        before, serves, _ = text.partition("team-tasks --http")
        script = f". {self._state}\n{before}\n{{ export -p; echo cd '$PWD'; }} > {self._state}"
        script = script.replace("'$PWD'", '\\"$PWD\\"')
        printed = self.type(script, agree="backends accept" in text)
        if serves:
            self.start_server()
        return printed

    def start_server(self) -> None:
        """Start the server over HTTP, again where it runs."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(60)
        self._server = subprocess.Popen(
            [self.home / "team-tasks/.venv/bin/team-tasks", "--http", "--port", self._port],
            env=self.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._stack.callback(self._server.wait, 60)
        self._stack.callback(self._server.terminate)
        self._stack.callback(self._server.stderr.close)
        for line in self._server.stderr:
            if b"Uvicorn running" in line:
                return
        raise AssertionError("the server does not start")

    def edit(self, block: Block) -> None:
        """Put the import or the tool of the page where the page says."""
        file = self.home / "team-tasks/src/team_tasks/server.py"
        text = file.read_text("utf-8")
        if block.text.startswith("from "):
            (line,) = [
                line for line in text.splitlines(keepends=True)
                if line.split()[:3] == block.text.split()[:3]
            ]  # fmt: skip
            file.write_text(text.replace(line, block.text), "utf-8")
            return
        before = LAST_OF_BUILD
        if self._added and "@deprecated" not in block.text:
            before = f"{self._added}{LAST_OF_BUILD}"
        assert text.count(before) == 1
        self._added = f"\n{block.text}"
        file.write_text(text.replace(before, f"{self._added}{LAST_OF_BUILD}"), "utf-8")
        self.start_server()


@pytest.mark.long
@pytest.mark.requirement("names.example-server")
def test_the_tutorial_of_servers_can_be_followed_to_the_letter(tmp_path):
    printed, shown = "", 0
    with ExitStack() as stack:
        author = Author(tmp_path, stack)
        data = author.home / "hub/.folkmoot"
        hub = Process(data).__enter__()
        stack.callback(lambda: hub.__exit__())
        blocks = pages()[PAGE].blocks
        for block, after in zip(blocks, [*blocks[1:], blocks[0]], strict=True):
            if block.language == "python":
                author.edit(block)
            elif block.language == "sh":
                if "backends accept" in block.text:
                    hub.__exit__()
                    hub = Process(data).__enter__()
                printed = author.follow(block, finds="Found 1 error" in after.text)
            elif block.language == "text":
                wanted, got = compared(block.text), compared(printed)
                assert fits(wanted, got), f"line {block.line}: {printed}"
                shown += 1
            elif block.language == "toml":
                assert author.seen((data / "config.toml").read_text("utf-8")) == block.text
    assert shown >= 7
