"""What waits for the caller's decision, from rooms, programs and servers, and earlier decisions.

Four kinds of things wait: proposals in rooms, what a program asks before it does it, and, for
operators, messages that a rule holds and tools that changed or are new. The order is that of
`risks`, the riskiest first; of equal ones what ends soonest, and then what waits longest.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot import decisions as kept
from folkmoot.core.kinds import parse
from folkmoot.decisions import AskKind, Risk
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.asking import AskedCall, view
from folkmoot.operations.call import fit_on_page, make_cursor, read_cursor, wrong_cursor
from folkmoot.operations.declare import Topic, get
from folkmoot.operations.limits import HELD_BYTES
from folkmoot.operations.operator.held import everything_held
from folkmoot.operations.operator.servers import ChangedTool, shown_differences
from folkmoot.operations.risks import (
    RISKS,
    risk_of,
    risk_of_method,
    risk_of_proposal,
    risk_of_tool,
    riskiest,
)
from folkmoot.operations.row import Absent, Cursor, PageLimit, describe, view_of
from folkmoot.proxy.held import HeldView, what_of
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import ProposalView, reason_of

if TYPE_CHECKING:
    from folkmoot.gateway.queries import Changed
    from folkmoot.operations.call import Call
    from folkmoot.rooms.proposals import Decidable


deciding = Topic(scope="decide")


class Ask(Struct, frozen=True, kw_only=True):
    """Something that waits for a decision."""

    id: Annotated[str, "Its id in this list."]
    kind: AskKind
    risk: Annotated[Risk, "What it may do, as far as that is known; the riskiest are first."]
    what: Annotated[str, "What would be done, in short."]
    by: Annotated[str, "Who asks for it; empty where nobody knows."]
    to: Annotated[tuple[str, ...], "Who would do it; empty is anyone."]
    since: Annotated[str, "Since when it waits."]
    until: Annotated[str | None, "When it ends by itself; null for never."]
    may: Annotated[
        tuple[str, ...], "What you may do: `approve`, `reject`, `release`, `drop`, `accept`."
    ]
    room: str | UnsetType = UNSET
    proposal: ProposalView | UnsetType = UNSET
    held: HeldView | UnsetType = UNSET
    tool: ChangedTool | UnsetType = UNSET
    call: AskedCall | UnsetType = UNSET


class Counts(Struct, frozen=True):
    """How many of each kind wait."""

    proposal: int
    held: int
    tool: int
    call: int


class Asks(Struct, frozen=True):
    """What waits, the riskiest first."""

    asks: list[Ask]
    count: Annotated[int, "How many there are of what was asked for."]
    counts: Annotated[Counts, "How many there are of each kind."]
    complete: Annotated[bool, "False if so much is open that some of it was not looked at."]
    next_cursor: str | None


class WaitingAsk(NamedTuple):
    """Something that waits, before it is known whether it is on the page."""

    kind: AskKind
    id: str
    risk: Risk
    since: float
    until: float | None
    subject: Any

    @property
    def place(self) -> tuple[int, float, float, str]:
        """Its place in the order."""
        ends = math.inf if self.until is None else self.until
        mark = sha256(self.id.encode()).hexdigest()[:16]
        return RISKS.index(self.risk), ends, self.since, mark


@deciding.reads(
    "ask/list",
    get(
        "/v1/asks",
        "listAsks",
        "List what waits for your decision",
        "Proposals in all your rooms that you may decide on, and what programs ask you before they "
        "do it; for operators also messages that a rule holds, and tools that changed or are new. "
        "The riskiest are first, then those that end soonest. `limit=0` only counts.",
        answer="What waits, and how much there is.",
    ),
    others_words=("asks",),
    commands=("asks",),
)
async def asks(
    call: Call,
    *,
    kind: Annotated[AskKind, "Only what is of this kind. If omitted, returns all."] | None = None,
    limit: Annotated[
        int, describe("Maximum number to return. Default 50, max 100; 0 only counts.", ge=0, le=100)
    ] = 50,
    cursor: Cursor | None = None,
) -> Asks:
    """List what waits for your user's decision, the riskiest first: proposals in all their rooms,
    and what programs ask; for operators also held messages, and tools that changed. Decide on
    proposals with room_decide, on what programs ask with ask_decide, and only as your user wants.
    """
    services, principal = call.services, call.caller.principal
    found = await services.rooms.asks.open_for(call.visitor)
    everything = [
        WaitingAsk(
            "proposal", f"{one.room}/{one.id}", risk_of_proposal(call, one), one.at, one.until, one
        )
        for one in found.proposals
    ]
    if services.permits(principal, "ask/decide"):
        everything += [
            WaitingAsk(
                "call", it.ask.id, risk_of_tool(call, it.ask.tool), it.ask.at, it.ask.until, it
            )
            for it in await services.asks.waiting(call.account.id)
        ]
    if services.permits(principal, "held/list"):
        everything += [
            WaitingAsk("held", held_id(one), risk_of_held(call, one), one.since, one.until, one)
            for one in (await everything_held(call)).held
        ]
    if services.permits(principal, "folkmoot/pins"):
        changed = await services.gateway.waiting()
        everything += await asyncio.to_thread(lambda: [*map(changed_tool, changed)])
    counts = Counts(*(sum(it.kind == each for it in everything) for each in EXPAND))
    chosen = [it for it in everything if kind in (None, it.kind)]
    ordered = sorted(chosen, key=lambda it: it.place)
    page, next_cursor = await page_of(call, ordered, limit, cursor)
    return Asks(page, len(chosen), counts, found.complete, next_cursor)


def held_id(one: HeldView) -> str:
    """The id of a held message in the list: each proxy counts for itself."""
    return f"{one.id}" if one.proxy is None else f"{one.proxy}/{one.id}"


async def page_of(
    call: Call, ordered: list[WaitingAsk], limit: int, cursor: str | None
) -> tuple[list[Ask], str | None]:
    """The part of it that was asked for, and the cursor of the next."""
    if cursor is not None:
        after = place_of(cursor)
        ordered = [it for it in ordered if it.place > after]
    if not limit:
        return [], None
    entries = [await EXPAND[it.kind](call, it) for it in ordered[:limit]]
    page, _ = fit_on_page(entries, limit)
    more = len(page) < len(ordered)
    return page, make_cursor(written(ordered[len(page) - 1].place)) if more else None


def written(place: tuple[int, float, float, str]) -> str:
    """A place in the order, for a cursor."""
    return ":".join(map(str, place))


def place_of(cursor: str) -> tuple[int, float, float, str]:
    """The place that a cursor has."""
    try:
        rank, ends, since, mark = read_cursor(cursor).split(":")
        return int(rank), float(ends), float(since), mark
    except ValueError:
        raise wrong_cursor() from None


def risk_of_held(call: Call, one: HeldView) -> Risk:
    """How risky it is to release: an answer changes nothing, whatever it answers."""
    if one.type == "response":
        return "reads"
    return risk_of_tool(call, one.tool) if one.method == TOOLS_CALL else risk_of_method(one.method)


def changed_tool(one: Changed) -> WaitingAsk:
    """A tool that waits to be accepted; findings in its description raise the risk."""
    from folkmoot.proxy.interceptors.descriptions import poisons_of

    definition = msgspec.json.decode(one.changed_definition)
    risk = risk_of(definition.get("annotations"))
    if poisons_of(definition):
        risk = riskiest(risk, "unknown")
    return WaitingAsk("tool", f"{one.namespace}:{one.name}", risk, one.changed_at, None, one)


async def proposal(call: Call, it: WaitingAsk) -> tuple[Ask, int]:
    """A proposal as an ask, with its content."""
    one: Decidable = it.subject
    message = await call.services.rooms.asks.message(one)
    kind = parse(one.kind)
    view = view_of(
        ProposalView,
        one,
        risk=it.risk,
        state="open",
        created_at=moment(one.at),
        expires_at=moment(one.until),
        reason=reason_of(message),
        message=UNSET if message is None else Raw(message),
    )
    shown = ask(
        it,
        what=f"{kind.method} {kind.context or ''}".rstrip(),
        by=one.proposer,
        to=one.to,
        may=one.may,
        room=one.room,
        proposal=view,
    )
    return shown, len(message or b"")


async def held(_: Call, it: WaitingAsk) -> tuple[Ask, int]:
    """A message that a rule holds."""
    one: HeldView = it.subject
    what = what_of(one.type, one.method, one.tool)
    return ask(it, what=what, by=one.who, may=("release", "drop"), held=one), HELD_BYTES


async def program_call(call: Call, it: WaitingAsk) -> tuple[Ask, int]:
    """What a program asks before it does it."""
    shown = view(call, it.subject, await call.services.asks.approved_before(it.subject.ask))
    told = ask(
        it, what=shown.tool, by=shown.by, to=(shown.to,), may=("approve", "reject"), call=shown
    )
    return told, len(it.subject.ask.bound) + len(shown.why)


async def tool(_: Call, it: WaitingAsk) -> tuple[Ask, int]:
    """A tool that changed or is new, and how it differs."""
    from folkmoot.gateway.pin_comparison import difference

    one: Changed = it.subject
    (shown,) = await asyncio.to_thread(lambda: shown_differences([difference(one)]))
    what = f"{'new' if shown.new else 'changed'} {shown.canonical}"
    size = len(msgspec.json.encode(shown))
    return ask(it, what=what, by=one.namespace, may=("accept",), tool=shown), size


def ask(it: WaitingAsk, *, to: Iterable[str] = (), **members: Any) -> Ask:
    """What all kinds have in common, and the rest."""
    until = None if it.until is None else moment(it.until)
    name = f"{it.kind}:{it.id}"
    common: dict[str, Any] = {"id": name, "kind": it.kind, "risk": it.risk, "to": tuple(to)}
    return Ask(**common, since=moment(it.since), until=until, **members)


EXPAND: Final[dict[AskKind, Callable[[Call, WaitingAsk], Awaitable[tuple[Ask, int]]]]] = {
    "proposal": proposal,
    "held": held,
    "tool": tool,
    "call": program_call,
}
"""How each kind is shown, in the order of the counts."""


class DecisionView(Struct, frozen=True, kw_only=True):
    """One decision and its outcome."""

    id: str
    at: str
    kind: AskKind
    decision: Annotated[kept.Verdict, "What you decided."]
    what: Annotated[str, "What it was about, in short."]
    about: Annotated[str, "The id of the proposal or message, or the tool."]
    by: Annotated[str | None, "Who had asked; null if they are gone."]
    room: Annotated[str | None, "The room; null if it was in none."]
    server: Annotated[str | None, "The server of a tool, or the proxy that held a message."]
    seq: Annotated[int | None, "The place of your decision in the room."]
    reason: Annotated[str | None, "Why, in your words."]
    outcome: Annotated[
        str,
        "What came of it. Of an approval: `waiting`, then `answered`, `failed` or `cancelled`. "
        "Of a rejection: how the proposal stands. Else what was decided.",
    ]
    ended_at: Annotated[str | None, "When it came of it; null if not yet."]


class Decisions(Struct, frozen=True):
    """The caller's decisions, latest first."""

    decisions: list[DecisionView]
    next_cursor: str | None


