"""`folkmoot backends`: the MCP servers behind the hub, listed, reloaded and called."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from typer.core import TyperCommand

from folkmoot.cli.backends_add import add, remove
from folkmoot.cli.backends_show import (
    accept,
    configured,
    diff,
    entry,
    hub_of,
    views_of,
)
from folkmoot.cli.backends_sign_in import sign_in
from folkmoot.cli.backends_test import NameArgument, find_spec, try_out
from folkmoot.cli.call import (
    CallOptions,
    EraOption,
    PromptOption,
    ReadOption,
    TimeoutOption,
    WholeOption,
    finish,
    perform,
    split,
)
from folkmoot.cli.commands import Note, Output, group, with_json_option
from folkmoot.cli.limits import RELOAD_SECONDS
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    JsonOption,
    ServerCommand,
    argument,
    settings_from,
)
from folkmoot.cli.output import complain, run_until_stopped, say
from folkmoot.cli.show import counted, show_entries
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.operations.operator.servers import Reloaded


ToolArgument = Annotated[
    list[str] | None,
    argument(
        "WORD",
        "The tool, by the backend's name for it or by the hub's, and its arguments. Without a "
        "tool, lists what the backend offers.",
    ),
]


class CallBackend(TyperCommand):
    """Shows in its usage what the words stand for."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "NAME [TOOL [KEY=VALUE]...]"]


def call_backend(
    name: NameArgument,
    words: ToolArgument = None,
    read: ReadOption = None,
    prompt: PromptOption = None,
    arguments: WholeOption = None,
    era: EraOption = "auto",
    timeout: TimeoutOption = 60,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Use a backend by hand: list, call, read.

    Connects to the backend directly, with its settings, and with secrets from your own environment
    and files. A running hub, its rules, rights and audit log are not involved. A resource is read
    by the backend's own URI. The exit code is 1 when the backend or the tool returns an error.
    """
    loaded = settings_from(config, runs=True, data=data)
    spec = find_spec(loaded, name)
    tool, pairs = split(words or (), named=prompt is not None or read is not None)
    wanted = CallOptions(
        tool=tool, pairs=pairs, uri=read, prompt=prompt, whole=arguments, era=era,
        seconds=timeout, as_json=as_json,
        own_names=(f"{spec.namespace}:", f"{spec.namespace}_"),
    )  # fmt: skip
    wanted.check()

    async def run() -> bool:
        # Half a second to import, which help and errors need not wait for.
        from folkmoot.clock import SystemClock
        from folkmoot.relay.hub_gateway import secret_files
        from folkmoot.relay.upstream.connecting import Connecting

        hidden = (*secret_files(loaded.settings, loaded.gateway), *loaded.files)
        connecting = Connecting(spec, SystemClock(), os.environ, lambda: hidden)
        return await perform(connecting.link, wanted)

    finish(run_until_stopped(run()))


NONE = "No backends. 'folkmoot backends add' adds one."


@with_json_option
def list_backends(config: ConfigOption = None, data: DataOption = None) -> Output:
    """List the servers behind the hub and their state.

    Without a running hub, lists what is configured. In a pipe the columns are: namespace, state,
    transport, tools, resources, prompts, calls, errors, server, target, reason, number of tools
    held back, number of suspicious descriptions, and the node that links it.
    """
    loaded = settings_from(config, data=data)
    try:
        views, runs = views_of(hub_of(loaded)), True
    except e.HubNotRunning:
        views, runs = [configured(spec) for spec in loaded.gateway.backends.values()], False
    folder = loaded.settings.data_folder
    stopped = Note(f"No hub is running on {folder}. This is what is configured.")
    shown = [entry(view, time.time()) for view in views]
    told = {"running": runs, "backends": views}
    return Output(told, None if runs else stopped, lambda: show_entries(shown, NONE))


@with_json_option
def reload(config: ConfigOption = None, data: DataOption = None) -> Output:
    """Reload the settings of the running hub.

    Prints what changed. A hub reloads its settings file by itself; this also says whether the file
    is valid. Invalid settings change nothing, and the exit code is 3.
    """
    hub = hub_of(settings_from(config, data=data))
    hub.seconds = RELOAD_SECONDS
    done = hub.reload_settings()
    return Output(done, lambda: show_reloaded(done))


def show_reloaded(done: Reloaded) -> None:
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
        say("Groups, grants or rules of asks changed.")
    if not (done.added or done.removed or done.changed or done.rights):
        say("Already loaded: nothing has changed since the settings were last read.")
    for note in done.notes:
        complain(f"{note}.", kind="warning")
    if done.restart:
        told = ", ".join(done.restart)
        complain(f"These take effect at the next start: {told}.", kind="warning")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_backends,
    "add": add,
    "remove": remove,
    "test": try_out,
    "call": call_backend,
    "sign-in": sign_in,
    "reload": reload,
    "diff": diff,
    "accept": accept,
}
CLASSES: dict[str, type[TyperCommand]] = {
    "add": ServerCommand,
    "test": ServerCommand,
    "call": CallBackend,
}
"""Those that read their arguments, or show their usage, in a way of their own."""

app = group(COMMANDS, "The MCP servers behind the hub.", classes=CLASSES)
