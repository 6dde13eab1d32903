"""Hypothesis strategies for what the core reads."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(min_value=-(2**70), max_value=2**70)
SCALARS = (
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=5)
IDS = TEXT | st.integers(min_value=-(2**63), max_value=2**63 - 1)

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
METHODS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"),
    min_size=1,
    max_size=20,
)
CONTEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@st.composite
def kind_texts(draw: st.DrawFn) -> str:
    """Any kind that follows the grammar."""
    protocol = draw(st.sampled_from(["mcp", "chat", "system", "mcpx"]) | NAMES)
    text = f"{protocol}.{draw(NAMES)}"
    if protocol == "mcp" or draw(st.booleans()):
        text += f".{draw(METHODS)}"
        if draw(st.booleans()):
            text += f":{draw(CONTEXTS)}"
    return text


# Few letters make patterns and kinds meet often.
FEW = st.text(st.sampled_from("ab"), min_size=1, max_size=4)
FEW_STARRED = st.text(st.sampled_from("ab*"), min_size=1, max_size=4)


@st.composite
def small_kinds(draw: st.DrawFn) -> str:
    """Kinds over two letters."""
    text = f"{draw(FEW)}.{draw(FEW)}"
    if draw(st.booleans()):
        text += f".{draw(FEW)}"
        if draw(st.booleans()):
            text += f":{draw(FEW)}"
    return text


@st.composite
def small_patterns(draw: st.DrawFn) -> str:
    """Patterns over the same two letters and the star."""
    text = draw(FEW_STARRED)
    for separator in ".", ".", ":":
        if draw(st.booleans()):
            return text
        text += f"{separator}{draw(FEW_STARRED)}"
    return text
