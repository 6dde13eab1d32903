"""Payload constraints: what a payload must contain for a capability to match it.

`{"params": {"name": "read_*", "dry_run": true}}`: objects are read member by member and ANDed, a
string may hold `*`, a list offers alternatives (a list inside it is one exact list), and every
other value is exact, with its type. There are no regular expressions.

`{"path": {"under": "notes/"}}` is for paths and URIs: it compares where the value leads instead of
how it is spelled. A list of values is under a folder if all of them are.

Constraints and the texts they are held against are limited, so that nobody can make a verdict slow.
What cannot be told, such as a text too long to be searched or a path that climbs out of its folder,
counts as a match for a deny and as none for an allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.glob import glob
from folkmoot.core.limits import (
    MAX_CONSTRAINT_DEPTH,
    MAX_CONSTRAINT_STRING,
    MAX_CONSTRAINT_VALUES,
    MAX_SEARCHED,
)
from folkmoot.core.paths import Folder
from folkmoot.core.strict import same

UNDER: Final = "under"
"""The one member of an object that asks for a path in a folder, or in one of several."""

PATH_WORDS: Final = frozenset(
    (
        *("path", "paths", "filepath", "file", "files", "filename", "filenames"),
        *("uri", "uris", "url", "urls", "location"),
        *("dir", "directory", "folder", "root", "cwd"),
        *("source", "src", "destination", "dest", "target"),
    )
)
"""How arguments that are paths end, as a rule."""

_WORD = re.compile("[A-Z]?[a-z0-9]+|[A-Z]+")

Matcher: TypeAlias = Callable[[Any, bool], bool]
"""Whether a value fits; the flag is the answer where that cannot be told."""


class Constraint:
    """One compiled payload constraint."""

    __slots__ = ("_matches", "size", "source")

    def __init__(self, source: Any) -> None:
        if type(source) is not dict:
            raise e.ConstraintSyntax("A payload constraint must be an object.")
        self.size = _measure(source)
        self.source: dict[str, Any] = deepcopy(source)
        self._matches = _compile(self.source)

    def matches(self, payload: Any, *, if_unclear: bool = False) -> bool:
        """Whether the payload says what is asked, whatever else it says."""
        return self._matches(payload, if_unclear)

    def covers(self, other: Constraint) -> bool:
        """Whether every payload the other lets through is let through here too."""
        return _covers(self.source, other.source)


def _measure(source: dict[str, Any]) -> int:
    """How many values a constraint has; one that is too large is refused."""
    level: list[Any] = [source]
    values = depth = 0
    while level:
        depth += 1
        values += len(level)
        if depth > MAX_CONSTRAINT_DEPTH or values > MAX_CONSTRAINT_VALUES:
            raise e.ConstraintSyntax(
                f"A payload constraint has at most {MAX_CONSTRAINT_VALUES} values, "
                f"nested at most {MAX_CONSTRAINT_DEPTH} deep."
            )
        strings = [value for value in level if type(value) is str]
        strings += [name for value in level if type(value) is dict for name in value]
        if any(len(text) > MAX_CONSTRAINT_STRING for text in strings):
            raise e.ConstraintSyntax(
                f"A string in a payload constraint has at most {MAX_CONSTRAINT_STRING} characters."
            )
        level = [
            inner
            for value in level
            if type(value) in (dict, list)
            for inner in (value.values() if type(value) is dict else value)
        ]
    return values


def loose_paths(source: dict[str, Any]) -> list[str]:
    """The members of a constraint that look like paths and are compared as mere text."""
    found: list[str] = []
    for name, wanted in source.items():
        choices = wanted if type(wanted) is list else [wanted]
        words = _WORD.findall(name)
        if words and words[-1].lower() in PATH_WORDS and any(map(_is_starred, choices)):
            found.append(name)
        for choice in choices:
            if type(choice) is dict:
                found += loose_paths(choice)
    return list(dict.fromkeys(found))


def _is_starred(wanted: Any) -> bool:
    return type(wanted) is str and "*" in wanted and bool(wanted.strip("*"))


def _folders(wanted: dict[str, Any]) -> list[str]:
    """The folders that an object asks a path to be in; none if it is no such object."""
    named = wanted.get(UNDER) if len(wanted) == 1 else None
    folders: list[Any] = named if isinstance(named, list) else [named]
    return folders if all(type(folder) is str for folder in folders) else []


def _compile(wanted: Any) -> Matcher:
    if type(wanted) is dict:
        if folders := _folders(wanted):
            return _compile_under(tuple(map(Folder, folders)))
        inside = tuple((name, _compile(value)) for name, value in wanted.items())
        return lambda given, unclear: (
            type(given) is dict
            and all(name in given and matches(given[name], unclear) for name, matches in inside)
        )
    if type(wanted) is list:
        choices = tuple(_compile_choice(choice) for choice in wanted)
        return lambda given, unclear: any(matches(given, unclear) for matches in choices)
    return _compile_choice(wanted)


def _compile_under(folders: tuple[Folder, ...]) -> Matcher:
    def one(given: Any, unclear: bool) -> bool:  # noqa: FBT001 - as every matcher
        if type(given) is not str:
            return unclear
        answers = [folder.holds(given) for folder in folders]
        return True in answers or (unclear and None in answers)

    def matches(given: Any, unclear: bool) -> bool:  # noqa: FBT001 - as every matcher
        if type(given) is not list:
            return one(given, unclear)
        # For an allow all of them must be in the folder; for a deny one is enough.
        enough = any if unclear else all
        return bool(given) and enough(one(each, unclear) for each in given)

    return matches


def _compile_choice(wanted: Any) -> Matcher:
    if type(wanted) is dict:
        return _compile(wanted)
    if type(wanted) is str and "*" in wanted:
        fits = glob(wanted).matches
        return lambda given, unclear: (
            type(given) is str and (fits(given) if len(given) <= MAX_SEARCHED else unclear)
        )
    return lambda given, _unclear: same(given, wanted)


def _covers(wide: Any, narrow: Any) -> bool:
    if type(narrow) is list:
        return all(_covers_choice(wide, choice) for choice in narrow)
    return _covers_choice(wide, narrow)


def _covers_choice(wide: Any, narrow: Any) -> bool:
    """`narrow` is one value here: an object, or one choice of a list."""
    if type(wide) is list:
        return any(_choice_covers(choice, narrow) for choice in wide)
    return _choice_covers(wide, narrow)


def _choice_covers(wide: Any, narrow: Any) -> bool:
    inside = _folders(narrow) if type(narrow) is dict else []
    if type(wide) is dict and (around := _folders(wide)):
        folders = [Folder(each) for each in around]
        if type(narrow) is str:
            return "*" not in narrow and any(folder.holds(narrow) is True for folder in folders)
        return bool(inside) and all(
            any(folder.contains(Folder(each)) for folder in folders) for each in inside
        )
    if inside:
        return False
    if type(wide) is dict:
        return type(narrow) is dict and all(
            name in narrow and _covers(value, narrow[name]) for name, value in wide.items()
        )
    if type(wide) is str and type(narrow) is str:
        return glob(wide).covers(glob(narrow))
    return type(narrow) is not dict and same(wide, narrow)
