"""`folkmoot backends call`: use one of the hub's backends by hand, apart from the hub."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from folkmoot.cli.backends_options import NameArgument
from folkmoot.cli.backends_try import find_spec
from folkmoot.cli.call import (
    EraOption,
    PromptOption,
    ReadOption,
    TimeoutOption,
    Wanted,
    WholeOption,
    finish,
    perform,
    split,
)
from folkmoot.cli.looping import run_until_stopped
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from

ToolArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD", show_default=False,
        help="The tool, by the backend's name for it or by the hub's, and its arguments. "
        "Without a tool, lists what the backend offers.",
    ),
]  # fmt: skip


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
    wanted = Wanted(
        tool=tool, pairs=pairs, uri=read, prompt=prompt, whole=arguments, era=era,
        seconds=timeout, as_json=as_json,
        own_names=(f"{spec.namespace}:", f"{spec.namespace}_"),
    )  # fmt: skip
    wanted.check()

    async def run() -> bool:
        # Half a second to import, which help and errors need not wait for.
        from folkmoot.clock import SystemClock
        from folkmoot.relay.hub_gateway import own_files
        from folkmoot.relay.upstream.connecting import Connecting

        hidden = (*own_files(loaded.settings), *loaded.files)
        connecting = Connecting(spec, SystemClock(), os.environ, lambda: hidden)
        return await perform(connecting.link, wanted)

    finish(run_until_stopped(run()))
