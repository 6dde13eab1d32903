"""The hub answers good, bad and hostile requests as the official SDK's server does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mcp.oracle.corpus import Era, corpus
from tests.mcp.oracle.deviations import DEVIATIONS
from tests.mcp.oracle.places import both


@pytest.mark.requirement("mcp.as-the-sdk")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_status_and_error_code_are_those_of_the_sdk_but_for_the_deviations(
    era: Era, tmp_path: Path
) -> None:
    async with both(tmp_path, era) as (hub, sdk):
        answered = {
            case.name: (await hub.outcome(case), await sdk.outcome(case)) for case in corpus(era)
        }
    differ = {name: pair for name, pair in answered.items() if pair[0] != pair[1]}
    known = {case: (row.hub, row.sdk) for row in DEVIATIONS[era] for case in row.cases}
    unexplained = {name: pair for name, pair in differ.items() if known.get(name) != pair}
    assert not unexplained, "the hub and the SDK differ, and no deviation says why"
    needless = known.keys() - differ.keys()
    assert not needless, "these deviations are no longer needed"


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_every_name_is_there_once(era: Era) -> None:
    named = Counter(case.name for case in corpus(era))
    assert max(named.values()) == 1
    explained = Counter(case for row in DEVIATIONS[era] for case in row.cases)
    assert explained.keys() <= named.keys()
    assert not explained or max(explained.values()) == 1
    assert all(row.reason.endswith(".") and row.hub != row.sdk for row in DEVIATIONS[era])
