"""The hub answers good, bad and hostile requests as the official SDK's server does."""

from __future__ import annotations

import fnmatch

import pytest

from tests.mcp.oracle.corpus import corpus
from tests.mcp.oracle.deviations import DEVIATIONS
from tests.mcp.oracle.places import both


@pytest.mark.requirement("mcp.as-the-sdk")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_status_and_error_code_are_those_of_the_sdk_but_for_the_deviations(era, tmp_path):
    async with both(tmp_path, era) as (hub, sdk):
        cases = {case.name: case for case in corpus(era)}
        assert len(cases) == len(list(corpus(era))), "a name is there twice"
        answered = {
            name: (await hub.outcome(case), await sdk.outcome(case)) for name, case in cases.items()
        }
    differ = {name: f"{hub}, not {sdk}" for name, (hub, sdk) in answered.items() if hub != sdk}
    known = {}
    for pattern, answers in DEVIATIONS[era].items():
        found = fnmatch.filter(cases, pattern)
        assert found, f"no request is called {pattern}"
        known |= dict.fromkeys(found, answers)
    unexplained = {name: pair for name, pair in differ.items() if known.get(name) != pair}
    assert not unexplained, "the hub and the SDK differ, and no deviation says why"
    assert not known.keys() - differ.keys(), "these deviations are no longer needed"