@deciding.reads(
    "ask/decided",
    get(
        "/v1/decisions",
        "listDecisions",
        "List what you decided",
        answer="Your decisions, the latest first.",
    ),
    tool=Absent("People look at it to see what came of what they decided."),
    commands=("decisions",),
)
async def decisions(
    call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None
) -> Decisions:
    """List what you decided and what came of it, the latest first. Decisions are kept for 90 days,
    and those in rooms as long as the room.
    """
    before = None
    if cursor is not None:
        at, _, id_ = read_cursor(cursor).partition(":")
        try:
            before = (float(at), id_)
        except ValueError:
            raise wrong_cursor() from None
    found = await call.services.store.read(
        lambda tx: kept.page(tx, call.account.id, limit + 1, before)
    )
    page, more = found[:limit], len(found) > limit
    next_cursor = make_cursor(f"{page[-1].at!r}:{page[-1].id}") if more else None
    return Decisions([*map(shown_decision, page)], next_cursor)


def shown_decision(one: kept.StoredDecision) -> DecisionView:
    """A decision as it is listed."""
    return view_of(
        DecisionView,
        one,
        at=moment(one.at),
        by=one.asked_by,
        room=one.place if one.in_room else None,
        server=None if one.in_room else one.place or None,
        ended_at=None if one.ended_at is None else moment(one.ended_at),
    )
