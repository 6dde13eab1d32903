"""Paths into JSON: `$.params.arguments.items[*].id`. A small language, and a total one.

A path is `$` and then names (`.name`, `['any name']`), places in a list (`[0]`) and `*` (`.*`,
`[*]`) for all members or items. Each value is looked at once at most, so that the cost of a path is
bounded by the size of what it is held against.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

MOST_CHARACTERS: Final = 256
MOST_STEPS: Final = 32

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<star>\.\*|\[\*\])"
    r"|\[(?P<place>[0-9]{1,9})\]"
    r"|\['(?P<single>[^']*)'\]"
    r'|\["(?P<double>[^"]*)"\]'
)


class Missing(Enum):
    """What stands where a path leads to nothing."""

    MISSING = "missing"


class Every(Enum):
    """The step that is `*`."""

    EVERY = "*"


MISSING: Final = Missing.MISSING
EVERY: Final = Every.EVERY

Step: TypeAlias = str | int | Every
Change: TypeAlias = Callable[[Any], Any]
"""Answers what is to stand in place of a value; both may be `MISSING`."""


class PathSyntax(ValueError):
    """A text is no path."""


class Path:
    """One compiled path."""

    __slots__ = ("steps", "text")

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise PathSyntax(f"a path has at most {MOST_CHARACTERS} characters")
        if not text.startswith("$"):
            raise PathSyntax(f"{text!r} is not a path: a path starts with $")
        steps: list[Step] = []
        at = 1
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise PathSyntax(f"{text!r} is not a path: {text[at:]!r} is not understood")
            steps.append(_read(step))
            at = step.end()
        if len(steps) > MOST_STEPS:
            raise PathSyntax(f"a path has at most {MOST_STEPS} steps")
        self.text = text
        self.steps = tuple(steps)

    @property
    def root(self) -> Step | None:
        """The first step."""
        return self.steps[0] if self.steps else None

    def select(self, value: Any) -> list[Any]:
        """Every value the path leads to."""
        found = [value]
        for step in self.steps:
            found = [inner for each in found for inner in _inside(each, step)]
        return found

    def edit(self, value: Any, change: Change) -> Any:
        """The value with a change made wherever the path leads; what is not changed is shared.

        Where the path ends in a name that is not there the change is asked with `MISSING`.
        """
        return _edit(value, self.steps, change)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


def _read(step: re.Match[str]) -> Step:
    if step["star"]:
        return EVERY
    if step["place"]:
        return int(step["place"])
    return next(text for text in (step["name"], step["single"], step["double"]) if text is not None)


def _inside(value: Any, step: Step) -> list[Any]:
    if type(value) is dict:
        if step is EVERY:
            return list(value.values())
        return [value[step]] if step in value else []
    if type(value) is list:
        if step is EVERY:
            return value
        return [value[step]] if isinstance(step, int) and step < len(value) else []
    return []


def _edit(value: Any, steps: tuple[Step, ...], change: Change) -> Any:
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if value is MISSING:
        made = _edit(MISSING, rest, change) if isinstance(step, str) else MISSING
        return MISSING if made is MISSING else {step: made}
    if type(value) is dict:
        names = list(value) if step is EVERY else [step] if isinstance(step, str) else []
        pairs = {name: _edit(value.get(name, MISSING), rest, change) for name in names}
        if all(new is value.get(name, MISSING) for name, new in pairs.items()):
            return value
        return {name: new for name, new in {**value, **pairs}.items() if new is not MISSING}
    if type(value) is list:
        items = [
            _edit(item, rest, change) if step is EVERY or step == place else item
            for place, item in enumerate(value)
        ]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return [item for item in items if item is not MISSING]
    return value
