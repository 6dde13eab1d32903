"""What `folkmoot names lint` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from folkmoot.cli.options import choice, number
from folkmoot.core.errors import InvalidName


def checked_namespace(value: str | None) -> Any:
    """A namespace that is valid."""
    if value is None:
        return None
    from folkmoot.names.canonical import validate_namespace

    try:
        validate_namespace(value)
    except InvalidName as error:
        near = f"; {error.nearest} would be one" if error.nearest else ""
        raise typer.BadParameter(
            f"must be 3 to 20 lower-case letters and digits, a letter first{near}"
        ) from None
    return value


def checked_version(value: str | None) -> Any:
    """A version that can be compared."""
    if value is None:
        return None
    from folkmoot.names.deprecation import numbers_of

    if numbers_of(value) is None:
        raise typer.BadParameter(f"must be a version such as 1.4.0, not {value!r}")
    return value


def check_rules(option: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of rules, of which several may stand between commas."""
    from folkmoot.names.lint.runner import unknown_rule

    names = tuple(name.strip() for each in given or () for name in each.split(",") if name.strip())
    for name in names:
        if problem := unknown_rule(name):
            raise typer.BadParameter(f"{option}: {problem} (--list-rules has them all)")
    return names


def check_sources_only(*, fix: bool, diff: bool) -> None:
    """Refuse to mend what has no sources."""
    if fix or diff:
        raise typer.BadParameter(f"{'--fix' if fix else '--diff'} needs sources, not a server")


NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", show_default=False, callback=checked_namespace,
        help="The namespace of all names.  [default: as configured, or as found in the sources]",
    ),
]  # fmt: skip
StandaloneOption = Annotated[
    bool,
    typer.Option(
        "--standalone", show_default=False,
        help="The server is only used on its own: report a missing namespace as a hint.",
    ),
]  # fmt: skip
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--project-version", metavar="VERSION", show_default=False, callback=checked_version,
        help="The release to check deprecations against.  [default: that of pyproject.toml]",
    ),
]  # fmt: skip
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select", metavar="RULE", show_default=False,
        help="Check only this rule; separate several with commas. May be repeated.",
    ),
]  # fmt: skip
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="RULE", show_default=False,
        help="Do not check this rule; separate several with commas. May be repeated.",
    ),
]  # fmt: skip
StrictOption = Annotated[
    bool,
    typer.Option("--strict", show_default=False, help="Exit with 1 for a warning too."),
]
FixOption = Annotated[
    bool,
    typer.Option(
        "--fix", show_default=False,
        help="Fix what needs no decision: add the namespace to names, update NAMESPACES.md.",
    ),
]  # fmt: skip
DiffOption = Annotated[
    bool,
    typer.Option("--diff", show_default=False, help="Show what --fix would change, and exit."),
]
FormatOption = Annotated[
    str,
    choice(
        "--format", "FORMAT", ("text", "json", "sarif"),
        "The output format: text, json or sarif.  [default: text]",
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    int,
    number("--timeout", 1, 600, "Seconds that the server may take to answer.  [default: 30]"),
]
ListOption = Annotated[
    bool, typer.Option("--list-rules", show_default=False, help="List all rules, and exit.")
]
ExplainOption = Annotated[
    str | None,
    typer.Option(
        "--explain", metavar="RULE", show_default=False,
        help="Explain a rule and how to fix what it finds, and exit.",
    ),
]  # fmt: skip
