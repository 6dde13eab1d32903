"""`make conformance`: run the suite for every revision, and show what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from tests.conformance.node import Unavailable, install
from tests.conformance.suite import (
    REVISIONS,
    WAYS,
    Outcome,
    client_runs,
    hub,
    run_client,
    run_suite,
)


def shown(outcome: Outcome) -> Iterator[str]:
    """A run, a line for each scenario, and for each check that did not hold where it counts."""
    yield f"MCP {outcome.revision}"
    for each in outcome.scenarios:
        note = f"  not scored: {each.not_scored}" if each.not_scored else ""
        yield f"  {each.name:<46}{each.passed:>3} passed {each.failed:>3} failed{note}"
        yield from (f"    {line}" for line in each.said if not each.not_scored)


def main() -> int:
    """Run; 0 when no scored scenario fails, 1 when one does, 2 when the suite cannot be had."""
    console = Console(highlight=False)
    try:
        node = install()
    except Unavailable as reason:
        console.print(f"The conformance suite cannot run here: {reason}.", soft_wrap=True)
        return 2
    with (
        TemporaryDirectory(prefix="folkmoot-conformance-") as folder,
        hub(Path(folder, "hub")) as url,
    ):
        outcomes = [
            run_suite(node, url, revision, Path(folder, revision)) for revision in REVISIONS
        ]
    failed = 0
    for way in WAYS:
        console.print(f"As a client: {way}")
        for revision, scenario in client_runs(way):
            passed = run_client(node, way, revision, scenario).returncode == 0
            failed += not passed
            told = "passed" if passed else "failed"
            console.print(f"  {revision}  {scenario:<40}{told}", markup=False)
    for outcome in outcomes:
        console.print(*shown(outcome), sep="\n", markup=False, soft_wrap=True)
    for outcome in outcomes:
        passed = len(outcome.scored) - len(outcome.failing)
        verdict = "conforms" if outcome.conforms else "does not conform"
        console.print(
            f"MCP {outcome.revision}: {passed} of {REVISIONS[outcome.revision]} scored scenarios "
            f"passed; the hub {verdict}."
        )
    return 0 if all(outcome.conforms for outcome in outcomes) and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
