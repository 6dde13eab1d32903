"""`folkmoot backends`: the MCP servers behind the hub."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import typer

from folkmoot.cli.backends_add import add, remove
from folkmoot.cli.backends_hub import Reloaded, RunningHub, views_if_running
from folkmoot.cli.backends_options import BeforeCommand
from folkmoot.cli.backends_pins import accept, diff
from folkmoot.cli.backends_show import configured, counted, tell_views
from folkmoot.cli.backends_try import try_out
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import complain, say
from folkmoot.cli.text import say_data

NONE = "There are no backends; 'folkmoot backends add' puts one behind the hub."


def list_backends(
    config: ConfigOption = None, data: DataOption = None, *, as_json: JsonOption = False
) -> None:
    """List the servers behind the hub and how they are.

    Without a running hub, what is configured is listed. In a pipe the columns are: namespace,
    state, transport, tools, resources, prompts, calls, errors, server, target, why, how many
    tools are held back, and in how many descriptions something suspicious was found.
    """
    loaded = settings_from(config, data=data)
    hub = RunningHub(loaded)
    running = views_if_running(hub)
    views = running
    if views is None:
        views = [configured(spec) for spec in loaded.gateway.backends.values()]
    if as_json:
        told = [msgspec.to_builtins(view) for view in views]
        say_data({"running": running is not None, "backends": told})
        return
    if running is None:
        say(f"No hub is running on {hub.folder}; this is what is configured.", err=True)
    if views:
        tell_views(views, time.time())
    else:
        say(NONE, err=True)


def reload(
    config: ConfigOption = None, data: DataOption = None, *, as_json: JsonOption = False
) -> None:
    """Have the running hub read its settings again.

    Tells what changed. A hub follows its settings file by itself; this says at once whether it is
    right. Wrong settings change nothing, and end with exit code 3.
    """
    done = RunningHub(settings_from(config, data=data)).reload()
    if as_json:
        told: dict[str, Any] = msgspec.to_builtins(done)
        del told["problems"]
        say_data(told)
        return
    tell_reloaded(done)


def tell_reloaded(done: Reloaded) -> None:
    """What reading the settings came to, for people."""
    say(f"{done.file or 'Without a settings file'}: {counted(done.backends, 'backend')}.")
    for what, names in (
        ("Added", done.added),
        ("Removed", done.removed),
        ("Changed", done.changed),
    ):
        if names:
            say(f"{what}: {', '.join(names)}.")
    if done.rights:
        say("Groups or grants changed.")
    if not (done.added or done.removed or done.changed or done.rights):
        say("Nothing has changed since it was read last.")
    for note in done.notes:
        complain(f"{note}.", kind="warning")
    if done.restart:
        told = ", ".join(done.restart)
        complain(f"These count from the next start on: {told}.", kind="warning")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_backends,
    "add": add,
    "remove": remove,
    "test": try_out,
    "reload": reload,
    "diff": diff,
    "accept": accept,
}
"""Every command of the group by its name."""
WITH_COMMAND = {"add", "test"}
"""Those that take a server's command behind `--`."""

app = typer.Typer(help="The MCP servers behind the hub.", rich_markup_mode=None)
for name, what in COMMANDS.items():
    app.command(name, cls=BeforeCommand if name in WITH_COMMAND else None)(what)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    """The MCP servers behind the hub."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)
