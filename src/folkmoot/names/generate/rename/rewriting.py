"""Rewrites names in the files of clients; it needs nothing but Python, so that scripts carry it."""

from __future__ import annotations

import io
import re
import tokenize

Rule = tuple[str, str]
"""A pattern, and what stands in its place."""
STRINGS = {"STRING", "FSTRING_MIDDLE", "COMMENT"}


def rewrite(text: str, rules: list[Rule], suffix: str) -> str:
    """The text under the new names; in Python, only strings and comments are names' places."""
    if suffix != ".py":
        return replaced(text, rules)
    starts = [0]
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    pieces, at = [], 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if tokenize.tok_name[token.type] in STRINGS:
                start = max(at, starts[token.start[0] - 1] + token.start[1])
                end = max(start, starts[token.end[0] - 1] + token.end[1])
                pieces += [text[at:start], replaced(text[start:end], rules)]
                at = end
    except (tokenize.TokenError, SyntaxError):
        return text
    return "".join([*pieces, text[at:]])


def replaced(text: str, rules: list[Rule]) -> str:
    """The text after every rule."""
    for pattern, new in rules:
        text = re.sub(pattern, new, text)
    return text
