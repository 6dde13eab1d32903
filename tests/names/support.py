"""What tests of names share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from folkmoot.names import InvalidName


def refusal(check: Callable[..., object], *given: Any, **more: Any) -> InvalidName:
    """Why something is refused that must be."""
    with pytest.raises(InvalidName) as refused:
        check(*given, **more)
    return refused.value


def cases(table: dict[Any, list[Any]]) -> list[tuple[Any, Any]]:
    """The rows of a table by what is expected of them."""
    return [(expected, given) for expected, every in table.items() for given in every]
