"""Equality that keeps JSON's types apart: `1`, `1.0`, `true` and `"1"` are four values."""

from __future__ import annotations

from typing import Any


def same(a: Any, b: Any) -> bool:
    """Whether two decoded JSON values are the same value of the same type, at every depth."""
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return len(a) == len(b) and all(name in b and same(a[name], b[name]) for name in a)
    if type(a) is list:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
