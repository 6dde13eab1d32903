"""Substring search by an index: every run of one, two and three characters of a name is a gram.

A query of up to three characters is a gram itself, so what the index answers is the result. A
longer one is contained only in names that hold all its three-character grams.
"""

from __future__ import annotations

LONGEST = 3
MOST_PROBED = 8


def fold(text: str) -> str:
    """The text without its case. It folds character by character, so what contained still does."""
    return text.casefold()


def grams_of(*names: str) -> set[str]:
    """Every gram of these names."""
    return {
        folded[start : start + length]
        for folded in map(fold, names)
        for length in range(1, LONGEST + 1)
        for start in range(len(folded) - length + 1)
    }


def grams_in_query(folded: str) -> list[str]:
    """The grams a name must hold to contain the query: a few, spread over the whole of it."""
    if len(folded) <= LONGEST:
        return [folded]
    grams = sorted({folded[at : at + LONGEST] for at in range(len(folded) - LONGEST + 1)})
    return grams[:: -(-len(grams) // MOST_PROBED)]
