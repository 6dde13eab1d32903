"""Places in a JSON value: `$.result.content[0].text`, and patterns of them.

In a pattern `*` and `[*]` stand for any one member or item and `..` for any number of steps, so
`$..timestamp` is a member of that name at any depth. A pattern covers all that lies below it.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from folkmoot.core.errors import PathSyntax

MAX_PATTERN: Final = 1_024

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ITEM = re.compile(r"(?![0-9]+\])[A-Za-z0-9_./:@-]+")
_STEP = re.compile(
    r"""(?P<deep>\.\.)?(?:
        (?(deep)|\.)(?P<name>[A-Za-z_$][A-Za-z0-9_$-]*|\*)
      | \[(?P<index>[0-9]{1,9})\]
      | \[(?P<any>\*)\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]
      | \[(?P<item>[A-Za-z0-9_./:@-]+)\]
    )""",
    re.VERBOSE,
)


class Item(str):
    """An item of a list that is found by its name."""

    __slots__ = ()


Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]
ANY: Final = "*"


def spelled(place: Place) -> str:
    """A place as people write it."""
    return "$" + "".join(map(_spelled, place))


def _spelled(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if isinstance(step, Item):
        return f"[{step}]" if _ITEM.fullmatch(step) else f"[{json.dumps(step)}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


class Pattern:
    """A pattern of places, compiled once."""

    __slots__ = ("_first", "_later", "last", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        runs: list[list[Step | None]] = [[]]
        at = 1
        while text.startswith("$") and at < len(text) <= MAX_PATTERN:
            found = _STEP.match(text, at)
            if found is None:
                break
            if found["deep"]:
                runs.append([])
            runs[-1].append(_step(found))
            at = found.end()
        if at < max(len(text), 2):
            shown = text if len(text) <= 80 else text[:80] + "…"
            raise PathSyntax(
                f"{shown!r} is not a path in a message; write it like $.result.content[0].text."
            )
        self._first, *self._later = (tuple(run) for run in runs)
        self.last = runs[-1][-1]
        """The step it ends with; None stands for any."""

    def covers(self, place: Place) -> bool:
        """Whether it speaks of a place, or of one that the place lies in."""
        at = len(self._first)
        if not _fits(self._first, place[:at]):
            return False
        for run in self._later:
            # The earliest fit leaves most for what follows, so that no other need be tried.
            begins = range(at, len(place) - len(run) + 1)
            found = next((n for n in begins if _fits(run, place[n : n + len(run)])), None)
            if found is None:
                return False
            at = found + len(run)
        return True


def _step(found: re.Match[str]) -> Step | None:
    """One step of a pattern; None stands for any."""
    if found["any"] or found["name"] == ANY:
        return None
    if found["index"]:
        return int(found["index"])
    if found["quoted"]:
        return str(json.loads(found["quoted"]))
    return found["name"] or found["item"]


def _fits(run: tuple[Step | None, ...], steps: Place) -> bool:
    return len(run) == len(steps) and all(
        wanted is None or wanted == step for wanted, step in zip(run, steps, strict=True)
    )
