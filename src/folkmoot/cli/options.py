"""Options that several commands share, and the arguments of tools: `name=value` or JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from typer.core import TyperArgument, TyperCommand

from folkmoot.cli.output import one_line
from folkmoot.core import errors as e
from folkmoot.core import strict
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


def option(
    name: str, metavar: str | None, what: str, callback: Callable[..., Any] | None = None
) -> Any:
    """An option that takes a value; of a list, it may be given several times."""
    return typer.Option(name, metavar=metavar, help=what, callback=callback, show_default=False)


COMMAND: Final = "folkmoot.command"


def set_command_aside(ctx: typer.Context, args: list[str]) -> list[str]:
    """The words of a command line before `--`; those behind it are a server's command."""
    if "--" not in args:
        return args
    at = args.index("--")
    ctx.meta[COMMAND] = tuple(args[at + 1 :])
    return args[:at]


def command_behind(ctx: typer.Context) -> tuple[str, ...]:
    """The command that stands behind `--`; empty if none does."""
    found: tuple[str, ...] = ctx.meta.get(COMMAND, ())
    return found


class ServerCommand(TyperCommand):
    """Takes everything behind `--` for a server's command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the server's command aside."""
        return super().parse_args(ctx, set_command_aside(ctx, args))


# Help names what a word is, and not its type in Python: `ID`, not `ID <list[str]>`.
TyperArgument.display_type_rich = lambda self, ctx: None  # type: ignore[method-assign]  # noqa: ARG005


def argument(metavar: str, what: str, callback: Callable[..., Any] | None = None) -> Any:
    """A word of the command line without dashes; of a list, all that are left."""
    return typer.Argument(metavar=metavar, help=what, callback=callback, show_default=False)


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


FORM: Final = "'NAME: VALUE'"
HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)", re.DOTALL)
REFERENCE: Final = re.compile(
    r"((?:\S.*)?\s)?(?:(env|file):(.+)|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}))", re.DOTALL
)
"""A secret that is kept elsewhere, as the last word of a value."""
MISPLACED: Final = re.compile(r"(?<!\$)(?:\$\$)*\$[A-Za-z_{]")
UNSENDABLE: Final = re.compile("[\r\n\0]")

HeaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar=FORM, show_default=False,
        help="Send this header to the server. $NAME, env:NAME or file:PATH as the last word of the "
        "value is a secret from the environment or a file. May be repeated.",
    ),
]  # fmt: skip


def reference(text: str) -> str | dict[str, str]:
    """A value as the settings hold it: a text, or where a secret is and what stands before it.

    A path is made absolute: the settings file may be anywhere.
    """
    found = REFERENCE.fullmatch(text)
    if found is None:
        return text
    prefix, kind, name, bare, braced = found.groups()
    if kind == "file":
        told = {"file": str(Path(name).expanduser().absolute())}
    else:
        told = {"env": name or bare or braced}
    return {**told, **({"prefix": prefix} if prefix else {})}


def written_headers(given: Iterable[str] | None) -> dict[str, str | dict[str, str]]:
    """Headers by name, in the form the settings use."""
    headers: dict[str, str | dict[str, str]] = {}
    for text in given or ():
        parts = HEADER.fullmatch(text)
        if parts is None:
            # What was given instead may well be a secret.
            raise typer.BadParameter(f"--header must be {FORM}")
        name, value = parts[1], reference(parts[2].strip(" \t"))
        if name.lower() in map(str.lower, headers):
            raise typer.BadParameter(f"--header names {name} twice")
        if isinstance(value, str):
            if MISPLACED.search(value):
                raise typer.BadParameter(
                    f"--header: a variable must be the last word of the value of {name}; write "
                    "$$ for a dollar sign"
                )
            value = value.replace("$$", "$")
        if UNSENDABLE.search(str(value) if isinstance(value, str) else value.get("prefix", "")):
            raise typer.BadParameter(f"--header: the value of {name} has more than one line")
        headers[name] = value
    return headers


def sent_headers(given: Iterable[str] | None) -> dict[str, str]:
    """Headers by name as they are sent now, with every secret in its place."""
    return {name: resolved(name, value) for name, value in written_headers(given).items()}


def resolved(name: str, value: str | dict[str, str]) -> str:
    """A value with the secret it refers to."""
    if isinstance(value, str):
        return value
    secret = from_environment(value["env"]) if "env" in value else from_file(value["file"])
    told = f"{value.get('prefix', '')}{secret}"
    if UNSENDABLE.search(told):
        raise typer.BadParameter(f"--header: the value of {name} has more than one line")
    return told


def from_environment(name: str) -> str:
    """The value of an environment variable; a missing one is an error."""
    value = os.environ.get(name)
    if value is None:
        raise typer.BadParameter(f"--header: the environment variable {name} is not set")
    return value


