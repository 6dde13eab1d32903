"""The whole change of a name in a project: planned, and read again before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate import namespaces_md, pyproject
from folkmoot.names.generate.layout import Layout
from folkmoot.names.generate.plan import Plan, read_text, with_ends_of
from folkmoot.names.generate.rename import upgrading
from folkmoot.names.generate.rename.alias import MARK, Deprecating
from folkmoot.names.generate.rename.edits import plan_sources, python_files
from folkmoot.names.generate.rename.renaming import Renaming, check_renaming
from folkmoot.names.generate.rename.rewriting import rewrite
from folkmoot.names.lint.model import Declared, Project
from folkmoot.names.lint.source import read_sources
from folkmoot.names.versions import checked

HISTORY = frozenset({"CHANGELOG.md", "UPGRADING.md", "NAMESPACES.md"})
"""Pages that tell what was, or that are made anew."""
PAGES = frozenset({".md", ".rst"})
LEFT_OUT = frozenset({"node_modules", "site-packages", "build", "dist", upgrading.FOLDER})


class Wishes(NamedTuple):
    """What whoever runs it asked for."""

    alias: bool = True
    since: str | None = None
    removed_in: str | None = None


class Renamed(NamedTuple):
    """The plan, and what a person should know of it."""

    renaming: Renaming
    plan: Plan
    when: Deprecating | None
    """How the old name goes; None where it is gone."""
    mentions: list[str]
    """Places that still have the old name in them."""


def plan_rename(layout: Layout, project: Project, old: str, new: str, wishes: Wishes) -> Renamed:
    """Everything that changes; nothing is written here.

    Raises `ProjectUnusable` or `InvalidName` where not all of it can be done for certain.
    """
    renaming, found = check_renaming(project, old, new)
    if project.unreadable:
        first = project.unreadable[0]
        where = first.place.path if first.place else "A file"
        raise ProjectUnusable(f"{where} cannot be read, so nothing is renamed. {first.message}")
    plan = Plan(layout.root)
    keeps = wishes.alias and renaming.what != "namespace"
    when = deprecating(layout, project, wishes) if keeps else None
    plan_sources(layout, project, plan, renaming, found, when)
    if renaming.what == "namespace":
        plan_settings(layout, plan, renaming)
    after = read_again(layout, plan, renaming)
    check_done(after, renaming, found, when)
    plan_pages(layout, plan, renaming)
    plan_register(layout, plan, after, renaming)
    version = wishes.since or project.version or "Next release"
    page = layout.root / upgrading.FILE
    entry = upgrading.entry(renaming, version, when)
    plan.write(page, upgrading.with_entry(plan.read(page), entry))
    plan.write(layout.root / upgrading.script_name(renaming), upgrading.script_text(renaming))
    return Renamed(renaming, plan, when, list(mentions(layout, plan, renaming, after)))


def deprecating(layout: Layout, project: Project, wishes: Wishes) -> Deprecating:
    """When the old name goes: two releases on, unless told. Raises where nothing can mark it."""
    since = wishes.since or project.version
    if since is None:
        raise ProjectUnusable("The project tells no version; say with --since when this begins.")
    _, *numbers = checked(since)
    major, minor, *_ = (*numbers, 0, 0)
    removed_in = wishes.removed_in or f"{major}.{minor + 2}.0"
    if checked(removed_in) <= checked(since):
        raise ProjectUnusable(f"--removed-in must be later than {since}, not {removed_in}.")
    return Deprecating(since, removed_in, marking_module(layout))


def marking_module(layout: Layout) -> str:
    """Where `deprecated` is imported from: the project's helper, or our library if it is there."""
    text = read_text(layout.helper) if layout.helper else None
    if text and f"def {MARK}(" in text:
        return layout.module
    settings = read_text(layout.root / pyproject.FILE)
    needs = pyproject.member(pyproject.parse(settings or ""), "project", "dependencies")
    if any(re.match(r"folkmoot\b", str(it)) for it in needs or []):
        return "folkmoot.names"
    raise ProjectUnusable(
        "The project has no 'deprecated' to mark the old name with: 'folkmoot names init' writes a "
        "module that has it. With --no-alias the old name is gone at once."
    )


