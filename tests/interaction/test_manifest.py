"""The manifest and its checker, tried on planted faults in a miniature of this suite."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interaction.manifest import BUILT, PARTS, ManifestError, load, summary_table
from tests.interaction.marks import TESTS
from tests.process import ran

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
COPIED = (
    *("__init__", "amounts", "conftest", "nats", "ports", "postgres", "stores", "workers"),
    *(f"interaction/{name}" for name in ("__init__", "manifest", "marks", "test_requirements")),
)


def entry(id_: str = "kind.one", part: str = "foundation") -> str:
    return ENTRY.format(id=id_, part=part)


class Run(NamedTuple):
    """A run of a project that has this suite's checker, and how it ends."""

    status: pytest.ExitCode
    said: str
    requirements: str = entry()
    tests: str = PROVED

    def outcome(self, root: Path) -> tuple[int, str]:
        """The exit code and all that was written."""
        files = {f"tests/{name}.py": (TESTS / f"{name}.py").read_text() for name in COPIED}
        files["pytest.ini"] = INI
        files["tests/interaction/requirements/kinds.toml"] = self.requirements
        files["tests/core/test_kinds.py"] = self.tests
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        ours = ("PYTEST_", "FOLKMOOT_", "COVERAGE_", "COV_", "TEST_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = ran(sys.executable, "-m", "pytest", cwd=root, env={**kept, **own})
        return done.returncode, done.stdout + done.stderr


OK, FAILED, USAGE = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.USAGE_ERROR,
)
LATER = entry() + entry("later.one", "later") + 'note = "Not planned yet."\n'
LACKING = (
    "1 requirements of the built parts have no test:\n  kind.two  [protocol §4]\n      A rule."
)
NAMED = "tests/core/test_kinds.py::test_one names 'kind.none'"
SKIPPED = PROVED.replace("def test_one", "@pytest.mark.skip\ndef test_one")

RUNS = {
    "every entry is proved": Run(OK, "2 passed"),
    "one is not": Run(FAILED, LACKING, entry() + entry("kind.two")),
    "one is not due": Run(OK, "2 passed", LATER),
    "a test is skipped": Run(FAILED, "  kind.one  [protocol §4]", tests=SKIPPED),
    "an unknown entry": Run(USAGE, NAMED, tests=PROVED.replace("kind.one", "kind.none")),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "one is not" else [pytest.mark.long]) for name in RUNS],
)
def test_a_run_passes_where_every_entry_that_is_due_is_proved(name, tmp_path):
    wanted = RUNS[name]
    status, output = wanted.outcome(tmp_path)
    assert status == wanted.status, output
    assert wanted.said in output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (entry() + entry(), "'kind.one' is there twice"),
        (entry("Kind.one"), "$.requirement[0].id"),
        (entry(part="soon"), "$.requirement[0].part"),
        (entry(part="later"), "its note says why"),
        (entry().replace("text", "words"), "unknown field `words`"),
        (entry().replace("protocol §4", "protocol §13"), "$.requirement[0].source"),
        ("[[requirement]", "kinds.toml: "),
        ("", "missing required field `requirement`"),
    ],
)
def test_a_fault_in_the_manifest_is_named(tmp_path, text, fault):
    (tmp_path / "kinds.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError) as error:
        load(tmp_path)
    assert fault in str(error.value)


def test_the_manifest_is_about_every_section_tool_and_part_and_the_page_counts_them():
    entries = load().values()
    sources = {source for requirement in entries for source in requirement.sources}
    assert {f"protocol §{number}" for number in range(1, 11)} <= sources
    assert {f"seed 002 §7.{number}" for number in range(1, 21)} <= sources
    seeds = {source.split(" ")[1] for source in sources if source.startswith("seed")}
    assert seeds == {f"00{number}" for number in range(5)}
    assert {requirement.part for requirement in entries} == set(PARTS)
    assert set(BUILT) <= set(PARTS)
    assert summary_table() in PAGE.read_text(encoding="utf-8")
