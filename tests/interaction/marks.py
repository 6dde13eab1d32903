"""Which requirements the collected tests name, and whether all tests were collected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

TESTS = Path(__file__).parents[1]


class MarkError(Exception):
    """A test's requirement mark is wrong; the message names the test."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What the collection found, before any test was deselected."""

    proved: frozenset[str]
    # Why completeness cannot be judged; empty when the whole folder was collected.
    partial: str


COLLECTED = pytest.StashKey[Collected]()


def named(item: pytest.Item) -> Iterator[str]:
    """The ids a test names; a mark of the wrong form is an error that names the test."""
    for mark in item.iter_markers("requirement"):
        if mark.kwargs or not mark.args or not all(isinstance(id_, str) for id_ in mark.args):
            raise MarkError(f"{item.nodeid}: a requirement mark takes one or more ids.")
        yield from mark.args


def check_marks(items: Iterable[pytest.Item], known: Collection[str]) -> frozenset[str]:
    """The ids that tests prove; an id the manifest does not hold is an error that names the test.

    A test that is always skipped, or expected to fail, may name an id but proves nothing.
    """
    proved: set[str] = set()
    unknown: list[str] = []
    for item in items:
        ids = list(named(item))
        unknown += [f"{item.nodeid} names {id_!r}" for id_ in ids if id_ not in known]
        if not (item.get_closest_marker("skip") or item.get_closest_marker("xfail")):
            proved.update(ids)
    if unknown:
        lines = "\n".join(f"  {line}" for line in unknown)
        raise MarkError(f"These requirements are not in the manifest:\n{lines}")
    return frozenset(proved)


def why_partial(config: pytest.Config) -> str:
    """Why this run collects less than the whole tests folder; empty when it collects all of it."""
    if config.getoption("ignore", None) or config.getoption("ignore_glob", None):
        return "some tests were ignored on the command line"
    start = Path(config.invocation_params.dir)
    if any(
        "::" not in arg and TESTS.is_relative_to((start / arg).resolve()) for arg in config.args
    ):
        return ""
    return "only a part of the tests was collected"
