"""The rules of `naming-linter.md`, from the linter's own table."""

from __future__ import annotations

import textwrap

from folkmoot.cli.names.report import article
from folkmoot.names.lint.rules import RULES, LintRule

WIDTH = 100


def _rules() -> str:
    return "\n\n".join(part for name, rule in RULES.items() for part in _section(name, rule))


def _section(name: str, rule: LintRule) -> list[str]:
    items = [f"- Breaks it: {rule.example}", f"- Fix it: {rule.mend}"]
    return [
        f"### `{name}`",
        _filled(f"{_severity(rule)}. {rule.sentence}"),
        "\n".join(map(_filled, items)),
    ]


def _filled(text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        subsequent_indent="  " if text.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _severity(rule: LintRule) -> str:
    told = f"{article(rule.severity).capitalize()} {rule.severity}"
    if rule.standalone:
        told += f", a {rule.standalone} with `--standalone`"
    if rule.live:
        told += f", a {rule.live} for a running server"
    return told + ("; `--fix` can fix it" if rule.fixable else "")


BLOCKS = {"naming-rules": _rules}
