"""`folkmoot backends add` and `remove`: change the settings file, and see what comes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.backends_show import offers, views_of
from folkmoot.cli.backends_test import (
    EnvOption,
    NameArgument,
    NamespaceOption,
    UrlOption,
    check_table,
    show_tried,
    table_of,
)
from folkmoot.cli.commands import Note, Output, with_json_option
from folkmoot.cli.limits import REACH_SECONDS
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HeaderOption,
    argument,
    command_behind,
    flag,
    option,
)
from folkmoot.cli.output import complain, say
from folkmoot.cli.show import counted, word
from folkmoot.core import errors as e
from folkmoot.relay.upstream.model import BackendView
from folkmoot.settings.files import FileUnreadable

if TYPE_CHECKING:
    from folkmoot.operations.operator.server_edits import AddedServer

LOOK_SECONDS = 0.1

NamesArgument = Annotated[
    list[str] | None,
    argument(
        "NAME [-- COMMAND...]",
        "Its name, and the command that starts it; with --from, the servers to import.",
    ),
]
FromOption = Annotated[
    Path | None,
    option(
        "--from", "FILE",
        "Import servers from a file with mcpServers in it, such as an MCP client's: all of them, "
        "or those you name.",
    ),
]  # fmt: skip
EveryoneOption = Annotated[bool, flag("--everyone", "Let every account use it.")]
TrustedOption = Annotated[bool, flag("--trusted", "Do not hold back tools that change.")]
PerUserOption = Annotated[bool, flag("--per-user", "Keep a separate connection for each person.")]
SingleOption = Annotated[
    bool, flag("--single", "Of several nodes, let one connect to it, and the others through that.")
]
LenientOption = Annotated[
    bool, flag("--lenient", "Let the server alone check the arguments of calls.")
]
OAuthOption = Annotated[bool, flag("--oauth", "Have each person sign in to it (OAuth).")]
NoTestOption = Annotated[bool, flag("--no-test", "Do not test the connection first.")]


@with_json_option
def add(
    ctx: typer.Context,
    names: NamesArgument = None,
    url: UrlOption = None,
    source: FromOption = None,
    namespace: NamespaceOption = None,
    env: EnvOption = None,
    header: HeaderOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    everyone: EveryoneOption = False,
    trusted: TrustedOption = False,
    per_user: PerUserOption = False,
    single: SingleOption = False,
    lenient: LenientOption = False,
    oauth: OAuthOption = False,
    no_test: NoTestOption = False,
) -> Output:
    """Add an MCP server to the hub's settings file.

    Connects to the server first, and writes nothing if that fails. Everything else in the file
    stays as it is; without a settings file, config.toml is created in the data folder. A running
    hub does this itself, with its own environment, and the command waits to see whether the server
    comes up.
    """
    command = command_behind(ctx)
    flags = {
        "everyone": everyone, "trusted": trusted, "per_user": per_user, "single": single,
        "lenient": lenient,
    }  # fmt: skip
    common = {name: True for name, wanted in flags.items() if wanted}
    hub = OperatedHub(config, data, starts=True)
    if source is not None:
        if url or command or namespace or env or header or oauth:
            raise typer.BadParameter(
                "--from imports servers as they are; it takes no options that describe one"
            )
        tables = imported(source, names or [], common)
    else:
        if len(names or []) != 1 or bool(url) is bool(command):
            raise typer.BadParameter("give one NAME, and either --url URL or a command after --")
        own = {**({"namespace": namespace} if namespace else {}), **common}
        signing = {"auth": "oauth"} if oauth else {}
        tables = {(names or [""])[0]: table_of(url, command, env, header, **own, **signing)}
    for name, table in tables.items():
        check_table(name, table)
    tried = {name: put(hub, name, table, tested=not no_test) for name, table in tables.items()}
    added = {name: it for name, it in tried.items() if it is not None}
    shown = [partial(show_added, hub, it, tables[name]) for name, it in added.items()]
    nothing = None if tables else Note("Nothing to add.")
    told = {"added": list(added.values())}
    return Output(told, nothing, *shown, failed=len(added) < len(tables))


def imported(
    source: Path, names: Sequence[str], common: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The tables of servers in a client's file, by name."""
    from folkmoot.settings.mcpservers import read_servers

    try:
        servers = {
            server.name: server for server in read_servers(str(source), os.environ, owned=False)
        }
    except FileUnreadable as error:
        raise e.SettingsError(str(error)) from None
    for name in names:
        if name not in servers:
            known = ", ".join(map(word, servers)) or "none"
            raise typer.BadParameter(f"{source} has no server {name!r}; it has {known}")
    tables = {}
    for name in names or servers:
        server = servers[name]
        if server.wrong:
            raise e.SettingsError(f"{source}:{server.line}: {word(name)}{server.wrong}")
        if server.left_out:
            complain(f"Skipped {word(name)}: {server.left_out}.", kind="warning")
            continue
        if server.expanded:
            told = ", ".join(map(word, server.expanded))
            complain(f"{word(name)}: wrote the present value of {told}.", kind="warning")
        table = {**server.table, **common}
        if "cwd" in table:
            # Relative to that file, and written into another one.
            table["cwd"] = str((source.absolute().parent / table["cwd"]).absolute())
        tables[name] = table
    return tables


