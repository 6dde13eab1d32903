"""Options several commands share, each checked as the setting it sets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from folkmoot.settings import (
    FIELDS,
    BadValue,
    Loaded,
    load,
    read_text,
)


def setting(path: str, *, metavar: str, help: str) -> Any:  # noqa: A002
    """The option that sets a setting; its value is checked before the command begins."""
    field = FIELDS[path]

    def checked(value: str | None) -> Any:
        if value is None:
            return None
        try:
            read_text(field, value)
        except BadValue as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return typer.Option(
        field.option,
        metavar=metavar,
        help=f"{help}  [default: {field.default}]",
        callback=checked,
        autocompletion=(lambda: list(field.choices)) if field.choices else None,
        show_default=False,
    )


def option(name: str, metavar: str, what: str, callback: Callable[..., Any] | None = None) -> Any:
    """An option that takes a value; of a list, it may be given several times."""
    return typer.Option(name, metavar=metavar, help=what, callback=callback, show_default=False)


def flag(name: str, what: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=what, show_default=False)


ConfigOption = Annotated[
    str | None,
    option(
        "--config",
        "FILE",
        "The settings file.  [default: config.toml in the data folder, if it exists]",
    ),
]
DataOption = Annotated[
    str | None, setting("data", metavar="DIR", help="The data folder of the hub.")
]
HostOption = Annotated[
    str | None, setting("host", metavar="HOST", help="The address to listen on.")
]
PortOption = Annotated[
    str | None, setting("port", metavar="PORT", help="The port to listen on; 0 takes a free one.")
]
LogLevelOption = Annotated[
    str | None,
    setting("log.level", metavar="LEVEL", help="What to log: debug, info, warning or error."),
]
LogFormatOption = Annotated[
    str | None,
    setting("log.format", metavar="FORMAT", help="How log lines look: auto, text or json."),
]
JsonOption = Annotated[bool, flag("--json", "Print JSON, for programs.")]


NUMBER = re.compile(r"[0-9]{1,9}")


def number(name: str, least: int, most: int, what: str) -> Any:
    """An option that takes a whole number within bounds, and says so in plain words."""

    def parse(value: Any) -> int:
        text = str(value)
        if NUMBER.fullmatch(text) and least <= int(text) <= most:
            return int(text)
        raise typer.BadParameter(f"must be a whole number from {least} to {most}, not {text!r}")

    return typer.Option(name, metavar="N", help=what, parser=parse, show_default=False)


def choice(name: str, metavar: str, words: tuple[str, ...], what: str) -> Any:
    """An option that takes one of a few words."""

    def parse(value: Any) -> str:
        if value in words:
            return str(value)
        raise typer.BadParameter(f"must be {', '.join(words[:-1])} or {words[-1]}, not {value!r}")

    def complete() -> list[str]:
        return list(words)

    return typer.Option(
        name, metavar=metavar, help=what, parser=parse, autocompletion=complete, show_default=False
    )


def check_place(ctx: typer.Context, *given: object) -> None:
    """Refuse a group's own options before one of its commands, which would not heed them."""
    if any(given):
        raise typer.BadParameter(f"options come after '{ctx.invoked_subcommand}', not before it")


def settings_from(config: str | None, *, runs: bool = False, **options: str | None) -> Loaded:
    """The effective settings with the command's options over them; `log_level` is `log.level`.

    `runs` is for commands that start, or judge, what the settings name.
    """
    paths = {field.option[2:].replace("-", "_"): path for path, field in FIELDS.items()}
    named = {paths[name]: value for name, value in options.items()}
    return load(config, options=named, runs=runs)
