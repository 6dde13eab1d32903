"""What the linter found, for people or programs, and its rules explained."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from folkmoot.cli.output import aligned, one_line, say, say_data
from folkmoot.cli.show import Paper, number
from folkmoot.names.lint.model import (
    LintFinding,
    Project,
    Severity,
    SourcePlace,
)
from folkmoot.names.lint.rules import RULES
from folkmoot.names.lint.runner import as_data, as_sarif
from folkmoot.names.nearest import shown as shown_name

NARROW = 60


def list_rules() -> None:
    """Every rule in a line: its name, how severe it is, what it says."""
    paper = Paper()
    if paper.width is None:
        rows = [(name, rule.severity, rule.sentence) for name, rule in RULES.items()]
        say("\n".join(aligned(rows)))
        return
    for name, rule in RULES.items():
        paper.put(f"{paper.styled(name, 'bold')}  {rule.severity}")
        for line in textwrap.wrap(rule.sentence, min(paper.width, MOST_WIDTH) - 4):
            paper.put(f"    {line}")
    paper.flush()


def explain(name: str) -> None:
    """One rule with its example and how to fix what it finds."""
    rule = RULES[name]
    width = min(shutil.get_terminal_size().columns, MOST_WIDTH)
    alone = f", a {rule.standalone} with --standalone" if rule.standalone else ""
    alone += f", a {rule.live} for a running server" if rule.live else ""
    fixed = "; --fix can fix it" if rule.fixable else ""
    head = f"{name}: {article(rule.severity)} {rule.severity}{alone}{fixed}"
    # An example is to be read as code, and not broken where there is room below its label.
    indent = " " * (8 if width > NARROW else 2)
    told = [
        *textwrap.wrap(head, width, break_on_hyphens=False),
        "",
        *textwrap.wrap(rule.sentence, width),
        "",
        *textwrap.wrap(f"Wrong:  {rule.example}", width, subsequent_indent=indent),
        *textwrap.wrap(f"Fix:    {rule.mend}", width, subsequent_indent=indent),
    ]
    say("\n".join(told))


def article(word: str) -> str:
    """`an` before a vowel."""
    return "an" if word[0] in "aeiou" else "a"


STYLES: Final[dict[str, str]] = {
    "error": "bold red",
    "warning": "yellow",
    "hint": "cyan",
    "note": "dim",
}
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "hint")
MOST_WIDTH: Final = 100
MOST_LINES: Final = 1_000
"""Findings that are told to people; programs get all."""


MISSING: Final = "missing-namespace"
FIRST: Final = frozenset(
    {"unreadable", "collision", "safe-collision", "long-name", "long-client-name"}
    | {"reserved-namespace"}
)
"""Rules about what collides, is cut or is refused, which people are told of first."""
REFUSED: Final = re.compile(r"[^A-Za-z0-9_:-]")
"""What model APIs refuse in a name; a hub spells the colon in another way."""
MOST_NAMED: Final = 3
"""Names without a namespace that the line about them tells."""


def report(
    project: Project, findings: Sequence[LintFinding], form: str, *, each_missing: bool = False
) -> None:
    """Tell what was found; with `each_missing`, of every name that has no namespace."""
    if form == "json":
        say_data(as_data(project, findings))
    elif form == "sarif":
        say_data(as_sarif(project, findings))
    else:
        show_findings(project, findings, each_missing=each_missing)


def show_findings(
    project: Project, findings: Sequence[LintFinding], *, each_missing: bool = False
) -> None:
    """Print each finding with its place, and a summary."""
    paper = Paper()
    shown_first = sorted(findings, key=lambda each: not comes_first(each))
    ordered = shown_first if each_missing else with_missing_summed_up(project, shown_first)
    told = [(each.place, each.severity, each.rule, each.message) for each in ordered]
    notes = [(each.place, "note", "", each.message) for each in project.notes]
    everything = [*told, *notes]
    for place, severity, rule, message in everything[:MOST_LINES]:
        where = f"{shown(project, place)}: " if place is not None else ""
        put(paper, where, severity, rule, one_line(message))
    if len(everything) > MOST_LINES:
        paper.put(
            f"And {number(len(everything) - MOST_LINES, 'more line')}; --format json has all."
        )
    if everything and paper.on_terminal:
        paper.put("")
    paper.flush()
    for line in summary(project, findings):
        say("\n".join(textwrap.wrap(line, paper.width)) if paper.width else line)


def comes_first(each: LintFinding) -> bool:
    """Whether a name collides, is cut or is refused."""
    refused = each.rule == "tool-characters" and REFUSED.search(each.name) is not None
    return refused or each.rule in FIRST


def with_missing_summed_up(project: Project, findings: Sequence[LintFinding]) -> list[LintFinding]:
    """The findings, with several missing namespaces joined into one at the end."""
    missing = [each for each in findings if each.rule == MISSING]
    others = [each for each in findings if each.rule != MISSING]
    if len(missing) < 2:
        return [*others, *missing]
    names = [repr(shown_name(each.name)) for each in missing[:MOST_NAMED]]
    more = len(missing) - len(names)
    listed = f"{', '.join(names)} and {more} more" if more else " and ".join(names)
    message = (
        f"{len(missing)} of {number(len(project.declared), 'name')} have no namespace: {listed}. "
        "Behind a hub they get one; anywhere else they can collide with another server's. "
        f"--select {MISSING} lists them."
    )
    return [*others, structs.replace(missing[0], message=message)]


def put(paper: Paper, where: str, severity: str, rule: str, message: str) -> None:
    """One finding: in one line for programs that read lines, wrapped for people."""
    if paper.width is None:
        paper.put(f"{where}{severity}: {message}" + (f" [{rule}]" if rule else ""))
        return
    label = paper.styled(severity, STYLES[severity]) + (f" {rule}" if rule else "")
    if len(where) + len(severity) + len(rule) < paper.width:
        paper.put(f"{paper.styled(where, 'bold')}{label}")
    else:
        paper.put(paper.styled(where.rstrip(), "bold"))
        paper.put(f"    {label}")
    width = max(20, min(paper.width, MOST_WIDTH) - 4)
    for line in textwrap.wrap(message, width, break_long_words=False, break_on_hyphens=False):
        paper.put(f"    {line}")


def shown(project: Project, place: SourcePlace) -> str:
    """A place as an editor takes it, from the current folder."""
    file = project.root / place.path
    path = os.path.relpath(file) if Path(place.path) != file else place.path
    return one_line(f"{path}:{place.line}:{place.column}")


def summary(project: Project, findings: Sequence[LintFinding]) -> list[str]:
    """The sum of it all, in a sentence or two."""
    names = number(len(project.declared), "name")
    where = "the server" if project.live else number(len(project.files), "file")
    counts = Counter(each.severity for each in findings)
    found = [number(counts[each], each) for each in SEVERITIES if counts[each]]
    if not project.declared and not found:
        return [f"No names of an MCP server found in {where}."]
    if not found:
        return [f"No problems: {names} of {where}."]
    told = f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else found[0]
    lines = [f"Found {told} in {names} of {where}."]
    fixable = sum(each.fix is not None for each in findings)
    if fixable:
        lines.append(f"--fix can fix {fixable} of them.")
    return lines
