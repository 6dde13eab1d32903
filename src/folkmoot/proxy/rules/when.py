"""`when`: the conditions of a rule, read from its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.capability import capability
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.glob import glob
from folkmoot.core.policy import PrincipalType
from folkmoot.proxy.interceptors.base import TYPES, Groups, Means
from folkmoot.proxy.interceptors.tools import NameFilter
from folkmoot.proxy.jsonpath import JsonPath
from folkmoot.proxy.rules.conditions import (
    COMPARISONS,
    All,
    AnyOf,
    Condition,
    Not,
    OfKey,
    OfKind,
    OfMessage,
    OfTool,
    Wrong,
    alike,
    literals,
    nearest,
    of_caller,
    of_value,
)

DEEPEST: Final = 16
MOST: Final = 256
"""Conditions of one rule, all of them together."""
DIRECTIONS: Final = {
    direction.value: direction.value
    for direction in MessageDirection
    if direction is not MessageDirection.UNKNOWN
}

ACCOUNTS: Final = frozenset({PrincipalType.PERSON, PrincipalType.AGENT})
"""Whose names are handles: a guest may call itself what it likes."""
NOBODY: Final = "nobody"
ACCOUNT_KINDS: Final = {
    kind: kind
    for kind in (*(it.value for it in PrincipalType if it is not PrincipalType.GATEWAY), NOBODY)
}


def compiled(source: Any, means: Means) -> Condition:
    """The condition that a table of the file says."""
    return _Compiler(means).table(source, 1)


class _Compiler(Entity):
    means: Means
    _count: int = 0

    def table(self, source: Any, depth: int) -> Condition:
        if not isinstance(source, dict):
            raise Wrong(f"a condition is a table such as {{ method = … }}, not {source!r}")
        self._count += 1
        if depth > DEEPEST or self._count > MOST:
            raise Wrong(f"a rule has at most {MOST} conditions, nested at most {DEEPEST} deep")
        parts: list[Condition] = []
        for name, given in source.items():
            if name == "path":
                parts.append(self._value(source))
            elif name == "not":
                parts.append(Not(self.table(given, depth + 1)))
            elif name in ("all", "any"):
                parts.append(self._several(name, given, depth))
            elif name in SIMPLE:
                parts.append(SIMPLE[name](_texts(name, given), self.means))
            elif name not in ABOUT_VALUES:
                raise Wrong(f"condition {name!r} is not known{nearest(name, NAMES)}")
            elif "path" not in source:
                raise Wrong(f"condition {name!r} needs 'path' beside it")
        return parts[0] if len(parts) == 1 else All(parts)

    def _several(self, name: str, given: Any, depth: int) -> Condition:
        if not isinstance(given, list) or not given:
            raise Wrong(f"condition {name!r} must be a list of conditions")
        parts = [self.table(each, depth + 1) for each in given]
        return All(parts) if name == "all" else AnyOf(parts)

    def _value(self, source: dict[str, Any]) -> Condition:
        given = source["path"]
        if not isinstance(given, str):
            raise Wrong(f"condition 'path' must be a text, not {given!r}")
        try:
            path = JsonPath(given)
        except e.PathSyntax as error:
            raise Wrong(f"condition 'path': {error.message}") from None
        exists = source.get("exists")
        if exists is not None and not isinstance(exists, bool):
            raise Wrong(f"condition 'exists' must be true or false, not {exists!r}")
        tests = tuple(
            COMPARISONS[name][1](wanted) for name, wanted in source.items() if name in COMPARISONS
        )
        if not tests and "is_not" not in source and exists is None:
            raise Wrong(f"condition 'path' needs a comparison: {', '.join(sorted(ABOUT_VALUES))}")
        unwanted = source.get("is_not")
        is_not = (lambda value: alike(value, unwanted)) if "is_not" in source else None
        return of_value(path, tests, is_not=is_not, exists=exists)


def _direction(names: tuple[str, ...], _means: Means) -> Condition:
    wanted = frozenset(_one_of("direction", name, DIRECTIONS) for name in names)
    return OfKey(lambda key: key.direction in wanted)


def _type(names: tuple[str, ...], _means: Means) -> Condition:
    wanted = frozenset(_one_of("type", name, TYPES) for name in names)
    return OfKey(lambda key: key.root in wanted)


def _method(patterns: tuple[str, ...], _means: Means) -> Condition:
    globs = tuple(map(glob, patterns))
    return OfKey(lambda key: any(each.matches(key.method) for each in globs), literals(globs))


def _kind(patterns: tuple[str, ...], _means: Means) -> Condition:
    try:
        kinds = [OfKind(capability(pattern)) for pattern in patterns]
    except e.CapabilityError as error:
        raise Wrong(f"condition 'kind': {error.message}") from None
    if any(pattern.startswith("!") for pattern in patterns):
        raise Wrong("condition 'kind' takes no '!'; use not = { kind = … }")
    return kinds[0] if len(kinds) == 1 else AnyOf(kinds)


def _tool(patterns: tuple[str, ...], means: Means) -> Condition:
    return OfTool(NameFilter(patterns, means.canonical))


def _session(patterns: tuple[str, ...], _means: Means) -> Condition:
    globs = tuple(map(glob, patterns))
    return OfMessage(lambda view: any(each.matches(view.session) for each in globs))


def _caller(patterns: tuple[str, ...], means: Means) -> Condition:
    _check_known("caller", means)
    globs = tuple(glob(pattern.removeprefix("@").lower()) for pattern in patterns)
    return of_caller(
        lambda who: who.type in ACCOUNTS and any(each.matches(who.name) for each in globs)
    )


def _group(names: tuple[str, ...], means: Means) -> Condition:
    groups_of = _check_known("group", means)
    wanted = frozenset(name.removeprefix("@") for name in names)
    return of_caller(lambda who: who.type in ACCOUNTS and not wanted.isdisjoint(groups_of(who)))


def _account(names: tuple[str, ...], means: Means) -> Condition:
    _check_known("account", means)
    wanted = frozenset(_one_of("account", name, ACCOUNT_KINDS) for name in names)
    return of_caller(lambda who: (who.type.value if who.account_id else NOBODY) in wanted)


def _check_known(name: str, means: Means) -> Groups:
    if means.groups is None:
        raise Wrong(f"condition {name!r} is for the rules of a hub; a proxy does not know who asks")
    return means.groups


SIMPLE: Final[dict[str, Callable[[tuple[str, ...], Means], Condition]]] = {
    "direction": _direction,
    "type": _type,
    "method": _method,
    "kind": _kind,
    "tool": _tool,
    "session": _session,
    "caller": _caller,
    "group": _group,
    "account": _account,
}
"""Conditions that take a text, or a list of texts of which one must fit."""
ABOUT_VALUES: Final = frozenset({*COMPARISONS, "is_not", "exists"})
NAMES: Final = (*SIMPLE, "path", *sorted(ABOUT_VALUES), "all", "any", "not")


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(it, str) for it in texts):
        raise Wrong(f"condition {name!r} must be a text or a list of texts, not {given!r}")
    return tuple(texts)


def _one_of(what: str, name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise Wrong(f"condition {what!r}: {name!r} is not known{nearest(name, known)}")
    return known[name]
