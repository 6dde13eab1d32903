"""The manifest is whole: every entry of a built part is named by a test."""

from __future__ import annotations

import pytest

from tests.interaction.manifest import load, report, unproved
from tests.interaction.marks import COLLECTED


def test_every_requirement_of_the_built_parts_is_named_by_a_test(pytestconfig):
    collected = pytestconfig.stash[COLLECTED]
    if collected.partial:
        pytest.skip(f"completeness was not judged: {collected.partial}")
    if missing := unproved(load(), collected.proved):
        pytest.fail(report(missing), pytrace=False)