def plan_settings(layout: Layout, plan: Plan, renaming: Renaming) -> None:
    """Plan the namespace in `pyproject.toml`."""
    file = layout.root / pyproject.FILE
    text = plan.read(file)
    if text is not None and layout.found.config.namespace == renaming.old:
        plan.write(file, pyproject.with_namespace(text, renaming.old, renaming.new))


def read_again(layout: Layout, plan: Plan, renaming: Renaming) -> Project:
    """The project as it will be."""
    planned = {plan.shown(it.path): it.after for it in plan.changes}
    found = layout.found
    if renaming.what == "namespace" and found.config.namespace == renaming.old:
        config = structs.replace(found.config, namespace=renaming.new)
        found = structs.replace(found, config=config, constant=None)
    return read_sources([layout.root], found, planned)


def check_done(
    after: Project, renaming: Renaming, found: list[Declared], when: Deprecating | None
) -> None:
    """Refuse a change that would leave the old name somewhere, or bring no new one."""
    if renaming.what == "namespace":
        left = [it for it in after.declared if it.namespace == renaming.old]
        came = sum(it.namespace == renaming.new for it in after.declared) == len(found)
    else:
        named = [it for it in after.declared if it.name == renaming.old]
        left = [it for it in named if when is None or it.deprecation is None]
        came = any(it.name == renaming.new for it in after.declared)
    if left or not came:
        places = [it.place for it in (left or found) if it.place]
        at = f" at {places[0].path}:{places[0].line}" if places else ""
        raise ProjectUnusable(
            f"{renaming.old} is written{at} in a way that cannot be changed for certain; change it "
            "there by hand. Nothing was changed."
        )


def plan_pages(layout: Layout, plan: Plan, renaming: Renaming) -> None:
    """Plan the pages of the documentation."""
    for path in pages(layout.root):
        text = plan.read(path)
        if text is not None:
            plan.write(path, rewrite(text, renaming.rules, path.suffix))


def pages(root: Path) -> Iterator[Path]:
    """The pages of a project."""
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).parts
        left_out = any(part.startswith(".") or part in LEFT_OUT for part in inside[:-1])
        if path.suffix in PAGES and path.name not in HISTORY and not left_out and path.is_file():
            yield path


def plan_register(layout: Layout, plan: Plan, after: Project, renaming: Renaming) -> None:
    """Plan `NAMESPACES.md`; one that a person writes by hand only gets the new names."""
    path = layout.root / after.namespaces_file
    text = plan.read(path)
    if text is None:
        return
    if namespaces_md.marked(text):
        helper = layout.shown(layout.helper) if layout.helper else None
        plan.write(path, with_ends_of(text, namespaces_md.render(after, text, helper=helper)))
    else:
        plan.write(path, rewrite(text, renaming.rules, path.suffix))


def mentions(layout: Layout, plan: Plan, renaming: Renaming, after: Project) -> Iterator[str]:
    """Lines of sources that still say the old name and may want a look; not those that keep it."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(renaming.full[0])}(?![\w-])")
    if renaming.what == "namespace":
        pattern = re.compile(
            rf"""(?<![\w.-]){renaming.old}:(?://)?[a-z{{*]|["']{renaming.old}["']"""
        )
    places = (it.place for it in after.declared if it.name == renaming.old)
    kept = {(it.path, it.line) for it in places if it}
    for path in python_files(layout):
        shown = layout.shown(path)
        for number, line in enumerate((plan.read(path) or "").splitlines(), 1):
            if pattern.search(line) and (shown, number) not in kept:
                yield f"{shown}:{number}"
