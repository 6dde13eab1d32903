"""The table of `operations/security.md`: every setting that bounds something, with its default."""

from __future__ import annotations

from collections.abc import Iterable

from docs.pages.markdown import table
from folkmoot.core.redaction import FORMS, LAST_WORDS, NAMED_FORMS, NAMES, QUERY_NAMES
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


def secrets() -> str:
    """What logs, errors and tapes leave out: one row for each way in which a secret is known."""
    forms = dict.fromkeys(form.name for form in FORMS)
    behind = dict.fromkeys(form.name for form in NAMED_FORMS)
    return table(
        ["Known by", "What"],
        [
            ["its form", ", ".join(forms)],
            ["what stands before it in a text", ", ".join(behind)],
            ["the name of a field", f"{words(NAMES)}, also at the end of a longer name"],
            [
                "the last word of such a name",
                f"{words(LAST_WORDS)}: `DB_PASS` and `dbPass`, but not `compass`",
            ],
            ["the name of a parameter in a URL", words(QUERY_NAMES)],
            ["the name of a header", "authorization, cookies, and names with token, key or secret"],
        ],
    )


def words(names: Iterable[str]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names)


BLOCKS = {"security-bounds": bounds, "secrets": secrets}
