"""Put the conventions into a project that exists: helper, register, hook and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from folkmoot.core.errors import InvalidName, ProjectUnusable
from folkmoot.names.generate import namespaces_md, precommit, pyproject
from folkmoot.names.generate.filling import fill
from folkmoot.names.generate.layout import Layout, is_helper, namespace_in, new_helper
from folkmoot.names.generate.plan import Plan, with_ends_of
from folkmoot.names.grammar import check_free_namespace
from folkmoot.names.lint.model import Project
from folkmoot.names.slugs import namespace_from_slug


class Step(NamedTuple):
    """What happens to one file, in words."""

    verb: str
    file: str
    note: str


class Wishes(NamedTuple):
    """What whoever runs it asked for."""

    namespace: str | None = None
    module: Path | None = None
    pre_commit: bool = True
    force: bool = False


def choose_namespace(layout: Layout, wanted: str | None) -> str:
    """The namespace of a project: as told, as it has one, or made of its name.

    Raises `InvalidName` with a proposal, or `ProjectUnusable` where it has another one already.
    """
    had = layout.found.config.namespace or (namespace_in(layout.helper) if layout.helper else None)
    if wanted and had and wanted != had:
        raise ProjectUnusable(
            f"The project has the namespace {had} already; to change it, use "
            f"'folkmoot names rename {had} {wanted}'."
        )
    namespace = wanted or had
    if namespace is None:
        try:
            namespace = namespace_from_slug(layout.name)
        except InvalidName as error:
            proposed = f" Choose one with --namespace, for instance {error.nearest}." * bool(
                error.nearest
            )
            raise ProjectUnusable(
                f"The name {layout.name!r} cannot be turned into a namespace, which has 3 to 20 "
                f"lower-case letters and digits.{proposed or ' Choose one with --namespace.'}"
            ) from error
    check_free_namespace(namespace)
    return namespace


def plan_init(layout: Layout, project: Project, wishes: Wishes) -> tuple[Plan, list[Step]]:
    """Everything that will be written, and a line for each file; nothing is written here."""
    namespace = choose_namespace(layout, wishes.namespace)
    project.namespace = namespace
    project.name = project.name or layout.name
    plan = Plan(layout.root)
    steps: list[Step] = []
    given = wishes.module.absolute() if wishes.module else None
    helper = given or layout.helper or new_helper(layout)
    register = layout.root / project.namespaces_file

    def put(path: Path, text: str, note: str) -> None:
        before = plan.read(path)
        verb = "create" if before is None else "keep" if before == text else "change"
        steps.append(Step(verb, layout.shown(path), note))
        plan.write(path, text)

    put_helper(layout, helper, namespace, put, steps, force=wishes.force)
    before = plan.read(register)
    if before and not namespaces_md.marked(before) and not wishes.force:
        note = "has no folkmoot marks; --force replaces it"
        steps.append(Step("keep", layout.shown(register), note))
    else:
        make = namespaces_md.replace if wishes.force and before else namespaces_md.render
        shown = layout.shown(helper)
        text = with_ends_of(before or "", make(project, before, helper=shown))
        put(register, text, counted(project))
    file = layout.root / pyproject.FILE
    settings = plan.read(file)
    if settings is None:
        steps.append(Step("skip", pyproject.FILE, "there is none"))
    else:
        put(file, pyproject.with_names(settings, namespace), "[tool.folkmoot.names]")
    if wishes.pre_commit:
        hooks = layout.root / precommit.FILE
        put(hooks, precommit.with_hook(plan.read(hooks)), f"the hook {precommit.HOOK}")
    return plan, steps


def put_helper(
    layout: Layout,
    path: Path,
    namespace: str,
    put: Callable[[Path, str, str], None],
    steps: list[Step],
    *,
    force: bool,
) -> None:
    """Plan the helper module; one that is there is its owner's, unless they say otherwise."""
    note = "makes and checks names"
    text = helper_text(namespace, layout.name)
    if not path.exists() or force:
        put(path, text, note)
    elif is_helper(path):
        steps.append(Step("keep", layout.shown(path), note))
    else:
        raise ProjectUnusable(
            f"{layout.shown(path)} exists and is no helper module; --force replaces it, and "
            "--module names another file."
        )


def helper_text(namespace: str, name: str) -> str:
    """The helper module of a project."""
    return fill("names.py", {"namespace": namespace, "name": name})


def counted(project: Project) -> str:
    """How much is in the register, in words."""
    told = []
    for word, kinds in (
        ("tool", {"tool"}),
        ("resource", {"resource", "template"}),
        ("prompt", {"prompt"}),
    ):
        count = len({it.name for it in project.declared if it.kind in kinds})
        if count:
            told.append(f"{count} {word}{'' if count == 1 else 's'}")
    return ", ".join(told) or "no names yet"
