"""`folkmoot backends add` and `remove`: change the settings file, and see what comes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.backends_show import counted, hub_of, offers, views_of
from folkmoot.cli.backends_test import (
    EnvOption,
    NameArgument,
    NamespaceOption,
    UrlOption,
    checked_spec,
    find_spec,
    show_tried,
    try_backend,
    variables,
)
from folkmoot.cli.limits import REACH_SECONDS
from folkmoot.cli.operator import SocketHub
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HeaderOption,
    argument,
    command_behind,
    flag,
    option,
    settings_from,
    written_headers,
)
from folkmoot.cli.output import ExitCode, complain, say
from folkmoot.cli.show import word
from folkmoot.core import errors as e
from folkmoot.relay.upstream.model import BackendView
from folkmoot.settings import BackendSpec, Loaded
from folkmoot.settings.editing import edit, is_in_file, same_file, with_backend, without_backend
from folkmoot.settings.files import FileUnreadable

if TYPE_CHECKING:
    from folkmoot.gateway.trial import Tried

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
) -> None:
    """Add an MCP server to the hub's settings file.

    Connects to the server first, and writes nothing if that fails. Everything else in the file
    stays as it is; without a settings file, config.toml is created in the data folder. A running
    hub loads the server by itself, and the command waits to see whether it comes up.
    """
    command = command_behind(ctx)
    flags = {
        "everyone": everyone, "trusted": trusted, "per_user": per_user, "single": single,
        "lenient": lenient,
    }  # fmt: skip
    common = {name: True for name, wanted in flags.items() if wanted}
    loaded = settings_from(config, runs=True, data=data)
    if source is not None:
        if url or command or namespace or env or header or oauth:
            raise typer.BadParameter(
                "--from imports servers as they are; it takes no options that describe one"
            )
        tables = imported(source, names or [], common)
    else:
        if len(names or []) != 1 or bool(url) is bool(command):
            raise typer.BadParameter("give one NAME, and either --url URL or a command after --")
        table = {
            **({"namespace": namespace} if namespace else {}),
            **({"url": url} if url else {"command": list(command)}),
            **common,
            **({"auth": "oauth"} if oauth else {}),
            **({"env": variables(env)} if env else {}),
            **({"headers": written_headers(header)} if header else {}),
        }
        tables = {(names or [""])[0]: table}
    put(loaded, tables, tested=not no_test)


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


def put(loaded: Loaded, tables: Mapping[str, dict[str, Any]], *, tested: bool) -> None:
    """Test servers, write their tables, and see whether a running hub reaches them."""
    specs: list[BackendSpec] = []
    for name, table in tables.items():
        refuse_present(loaded, name)
        spec, notes = checked_spec(name, table)
        for note in notes:
            complain(f"{note}.", kind="warning")
        specs.append(spec)
    if not specs:
        say("Nothing to add.", err=True)
        return

    def change(text: str) -> str:
        for name, table in tables.items():
            text = with_backend(text, name, table)
        return text

    # Before anything is reached: what cannot be written need not be tried.
    edit(loaded, change, pretend=True)
    refuse_handles(loaded, [spec.namespace for spec in specs])
    reached = (show_trial(try_backend(spec, loaded)) for spec in specs if spec.enabled)
    if tested and not all(reached):
        say("Nothing was written. --no-test adds it anyway.", err=True)
        raise typer.Exit(ExitCode.FAILED)
    edit(loaded, change)
    told = ", ".join(spec.namespace for spec in specs)
    say(f"Added {told} to {loaded.place}.")
    for closed in (spec.namespace for spec in specs if not spec.everyone):
        say(f"No one can use {closed} yet. To allow someone: folkmoot grant HANDLE {closed}")
    if follow(loaded, specs) is None:
        say("No hub is running. It will be available at the next start.")


def refuse_present(loaded: Loaded, name: str) -> None:
    """Refuse a name that a backend has already, unless it is imported: a table takes its place."""
    for spec in loaded.gateway.backends.values():
        if name in (spec.name, spec.namespace):
            where = loaded.gateway_origins[f"backends.{spec.name}"]
            if name == spec.name and not is_in_file(loaded, f"backends.{spec.name}"):
                continue
            raise e.SettingsUnwritable(f"A backend {word(name)} already exists, at {where}.")


def refuse_handles(loaded: Loaded, namespaces: Sequence[str]) -> None:
    """Refuse a namespace that is also someone's handle; a hub would not load such settings."""
    from folkmoot.cli.doctor import handles_among

    # A database that cannot be asked is no reason; `doctor` says what is wrong with it.
    taken: list[str] = []
    with suppress(e.FolkmootError):
        taken = handles_among(loaded.settings, namespaces)
    if taken:
        told = ", ".join(taken)
        raise e.SettingsUnwritable(
            f"A backend cannot be called {told}: it is someone's handle, or was until "
            "recently. Choose another namespace with --namespace."
        )


