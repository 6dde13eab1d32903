"""The reference pages say what the code says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def generate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "docs.generate", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_setting_command_exit_code_and_error_is_documented() -> None:
    checked = generate(ROOT, "--check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_page_that_differs_is_named_and_written_anew(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs/reference/settings.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("FOLKMOOT_LOG_LEVEL", "FOLKMOOT_LEVEL"), encoding="utf-8")
    checked = generate(tmp_path, "--check")
    assert checked.returncode == 1
    assert checked.stderr == "docs/reference/settings.md is not current; run 'make docs'\n"
    assert generate(tmp_path).returncode == 0
    assert page.read_text(encoding="utf-8") == text


def test_the_index_names_every_page_and_no_other() -> None:
    index = (ROOT / "docs/reference/README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs/reference").glob("*.md")}
    assert set(re.findall(r"\((\w+\.md)\)", index)) == pages - {"README.md"}
