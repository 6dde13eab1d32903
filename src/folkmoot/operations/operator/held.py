"""Messages that a rule holds until someone decides, which a proxy and a hub have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from folkmoot.core.errors import CommandInvalid
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import members
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.operations.operator.row import operated
from folkmoot.operations.row import Arguments, Audit, Nothing, Route, says
from folkmoot.proxy.held import MOST_REASON, HeldView

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

HeldId = Annotated[int, says("Which message, by its id in the list.", ge=1, le=10**15)]


class OneHeld(Arguments, frozen=True, kw_only=True):
    """Which message."""

    held_id: HeldId


class Release(Arguments, frozen=True, kw_only=True):
    """Which message, and what is to go on in its place."""

    held_id: HeldId
    message: (
        Annotated[
            dict[str, Any],
            says("What goes on in its place; it must keep its id and method."),
        ]
        | None
    ) = None


class Drop(Arguments, frozen=True, kw_only=True):
    """Which message, and why."""

    held_id: HeldId
    reason: Annotated[str, says("Why, for whoever waits for it.", max_length=MOST_REASON)] = ""


class HeldList(Struct, frozen=True):
    """What is held, the longest waiting first."""

    held: list[HeldView]


class HeldMessage(Struct, frozen=True):
    """One held message, whole."""

    message: dict[str, Any]


class Released(Struct, frozen=True):
    """What goes on."""

    released: HeldView


class Dropped(Struct, frozen=True):
    """What goes no further."""

    dropped: HeldView


async def held_list(call: Call[Nothing]) -> HeldList:
    """What is held."""
    return HeldList(call.services.held.list())


async def held_show(call: Call[OneHeld]) -> HeldMessage:
    """One message itself."""
    message = call.services.held.envelope(call.arguments.held_id).message
    return HeldMessage(message.members if type(message) is McpxMessage else members(message))


async def held_release(call: Call[Release]) -> Released:
    """Let a message go on."""
    given = call.arguments
    return Released(call.services.held.release(given.held_id, given.message))


async def held_drop(call: Call[Drop]) -> Dropped:
    """Let a message go no further."""
    given = call.arguments
    return Dropped(call.services.held.drop(given.held_id, given.reason))


HELD = (
    operated(
        name="held/list",
        description="List the messages that a rule holds, the longest waiting first.",
        takes=Nothing,
        gives=HeldList,
        handler=held_list,
        effect="reads",
        needs=("held",),
        routes=(Route("GET", "/v1/held", "listHeld", "List held messages"),),
        commands=("proxy held list",),
    ),
    operated(
        name="held/show",
        description="Show a held message in full.",
        takes=OneHeld,
        gives=HeldMessage,
        handler=held_show,
        effect="reads",
        errors=(CommandInvalid,),
        needs=("held",),
        routes=(Route("GET", "/v1/held/{held_id}", "getHeld", "Show a held message"),),
        commands=("proxy held show",),
    ),
    operated(
        name="held/release",
        description="Release a held message, as it is or edited. The rules that checked it before "
        "check an edited one again.",
        takes=Release,
        gives=Released,
        handler=held_release,
        effect="acts",
        errors=(CommandInvalid,),
        needs=("held",),
        audit=Audit("held.released", "held_id"),
        routes=(
            Route(
                "POST",
                "/v1/held/{held_id}/release",
                "releaseHeld",
                "Release a held message",
                example={"message": {"jsonrpc": "2.0", "id": 1, "method": TOOLS_LIST}},
            ),
        ),
        commands=("proxy held release",),
    ),
    operated(
        name="held/drop",
        description="Drop a held message.",
        takes=Drop,
        gives=Dropped,
        handler=held_drop,
        effect="acts",
        errors=(CommandInvalid,),
        needs=("held",),
        audit=Audit("held.dropped", "held_id"),
        routes=(
            Route(
                "POST",
                "/v1/held/{held_id}/drop",
                "dropHeld",
                "Drop a held message",
                example={"reason": "Not today."},
            ),
        ),
        commands=("proxy held drop",),
    ),
)
