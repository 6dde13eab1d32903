"""`folkmoot names init`: put the conventions into a project that exists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from folkmoot.cli.names.files import DiffOption, ProjectArgument, say_diff
from folkmoot.cli.output import aligned, say

NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NS",
        help="What the names begin with.  [default: made of the project's name]",
        show_default=False,
    ),
]  # fmt: skip
ModuleOption = Annotated[
    Path | None,
    typer.Option(
        "--module", metavar="FILE",
        help="The helper module.  [default: names.py in the package]", show_default=False,
    ),
]  # fmt: skip
NoPreCommitOption = Annotated[
    bool, typer.Option("--no-pre-commit", help="Leave the hooks alone.", show_default=False)
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace a helper module and a NAMESPACES.md that are there.",
        show_default=False,
    ),
]  # fmt: skip


def init(
    path: ProjectArgument = Path(),
    namespace: NamespaceOption = None,
    module: ModuleOption = None,
    *,
    no_pre_commit: NoPreCommitOption = False,
    force: ForceOption = False,
    diff: DiffOption = False,
) -> None:
    """Put the naming conventions into a project that exists.

    Writes a helper module that makes and checks names and needs nothing but Python, NAMESPACES.md
    with the names that the sources declare, a pre-commit hook that runs the linter, and a section
    in pyproject.toml. Nothing that is there is replaced, and a second run changes nothing.
    """
    from folkmoot.names.generate.init import Wishes, plan_init
    from folkmoot.names.generate.layout import find_layout
    from folkmoot.names.lint.source import read_sources

    layout = find_layout(path, module)
    wishes = Wishes(namespace, module, pre_commit=not no_pre_commit, force=force)
    project = read_sources([layout.root], layout.found)
    plan, steps = plan_init(layout, project, wishes)
    if diff:
        say_diff(plan)
        return
    plan.apply()
    done = "Changed:" if plan.changes else "Everything is there already:"
    say(f"The namespace is {project.namespace}. {done}")
    say()
    for line in aligned((f"  {step.verb}", step.file, step.note) for step in steps):
        say(line)
    if plan.changes:
        say()
        say("Name your tools with make_tool_name, then run 'folkmoot names lint'.")
