"""The table of `operations/security.md`: every setting that bounds something, with its default."""

from __future__ import annotations

from docs.pages.markdown import table
from folkmoot.settings import BACKEND_FIELDS, FIELDS, Field

NO_BOUNDS = frozenset({"port", "http.shutdown_seconds", "store.readers"})
"""Numbers that bound nothing."""


def bounds() -> str:
    """Every setting that is a number, in the order of the settings page."""
    rows = [
        [f"`{name}`", amount(field.default), field.description]
        for name, field in named().items()
        if isinstance(field.default, int | float) and not isinstance(field.default, bool)
    ]
    return table(["Setting", "Default", "What it bounds"], rows)


def named() -> dict[str, Field]:
    """Every setting by its section and name."""
    own = {field.path: field for field in FIELDS.values()}
    behind = {f"backends.NAME.{field.name}": field for field in BACKEND_FIELDS.values()}
    return {name: field for name, field in (own | behind).items() if name not in NO_BOUNDS}


def amount(number: object) -> str:
    """A number that people can read."""
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


BLOCKS = {"security-bounds": bounds}
