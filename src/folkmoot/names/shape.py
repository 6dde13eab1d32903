"""Names in snake_case, whatever they were: `getHTTPResponse` is `get_http_response`."""

from __future__ import annotations

import re
import unicodedata

from folkmoot.names.rules import MOST_TOOL

VALID = re.compile(r"[a-z][a-z0-9_]+")
BOUNDARY = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])"  # createIssue
    r"|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])"  # HTTPResponse, but not URLs
)
WORD = re.compile(r"[a-z0-9]+")
LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
MARK_DIGITS = 8
MOST_READ = 1024
"""Characters of a name that its words are taken from; its mark is made from all of them."""


def snake_case(own: str) -> str:
    """A valid tool name for any text; one that is valid already stays as it is.

    What is too long, or has letters that cannot be written in ASCII, ends in digits of its hash,
    which stay the same for as long as the name does. `tool_` goes before what cannot come first.
    """
    if len(own) <= MOST_TOOL and VALID.fullmatch(own):
        return own
    text = folded(own[:MOST_READ])
    name = "_".join(words(text))
    foreign = any(c.isalnum() and not c.isascii() for c in text)
    lost = not name or foreign or len(own) > MOST_READ
    if len(name) < 2 or not name[0].isalpha():
        name = f"tool_{name}".rstrip("_")
    if lost:
        name = f"{name}_{_mark(own)}"
    if len(name) > MOST_TOOL:
        name = f"{name[: MOST_TOOL - MARK_DIGITS - 1].rstrip('_')}_{_mark(own)}"
    return name


def folded(text: str) -> str:
    """The text with letters in their plain form: `é` is `e`, and `ﬁ` is `fi`."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """The words of a name in lower case, however they were joined, without what is not ASCII."""
    return WORD.findall(BOUNDARY.sub("_", text).translate(LOWER))


def _mark(own: str) -> str:
    import hashlib  # costs more than everything else here

    return hashlib.sha256(own.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_DIGITS]