def put(hub: OperatedHub, name: str, table: dict[str, Any], *, tested: bool) -> AddedServer | None:
    """Add one server; what is wrong with it is said at once, as others may be right."""
    try:
        return hub.add_server(name=name, table=table, tested=tested)
    except e.CommandInvalid as error:
        told = error.message
        complain(told if name in told else f"{word(name)}: {told}")
        if tested and told.endswith("Nothing was saved."):
            say("--no-test adds a server that cannot be reached.", err=True)
        return None


def show_added(hub: OperatedHub, added: AddedServer, table: Mapping[str, Any]) -> None:
    """What came of adding a server."""
    for note in added.notes:
        complain(f"{note}.", kind="warning")
    if added.tried is not None:
        show_tried(added.tried)
    say(f"Added {added.namespace} to {from_here(added.file)}.")
    if not table.get("everyone"):
        say(
            f"No one can use {added.namespace} yet. To allow someone: folkmoot grant HANDLE "
            f"{added.namespace}"
        )
    if hub.runs:
        follow(hub, added.namespace)
    else:
        say("No hub is running. It will be available at the next start.")


def from_here(file: str) -> str:
    """A path as one would type it: a hub may have been started elsewhere."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def follow(hub: OperatedHub, namespace: str) -> None:
    """Say whether a running hub reached what was added."""
    for view in wait_until_reached(hub, namespace):
        if view.state == "up":
            say(f"{view.namespace} is up: {', '.join(offers(view))}.")
            if view.held:
                told = f"{counted(len(view.held), 'tool')} held back: the namespace was used before"
                complain(
                    f"{told}. To see it: folkmoot backends diff {view.namespace}", kind="warning"
                )
        elif view.state == "sign_in":
            say(f"Sign in to it: folkmoot backends sign-in {view.namespace}")
        elif view.state != "off":
            why = f": {word(view.why)}" if view.why else ""
            complain(f"{view.namespace} is {view.state}{why}", kind="warning")


def wait_until_reached(hub: OperatedHub, namespace: str) -> list[BackendView]:
    """How a server is, once it was reached or could not be, or the time is over."""
    ends = time.monotonic() + REACH_SECONDS
    while True:
        views = [view for view in views_of(hub) if view.namespace == namespace]
        if all(map(known, views)) or time.monotonic() > ends:
            return views
        time.sleep(LOOK_SECONDS)


def known(view: BackendView) -> bool:
    """Whether a server could not be reached, or was and its lists were read."""
    return bool(view.era) if view.state == "up" else view.state != "starting"


@with_json_option
def remove(name: NameArgument, config: ConfigOption = None, data: DataOption = None) -> Output:
    """Remove a backend from the settings file.

    Removes its table, the tables below it and the comments right above it; everything else stays as
    it is. The accepted versions of its tools are kept, in case it comes back.
    """
    hub = OperatedHub(config, data)
    gone = hub.remove_server(name)
    done = f"Removed {gone.namespace} from {from_here(gone.file)}."
    return Output(gone, done, "The running hub has removed it." if hub.runs else None)
