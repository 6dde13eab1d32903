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
        help="The namespace of the names.  [default: derived from the project's name]",
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
    bool,
    typer.Option("--no-pre-commit", help="Do not add the pre-commit hook.", show_default=False),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace an existing helper module and NAMESPACES.md.",
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
    """Add the naming conventions to an existing project.

    Writes a helper module without dependencies that builds and checks names, NAMESPACES.md with the
    names that the sources declare, a pre-commit hook that runs the linter, and a section in
    pyproject.toml. Existing files are not replaced, and a second run changes nothing.
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
    done = "Changed:" if plan.changes else "Nothing to do, everything exists:"
    say(f"The namespace is {project.namespace}. {done}")
    say()
    for line in aligned((f"  {step.verb}", step.file, step.note) for step in steps):
        say(line)
    if plan.changes:
        say()
        say("Name your tools with make_tool_name, then run 'folkmoot names lint'.")
