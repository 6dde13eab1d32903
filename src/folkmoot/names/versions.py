"""Versions, as far as it takes to count releases: their numbers, without what comes after."""

from __future__ import annotations

import re
from typing import NoReturn

from folkmoot.core.errors.gateway import InvalidName
from folkmoot.names.refusal import shown
from folkmoot.names.rules import RULES

VERSION = re.compile(
    r"\s*v?(?:(?P<epoch>[0-9]+)!)?(?P<numbers>[0-9]+(?:\.[0-9]+)*)"
    r"(?:[-_.]?[A-Za-z+][A-Za-z0-9.+_-]*|-[0-9]+)?\s*",
    re.ASCII,
)
MOST_CHARACTERS = 64


def numbers_of(version: str) -> tuple[int, ...] | None:
    """The epoch and the numbers of a version without zeros at their end, to be compared.

    `1.6.0rc1` is the release it leads to, and `1.6.0.post1` the one it came after. None for a text
    that is no version.
    """
    found = VERSION.fullmatch(version) if len(version) <= MOST_CHARACTERS else None
    if found is None:
        return None
    numbers = [int(number) for number in found["numbers"].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return (int(found["epoch"] or 0), *numbers)


def release_of(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Which release it is: releases are counted by major and minor number."""
    return (*numbers, 0, 0)[:3]


def checked(version: str) -> tuple[int, ...]:
    """The numbers of a version; raises `InvalidName` for a text that is none."""
    return numbers_of(version) or _refuse(version)


def _refuse(version: str) -> NoReturn:
    raise InvalidName(
        f"Invalid version: {shown(version)}. {RULES['version-syntax']}",
        name=shown(version),
        rule="version-syntax",
    )
