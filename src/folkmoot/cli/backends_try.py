"""`folkmoot backends test`: reach a server once, and see what it would be here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.backends_options import (
    EnvOption,
    NamespaceOption,
    UrlOption,
    checked_spec,
    command_behind,
    variables,
)
from folkmoot.cli.backends_show import counted, wrapped
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.headers import HeaderOption, written_headers
from folkmoot.cli.looping import run_until_stopped
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import complain, on_terminal, say
from folkmoot.cli.show import word
from folkmoot.cli.text import say_data
from folkmoot.core.errors import BackendUnknown
from folkmoot.settings import BackendSpec, Loaded

if TYPE_CHECKING:
    from folkmoot.gateway.trial import Named, Tried

NAMELESS = "tested"
"""The namespace of a server that is only tried out."""
MOST_NAMES = 50
"""Names of each sort that people are shown; programs get all."""


WhichArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME | -- COMMAND...]", show_default=False,
        help="A backend of the settings, or the command that starts another server.",
    ),
]  # fmt: skip


def try_out(
    ctx: typer.Context,
    name: WhichArgument = None,
    url: UrlOption = None,
    namespace: NamespaceOption = None,
    env: EnvOption = None,
    header: HeaderOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Connect to a server once, and show what it offers.

    Shows the names its tools would have here, and which could not be listed and why. Nothing is
    saved, and a running hub is not involved. Secrets are read from your own environment and files.
    The exit code is 1 when the server cannot be reached.
    """
    command = command_behind(ctx)
    if bool(name) + bool(url) + bool(command) != 1:
        raise typer.BadParameter("give a NAME, or --url URL, or a command after --")
    loaded = None
    if name:
        if namespace or env or header:
            raise typer.BadParameter("--namespace, --env and --header are for other servers")
        loaded = settings_from(config, runs=True, data=data)
        spec = find_spec(loaded, name)
    else:
        table = {
            **({"url": url} if url else {"command": list(command)}),
            **({"env": variables(env)} if env else {}),
            **({"headers": written_headers(header)} if header else {}),
        }
        spec, _ = checked_spec(namespace or NAMELESS, table)
    found = try_backend(spec, loaded)
    if as_json:
        say_data(found)
    else:
        tell_tried(found)
    if not found.ok:
        raise typer.Exit(ExitCode.FAILED)


def find_spec(loaded: Loaded, name: str) -> BackendSpec:
    """A backend of the settings, by its name or its namespace."""
    for spec in loaded.gateway.backends.values():
        if name in (spec.name, spec.namespace):
            return spec
    raise BackendUnknown(f"The settings have no backend {word(name)}.")


def try_backend(spec: BackendSpec, loaded: Loaded | None) -> Tried:
    """Reach a server, take its inventory and part with it."""
    found = run_until_stopped(reach(spec, loaded))
    if found is None:
        raise KeyboardInterrupt
    return found


async def reach(spec: BackendSpec, loaded: Loaded | None) -> Tried:
    """What a server offers, as the hub of these settings would show it."""
    # Half a second to import, which help and errors need not wait for.
    from folkmoot.clock import SystemClock
    from folkmoot.gateway.trial import FirstSight, tried
    from folkmoot.relay.hub_gateway import own_files
    from folkmoot.relay.upstream.fleet import Fleet

    unseen: Any = FirstSight()
    hidden = () if loaded is None else (*own_files(loaded.settings), *loaded.files)
    return await tried(spec, await Fleet(unseen, SystemClock(), hidden=lambda: hidden).test(spec))


def tell_tried(tried: Tried) -> None:
    """What came of a test, for people."""
    if not tried.ok:
        who = "" if tried.namespace == NAMELESS else f"{tried.namespace}: "
        complain(f"{who}{word(tried.why)}")
        return
    server = " ".join(filter(None, (word(tried.server), tried.version and word(tried.version))))
    say(f"Reached {server} in {tried.seconds:.1f} s, over {tried.transport}, {tried.era} era.")
    sorts = (
        ("tool", tried.tools),
        ("prompt", tried.prompts),
        ("resource", tried.resources),
        ("template", tried.templates),
    )
    width = shutil.get_terminal_size().columns if on_terminal() else None
    for noun, named in sorts:
        if named:
            say(f"{counted(len(named), noun)}:")
            for line in name_lines(named, width):
                say(line)
    if not any(named for _, named in sorts):
        say("It offers nothing.")
    if tried.faults:
        say("What is wrong:")
        for fault in tried.faults:
            for line in wrapped(word(fault), width):
                say(f"  {line}")


def name_lines(named: list[Named], width: int | None) -> Iterator[str]:
    """The names of things, with the server's own where that is another."""
    for each in named[:MOST_NAMES]:
        _, _, short = each.name.partition(":")
        line = f"  {word(each.name)}"
        own = "" if each.own in (short, each.name) else f"(there: {word(each.own)})"
        if width is not None and len(line) + len(own) + 2 > width:
            yield line
            line = "  "
        if own or line.strip():
            yield f"{line}  {own}".rstrip()
        if each.findings:
            yield f"    suspicious: {', '.join(each.findings)}"
    if len(named) > MOST_NAMES:
        yield f"  … and {len(named) - MOST_NAMES:,} more"
