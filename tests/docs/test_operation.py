"""The tutorial for contributors, followed on a copy of the source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page, pages
from tests.ports import free_port
from tests.process import ran

MOST_LINES = 30
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".*", "*.pyc", "node_modules")
FILE = re.compile(
    r"^(?:Create|Add a table to|Add to|In) `([^`]+)`(?:, below `([^`]+)`)?:$", re.MULTILINE
)


def tutorial() -> Page:
    return pages()["docs/tutorials/operation.md"]


def files() -> dict[str, tuple[str, str]]:
    """What the page has one write into which files, and below which line."""
    page = tutorial()
    wanted = [block.text for block in page.blocks if block.language in {"sql", "python"}]
    found = FILE.findall(page.text)
    return {name: (below, text) for (name, below), text in zip(found, wanted, strict=True)}


def test_an_operation_with_all_its_ways_in_and_its_test_takes_few_lines():
    written = [text for name, (_, text) in files().items() if name.endswith(".py")]
    lines = [line for text in written for line in text.splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES


class Clone:
    """A copy of the source, in which the page is followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        for name in ("src", "docs", "tests", "app", "benchmarks"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=NOT_COPIED)
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            shutil.copy(ROOT / name, self.folder / name)
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join((str(self.folder / "src"), str(self.folder))),
            "FOLKMOOT_CREDENTIALS": str(folder / "credentials.json"),
            "FOLKMOOT_DATA": str(folder / "data"),
        }

    def write(self) -> None:
        """Create the files, and write into those that are there."""
        for name, (below, text) in files().items():
            path = self.folder / name
            lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
            at = len(lines)
            if below:
                [at] = [number for number, line in enumerate(lines, 1) if below in line]
            path.write_text("".join([*lines[:at], text, *lines[at:]]), "utf-8")

    def run(self, *command: str) -> str:
        """What a Python program prints that must succeed."""
        done = ran(sys.executable, "-m", *command, cwd=self.folder, env=self._environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def hub(self) -> Iterator[str]:
        """A hub that runs the copy."""
        port = str(free_port())
        serving = subprocess.Popen(
            [sys.executable, "-m", "folkmoot", "serve", "--port", port],
            cwd=self.folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            assert any(url in line for line in serving.stdout)
            yield url
        finally:
            serving.terminate()
            serving.wait(60)
            serving.stdout.close()


@pytest.mark.long
def test_what_the_tutorial_adds_is_a_tool_a_route_and_a_command(tmp_path):
    clone = Clone(tmp_path)
    clone.write()
    clone.run("docs.generate")
    clone.run("pytest", "-q", "-p", "no:cacheprovider", "tests/operations/test_pinning.py")
    verdicts = ("tests/interaction/test_verdicts.py", "-m", "long", "-k", "inside or outside")
    clone.run("pytest", "-q", "-p", "no:cacheprovider", *verdicts)
    assert "`msg/pin`" in (clone.folder / "docs/reference/operations.md").read_text("utf-8")
    with clone.hub() as url:
        for handle in ("ann", "bob"):
            clone.run("folkmoot", "register", handle, "--url", url)
        send = ("folkmoot", "send", "bob", "hi", "--as", "ann", "--json")
        thread = json.loads(clone.run(*send))["thread_id"]
        pinned = clone.run("folkmoot", "mail", "pin", thread, "--as", "ann")
        assert pinned == "Thread pinned.\n"
        token = json.loads(Path(clone._environ["FOLKMOOT_CREDENTIALS"]).read_text("utf-8"))
        [secret] = re.findall(r"sk_[0-9a-f]{64}", json.dumps(token))[:1]
        called = clone.run(
            "folkmoot", "call", f"{url}/mcp?token={secret}", "msg_pin", f"thread_id={thread}"
        )
        assert thread in called
