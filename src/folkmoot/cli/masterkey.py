"""The master key of a data folder, for a command: through the hub that runs on it, or directly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from folkmoot.cli.opened import opened
from folkmoot.cli.running import ANSWER_SECONDS, understood
from folkmoot.core.errors import CommandFailed, DataFolderInUse, HubNotRunning
from folkmoot.datafolder import running_hub

if TYPE_CHECKING:
    from folkmoot.datafolder import Paths
    from folkmoot.settings import Settings


class KeyInUse(Struct, frozen=True):
    """The key a hub uses, and where it has it from."""

    id: str
    source: str


def key_in_use(settings: Settings, paths: Paths) -> KeyInUse:
    """What the running hub says of its key, or what a hub that starts now would find."""
    from folkmoot.keys import KEY_VARIABLE, load_master_key

    if running_hub(paths.folder) is not None:
        return understood(ask_hub(paths, "key", {}, timeout=ANSWER_SECONDS), KeyInUse)
    require_database(paths)
    given = settings.master_key or None
    key = load_master_key(paths.master_key, given=given, database_exists=True)
    return KeyInUse(key.id, KEY_VARIABLE if given else str(paths.master_key))


def perform(settings: Settings, paths: Paths, command: str, arguments: dict[str, Any]) -> Any:
    """Have the running hub do it, or do it here, on a data folder that is ours meanwhile."""
    if running_hub(paths.folder) is not None:
        return ask_hub(paths, command, arguments)
    return asyncio.run(do_here(settings, paths, command, arguments))


def ask_hub(
    paths: Paths, command: str, arguments: dict[str, Any], timeout: float | None = None
) -> Any:
    """Have the hub that holds the data folder carry out a command."""
    from folkmoot.control import call

    try:
        return call(paths.control_socket, command, arguments, timeout=timeout)
    except HubNotRunning as error:
        raise DataFolderInUse(
            f"{paths.folder}: is in use by a hub that is starting or stopping, or by "
            "another command. Try again."
        ) from error


async def do_here(settings: Settings, paths: Paths, command: str, arguments: dict[str, Any]) -> Any:
    """Carry out a command that a hub would."""
    from folkmoot.control.keys import KeyRing, key_commands

    require_database(paths)
    async with opened(settings) as (_, store, vault):
        ring = KeyRing(store, vault, paths.master_key, settings.master_key or None)
        return await key_commands(ring)[command](arguments, lambda _progress: None)


def require_database(paths: Paths) -> None:
    """Refuse a folder in which no hub has run: it has no key yet."""
    if not paths.database_exists():
        raise CommandFailed(f"{paths.database}: no database yet, so it has no key.")
