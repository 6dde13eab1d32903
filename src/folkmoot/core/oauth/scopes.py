"""What an app can be allowed: the scopes that it asks for, that are offered, and that are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_OAUTH_PARAMETER
from folkmoot.core.scopes import NAMES, SCOPES, ScopeRow, row_of, scope

DEFAULT: Final = tuple(row.name for row in SCOPES if row.app == "default")
"""What an app has that asks for nothing, and what the challenge names."""
OFFERED: Final = tuple(row.name for row in SCOPES if row.app == "offered")
GRANTABLE: Final = tuple(row.name for row in SCOPES if row.app != "never")
IGNORED: Final = frozenset(("offline_access", "openid", "profile", "email"))
"""Scopes of OpenID Connect that apps ask for out of habit."""


def asked(text: str) -> tuple[str, ...]:
    """What of the scopes that an app asks for it can have; refused where that is nothing."""
    words = dict.fromkeys(text.split() if len(text) <= MAX_OAUTH_PARAMETER else "?")
    kept = tuple(word for word in words if _is_grantable(word))
    if not kept and words.keys() - IGNORED:
        raise e.OAuthError("invalid_scope", f"An app can have the scopes {' '.join(GRANTABLE)}.")
    return kept or DEFAULT


def offers(words: Iterable[str]) -> list[tuple[str, ScopeRow]]:
    """What a person is asked to allow an app that asks for these words, in the table's order."""
    rows = [(word, NAMES[word.partition(":")[0]]) for word in dict.fromkeys((*words, *OFFERED))]
    return sorted(rows, key=lambda row: SCOPES.index(row[1]))


def chosen(words: Iterable[str], ticked: Iterable[str]) -> str:
    """The scope that a person gives an app which asks for these words; never more than offered."""
    offered, text = scope(" ".join((*words, *OFFERED))), " ".join(ticked)
    # What is compiled is kept in memory for a while.
    given = scope(text if len(text) <= MAX_OAUTH_PARAMETER else "")
    if not given.words or not all(map(_is_grantable, given.words)) or not offered.covers(given):
        raise e.OAuthError("invalid_scope", "Choose some of the scopes that the app asks for.")
    return given.text


def narrowed(granted: str, text: str) -> str:
    """The scope of a new access token: what is asked for of what was granted, or all of it."""
    wanted = [word for word in text.split() if word not in IGNORED]
    kept = [word for word in wanted if scope(granted).covers(scope(word))]
    if wanted and not kept:
        raise e.OAuthError("invalid_scope", "The scope must be part of what was granted.")
    return scope(" ".join(kept)).text if kept else granted


def _is_grantable(word: str) -> bool:
    row = row_of(word)
    return row is not None and row.app != "never"
