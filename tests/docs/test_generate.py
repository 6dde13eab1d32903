"""What the documentation takes from the code is what the code says."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from docs import generate
from docs.pages import schema, site
from tests.docs.pages import ROOT, pages
from tests.process import ran


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the documentation, which is made there."""
    copy = shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.py*"))
    for source in (schema.PATH, f"../{site.PATH}"):
        made = copy / source
        made.resolve().parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / source, made.resolve())
    (tmp_path / "benchmarks").mkdir()
    for name in site.BESIDE:
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(generate, "DOCS", copy)
    return copy


@pytest.mark.long
def test_every_page_is_current():
    checked = ran(sys.executable, "-m", "docs.generate", "--check", cwd=ROOT)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "word"),
    [
        ("reference/settings.md", "FOLKMOOT_LOG_LEVEL"),
        ("reference/kinds.md", "reasoning.thought"),
        ("operations/observability.md", "folkmoot_store_wal_pages"),
    ],
)
def test_a_page_that_differs_is_named_and_written_anew(folder, capsys, page, word):
    path = folder / page
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(word, "something_else"), encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == f"docs/{page} is not current; run 'make docs'\n"
    assert generate.main([]) == 0
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("kinds", "docs: not in exactly one page: kinds\n"),
        pytest.param("kindness", "docs: there is no table 'kindness'\n", marks=pytest.mark.long),
    ],
)
def test_a_table_that_is_nowhere_or_unknown_is_told(folder, capsys, mark, told):
    path = folder / "architecture.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\n<!-- made by make docs: {mark} -->\n<!-- end -->\n", encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == told


def test_every_table_and_mark_meet():
    marks = [
        name
        for page in pages().values()
        for name in re.findall(r"<!-- made by make docs: ([a-z-]+) -->", page.text)
    ]
    assert sorted(marks) == sorted(generate.BLOCKS)


def test_the_index_of_the_reference_names_every_page_and_no_other():
    files = {path.name for path in (ROOT / "docs/reference").glob("*.md")} - {"README.md"}
    assert set(pages()["docs/reference/README.md"].links) == files
