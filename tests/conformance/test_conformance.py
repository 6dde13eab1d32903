"""The hub against the official conformance suite, and what the documentation says of it."""

from __future__ import annotations

import json
import re
from importlib.metadata import version

import pytest

from tests.conformance.node import HERE, node_or_skip
from tests.conformance.suite import (
    AUTH_SCENARIOS,
    REVISIONS,
    TASK_CHECKS,
    WAYS,
    client_runs,
    hub,
    run_client,
    run_suite,
)
from tests.docs.pages import pages

PAGE = "docs/reference/compatibility.md"
ROW = re.compile(r"^\| `(?P<name>[a-z][a-z0-9-]+)` \| (?P<cells>[^|\n]+\|[^|\n]+) \|", re.MULTILINE)
NOT_RUN = "\u2013"


def documented(revision: str) -> set[str]:
    """The scenarios of a revision that the page has a result for."""
    column = list(REVISIONS).index(revision)
    rows = ROW.finditer(pages()[PAGE].text)
    return {
        row["name"] for row in rows if row["cells"].split("|")[column].strip() not in {NOT_RUN, ""}
    }


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("mcp.both-eras")
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_scored_scenario_fails(revision, tmp_path):
    node = node_or_skip()
    with hub(tmp_path / "hub") as url:
        outcome = run_suite(node, url, revision, tmp_path / "first")
        wanted = (TASK_CHECKS[revision], 0)
        if not outcome.conforms or outcome.task_checks != wanted:
            # The suite waits half a second for some answers, which is little on a busy machine.
            outcome = run_suite(node, url, revision, tmp_path / "second")
    assert outcome.failing == [], outcome.output
    assert outcome.conforms, outcome.output
    assert outcome.task_checks == wanted, outcome.output
    assert {each.name for each in outcome.scenarios} == documented(revision)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.requirement("mcp.both-eras")
@pytest.mark.parametrize(
    ("way", "revision", "scenario"), [(way, *each) for way in WAYS for each in client_runs(way)]
)
def test_a_server_is_used_as_a_client_must(way, revision, scenario):
    ran = run_client(node_or_skip(), way, revision, scenario)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("revision", "scenario"),
    [(revision, each) for revision, names in AUTH_SCENARIOS.items() for each in names],
)
def test_a_person_signs_in_to_a_server_behind_the_hub_as_a_client_must(revision, scenario):
    ran = run_client(node_or_skip(), "auth", revision, f"auth/{scenario}")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_page_names_the_versions_that_are_tried():
    page = pages()[PAGE].text
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    for name, exact in {**packages, "mcp": version("mcp")}.items():
        assert f"`{name}` {exact}" in page
    for way, count in (("through a hub", len(client_runs("gateway"))), ("`folkmoot call`", 11)):
        assert re.search(rf"{way}[^.|]*\| {count} of {count}", page)
    assert len(client_runs("call")) == 11
    for revision, names in AUTH_SCENARIOS.items():
        assert f"{len(names)} of {len(names)} of `{revision}`" in page
    for revision, scored in REVISIONS.items():
        assert re.search(rf"`{revision}`.*{scored} of {scored} scored", page)


def test_the_lock_file_names_no_place_to_fetch_from():
    packages = json.loads((HERE / "package-lock.json").read_text())["packages"]
    assert all("resolved" not in package for package in packages.values())
    assert all("integrity" in package for path, package in packages.items() if path)
