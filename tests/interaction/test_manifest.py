"""The manifest and its checker, tried on planted faults in a miniature of this suite."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interaction.manifest import (
    BUILT,
    PARTS,
    ManifestError,
    load,
    report,
    summary_table,
    unproved,
)
from tests.interaction.marks import TESTS

PAGE = TESTS.parent / "docs" / "reference" / "requirements.md"

ENTRY = """
[[requirement]]
id = "{id}"
source = "protocol §4"
part = "{part}"
text = "A rule."
"""
INI = """
[pytest]
testpaths = tests
pythonpath = .
addopts = --strict-markers --import-mode=importlib -p no:cacheprovider -ra
markers =
    requirement(*ids): what this test proves
    core: tests of the core
    long: the long tiers
"""
PROVED = """
import pytest

@pytest.mark.requirement("kind.one")
def test_one(): pass
"""


def entry(id_: str = "kind.one", part: str = "foundation") -> str:
    return ENTRY.format(id=id_, part=part)


COPIED = ("__init__", "amounts", "conftest", "nats", "ports", "postgres", "stores", "workers")


class Project:
    """A project with this suite's checker, and tests and requirements of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("pytest.ini", INI)
        for name in COPIED:
            self.copy(f"{name}.py")
        for name in ("__init__", "manifest", "marks", "test_requirements"):
            self.copy(f"interaction/{name}.py")

    def copy(self, name: str) -> None:
        target = self.root / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS / name, target)

    def write(self, name: str, text: str) -> Project:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self

    def requirements(self, *entries: str) -> Project:
        return self.write("tests/interaction/requirements/kinds.toml", "".join(entries))

    def run(self, *args: str, **environment: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *args],
            cwd=self.root,
            env={**_clean_environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


def _clean_environment() -> dict[str, str]:
    ours = ("PYTEST_", "FOLKMOOT_", "COVERAGE_", "COV_", "TEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).requirements(entry()).write("tests/core/test_kinds.py", PROVED)


@pytest.mark.long
def test_a_suite_that_proves_every_entry_passes(project: Project) -> None:
    status, output = project.run()

    assert status == pytest.ExitCode.OK, output
    assert "2 passed" in output


def test_an_entry_of_a_built_part_without_a_test_fails_the_run(project: Project) -> None:
    project.requirements(entry(), entry("kind.two"))

    status, output = project.run()

    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "1 requirements of the built parts have no test:\n  kind.two  [protocol §4]" in output


@pytest.mark.long
def test_an_entry_of_a_part_that_is_not_built_needs_no_test(project: Project) -> None:
    project.requirements(entry(), entry("later.one", "later") + 'note = "Not planned yet."\n')

    status, output = project.run()

    assert status == pytest.ExitCode.OK, output


@pytest.mark.long
@pytest.mark.parametrize("args", [("tests/core", "-k", "nothing"), ("-n", "2")])
def test_a_test_that_names_an_unknown_entry_fails_any_run(
    project: Project, args: tuple[str, ...]
) -> None:
    project.write("tests/core/test_kinds.py", PROVED.replace("kind.one", "kind.none"))

    status, output = project.run(*args)

    assert status == pytest.ExitCode.USAGE_ERROR, output
    assert "tests/core/test_kinds.py::test_one names 'kind.none'" in output


@pytest.mark.long
def test_a_mark_that_names_no_ids_is_a_usage_error(project: Project) -> None:
    project.write("tests/core/test_kinds.py", PROVED.replace('"kind.one"', ""))

    status, output = project.run("tests/core")

    assert status == pytest.ExitCode.USAGE_ERROR, output
    assert "test_kinds.py::test_one: a requirement mark takes one or more ids." in output


@pytest.mark.long
@pytest.mark.parametrize(
    "args",
    [
        ("tests/interaction",),
        ("tests/interaction/test_requirements.py", "tests/core/test_kinds.py"),
        ("tests", "--ignore=tests/core"),
    ],
)
def test_a_run_of_a_part_of_the_tests_does_not_judge(
    project: Project, args: tuple[str, ...]
) -> None:
    project.requirements(entry(), entry("kind.two"))

    status, output = project.run(*args)

    assert status == pytest.ExitCode.OK, output
    assert "completeness was not judged" in output


@pytest.mark.long
@pytest.mark.parametrize("args", [(".",), ("tests/core", "tests"), ("-n", "2")])
def test_a_run_of_the_whole_folder_judges(project: Project, args: tuple[str, ...]) -> None:
    project.requirements(entry(), entry("kind.two"))

    status, output = project.run(*args)

    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "  kind.two  [protocol §4]" in output


@pytest.mark.long
def test_tests_that_a_run_deselects_still_count(project: Project) -> None:
    marked_long = PROVED.replace("def test_one", "@pytest.mark.long\ndef test_one")
    project.write("tests/core/test_kinds.py", marked_long)

    status, output = project.run("-m", "not long")

    assert status == pytest.ExitCode.OK, output
    assert "1 passed, 1 deselected" in output


@pytest.mark.long
def test_a_test_that_is_skipped_or_expected_to_fail_proves_nothing(project: Project) -> None:
    skipped = PROVED.replace("def test_one", "@pytest.mark.skip\ndef test_one")
    failing = PROVED.replace("def test_one(): pass", "@pytest.mark.xfail\ndef test_one(): assert 0")
    project.write("tests/core/test_kinds.py", skipped)
    project.write("tests/core/test_more_kinds.py", failing)

    status, output = project.run()

    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "  kind.one  [protocol §4]" in output


@pytest.mark.long
def test_a_broken_manifest_is_a_usage_error(project: Project) -> None:
    project.requirements(entry(), entry())

    status, output = project.run()

    assert status == pytest.ExitCode.USAGE_ERROR, output
    assert "'kind.one' is there twice" in output


@pytest.mark.long
def test_an_unknown_test_profile_is_a_usage_error(project: Project) -> None:
    status, output = project.run(FOLKMOOT_TEST_PROFILE="shallow")

    assert status == pytest.ExitCode.USAGE_ERROR, output
    assert "FOLKMOOT_TEST_PROFILE is 'shallow'; use default or deep." in output


@pytest.mark.long
@pytest.mark.parametrize(("profile", "examples"), [("default", 20), ("deep", 500)])
def test_the_profile_sets_the_number_of_examples(
    project: Project, profile: str, examples: int
) -> None:
    project.write(
        "tests/core/test_profile.py",
        "from hypothesis import settings\n\n"
        "def test_profile():\n"
        f"    assert settings().max_examples == {examples}\n"
        "    assert settings().deadline is None\n",
    )

    status, output = project.run("tests/core", FOLKMOOT_TEST_PROFILE=profile, TEST_TIMES="2")

    assert status == pytest.ExitCode.OK, output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (entry() + entry(), "'kind.one' is there twice"),
        (entry("Kind.one"), "an id is lower-case words"),
        (entry("kind"), "an id is lower-case words"),
        (entry("kind.one\\n"), "an id is lower-case words"),
        (entry(part="soon"), "there is no part 'soon'"),
        (entry(part="later"), "has a note that says why"),
        (entry().replace("text", "words"), "lacks text"),
        (entry() + 'owner = "x"', "has the unknown field owner"),
        (entry().replace("A rule.", " "), "text must be a text that is not empty"),
        (entry().replace('"A rule."', "1"), "text must be a text that is not empty"),
        (entry().replace("protocol §4", "protocol §13"), "'protocol §13' is not a source"),
        (entry().replace("protocol §4", "seed 005 Intro"), "'seed 005 Intro' is not a source"),
        ("requirement = [1]", "is not a table"),
        ("requirement = 1", "something other than [[requirement]] entries"),
        (entry() + "[other]", "something other than [[requirement]] entries"),
        ("[[requirement]", "kinds.toml: "),
        ("", "holds no requirements"),
    ],
)
def test_a_fault_in_the_manifest_is_named(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "kinds.toml").write_text(text, encoding="utf-8")

    with pytest.raises(ManifestError) as error:
        load(tmp_path)

    assert fault in str(error.value)


