"""Tapes in the folder that the command runs in."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.proxy.tape.studio import conversation


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A tape with a little of everything."""
    return conversation(tmp_path / "a.jsonl")


@pytest.fixture
def here(here: Run) -> Run:
    """Run `folkmoot tape` in this process."""
    return partial(here, "tape")
