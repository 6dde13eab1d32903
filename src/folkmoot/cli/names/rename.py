"""`folkmoot names rename`: another name for a tool, a resource, a prompt or a namespace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.names.files import DiffOption, ProjectArgument, say_diff, say_places
from folkmoot.cli.output import aligned, say

if TYPE_CHECKING:
    from folkmoot.names.generate.plan import Plan
    from folkmoot.names.generate.rename.planning import Renamed
    from folkmoot.names.lint.model import Declared

OldArgument = Annotated[
    str,
    typer.Argument(
        metavar="OLD", help="The current name: ns:tool, ns://type/id, or a namespace.",
        show_default=False,
    ),
]  # fmt: skip
NewArgument = Annotated[
    str, typer.Argument(metavar="NEW", help="The new name.", show_default=False)
]
NoAliasOption = Annotated[
    bool,
    typer.Option(
        "--no-alias", help="Do not keep the old name as a deprecated alias.", show_default=False
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="VERSION",
        help="The first release with the new name.  [default: the project's version]",
        show_default=False,
    ),
]  # fmt: skip
RemovedInOption = Annotated[
    str | None,
    typer.Option(
        "--removed-in", metavar="VERSION",
        help="The first release without the old name.  [default: two minor releases later]",
        show_default=False,
    ),
]  # fmt: skip
ClientsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--clients", metavar="FILE",
        help="Change a client's file or folder instead of the project. May be repeated.",
        show_default=False,
    ),
]  # fmt: skip


def rename(
    old: OldArgument,
    new: NewArgument,
    path: ProjectArgument = Path(),
    since: SinceOption = None,
    removed_in: RemovedInOption = None,
    clients: ClientsOption = None,
    *,
    no_alias: NoAliasOption = False,
    diff: DiffOption = False,
) -> None:
    """Rename something everywhere.

    Renames a tool, a resource, a prompt or the namespace: changes the declaration, literals that
    are exactly the name, docstrings and pages of the project, and NAMESPACES.md. The old name is
    kept for two releases by a function marked as deprecated. UPGRADING.md gets an entry, and
    migrations/ a script for clients. Either everything is written or nothing.

    With --clients it changes files of clients instead: settings, grants, code and documents, in
    both spellings of the name.
    """
    from folkmoot.names.generate.layout import find_layout
    from folkmoot.names.generate.rename.planning import Wishes, plan_rename
    from folkmoot.names.lint.source import read_sources

    if clients:
        change_clients(path, old, new, clients, diff=diff)
        return
    layout = find_layout(path)
    project = read_sources([layout.root], layout.found)
    wishes = Wishes(alias=not no_alias, since=since, removed_in=removed_in)
    renamed = plan_rename(layout, project, old, new, wishes)
    if diff:
        say_diff(renamed.plan)
        return
    renamed.plan.apply()
    tell(renamed)


def tell(renamed: Renamed) -> None:
    """What was done, and what is left to do."""
    renaming = renamed.renaming
    say(f"{renaming.old} is now {renaming.new}:")
    say_files(renamed.plan)
    if renamed.when:
        say()
        say(
            f"The old name works until {renamed.when.removed_in}, and its use is logged. "
            "Remove its function after that."
        )
    say_places("These lines still have the old name in them:", renamed.mentions)


def names_of(path: Path) -> list[Declared]:
    """The names of the project at a path; none where there is no project."""
    from folkmoot.names.lint.config import find
    from folkmoot.names.lint.source import read_sources

    found = find(path.absolute())
    return read_sources([found.root], found).declared if found.file else []


def say_files(plan: Plan) -> None:
    """The files that a plan changes."""
    say()
    rows = [
        ("  create" if it.before is None else "  change", plan.shown(it.path))
        for it in plan.changes
    ]
    for line in aligned(rows):
        say(line)


def change_clients(path: Path, old: str, new: str, paths: list[Path], *, diff: bool) -> None:
    """Change files of clients, whether the project has the old name or the new one by now."""
    from folkmoot.names.generate.rename.clients import plan_clients
    from folkmoot.names.generate.rename.renaming import renaming_for_clients

    renaming = renaming_for_clients(old, new, lambda: names_of(path))
    plan, doubtful = plan_clients(paths, renaming)
    if diff:
        say_diff(plan)
    elif not plan.changes:
        say(f"No file has {old} in it.")
    else:
        plan.apply()
        say(f"{old} is now {new}:")
        say_files(plan)
    say_places("These patterns matched the old name, but do not match the new one:", doubtful)
