"""The rules of `naming-linter.md`, from the linter's own table."""

from __future__ import annotations

import textwrap

from folkmoot.names.lint import RULES, LintRule

WIDTH = 100


def _rules() -> str:
    return "\n\n".join(part for name, rule in RULES.items() for part in _section(name, rule))


def _section(name: str, rule: LintRule) -> list[str]:
    items = [f"- Breaks it: {rule.example}", f"- Fix it: {rule.mend}"]
    return [
        f"### `{name}`",
        _filled(f"{rule.told.capitalize()}. {rule.sentence}"),
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


BLOCKS = {"naming-rules": _rules}
