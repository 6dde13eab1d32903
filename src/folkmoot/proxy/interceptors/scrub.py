"""Scrubbing: descriptions without what is hidden in them, before a model reads them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any, Final, Literal

from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.mcp.wire import (
    DISCOVER,
    INITIALIZE,
    PROMPTS_LIST,
    RESOURCES_LIST,
    TEMPLATES_LIST,
    TOOLS_LIST,
)
from folkmoot.proxy.interceptors.base import Action, Means, Options, shown
from folkmoot.proxy.interceptors.poison import poisons_in, scrubbed
from folkmoot.proxy.interceptors.view import RESPONSE, Key, View

logger = logging.getLogger("folkmoot.proxy")

LISTS: Final = {
    TOOLS_LIST: "tools",
    PROMPTS_LIST: "prompts",
    RESOURCES_LIST: "resources",
    TEMPLATES_LIST: "resourceTemplates",
}
"""Methods whose answers list things with descriptions, and where."""
GREETINGS: Final = frozenset({INITIALIZE, DISCOVER})
"""Methods whose answers hold instructions for the model."""
TEXTS: Final = frozenset({"description", "title", "instructions"})
"""Members that are there to be read; a mark in them changes nothing else."""
NOT_READ: Final = frozenset({"icons", "_meta"})
"""Members that models are not shown."""
MOST_TOLD: Final = 1_024


class ScrubOptions(Options, frozen=True, kw_only=True):
    """What becomes of a description that holds what it should not."""

    mode: Literal["mark", "drop", "report"] = "mark"


class Scrub(Action):
    """Marks, drops or reports what is hidden in descriptions; its cost grows with their size.

    What is hidden in a name or another value that means something cannot be marked, so such a tool,
    prompt or resource is left out.
    """

    def __init__(self, options: ScrubOptions, _means: Means) -> None:
        self._mode = options.mode
        self._told: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def concerns(self, key: Key) -> bool:
        """Answers that describe something to a model."""
        return key.root == RESPONSE and (key.method in LISTS or key.method in GREETINGS)

    async def look(self, view: View) -> Verdict:
        """Let the answer go on without what does not belong there."""
        result = view.result
        if not isinstance(result, dict):
            return CONTINUE
        member = LISTS.get(view.key.method)
        if member is None:
            return self._greeting(view, result)
        listed = result.get(member)
        if not isinstance(listed, list):
            return CONTINUE
        kept = [item for item in map(self._item, listed) if item is not None]
        if len(kept) == len(listed) and all(a is b for a, b in zip(kept, listed, strict=True)):
            return CONTINUE
        return view.with_member("result", {**result, member: kept})

    def _item(self, item: Any) -> Any:
        """What is left of one thing that is listed; None if it is left out."""
        cleaned, names, broken = clean(item)
        if not names:
            return item
        self._tell(item, names)
        if self._mode == "report":
            return item
        return None if broken or self._mode == "drop" else cleaned

    def _greeting(self, view: View, result: dict[str, Any]) -> Verdict:
        cleaned, names, _ = clean(result)
        if not names:
            return CONTINUE
        self._tell(view.key.method, names)
        if self._mode == "report":
            return CONTINUE
        if self._mode == "drop":
            cleaned.pop("instructions", None)
        return view.with_member("result", cleaned)

    def _tell(self, what: Any, names: list[str]) -> None:
        name = what.get("name") or what.get("uri") if isinstance(what, dict) else what
        told = (shown(name), *sorted(set(names)))
        if told in self._told:
            return
        if len(self._told) >= MOST_TOLD:
            self._told.popitem(last=False)
        self._told[told] = None
        logger.warning(
            "a description has suspicious content",
            extra={"described": told[0], "found": ", ".join(told[1:]), "mode": self._mode},
        )


def poisons_of(item: Any) -> tuple[str, ...]:
    """The names of what the description of one listed thing holds and should not."""
    return tuple(sorted(set(clean(item)[1])))


def clean(value: Any, *, text: bool = False) -> tuple[Any, list[str], bool]:
    """A value with its texts scrubbed, what was found, and whether it was where no mark can be."""
    if isinstance(value, str):
        if text:
            cleaned, names = scrubbed(value)
            return (value if not names else cleaned), names, False
        names = poisons_in(value, hidden_only=len(value) <= SHORT)
        return value, names, bool(names)
    if isinstance(value, dict):
        return _clean_members(value)
    if isinstance(value, list):
        found = [clean(item) for item in value]
        return (
            [cleaned for cleaned, _, _ in found],
            [name for _, names, _ in found for name in names],
            any(broken for _, _, broken in found),
        )
    return value, [], False


SHORT: Final = 40
"""Up to this many characters a value that means something is no text in disguise."""


def _clean_members(value: dict[str, Any]) -> tuple[Any, list[str], bool]:
    cleaned: dict[str, Any] = {}
    found: list[str] = []
    broken = False
    for name, inner in value.items():
        in_name = poisons_in(name, hidden_only=len(name) <= SHORT)
        found += in_name
        if name in NOT_READ:
            cleaned[name] = inner
            continue
        cleaned[name], names, at_value = clean(inner, text=name in TEXTS)
        found += names
        broken = broken or at_value or bool(in_name)
    return cleaned, found, broken
