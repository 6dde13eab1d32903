"""What the documentation takes from the code is what the code says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import BLOCKS
from tests.docs.pages import ROOT, pages

COPIED = ("docs", "src", "tests/interaction", "pyproject.toml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What it takes to make the documentation, in a folder of its own."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def generate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "docs.generate", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_page_is_current() -> None:
    checked = generate(ROOT, "--check")
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("page", "word"),
    [
        ("reference/settings.md", "FOLKMOOT_LOG_LEVEL"),
        ("reference/kinds.md", "reasoning.thought"),
        ("operations/observability.md", "folkmoot_store_wal_pages"),
    ],
)
def test_a_page_that_differs_is_named_and_written_anew(project: Path, page: str, word: str) -> None:
    path = project / "docs" / page
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(word, "something_else"), encoding="utf-8")
    checked = generate(project, "--check")
    assert checked.returncode == 1
    assert checked.stderr == f"docs/{page} is not current; run 'make docs'\n"
    assert generate(project).returncode == 0
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("kinds", "docs: not in exactly one page: kinds\n"),
        ("kindness", "docs: there is no table 'kindness'\n"),
    ],
)
def test_a_table_that_is_nowhere_or_unknown_is_told(project: Path, mark: str, told: str) -> None:
    path = project / "docs/architecture.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\n<!-- made by make docs: {mark} -->\n<!-- end -->\n", encoding="utf-8")
    checked = generate(project, "--check")
    assert (checked.returncode, checked.stderr) == (1, told)


def test_every_table_and_mark_meet() -> None:
    marks = [
        name
        for page in pages().values()
        for name in re.findall(r"<!-- made by make docs: ([a-z-]+) -->", page.text)
    ]
    assert sorted(marks) == sorted(BLOCKS)


def test_the_index_of_the_reference_names_every_page_and_no_other() -> None:
    files = {path.name for path in (ROOT / "docs/reference").glob("*.md")} - {"README.md"}
    assert set(pages()["docs/reference/README.md"].links) == files