def test_one_id_in_two_files_is_a_fault(tmp_path: Path) -> None:
    for name in ("kinds", "rooms"):
        (tmp_path / f"{name}.toml").write_text(entry(), encoding="utf-8")

    with pytest.raises(ManifestError, match=r"rooms\.toml, entry 1: 'kind\.one' is there twice"):
        load(tmp_path)


def test_the_report_lists_each_entry_with_its_source_and_text(tmp_path: Path) -> None:
    (tmp_path / "kinds.toml").write_text(entry() + entry("kind.two"), encoding="utf-8")

    assert report(unproved(load(tmp_path), {"kind.one"})) == (
        "1 requirements of the built parts have no test:\n  kind.two  [protocol §4]\n      A rule."
    )


def test_every_section_of_the_protocol_and_every_tool_of_mmp_has_entries() -> None:
    sources = {source for requirement in load().values() for source in requirement.sources}

    assert {f"protocol §{number}" for number in range(1, 11)} <= sources
    assert {f"seed 002 §7.{number}" for number in range(1, 21)} <= sources
    assert {source.split(" ")[1] for source in sources if source.startswith("seed")} == {
        "000",
        "001",
        "002",
        "003",
        "004",
    }


def test_every_part_has_entries_and_the_built_ones_are_parts() -> None:
    assert {requirement.part for requirement in load().values()} == set(PARTS)
    assert set(BUILT) <= set(PARTS)


def test_the_reference_page_shows_the_present_counts() -> None:
    assert summary_table() in PAGE.read_text(encoding="utf-8")
