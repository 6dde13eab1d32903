"""The rules themselves, for those who want to know."""

from __future__ import annotations

import shutil
import textwrap

from folkmoot.cli.output import aligned, say
from folkmoot.cli.tape.paper import Paper
from folkmoot.names.lint.rules import RULES

MOST_WIDTH = 100
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
