"""Tapes in the folder that the command runs in, and the command in this process: it is quicker."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from folkmoot.cli import program
from tests.cli.conftest import Ran
from tests.proxy.tape.studio import conversation

BUILT = cache(program.get_command)
"""The commands, built once for all tests."""


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A tape with a little of everything."""
    return conversation(tmp_path / "a.jsonl")


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run `folkmoot tape` in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(program, "get_command", BUILT)

    def run(*arguments: str) -> Ran:
        code = program.run(["tape", *arguments])
        return Ran(code, *capsys.readouterr())

    return run