def from_file(path: str) -> Any:
    """What a file holds, without the white space around it."""
    try:
        with Path(path).open("rb") as file:
            return file.read(65_536).decode().strip()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise typer.BadParameter(f"--header: {path}: {reason}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"--header: {path}: is not text") from None


TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
"""The types of JSON Schema, and what a value of each is here."""
NAMES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
LONGEST: Final = 40
"""Characters of a wrong value that are repeated."""


class ArgumentMistake(ValueError):
    """Arguments that cannot be read, with a sentence that says why."""


def read_arguments(
    words: Sequence[str], schema: Any = None, whole: str | None = None
) -> dict[str, Any]:
    """Arguments given as words, merged over the object of `--arguments`."""
    given = {} if whole is None else read_whole(whole)
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return given | read_object(words[0], "What is in the braces is not JSON.")
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise ArgumentMistake(f"Arguments are written name=value, not {quoted(word)}.")
        if name in found:
            raise ArgumentMistake(f"{one_line(name)} is given twice.")
        found[name] = read_json(name, value) if is_json else read_value(name, value, schema)
    return given | found


def typed_arguments(
    words: Sequence[str], schema: Any = None, whole: str | None = None
) -> dict[str, Any]:
    """The same for a command: what cannot be read is a usage error."""
    try:
        return read_arguments(words, schema, whole)
    except ArgumentMistake as error:
        raise typer.BadParameter(str(error).rstrip(".")) from None


def read_whole(text: str) -> dict[str, Any]:
    """A JSON object: itself, in a file after `@`, or with `-` on standard input."""
    wrong = "--arguments must be a JSON object, @FILE or -."
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).expanduser().read_text()
    except OSError as error:
        raise ArgumentMistake(f"--arguments: {error.strerror}: {one_line(text[1:])}.") from None
    except UnicodeError:
        raise ArgumentMistake(wrong) from None
    return read_object(text, wrong)


def read_object(text: str, wrong: str) -> dict[str, Any]:
    """One JSON object with all arguments."""
    value = decoded(text)
    if not isinstance(value, dict):
        raise ArgumentMistake(wrong)
    return value


def read_value(name: str, text: str, schema: Any) -> Any:
    """Parse a value by its schema; without a type, by its look."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    wanted = types_of(properties.get(name) if isinstance(properties, dict) else None)
    if wanted == ["string"]:
        return text
    value = decoded(text, otherwise=text)
    if not wanted or any(type(value) in TYPES[each] for each in wanted):
        return value
    if "string" in wanted:
        return text
    raise ArgumentMistake(
        f"{one_line(name)} must be {described(wanted)}, not {quoted(text)}; "
        f"{one_line(name)}:=JSON sends it anyway."
    )


def read_json(name: str, text: str) -> Any:
    """A value that must be JSON."""
    value = decoded(text, otherwise=...)
    if value is ...:
        raise ArgumentMistake(f"{one_line(name)}:= must be followed by JSON, not {quoted(text)}.")
    return value


def decoded(text: str, otherwise: Any = None) -> Any:
    """The value that a text is in JSON."""
    try:
        return strict.decode(text.encode())
    except (e.MessageError, UnicodeError, RecursionError):
        return otherwise


def types_of(schema: Any) -> list[str]:
    """The JSON types that a value may have; none where its schema does not say."""
    if not isinstance(schema, dict):
        return []
    types = schema.get("type")
    if types is not None:
        listed = types if isinstance(types, list) else [types]
        return [each for each in TYPES if each in listed]
    choices = schema.get("anyOf") or schema.get("oneOf")
    allowed = [types_of(each) for each in choices] if isinstance(choices, list) else []
    if not all(allowed):
        # One of them is a reference, or anything at all.
        return []
    return [each for each in TYPES if any(each in one for one in allowed)]


def described(wanted: Sequence[str]) -> str:
    """Some types in words."""
    *others, last = [NAMES[each] for each in wanted]
    return f"{', '.join(others)} or {last}" if others else last


def quoted(text: str) -> str:
    """What was typed, in quotes."""
    return repr(one_line(text[:LONGEST]))


def signature(schema: Any) -> str:
    """What a tool takes, as it is typed: optional arguments stand in brackets."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    told = []
    for name, each in properties.items():
        types = "|".join(sorted(set(types_of(each)) - {"string"}))
        one = f"{one_line(name)}={types}"
        told.append(one if name in needed else f"[{one}]")
    return " ".join(told)


def usage(definition: dict[str, Any]) -> str:
    """How a tool is called: its name and arguments."""
    name = one_line(str(definition.get("name", "")))
    return f"{name} {signature(definition.get('inputSchema'))}".rstrip()


def given_arguments(text: str | None) -> dict[str, Any]:
    """The arguments of a call, as one types them."""
    try:
        given: dict[str, Any] = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        raise typer.BadParameter("--arguments must be a JSON object") from None
    return given
