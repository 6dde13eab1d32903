"""The rule of the safe style about schemas: model APIs refuse combinators at the root."""

from __future__ import annotations

from typing import Any

COMBINATORS = ("oneOf", "anyOf", "allOf")


def without_combinators(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as model APIs take it."""
    return {key: value for key, value in schema.items() if key not in COMBINATORS}
