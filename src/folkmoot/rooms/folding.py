"""Folding: a page of what people read in a room, with presence and protocol between it as counts.

What a message is, is told by its kind, so that the bytes of what is folded are never read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET, Raw

from folkmoot.core import chat
from folkmoot.mcp import wire
from folkmoot.rooms.limits import GLANCE_MESSAGES, MAX_FOLDED_NAMES, MAX_GLANCED, PAGE_BYTES
from folkmoot.rooms.machine import BACKEND
from folkmoot.rooms.model import Comings, Fold, MessagePage
from folkmoot.rooms.queries_messages import CHAT

if TYPE_CHECKING:
    from folkmoot.rooms.history import History
    from folkmoot.rooms.ports import RoomStatus

QUIET_METHODS: Final = frozenset(
    (
        wire.INITIALIZE,
        wire.PING,
        wire.DISCOVER,
        wire.LISTEN,
        wire.TOOLS_LIST,
        wire.PROMPTS_LIST,
        wire.RESOURCES_LIST,
        wire.TEMPLATES_LIST,
        wire.SUBSCRIBE,
        wire.UNSUBSCRIBE,
        wire.ROOTS_LIST,
        wire.COMPLETION,
        wire.SET_LEVEL,
    )
)
"""Methods whose requests and answers nobody reads."""
LOUD_NOTICES: Final = frozenset((chat.METHOD, wire.CANCELLED))
QUIET_ROOTS: Final = frozenset(
    (
        "system.presence",
        "mcpx.begin",
        "capability.grant-ack",
        "chat.acknowledge",
        "chat.cancel",
        "participant.status",
        "participant.request-status",
        "participant.compact",
        "participant.compact-done",
    )
)
PRESENCE: Final = "system.presence."
JOIN: Final = f"{PRESENCE}join"


class Glance(NamedTuple):
    """What is known of a message without its bytes."""

    seq: int
    kind: str
    size: int
    about: str | None

    @property
    def is_quiet(self) -> bool:
        """Whether it is folded. An edit is read where the message is that it changes."""
        return is_quiet(self.kind) or (self.about is not None and self.kind.startswith(CHAT))


def is_quiet(kind: str) -> bool:
    """Whether a message of this kind is presence or protocol, rather than something people read."""
    protocol, operation, method = (*kind.partition(":")[0].split(".", 2), "", "")[:3]
    if protocol == "mcp":
        if operation == "notification":
            return method not in LOUD_NOTICES
        return operation in {"request", "response"} and method in QUIET_METHODS
    return f"{protocol}.{operation}" in QUIET_ROOTS


async def folded_page(
    history: History, status: RoomStatus, after: int | None, before: int | None, limit: int
) -> MessagePage:
    """A page of what people read, and what is folded between it.

    It has `limit` such messages at most, and all that was looked at is within its bounds.
    """
    oldest, last = status.oldest_seq, status.last_seq
    low = oldest - 1 if after is None else max(after, oldest - 1)
    high = last + 1 if before is None else min(before, last + 1)
    start, end = low, high
    seen: list[Glance] = []
    loud: list[int] = []
    size, full = 0, False
    while not full and low + 1 < high and len(seen) < MAX_GLANCED:
        part = await history.glance(low, high, GLANCE_MESSAGES, last=after is None)
        if not part:
            low = high
            break
        for one in part:
            if not one.is_quiet:
                full = len(loud) >= limit or (bool(loud) and size + one.size > PAGE_BYTES)
                if full:
                    break
                loud.append(one.seq)
                size += one.size
            seen.append(one)
            if after is None:
                high = one.seq
            else:
                low = one.seq
    complete = low + 1 >= high
    seen.sort()
    if after is None:
        bounds = (start + 1 if complete or not seen else seen[0].seq, end - 1)
    else:
        bounds = (start + 1, end - 1 if complete or not seen else seen[-1].seq)
    return MessagePage(
        [Raw(data) for data in await history.pick(sorted(loud))],
        status.first_seq,
        last,
        oldest if oldest < status.first_seq else UNSET,
        list(folds(seen)),
        *bounds,
    )


def folds(seen: Iterable[Glance]) -> Iterable[Fold]:
    """The runs of quiet messages, in order."""
    run: list[Glance] = []
    for one in seen:
        if one.is_quiet:
            run.append(one)
        elif run:
            yield _fold(run)
            run = []
    if run:
        yield _fold(run)


def _fold(run: Sequence[Glance]) -> Fold:
    presence: dict[str, list[int]] = {}
    protocol = 0
    for one in run:
        if one.kind.startswith(PRESENCE):
            presence.setdefault(one.about or "", [0, 0])[one.kind != JOIN] += 1
        else:
            protocol += 1
    named = {who: Comings(*counts) for who, counts in list(presence.items())[:MAX_FOLDED_NAMES]}
    return Fold(run[0].seq, run[-1].seq, protocol, named, len(presence) - len(named))


Names = Callable[[Iterable[str]], Awaitable[dict[str, str]]]


async def named(page: MessagePage, names: Names) -> MessagePage:
    """The same page with people's names for their accounts; those who are gone are others."""
    if not page.folded:
        return page
    known = await names({who for fold in page.folded for who in fold.presence})
    for place, fold in enumerate(page.folded):
        shown: dict[str, Comings] = {}
        for who, comings in fold.presence.items():
            name = known.get(who) or (who.removeprefix(BACKEND) if who.startswith(BACKEND) else "")
            if name:
                shown[name] = comings
        others = fold.others + len(fold.presence) - len(shown)
        page.folded[place] = Fold(fold.first, fold.last, fold.protocol, shown, others)
    return page