def show_trial(tried: Tried) -> bool:
    """Say what came of a test, and whether it went well."""
    show_tried(tried)
    return tried.ok


def follow(loaded: Loaded, specs: Sequence[BackendSpec]) -> bool | None:
    """Have a running hub take up what was written, and say whether each server came up.

    Answers whether it did take it up; None when no hub is running.
    """
    hub = hub_of(loaded)
    try:
        done = hub.reload_settings()
    except e.HubNotRunning:
        return None
    except e.FolkmootError as error:
        complain(f"The running hub did not load it: {error.message}", kind="warning")
        return False
    if loaded.place is None or not same_file(done.file, loaded.place):
        read = done.file or "no settings file"
        complain(f"The running hub reads {read}, not {loaded.place}.", kind="warning")
        return False
    patience = max((spec.connect_seconds for spec in specs), default=0) + REACH_SECONDS
    views = wait_until_reached(hub, {spec.namespace for spec in specs if spec.enabled}, patience)
    for view in views:
        if view.state == "up":
            say(f"{view.namespace} is up: {', '.join(offers(view))}.")
            if view.held:
                told = f"{counted(len(view.held), 'tool')} held back: the namespace was used before"
                complain(
                    f"{told}. To see it: folkmoot backends diff {view.namespace}", kind="warning"
                )
        elif view.state == "sign_in":
            say(f"Sign in to it: folkmoot backends sign-in {view.namespace}")
        else:
            why = f": {word(view.why)}" if view.why else ""
            complain(f"{view.namespace} is {view.state}{why}", kind="warning")
    return True


def wait_until_reached(hub: SocketHub, wanted: set[str], seconds: float) -> list[BackendView]:
    """How these backends are, once each was reached or could not be, or the time is over."""
    ends = time.monotonic() + seconds
    while True:
        views = [view for view in views_of(hub) if view.namespace in wanted]
        if all(map(known, views)) or time.monotonic() > ends:
            return views
        time.sleep(LOOK_SECONDS)


def known(view: BackendView) -> bool:
    """Whether a server could not be reached, or was and its lists were read."""
    return bool(view.era) if view.state == "up" else view.state != "starting"


def remove(name: NameArgument, config: ConfigOption = None, data: DataOption = None) -> None:
    """Remove a backend from the settings file.

    Removes its table, the tables below it and the comments right above it; everything else stays as
    it is. The accepted versions of its tools are kept, in case it comes back.
    """
    loaded = settings_from(config, data=data)
    spec = find_spec(loaded, name)
    where = loaded.gateway_origins[f"backends.{spec.name}"]
    if not is_in_file(loaded, f"backends.{spec.name}"):
        raise e.SettingsUnwritable(
            f"{word(spec.name)} is imported from {where} by gateway.mcp_servers. Remove it "
            "there, or disable it."
        )
    edit(loaded, lambda text: without_backend(text, spec.name))
    say(f"Removed {spec.namespace} from {loaded.file}.")
    if follow(loaded, []):
        say("The running hub has removed it.")
