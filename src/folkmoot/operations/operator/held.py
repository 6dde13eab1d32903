"""Messages that a rule holds until someone decides, which a proxy and a hub have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import members
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.operations.declare import OPERATED, Topic, get, post
from folkmoot.operations.records import remember_decision
from folkmoot.operations.row import AuditSpec, describe
from folkmoot.proxy.held import MOST_REASON, HeldView, what_of

if TYPE_CHECKING:
    from folkmoot.datafolder.proxies import LocalProxies
    from folkmoot.decisions import Verdict
    from folkmoot.operations.call import Call


PATH: Final = "/v1/held"
Shape = TypeVar("Shape")

HeldId = Annotated[int, describe("Which message, by its id in the list.", ge=1, le=10**15)]
ProxyId = Annotated[
    int,
    describe(
        "The process of the proxy on the hub's machine that holds it, as the list tells it; left "
        "out, the hub itself.",
        ge=1,
        le=2**31 - 1,
    ),
]
held = Topic(scope="operate", who="operator", needs=("held",), tool=OPERATED)


def proxies_of(call: Call) -> LocalProxies | None:
    """The proxies, where an operator sees them: by the setting, and by where the request was made.

    What passes a proxy is nobody's at the hub: it belongs to whoever runs the proxy. Operators who
    are elsewhere see it only if the hub's own user says so.
    """
    services, caller = call.services, call.caller
    on_the_socket = caller.account is None and caller.operator
    here = on_the_socket or (caller.is_direct is not None and caller.is_direct())
    sees = {"this_machine": here, "operators": True, "nobody": False}[services.shows_proxies]
    return services.proxies if sees else None


def may_see_proxies(call: Call) -> bool:
    """Whether an operator sees the proxies."""
    return proxies_of(call) is not None


class HeldList(Struct, frozen=True):
    """What is held, the longest waiting first."""

    held: list[HeldView]
    proxies: int | None = None
    """How many local proxies answered; null where they were not asked."""


@held.reads(
    "held/list",
    get(PATH, "listHeld", "List held messages"),
    commands=("proxy held list",),
)
async def held_list(
    call: Call,
    *,
    proxies: Annotated[
        bool,
        "Whether to list what proxies hold that the hub's own user runs on its machine, too. "
        "The setting `interceptors.local_proxies` says which operators may see them.",
    ] = False,
) -> HeldList:
    """List the messages that a rule holds, the longest waiting first."""
    return await everything_held(call) if proxies else HeldList(call.services.held.list())


async def everything_held(call: Call) -> HeldList:
    """The messages held by this hub and by the proxies on this machine the caller may see."""
    own, proxies = call.services.held.list(), proxies_of(call)
    if proxies is None:
        return HeldList(own)
    answers = await proxies.ask_all(PATH)
    theirs = [view for pid, answer in answers.items() for view in views(pid, answer)]
    return HeldList(sorted([*own, *theirs], key=lambda view: view.since), len(answers))


class HeldMessage(Struct, frozen=True):
    """One held message in full."""

    message: dict[str, Any]
    held: HeldView


@held.reads(
    "held/show",
    get(PATH + "/{held_id}", "getHeld", "Show a held message"),
    errors=(e.CommandInvalid,),
    commands=("proxy held show",),
)
async def held_show(call: Call, held_id: HeldId, *, proxy: ProxyId | None = None) -> HeldMessage:
    """Show a held message in full."""
    if proxy is not None:
        answer = await ask_proxy(call, proxy, "GET", f"{PATH}/{held_id}")
        found = converted(answer, HeldMessage)
        return HeldMessage(found.message, replace(found.held, proxy=proxy))
    services = call.services
    message = services.held.envelope(held_id).message
    body = message.members if type(message) is McpxMessage else members(message)
    return HeldMessage(body, services.held.view(held_id))


class Released(Struct, frozen=True):
    """What goes on."""

    released: HeldView


@held.acts(
    "held/release",
    post(
        PATH + "/{held_id}/release",
        "releaseHeld",
        "Release a held message",
        example={"message": {"jsonrpc": "2.0", "id": 1, "method": TOOLS_LIST}},
    ),
    errors=(e.CommandInvalid,),
    audit=AuditSpec("held.released", "held_id", within="proxy"),
    commands=("proxy held release",),
)
async def held_release(
    call: Call,
    held_id: HeldId,
    *,
    proxy: ProxyId | None = None,
    message: Annotated[dict[str, Any], "What goes on in its place; it must keep its id and method."]
    | None = None,
) -> Released:
    """Release a held message, as it is or edited. The rules that checked it before check an edited
    one again.
    """
    if proxy is None:
        view = call.services.held.release(held_id, message)
    else:
        content = {} if message is None else {"message": message}
        answer = await ask_proxy(call, proxy, "POST", f"{PATH}/{held_id}/release", content)
        view = replace(converted(answer, Released).released, proxy=proxy)
    await remember_held(call, "released" if message is None else "edited", view)
    return Released(view)


class DroppedView(Struct, frozen=True):
    """A held message that was dropped."""

    dropped: HeldView


@held.acts(
    "held/drop",
    post(
        PATH + "/{held_id}/drop",
        "dropHeld",
        "Drop a held message",
        example={"reason": "Not today."},
    ),
    errors=(e.CommandInvalid,),
    audit=AuditSpec("held.dropped", "held_id", within="proxy"),
    commands=("proxy held drop",),
)
async def held_drop(
    call: Call,
    held_id: HeldId,
    *,
    proxy: ProxyId | None = None,
    reason: Annotated[str, describe("Why, for whoever waits for it.", max_length=MOST_REASON)] = "",
) -> DroppedView:
    """Drop a held message."""
    if proxy is None:
        view = call.services.held.drop(held_id, reason)
    else:
        content = {"reason": reason}
        answer = await ask_proxy(call, proxy, "POST", f"{PATH}/{held_id}/drop", content)
        view = replace(converted(answer, DroppedView).dropped, proxy=proxy)
    await remember_held(call, "dropped", view, reason=reason or None)
    return DroppedView(view)


async def remember_held(call: Call, decision: Verdict, view: HeldView, **more: Any) -> None:
    """Remember what the caller decided about a message."""
    what = what_of(view.type, view.method, view.tool)
    place = "" if view.proxy is None else f"proxy {view.proxy}"
    await remember_decision(
        call, "held", decision, str(view.id), what, place=place, by=view.who, **more
    )


async def ask_proxy(call: Call, pid: int, method: str, target: str, content: Any = None) -> Any:
    """Ask a proxy on the hub's machine, if the caller may."""
    proxies = proxies_of(call)
    if proxies is None:
        raise e.CommandInvalid(
            "Proxies on the hub's machine are not shown here. "
            "The setting interceptors.local_proxies says to whom they are."
        )
    return await proxies.ask(pid, method, target, content)


def views(pid: int, answer: Any) -> list[HeldView]:
    """What one proxy holds; nothing, where its answer is not to be understood."""
    try:
        listed = converted(answer, HeldList).held
    except e.CommandInvalid:
        return []
    return [replace(view, proxy=pid) for view in listed]


def converted(answer: Any, shape: type[Shape]) -> Shape:
    """A proxy's answer in the shape it must have."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError:
        raise e.CommandInvalid("The proxy is of another version. Restart it.") from None
