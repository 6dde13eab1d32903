"""A plan is written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.names.generate.plan import Plan
from tests.names.generate.conftest import texts


def test_planned_files_appear_together_and_keep_their_permissions(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("old\n")
    (tmp_path / "a.sh").chmod(0o755)
    plan = Plan(tmp_path)
    plan.write(tmp_path / "a.sh", "new\n")
    plan.write(tmp_path / "deep/er/b.txt", "b\n")
    assert plan.read(tmp_path / "a.sh") == "new\n"
    assert texts(tmp_path) == {"a.sh": "old\n"}
    plan.apply()
    assert texts(tmp_path) == {"a.sh": "new\n", "deep/er/b.txt": "b\n"}
    assert (tmp_path / "a.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "deep/er/b.txt").stat().st_mode & 0o444 == 0o444


def test_a_plan_that_cannot_be_written_whole_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    plan = Plan(tmp_path)
    plan.write(tmp_path / "a.txt", "new\n")
    plan.write(tmp_path / "new/b.txt", "b\n")
    plan.write(tmp_path / "z/c.txt", "c\n")
    (tmp_path / "z").write_text("a file by now, and no folder\n")
    before = texts(tmp_path)
    with pytest.raises(e.ProjectUnusable, match="nothing was changed"):
        plan.apply()
    assert texts(tmp_path) == before
    assert not (tmp_path / "new").exists()


def test_what_another_program_wrote_meanwhile_is_not_undone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    plan = Plan(tmp_path)
    plan.write(tmp_path / "a.txt", "ours\n")
    plan.write(tmp_path / "b.txt", "b\n")
    (tmp_path / "a.txt").write_text("theirs\n")
    with pytest.raises(e.ProjectUnusable, match="another program"):
        plan.apply()
    assert texts(tmp_path) == {"a.txt": "theirs\n"}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    plan = Plan(tmp_path)
    plan.write(tmp_path / "link.txt", "new\n")
    plan.apply()
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new\n"


def test_the_difference_is_one_that_patch_reads(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    plan = Plan(tmp_path)
    plan.write(tmp_path / "a.txt", "one\nthree\n")
    plan.write(tmp_path / "b.txt", "new\n")
    assert list(plan.diff()) == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "\\ No newline at end of file",
        "+three",
        "--- /dev/null",
        "+++ b/b.txt",
        "@@ -0,0 +1 @@",
        "+new",
    ]


def test_a_file_that_is_no_text_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xff\xfe")
    with pytest.raises(e.ProjectUnusable, match="not UTF-8"):
        Plan(tmp_path).read(tmp_path / "a.md")
