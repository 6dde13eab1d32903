"""How findings are shown: one each line, with what to do below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.cli.output import console, on_terminal, say
from folkmoot.telemetry.redaction import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.datafolder import Finding, Level

STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def tell(findings: Sequence[Finding]) -> None:
    """The findings, one each line, with the advice below what needs it, and the sum of it all."""
    width = max(len(finding.subject) for finding in findings)
    if on_terminal():
        draw(findings)
    else:
        for finding in findings:
            say(f"{finding.level:<8} {finding.subject:<{width}}  {visible(finding.text)}")
            if finding.advice:
                say(f"{'':<8} {'':<{width}}  → {visible(finding.advice)}")
    say()
    say(verdict(findings))


def draw(findings: Sequence[Finding]) -> None:
    """The same on a terminal: coloured, and wrapped inside its column."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(visible(finding.text))
        if finding.advice:
            text.append(f"\n→ {visible(finding.advice)}", style="bold")
        mark = Text(finding.level, style=STYLES[finding.level])
        table.add_row(mark, Text(finding.subject), text)
    console().print(table)


def verdict(findings: Sequence[Finding]) -> str:
    """The sum of it all in one line."""
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not problems and not warnings:
        return "No problems found."
    counts = [(problems, "problem"), (warnings, "warning")]
    told = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
    return f"Found {' and '.join(told)}."
