"""Subjects and patterns, and an index that finds the patterns a subject matches.

The cost of a match grows with the tokens of the subject and the subscribers it finds, not with the
subscribers there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from folkmoot.core import errors as e

T = TypeVar("T")

MAX_SUBJECT = 256
MAX_TOKENS = 16
ONE = "*"
REST = ">"

TOKEN = re.compile(r"[!-)+\-/-=?-~]+")
"""Printable ASCII without space, dot and the two wildcards."""
SUBJECT = re.compile(rf"{TOKEN.pattern}(?:\.{TOKEN.pattern}){{0,{MAX_TOKENS - 1}}}")


@lru_cache(maxsize=4096)
def check_subject(subject: str) -> tuple[str, ...]:
    """The tokens of a subject one may publish on."""
    if len(subject) > MAX_SUBJECT or SUBJECT.fullmatch(subject) is None:
        split(subject)
        raise e.SubjectInvalid(f"{subject!r} is not a subject: tokens are joined by dots.")
    return tuple(subject.split("."))


def check_pattern(pattern: str) -> list[str]:
    """The tokens of a pattern one may subscribe to."""
    tokens = split(pattern)
    for token in tokens[:-1]:
        if token != ONE and not TOKEN.fullmatch(token):
            raise e.SubjectInvalid(f"{pattern!r} is not a pattern of subjects.")
    if tokens[-1] not in {ONE, REST} and not TOKEN.fullmatch(tokens[-1]):
        raise e.SubjectInvalid(f"{pattern!r} is not a pattern of subjects.")
    return tokens


def split(text: str) -> list[str]:
    """Split at the dots, within the limits."""
    if len(text) > MAX_SUBJECT or text.count(".") >= MAX_TOKENS:
        raise e.SubjectInvalid(
            f"A subject has at most {MAX_SUBJECT} characters and {MAX_TOKENS} tokens."
        )
    return text.split(".")


class Node(Generic[T]):
    """A place in the tree of patterns."""

    __slots__ = ("children", "here")

    def __init__(self) -> None:
        self.children: dict[str, Node[T]] = {}
        self.here: set[T] = set()


class SubjectIndex(Generic[T]):
    """A tree of patterns by their tokens."""

    def __init__(self) -> None:
        self._root: Node[T] = Node()

    def add(self, tokens: list[str], item: T) -> None:
        """Put an item at a checked pattern."""
        node = self._root
        for token in tokens:
            node = node.children.setdefault(token, Node())
        node.here.add(item)

    def remove(self, tokens: list[str], item: T) -> None:
        """Take an item away, and the branches that only it needed."""
        path = [self._root]
        for token in tokens:
            path.append(path[-1].children[token])
        path[-1].here.discard(item)
        for parent, token, node in zip(path[-2::-1], tokens[::-1], path[:0:-1], strict=True):
            if node.here or node.children:
                break
            del parent.children[token]

    def match(self, tokens: Sequence[str]) -> list[T]:
        """The items whose patterns match a checked subject."""
        found: list[T] = []
        nodes = [self._root] if self._root.children else []
        for token in tokens:
            following: list[Node[T]] = []
            for node in nodes:
                children = [node.children.get(token), node.children.get(ONE)]
                following += [child for child in children if child is not None]
                if (rest := node.children.get(REST)) is not None:
                    found.extend(rest.here)
            nodes = following
        for node in nodes:
            found.extend(node.here)
        return found

    def __bool__(self) -> bool:
        return bool(self._root.children)
