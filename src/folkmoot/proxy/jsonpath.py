"""JSONPath: the one language of paths into a message, for rules, redaction and comparison.

A subset of RFC 9535. A path is `$` and then steps: `.name`, `['any name']` or `["any name"]` for a
member, `[0]` for an item of a list, `.*` or `[*]` for all of them; `..` before a step stands for
any depth, as in `$..token`.

A path is compiled into sets of bits, one bit for each number of steps taken. So each value is
looked at once at most, and the cost of a path is bounded by the size of what it is applied to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

from folkmoot.core import errors as e

MAX_CHARACTERS: Final = 1_024

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_STEP = re.compile(
    rf"""(?P<deep>\.\.)?(?:
        (?(deep)|\.)(?P<name>{_PLAIN.pattern})
      | (?P<any>(?(deep)|\.)\*|\[\*\])
      | \[(?P<index>[0-9]{{1,9}})\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]
    )""",
    re.VERBOSE,
)
_QUOTES = re.compile(r"\\.|\"")
_UNQUOTED = re.compile(r"\[(?P<name>[^\[\]*'\"]+)\]")


class Missing(Enum):
    """What stands where a path leads to nothing."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Item(str):
    """The step to an item of a list that is known by its name; written `["name"]`."""

    __slots__ = ()


Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]
"""The steps from a message to one value in it."""
Change: TypeAlias = Callable[[Any], Any]
"""Answers what is to stand in place of a value; both may be `MISSING`."""


def spelled(place: Place) -> str:
    """A place as a path that leads to it."""
    return "$" + "".join(map(_spelled, place))


def _spelled(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step) and not isinstance(step, Item):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=False)}]"


class JsonPath:
    """One compiled path. Raises `PathSyntax` for a text that is none."""

    __slots__ = ("_any", "_deep", "_end", "_named", "_wide", "steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        steps: list[Step | None] = []
        self._any = self._deep = 0
        """The bits of the steps that are `*`, and of those that stand behind `..`."""
        self._named: dict[Step, int] = {}
        """The bits of the steps that are a name or an index, by that."""
        at = 1
        if len(text) > MAX_CHARACTERS:
            raise _refused(text, f"it may have at most {MAX_CHARACTERS:,} characters")
        if not text.startswith("$"):
            raise _refused(text, "it must start with $, such as $.result.content[0].text")
        while at < len(text):
            found = _STEP.match(text, at)
            if found is None:
                raise _refused(text, _advice(text[at:]))
            bit = 1 << len(steps)
            step = _read(found, text)
            steps.append(step)
            if step is None:
                self._any |= bit
            else:
                self._named[step] = self._named.get(step, 0) | bit
            if found["deep"]:
                self._deep |= bit
            at = found.end()
        self.steps = tuple(steps)
        """None stands for any."""
        self._end = 1 << len(steps)
        self._wide = self._any | self._deep

    @classmethod
    def below(cls, text: str) -> JsonPath:
        """A path to something in a message; the message as a whole is refused."""
        path = cls(text)
        if not path.steps:
            raise _refused(text, "it must lead to a part of the message")
        return path

    @property
    def root(self) -> Step | None:
        """The member of the message that the path leads into; None if that may be any."""
        return self.steps[0] if self.steps and not self._deep & 1 else None

    def select(self, value: Any) -> list[Any]:
        """Every value the path leads to."""
        return [value] if self._end == 1 else self._collect(value, 1, [])

    def edit(self, value: Any, change: Change) -> Any:
        """The value with a change made wherever the path leads; what is not changed is shared.

        Where the path ends in names that are not there the change is asked with `MISSING`.
        """
        return change(value) if self._end == 1 else self._edited(value, 1, change)

    def covers(self, place: Place) -> bool:
        """Whether the path leads to a place, or to one that the place lies in."""
        states = 1
        for step in place:
            states = self._after(states, step)
            if states & self._end:
                return True
        return False

    def _after(self, states: int, step: Step) -> int:
        """How many steps may have been taken after this one: a bit for each number."""
        return ((states & (self._any | self._named.get(step, 0))) << 1) | (states & self._deep)

    def _inside(self, value: Any, states: int) -> list[tuple[Step, Any, int]]:
        """The steps from a value that may lead on, with what they lead to."""
        is_list = type(value) is list
        if not is_list and type(value) is not dict:
            return []
        if states & self._wide:
            pairs = enumerate(value) if is_list else value.items()
            if not states & self._deep:
                return [(step, inner, states << 1) for step, inner in pairs]
            found = [(step, inner, self._after(states, step)) for step, inner in pairs]
            return [each for each in found if each[2]]
        # Without `..` the number of steps is known: only one bit is set.
        step = self.steps[states.bit_length() - 1]
        has = (isinstance(step, int) and step < len(value)) if is_list else step in value
        if has and step is not None:
            return [(step, value[step], states << 1)]
        return []

    def _collect(self, value: Any, states: int, found: list[Any]) -> list[Any]:
        end = self._end
        for _, inner, after in self._inside(value, states):
            if after & end:
                found.append(inner)
            if after != end:
                self._collect(inner, after & ~end, found)
        return found

    def _edited(self, value: Any, states: int, change: Change) -> Any:
        changed: dict[Step, Any] = {}
        for step, inner, after in self._inside(value, states):
            left = after & ~self._end
            new = self._edited(inner, left, change) if left else inner
            new = change(new) if after & self._end else new
            if new is not inner:
                changed[step] = new
        if type(value) is dict and not states & self._wide:
            changed |= self._added(value, states, change)
        if not changed:
            return value
        if type(value) is dict:
            return {name: new for name, new in {**value, **changed}.items() if new is not MISSING}
        items = (changed.get(step, item) for step, item in enumerate(value))
        return [item for item in items if item is not MISSING]

    def _added(self, value: dict[str, Any], states: int, change: Change) -> dict[Step, Any]:
        """The member that is not there yet, if the rest of the path is names and nothing else."""
        at = states.bit_length() - 1
        name, *rest = self.steps[at:]
        if (
            name in value
            or self._deep >> at
            or not all(isinstance(it, str) for it in (name, *rest))
        ):
            return {}
        made = change(MISSING)
        for step in reversed(rest):
            made = made if made is MISSING else {step: made}
        return {} if made is MISSING else {str(name): made}

    def __repr__(self) -> str:
        return f"JsonPath({self.text!r})"


def _read(found: re.Match[str], text: str) -> Step | None:
    if found["any"]:
        return None
    if found["index"]:
        return int(found["index"])
    if found["name"]:
        return found["name"]
    quoted: str = found["quoted"]
    if quoted[0] == "'":
        quoted = f'"{_QUOTES.sub(_double_quoted, quoted[1:-1])}"'
    try:
        return str(json.loads(quoted))
    except ValueError:
        raise _refused(text, f"{found['quoted']} is not a JSON string") from None


def _double_quoted(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _advice(rest: str) -> str:
    if unquoted := _UNQUOTED.match(rest):
        return f"write {json.dumps([unquoted['name']], ensure_ascii=False)} with quotes"
    return f"{_cut(rest)!r} is not understood"


def _refused(text: str, why: str) -> e.PathSyntax:
    return e.PathSyntax(f"{_cut(text)!r} is not a path in a message: {why}.")


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
