"""Conditions: which messages a rule is about, and what may be asked of a value in them.

A condition is first held against the little by which rules are found; only what depends on more of
the message is left to be asked of each.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from folkmoot.core.capability import Capability
from folkmoot.core.glob import Glob, glob
from folkmoot.core.policy import Principal
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.proxy.interceptors.base import MessageKey, MessageView
from folkmoot.proxy.interceptors.tools import NameFilter
from folkmoot.proxy.jsonpath import JsonPath

T = TypeVar("T")

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_NEEDED = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


class Wrong(Exception):
    """Something about one rule; whoever reads the file says which rule of which file it is."""


def converted(values: Any, shape: type[T], what: str) -> T:
    """Values converted to a type; `what` names them in the error."""
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise Wrong(_told(str(error), shape, what)) from None


def _told(message: str, shape: type, what: str) -> str:
    said, _, at = message.partition(" - at `$")
    place = at.rstrip("`").lstrip(".")
    if unknown := _UNKNOWN.fullmatch(said):
        names = [field.encode_name for field in msgspec.structs.fields(shape)]
        return f"{what} {unknown['name']!r} is not known{nearest(unknown['name'], names)}"
    if needed := _NEEDED.fullmatch(said):
        return f"{what} {needed['name']!r} is needed"
    said = said[:1].lower() + said[1:].replace("`", "")
    return f"{what} {place!r}: {said}" if place else f"{what}: {said}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint for a name that is nearly right."""
    names = list(known)
    close = difflib.get_close_matches(name[:100], names, 1, 0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known are {', '.join(names)}" if names else ""


Test: TypeAlias = Callable[[Any], bool]

NUMBERS: Final = (int, float)


def alike(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same; `9` and `9.0` are, for no spelling is to slip past."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return bool(a == b)
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return len(a) == len(b) and all(name in b and alike(a[name], b[name]) for name in a)
    if type(a) is list:
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _is(wanted: Any) -> Test:
    return lambda value: alike(value, wanted)


def _ordered(name: str, holds: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def compiled(wanted: Any) -> Test:
        if type(wanted) not in NUMBERS:
            raise Wrong(f"{name!r} must be a number, not {wanted!r}")
        return lambda value: type(value) in NUMBERS and holds(value, wanted)

    return compiled


def _matches(wanted: Any) -> Test:
    if not isinstance(wanted, str):
        raise Wrong(f"'matches' must be a text with * in it, not {wanted!r}")
    fits = glob(wanted).matches
    return lambda value: isinstance(value, str) and fits(value)


def _contains(wanted: Any) -> Test:
    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(wanted, str) and wanted in value
        if isinstance(value, list):
            return any(alike(item, wanted) for item in value)
        return isinstance(value, dict) and isinstance(wanted, str) and wanted in value

    return holds


def _in(wanted: Any) -> Test:
    if not isinstance(wanted, list):
        raise Wrong(f"'in' must be a list, not {wanted!r}")
    return lambda value: any(alike(value, each) for each in wanted)


COMPARISONS: Final[dict[str, tuple[str, Callable[[Any], Test]]]] = {
    "is": ("it is this value; numbers are compared by value", _is),
    "in": ("it is one of these values", _in),
    "lt": ("it is a number less than this", _ordered("lt", lambda a, b: a < b)),
    "le": ("it is a number less than or equal to this", _ordered("le", lambda a, b: a <= b)),
    "gt": ("it is a number greater than this", _ordered("gt", lambda a, b: a > b)),
    "ge": ("it is a number greater than or equal to this", _ordered("ge", lambda a, b: a >= b)),
    "matches": ("it is a text that fits this one, in which `*` is any text", _matches),
    "contains": ("it is a text, list or object that has this in it", _contains),
}
"""Every comparison that one value can pass by itself: what it asks, and how it is compiled."""


class Condition(ABC):
    """One condition of a rule."""

    methods: frozenset[str] | None = None
    """The only methods it can hold for; None where there is no telling."""

    @abstractmethod
    def for_key(self, key: MessageKey) -> bool | Condition:
        """What is left to ask of messages of a key: nothing, or a condition."""

    def holds(self, view: MessageView) -> bool:
        """Whether it holds for a message."""
        left = self.for_key(view.key)
        return left if isinstance(left, bool) else left.holds(view)


class OfKey(Condition):
    """A condition that the key alone decides."""

    def __init__(
        self, test: Callable[[MessageKey], bool], methods: frozenset[str] | None = None
    ) -> None:
        self._test = test
        self.methods = methods

    def for_key(self, key: MessageKey) -> bool:
        """Nothing is left to ask."""
        return self._test(key)


class OfTool(Condition):
    """Which tool is called, or was."""

    methods = frozenset((TOOLS_CALL,))

    def __init__(self, names: NameFilter) -> None:
        self._names = names

    def for_key(self, key: MessageKey) -> bool | Condition:
        """Only calls of tools have one."""
        return self if key.method == TOOLS_CALL else False

    def holds(self, view: MessageView) -> bool:
        """Whether the call is of one of these tools."""
        return view.key.method == TOOLS_CALL and view.context in self._names


class OfKind(Condition):
    """A pattern over the effective kind."""

    def __init__(self, pattern: Capability) -> None:
        self._pattern = pattern
        self.methods = literals([pattern.method])

    def for_key(self, key: MessageKey) -> bool | Condition:
        """All but the context is known."""
        protocol, _, operation = key.root.partition(".")
        pattern = self._pattern
        if not (
            pattern.protocol.matches(protocol)
            and pattern.operation.matches(operation)
            and pattern.method.matches(key.method)
        ):
            return False
        context = pattern.context
        return context.is_any or OfMessage(lambda view: context.matches(view.context))


class OfMessage(Condition):
    """A condition that a key alone never decides."""

    def __init__(self, test: Callable[[MessageView], bool]) -> None:
        self._test = test

    def for_key(self, _key: MessageKey) -> Condition:
        """All of it is left to ask."""
        return self

    def holds(self, view: MessageView) -> bool:
        """Whether the message passes."""
        return self._test(view)


def of_caller(test: Callable[[Principal], bool]) -> Condition:
    """A condition on the caller; it never holds for an unknown caller."""

    def holds(view: MessageView) -> bool:
        caller = view.envelope.context.caller
        return caller is not None and test(caller)

    return OfMessage(holds)


def of_value(
    path: JsonPath, tests: tuple[Test, ...], *, is_not: Test | None, exists: bool | None
) -> Condition:
    """Whether some value at a path passes every test, and none is what it must not be."""

    def holds(view: MessageView) -> bool:
        values = path.select(view.body)
        if exists is not None and exists is not bool(values):
            return False
        if is_not is not None and any(map(is_not, values)):
            return False
        return not tests or any(all(test(value) for test in tests) for value in values)

    return OfMessage(holds)


class All(Condition):
    """All of these."""

    def __init__(self, parts: Sequence[Condition]) -> None:
        self._parts = tuple(parts)
        told = [part.methods for part in parts if part.methods is not None]
        self.methods = frozenset.intersection(*told) if told else None

    def for_key(self, key: MessageKey) -> bool | Condition:
        """False as soon as one condition is false."""
        left = [part.for_key(key) for part in self._parts]
        open_ = [part for part in left if not isinstance(part, bool)]
        if False in left:
            return False
        return True if not open_ else open_[0] if len(open_) == 1 else All(open_)

    def holds(self, view: MessageView) -> bool:
        return all(part.holds(view) for part in self._parts)


class AnyOf(Condition):
    """At least one of these conditions."""

    def __init__(self, parts: Sequence[Condition]) -> None:
        self._parts = tuple(parts)
        told = [part.methods for part in parts if part.methods is not None]
        self.methods = frozenset.union(*told) if len(told) == len(parts) else None

    def for_key(self, key: MessageKey) -> bool | Condition:
        """True as soon as one condition is true."""
        left = [part.for_key(key) for part in self._parts]
        open_ = [part for part in left if not isinstance(part, bool)]
        if True in left:
            return True
        return False if not open_ else open_[0] if len(open_) == 1 else AnyOf(open_)

    def holds(self, view: MessageView) -> bool:
        return any(part.holds(view) for part in self._parts)


class Not(Condition):
    """The opposite."""

    def __init__(self, part: Condition) -> None:
        self._part = part

    def for_key(self, key: MessageKey) -> bool | Condition:
        """The opposite of what is known."""
        left = self._part.for_key(key)
        return not left if isinstance(left, bool) else Not(left)

    def holds(self, view: MessageView) -> bool:
        return not self._part.holds(view)


def literals(globs: Sequence[Glob]) -> frozenset[str] | None:
    """The texts that globs stand for, if they are nothing but texts."""
    return frozenset(it.pattern for it in globs) if all(it.is_literal for it in globs) else None
