"""Close codes."""

from __future__ import annotations

import pytest

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode


@pytest.mark.requirement("error.close-codes")
def test_the_close_codes_are_those_of_the_protocol():
    protocol = {4400, 4401, 4403, 4404, 4408, 4008, 4009, 4029, 1012}
    assert protocol <= {int(code) for code in CloseCode}
    assert set(CLOSE_REASONS) == set(CloseCode)
