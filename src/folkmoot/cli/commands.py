"""Turns a function into a command: chooses the account, asks the hub, shows the answer.

A command takes a hub and arguments of its own. What it returns is shown as JSON for a program or
as text for a person:

    @account_command
    def block(hub: HubClient, who: HandleArgument) -> Output:
        done = hub.block(who)
        return Output(done, f"{at(done.handle)} can no longer write to you.")

`account_command` adds `--url` and `--as`, `operator_command` adds `--data` and `--config`, and both
add `--json` where the function returns an `Output`. The function names what it wants of `hub` and
`login`. A function with a parameter `as_json` shows its answer itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import typer
from msgspec import Struct

from folkmoot.cli.credentials import AsOption, UrlOption, signed_in
from folkmoot.cli.operator import NO_ACCOUNTS, OperatedHub
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, check_place
from folkmoot.cli.output import ExitCode, aligned, complain, say, say_data
from folkmoot.cli.show import Column, show_fields, show_table, word
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.cli.credentials import Login
    from folkmoot.client.hub import Hub

Command: TypeAlias = Callable[..., Any]
Opens: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""Gives what a command works with, from the options that were added and from its own arguments."""

OWN = inspect.Parameter.KEYWORD_ONLY
PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Table:
    """Rows under headings; a sentence where there are none."""

    def __init__(
        self, columns: Sequence[Column], rows: Iterable[Sequence[str]], nothing: str
    ) -> None:
        self._given = columns, rows, nothing

    def show(self) -> None:
        show_table(*self._given)


class Fields:
    """Names and values, a line each; what is empty is left out."""

    def __init__(self, *fields: tuple[str, Any]) -> None:
        self._fields = fields

    def show(self) -> None:
        show_fields(self._fields)


class Note(Struct, eq=False):
    """A line on stderr: what a person should know, and a program that reads stdout need not."""

    text: str

    def show(self) -> None:
        say(self.text, err=True)


class Warned(Struct, eq=False):
    """A warning on stderr, which programs are given too."""

    text: str

    def show(self) -> None:
        complain(self.text, kind="warning")


class Output:
    """What a command answers: data for a program, and what a person is shown of it.

    A function among what is shown draws by itself. A command that `failed`, perhaps with an error,
    ends after its answer is shown.
    """

    def __init__(
        self,
        data: Any,
        *shown: str | Table | Fields | Note | Warned | Callable[[], object] | None,
        failed: bool | e.FolkmootError | None = False,
    ) -> None:
        self.data = data
        self._shown = shown
        self._failed = failed

    def show(self, *, as_json: bool) -> None:
        """Print the output as JSON or for people."""
        if as_json:
            say_data(self.data)
        for part in self._shown:
            if isinstance(part, Warned):
                part.show()
            elif part is None or as_json:
                continue
            elif isinstance(part, str):
                say(part)
            elif callable(part):
                part()
            else:
                part.show()
        if isinstance(self._failed, e.FolkmootError):
            raise self._failed
        if self._failed:
            raise typer.Exit(ExitCode.FAILED)


def with_options(
    function: Command, options: Mapping[str, Any], gives: Sequence[str], opens: Opens
) -> Command:
    """A function with more options, which gets what they open in place of some parameters."""
    known = inspect.signature(function).parameters
    own = [resolved(it, function) for name, it in known.items() if name not in gives]
    added = [
        inspect.Parameter(name, PLAIN, default=None, annotation=hint)
        for name, hint in options.items()
    ]

    def run(**given: Any) -> Any:
        chosen = {name: given.pop(name, None) for name in options}
        opened = opens(chosen, given)
        return function(**{name: opened[name] for name in gives if name in known}, **given)

    plain = [it for it in own if it.kind is PLAIN]
    return with_signature_of(run, function, [*plain, *added, *(it for it in own if it.kind is OWN)])


def with_json_option(function: Command) -> Command:
    """A function whose answer is shown; where it returns one, with the option `--json`."""
    known = inspect.signature(function).parameters.values()
    parameters = [resolved(it, function) for it in known]
    if function.__annotations__.get("return") != "Output":
        return function

    def run(*, as_json: bool, **given: Any) -> None:
        function(**given).show(as_json=as_json)

    added = inspect.Parameter("as_json", OWN, default=False, annotation=JsonOption)
    return with_signature_of(run, function, [*parameters, added])


def with_signature_of(
    run: Command, function: Command, parameters: list[inspect.Parameter]
) -> Command:
    """A function with the name and docstring of another, and parameters of its own."""
    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, __name__
    returns = function.__annotations__.get("return")
    run.__annotations__ = {it.name: it.annotation for it in parameters} | {"return": returns}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def resolved(parameter: inspect.Parameter, function: Command) -> inspect.Parameter:
    """A parameter with its annotation evaluated; what is imported for mypy alone stays a text."""
    if isinstance(parameter.annotation, str):
        with suppress(NameError):
            hint = eval(parameter.annotation, function.__globals__)  # noqa: S307 - our own source
            return parameter.replace(annotation=hint)
    return parameter


