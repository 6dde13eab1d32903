"""The changes of a project's sources: declarations, aliases, and every literal with the name."""

from __future__ import annotations

import tokenize
from pathlib import Path

from folkmoot.names.generate.layout import Layout
from folkmoot.names.generate.plan import Plan, with_ends_of
from folkmoot.names.generate.rename.alias import Deprecating, alias_changes
from folkmoot.names.generate.rename.renaming import Renaming
from folkmoot.names.generate.rename.sources import Change, Source, applied, changes_in
from folkmoot.names.generate.rename.upgrading import FOLDER
from folkmoot.names.lint.files import sources
from folkmoot.names.lint.model import Declared, Project

BOM = "\ufeff"


def python_files(layout: Layout) -> list[Path]:
    """Every source of the project, tests as well."""
    return sources(layout.root, [layout.root], (FOLDER,), lambda _: None)


def plan_sources(
    layout: Layout,
    project: Project,
    plan: Plan,
    renaming: Renaming,
    found: list[Declared],
    when: Deprecating | None,
) -> None:
    """Plan the changes of the sources."""
    changes: dict[Path, set[Change]] = {}
    texts: dict[Path, Source] = {}
    for path in python_files(layout):
        text = plan.read(path) or ""
        texts[path] = Source(text.removeprefix(BOM), layout.shown(path))
        changes[path] = set(changes_in(texts[path], renaming))
    for it in found if renaming.what != "namespace" else ():
        path = layout.root / (it.place.path if it.place else "")
        rename = when is not None and may_rename(texts, it, renaming)
        if when is not None:
            changes[path] |= set(alias_changes(texts[path], it, renaming, when, rename=rename))
        if not (rename and it.written.how == "function"):
            where, change = declaration(layout, texts, it, renaming)
            changes[where] |= {change} if change else set()
    for constant in project.constants if renaming.what == "namespace" else ():
        path = layout.root / constant.place.path
        if constant.value == renaming.old and path in texts:
            start, end = constant.span.start, constant.span.end
            literal = texts[path].text[start:end]
            changes[path].add(Change(start, end, literal.replace(renaming.old, renaming.new)))
    for path, wanted in changes.items():
        if wanted:
            before = texts[path].text
            mark = BOM if (plan.read(path) or "").startswith(BOM) else ""
            plan.write(path, mark + in_line_ends(before, applied(before, wanted)))


def in_line_ends(before: str, after: str) -> str:
    """What was put in ends its lines as the file does."""
    return with_ends_of(before, after) if "\r\n" in before else after


def declaration(
    layout: Layout, texts: dict[Path, Source], declared: Declared, renaming: Renaming
) -> tuple[Path, Change | None]:
    """The change of the declaration itself, where the linter knows how it is written."""
    written = declared.written
    place = declared.place.path if declared.place else ""
    if written.insert is not None:
        path = layout.root / written.insert.path
        span, quoted = written.insert.span, f'"{renaming.new}"'
        return path, Change(span.start, span.end, written.insert.text.replace("{}", quoted))
    path = layout.root / (written.path or place)
    if written.span is None or written.how == "function":
        return path, None
    start = written.span.start
    raw = texts[path].text[start : written.span.end]
    old = written.text
    new = {renaming.old: renaming.new, renaming.own[0]: renaming.own[1]}.get(old)
    if new is None or raw.count(old) != 1:
        return path, None
    at = start + raw.index(old)
    return path, Change(at, at + len(old), new)


def may_rename(texts: dict[Path, Source], declared: Declared, renaming: Renaming) -> bool:
    """Whether the function is called as its tool is, and nothing else of the project names it."""
    old, new = renaming.own
    if declared.function != old or not new.isidentifier():
        return False
    named = [
        token.string
        for source in texts.values()
        if old in source.text or new in source.text
        for token in source.tokens()
        if token.type == tokenize.NAME and token.string in {old, new}
    ]
    return named == [old]
