"""Which findings count: rules that are selected or ignored, and comments that say so in place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from folkmoot.names.lint.filetext import FileText
from folkmoot.names.lint.model import Finding, Project
from folkmoot.names.lint.rules import RULES

COMMENT: Final = re.compile(r"#\s*folkmoot:\s*ignore(?:\[([^\]\r\n]*)\])?")


def unknown_rule(name: str) -> str | None:
    """What to say of a rule that is none; None for one that is."""
    if name in RULES:
        return None
    near = difflib.get_close_matches(name, RULES, 1)
    return f"there is no rule {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def chosen(
    findings: Iterable[Finding], project: Project, select: Sequence[str], ignore: Sequence[str]
) -> list[Finding]:
    """The findings without those that nobody wants to hear of.

    What could not be read is always told: nobody knows what is in it.
    """
    return [
        each
        for each in findings
        if each.rule == "unreadable"
        or (
            (not select or each.rule in select)
            and each.rule not in ignore
            and not hushed(each, project)
        )
    ]


def hushed(finding: Finding, project: Project) -> bool:
    """Whether a comment on the lines of a finding says to ignore it."""
    place = finding.place
    text = project.texts.get(place.path) if place is not None else None
    if place is None or text is None:
        return False
    spans = [(place.line, place.end_line), finding.lines or (place.line, place.line)]
    return any(
        ignored(comment, finding.rule)
        for first, last in spans
        for comment in comments(text, first, last)
    )


def comments(text: FileText, first: int, last: int) -> list[re.Match[str]]:
    """The comments that ask to ignore something, on some lines."""
    start = text.starts[first - 1]
    end = text.starts[last] if last < len(text.starts) else len(text.text)
    return list(COMMENT.finditer(text.text, start, end))


def ignored(comment: re.Match[str], rule: str) -> bool:
    """Whether a comment is about a rule; one that names none is about all."""
    return comment[1] is None or rule in {each.strip() for each in comment[1].split(",")}
