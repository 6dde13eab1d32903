"""English, as far as names need it: words that say too little, and plurals."""

from __future__ import annotations

from typing import Final

GENERIC: Final = frozenset({
    "action", "add", "call", "change", "command", "create", "data", "delete", "do", "edit",
    "function", "get", "handle", "helper", "info", "insert", "item", "list", "main", "make",
    "method", "misc", "modify", "object", "process", "put", "remove", "set", "show", "stuff",
    "thing", "tool", "update", "util", "utils",
})  # fmt: skip
"""Verbs without their object, and nouns that could be anything.

`execute`, `run`, `read`, `search` and the like are not among them: a namespace often says enough,
as in the conventions' own `workflow:execute`.
"""

PLURAL: Final = frozenset({
    "accessories", "aliases", "audio", "bonuses", "children", "content", "criteria", "data",
    "documentation", "email", "emus", "equipment", "feedback", "fish", "geese", "gurus", "hardware",
    "health", "help", "history", "indices", "info", "information", "inventory", "knowledge", "mail",
    "matrices", "media", "memory", "men", "menus", "metadata", "mice", "music", "news",
    "people", "phenomena", "schemata", "series", "sheep", "software", "species", "staff", "storage",
    "teeth", "telemetry", "text", "traffic", "vertices", "weather", "women",
})  # fmt: skip
"""Plurals that do not look like one, and words that have none."""
SINGULAR: Final = frozenset({
    "alias", "atlas", "bias", "canvas", "chaos", "cosmos", "gas", "kubernetes", "lens", "pancreas",
})  # fmt: skip
"""Words that look like a plural, besides those in `ss`, `us` and `is`."""
SINGULAR_ENDINGS: Final = ("ss", "us", "is")
IRREGULAR: Final = {
    "child": "children",
    "index": "indexes",
    "man": "men",
    "person": "people",
    "woman": "women",
}


def is_plural(word: str) -> bool:
    """Whether a resource type names many, by the last of its words."""
    last = word.rpartition("_")[2].rstrip("0123456789") or word
    if last in PLURAL:
        return True
    if last in SINGULAR or last.endswith(SINGULAR_ENDINGS):
        return False
    return last.endswith("s")


def plural(word: str) -> str:
    """A word's plural, with the words before it."""
    head, joint, last = word.rpartition("_")
    return f"{head}{joint}{_plural(last)}"


def _plural(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("is"):
        return f"{word[:-2]}es"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in {"a", "e", "i", "o", "u"}:
        return f"{word[:-1]}ies"
    return f"{word}s"
