"""The commands for held messages, which a proxy and a hub have in common."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from folkmoot.control.commands import NoArguments, convert
from folkmoot.control.wire import Command, Progress
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import members
from folkmoot.proxy.held import HeldMessages

HELD_LIST = "held.list"
HELD_SHOW = "held.show"
HELD_RELEASE = "held.release"
HELD_DROP = "held.drop"


class ShowArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Which message."""

    id: int


class ReleaseArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Which message, and what is to go on in its place."""

    id: int
    message: dict[str, Any] | None = None


class DropArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Which message, and why."""

    id: int
    reason: Annotated[str, Meta(max_length=1_000)] = ""


def held_commands(held: HeldMessages) -> dict[str, Command]:
    """What can be asked about the messages that wait for a decision."""

    async def list_held(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        return {"held": held.list()}

    async def release(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        given = convert(arguments, ReleaseArguments)
        return {"released": held.release(given.id, given.message)}

    async def show(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        message = held.envelope(convert(arguments, ShowArguments).id).message
        return {"message": message.members if type(message) is McpxMessage else members(message)}

    async def drop(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        given = convert(arguments, DropArguments)
        return {"dropped": held.drop(given.id, given.reason)}

    return {HELD_LIST: list_held, HELD_SHOW: show, HELD_RELEASE: release, HELD_DROP: drop}
