"""Whether tapes are what they should be, a line for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from folkmoot.cli.output import complain, say
from folkmoot.cli.tape.paper import Paper
from folkmoot.cli.tape.words import number
from folkmoot.cli.text import one_line, say_data
from folkmoot.core.errors import TapeUnreadable
from folkmoot.proxy.tape.validate import findings

MOST: Final = 1_000
"""Findings that are told of one tape."""


def check(files: Sequence[Path], *, strict: bool, as_json: bool) -> bool:
    """Tell what is wrong with tapes; whether nothing is."""
    wrong = False
    data: list[dict[str, Any]] = []
    for file in files:
        severe, odd, told = checked(file, data if as_json else None)
        wrong = wrong or bool(severe) or (strict and bool(odd))
        if told > MOST and not as_json:
            say(f"{one_line(str(file))}: and {number(told - MOST, 'more finding')}")
        if not told and not as_json:
            say(f"{one_line(str(file))}: valid")
    if as_json:
        say_data(data)
    return not wrong


def checked(file: Path, data: list[dict[str, Any]] | None) -> tuple[int, int, int]:
    """Tell what is to be said of a tape; how much of it is severe, how much odd, and all."""
    paper = Paper()
    severe = odd = 0
    try:
        for found in findings(file):
            severe += found.severe
            odd += not found.severe
            if severe + odd > MOST:
                continue
            kind = "" if found.severe else "warning: "
            if data is not None:
                data.append({
                    "file": str(file), "line": found.line, "text": found.text,
                    "severe": found.severe,
                })  # fmt: skip
                continue
            where = f"{one_line(str(file))}:{found.line}:"
            text = paper.styled(one_line(kind + found.text), "red" if found.severe else "yellow")
            paper.put(f"{where} {text}")
    except TapeUnreadable as error:
        paper.flush()
        complain(error.message)
        return severe + 1, odd, severe + odd + 1
    paper.flush()
    return severe, odd, severe + odd
