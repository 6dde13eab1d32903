"""`--header`: one way to write a header, for every command that asks a server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

FORM: Final = "'NAME: VALUE'"
HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)", re.DOTALL)
REFERENCE: Final = re.compile(
    r"((?:\S.*)?\s)?(?:(env|file):(.+)|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}))", re.DOTALL
)
"""A secret that is kept elsewhere, as the last word of a value."""
MISPLACED: Final = re.compile(r"(?<!\$)(?:\$\$)*\$[A-Za-z_{]")
UNSENDABLE: Final = re.compile("[\r\n\0]")
MOST_BYTES: Final = 65_536

HeaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar=FORM, show_default=False,
        help="Send this header to the server. $NAME or file:PATH as the last word of the value is "
        "a secret from the environment or a file. May be repeated.",
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
    """Headers by name, each as the settings hold it."""
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
    """What a variable holds."""
    value = os.environ.get(name)
    if value is None:
        raise typer.BadParameter(f"--header: the environment variable {name} is not set")
    return value


def from_file(path: str) -> Any:
    """What a file holds, without the white space around it."""
    try:
        with Path(path).open("rb") as file:
            return file.read(MOST_BYTES).decode().strip()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise typer.BadParameter(f"--header: {path}: {reason}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"--header: {path}: is not text") from None
