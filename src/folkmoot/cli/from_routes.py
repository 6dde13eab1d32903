"""Commands that are made from routes: those of operations that nobody has written one for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import typer

from folkmoot.cli.asking import AsOption, UrlOption, signed_in
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import aligned, say
from folkmoot.cli.show import word
from folkmoot.cli.text import say_data
from folkmoot.client.methods import Hub

SHARED = {"url": (UrlOption, None), "handle": (AsOption, None), "as_json": (JsonOption, False)}
"""Parameters that every such command has."""


def command_of(method: str) -> Callable[..., None]:
    """The command that calls a method of the client, and shows what it answers."""
    made = getattr(Hub, method)

    def command(**given: Any) -> None:
        shared = {name: given.pop(name) for name in SHARED}
        hub, _ = signed_in(shared["url"], shared["handle"])
        answer = msgspec.to_builtins(getattr(hub, method)(**given))
        if shared["as_json"]:
            say_data(answer)
            return
        for line in aligned([(name, shown(value)) for name, value in answer.items()]):
            say(line)

    hints = get_type_hints(made)
    parameters = [
        parameter(name, hints[name], each.default)
        for name, each in inspect.signature(made).parameters.items()
        if name in hints
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters += [
        inspect.Parameter(name, keyword, default=default, annotation=option)
        for name, (option, default) in SHARED.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = made.__doc__
    return command


def parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """An argument of a method as the command line takes it: what must be given has no dashes."""
    kind = inspect.Parameter.KEYWORD_ONLY
    annotation: Any
    if default is inspect.Parameter.empty:
        annotation = Annotated[hint, typer.Argument(metavar=name.upper(), show_default=False)]
        return inspect.Parameter(name, kind, annotation=annotation)
    type_: Any = next(each for each in get_args(hint) or (hint,) if each is not NoneType)
    option = typer.Option(f"--{name.replace('_', '-')}", show_default=False)
    annotation = Annotated[type_ | None, option]
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def shown(value: Any) -> str:
    """A member of an answer in one line."""
    if value is None or type(value) is bool:
        return "yes" if value else "-" if value is None else "no"
    plain = isinstance(value, str | int | float)
    return word(value if plain else msgspec.json.encode(value).decode())