class Lazy:
    """Something that is opened when it is first used: a wrong command line is refused before."""

    def __init__(self, opens: Callable[[], Any], member: str = "") -> None:
        self._opens = opens
        self._member = member

    def __getattr__(self, name: str) -> Any:
        opened = self._opens()
        return getattr(getattr(opened, self._member) if self._member else opened, name)


class AccountHub(NamedTuple):
    """A hub client and the saved account it is signed in with."""

    hub: HubClient
    login: Login


def account_command(function: Command) -> Command:
    """A command that asks the hub with one of the saved accounts."""

    def opens(chosen: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        found = cache(lambda: AccountHub(*signed_in(chosen["url"], chosen["handle"])))
        return {"hub": Lazy(found, "hub"), "login": Lazy(found, "login")}

    options = {"url": UrlOption, "handle": AsOption}
    return with_json_option(with_options(function, options, ("hub", "login"), opens))


def operator_command(function: Command, why: str = NO_ACCOUNTS) -> Command:
    """A command for the operator of a hub that has run before; `why` is said where none has."""

    def opens(chosen: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        return {"hub": Lazy(cache(lambda: opened_hub(chosen["config"], chosen["data"], why)))}

    options = {"data": DataOption, "config": ConfigOption}
    return with_json_option(with_options(function, options, ("hub",), opens))


def opened_hub(config: str | None, data: str | None, why: str = NO_ACCOUNTS) -> OperatedHub:
    """A hub that has run before."""
    hub = OperatedHub(config, data)
    hub.require_database(why)
    return hub


def group(
    commands: Mapping[str, Command],
    help_text: str,
    default: Command | None = None,
    classes: Mapping[str, Any] | None = None,
) -> typer.Typer:
    """A group of commands; without a command it runs the default one, or shows its help."""
    app = typer.Typer(rich_markup_mode=None)
    for name, each in commands.items():
        app.command(name, cls=(classes or {}).get(name))(each)
    context = inspect.Parameter("ctx", PLAIN, annotation=typer.Context)
    known = inspect.signature(default).parameters.values() if default else ()
    taken = {it.name: resolved(it, default) for it in known if default}

    def root(ctx: typer.Context, **given: Any) -> None:
        if ctx.invoked_subcommand is None:
            if default is None:
                say(ctx.get_help(), err=True)
                raise typer.Exit(ExitCode.USAGE)
            default(**given)
        else:
            check_place(ctx, *(given[name] != it.default for name, it in taken.items()))

    root = with_signature_of(root, root, [context, *taken.values()])
    app.callback(invoke_without_command=True, help=help_text)(root)
    return app


class Place(NamedTuple):
    """The options that say where a hub is, and as whom it is asked."""

    url: str | None = None
    handle: str | None = None
    data: str | None = None
    config: str | None = None

    def hub_of(self, whose: str | None, option: str) -> tuple[Hub, str]:
        """The hub asked about one's own account, or as its operator about someone's; and whose."""
        self.check(option, whose)
        if whose is not None:
            return opened_hub(self.config, self.data).of(whose), whose
        hub, login = signed_in(self.url, self.handle)
        return hub, login.handle

    def check(self, option: str, given: object) -> None:
        """Refuse options that do not fit together: those of an operator, and those of a client."""
        if given and (self.url or self.handle):
            raise typer.BadParameter(f"{option} cannot be combined with --url or --as")
        if not given and (self.data or self.config):
            raise typer.BadParameter(f"--data and --config need {option}")


def every(
    page: Callable[..., Any], member: str, *args: Any, by: str = "cursor", **query: Any
) -> Iterator[Any]:
    """The items of a list, page by page; `by` is the argument that says where to go on."""
    place: str | None = None
    while True:
        answer = page(*args, **query, **({by: place} if place else {}))
        yield from getattr(answer, member)
        place = answer.next_cursor if by == "cursor" else answer.next
        if not place:
            return


def plain_answer(answer: Any) -> Output:
    """What an operation answers that no command shows in a way of its own: a line each member."""
    members = msgspec.to_builtins(answer)
    rows = [(name.replace("_", " ").capitalize(), spelled(it)) for name, it in members.items()]
    return Output(answer, *aligned(rows))


def spelled(value: Any) -> str:
    """A member of an answer in one line."""
    if value is None or type(value) is bool:
        return "yes" if value else "-" if value is None else "no"
    if type(value) is list and all(type(each) is str for each in value):
        return ", ".join(map(word, value)) or "-"
    plain = isinstance(value, str | int | float)
    return word(value if plain else msgspec.json.encode(value).decode())
