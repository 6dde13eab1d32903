"""Conditions: which messages a rule is about.

A condition is first held against the little by which rules are found; only what depends on more of
the message is left to be asked of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from folkmoot.core.capability import Capability
from folkmoot.core.glob import Glob
from folkmoot.core.policy import Principal
from folkmoot.proxy.interceptors.jsonpath import Path
from folkmoot.proxy.interceptors.tools import Names
from folkmoot.proxy.interceptors.view import CALL, Key, View
from folkmoot.proxy.rules.comparisons import Test


class Condition(ABC):
    """One thing that must be so."""

    methods: frozenset[str] | None = None
    """The only methods it can hold for; None where there is no telling."""

    @abstractmethod
    def for_key(self, key: Key) -> bool | Condition:
        """What is left to ask of messages of a key: nothing, or a condition."""

    def holds(self, view: View) -> bool:
        """Whether it holds for a message."""
        left = self.for_key(view.key)
        return left if isinstance(left, bool) else left.holds(view)


class OfKey(Condition):
    """A condition that the key alone decides."""

    def __init__(self, test: Callable[[Key], bool], methods: frozenset[str] | None = None) -> None:
        self._test = test
        self.methods = methods

    def for_key(self, key: Key) -> bool:
        """Nothing is left to ask."""
        return self._test(key)


class OfTool(Condition):
    """Which tool is called, or was."""

    methods = frozenset((CALL,))

    def __init__(self, names: Names) -> None:
        self._names = names

    def for_key(self, key: Key) -> bool | Condition:
        """Only calls of tools have one."""
        return self if key.method == CALL else False

    def holds(self, view: View) -> bool:
        """Whether it is one of these tools."""
        return view.key.method == CALL and view.context in self._names


class OfKind(Condition):
    """A pattern over the effective kind."""

    def __init__(self, pattern: Capability) -> None:
        self._pattern = pattern
        self.methods = literals([pattern.method])

    def for_key(self, key: Key) -> bool | Condition:
        """All but the context is known."""
        protocol, _, operation = key.root.partition(".")
        pattern = self._pattern
        if not (
            pattern.protocol.matches(protocol)
            and pattern.operation.matches(operation)
            and pattern.method.matches(key.method)
        ):
            return False
        return True if pattern.context.is_any else OfContext(pattern.context)


class OfContext(Condition):
    """The context of a kind whose other parts fit."""

    def __init__(self, context: Glob) -> None:
        self._context = context

    def for_key(self, _key: Key) -> Condition:
        """It is never known."""
        return self

    def holds(self, view: View) -> bool:
        """Whether the context fits too."""
        return self._context.matches(view.context)


class OfSession(Condition):
    """The session's id."""

    def __init__(self, globs: tuple[Glob, ...]) -> None:
        self._globs = globs

    def for_key(self, _key: Key) -> Condition:
        """It is never known."""
        return self

    def holds(self, view: View) -> bool:
        """Whether the id fits one of the patterns."""
        return any(each.matches(view.session) for each in self._globs)


class OfCaller(Condition):
    """Who asks; it never holds where nobody knows."""

    def __init__(self, test: Callable[[Principal], bool]) -> None:
        self._test = test

    def for_key(self, _key: Key) -> Condition:
        """It is never known."""
        return self

    def holds(self, view: View) -> bool:
        """Whether it is someone who is meant."""
        caller = view.envelope.context.caller
        return caller is not None and self._test(caller)


class OfValue(Condition):
    """What stands at a path."""

    def __init__(
        self, path: Path, tests: tuple[Test, ...], *, is_not: Test | None, exists: bool | None
    ) -> None:
        self._path = path
        self._tests = tests
        self._is_not = is_not
        self._exists = exists

    def for_key(self, _key: Key) -> Condition:
        """It is never known."""
        return self

    def holds(self, view: View) -> bool:
        """Whether some value there passes every test, and none is what it must not be."""
        values = self._path.select(view.body)
        if self._exists is not None and self._exists is not bool(values):
            return False
        if self._is_not is not None and any(map(self._is_not, values)):
            return False
        tests = self._tests
        return not tests or any(all(test(value) for test in tests) for value in values)


class All(Condition):
    """All of these."""

    def __init__(self, parts: Sequence[Condition]) -> None:
        self._parts = tuple(parts)
        told = [part.methods for part in parts if part.methods is not None]
        self.methods = frozenset.intersection(*told) if told else None

    def for_key(self, key: Key) -> bool | Condition:
        """False as soon as one is."""
        left = [part.for_key(key) for part in self._parts]
        open_ = [part for part in left if not isinstance(part, bool)]
        if False in left:
            return False
        return True if not open_ else open_[0] if len(open_) == 1 else All(open_)

    def holds(self, view: View) -> bool:
        """Whether all hold."""
        return all(part.holds(view) for part in self._parts)


class AnyOf(Condition):
    """At least one of these."""

    def __init__(self, parts: Sequence[Condition]) -> None:
        self._parts = tuple(parts)
        told = [part.methods for part in parts if part.methods is not None]
        self.methods = frozenset.union(*told) if len(told) == len(parts) else None

    def for_key(self, key: Key) -> bool | Condition:
        """True as soon as one is."""
        left = [part.for_key(key) for part in self._parts]
        open_ = [part for part in left if not isinstance(part, bool)]
        if True in left:
            return True
        return False if not open_ else open_[0] if len(open_) == 1 else AnyOf(open_)

    def holds(self, view: View) -> bool:
        """Whether one holds."""
        return any(part.holds(view) for part in self._parts)


class Not(Condition):
    """The opposite."""

    def __init__(self, part: Condition) -> None:
        self._part = part

    def for_key(self, key: Key) -> bool | Condition:
        """The opposite of what is known."""
        left = self._part.for_key(key)
        return not left if isinstance(left, bool) else Not(left)

    def holds(self, view: View) -> bool:
        """Whether it does not hold."""
        return not self._part.holds(view)


def literals(globs: Sequence[Glob]) -> frozenset[str] | None:
    """The texts that globs stand for, if they are nothing but texts."""
    return frozenset(it.pattern for it in globs) if all(it.is_literal for it in globs) else None
