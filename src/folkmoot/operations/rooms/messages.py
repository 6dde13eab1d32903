"""Talking in a room: saying something, and reading what is said, in pages of bounded work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from folkmoot.core import chat, strict
from folkmoot.core import errors as e
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.limits import (
    MAX_MESSAGES_BYTES,
    MAX_MESSAGES_READ,
    MAX_MESSAGES_SCANNED,
    MAX_MESSAGES_SEARCHED,
    MAX_READ_SECONDS,
    MAX_RECIPIENTS,
    MAX_SEARCH,
)
from folkmoot.operations.mail import MessagesLimit
from folkmoot.operations.rooms.history import POST, READ_MESSAGES, Group
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Nothing,
    Operation,
    Route,
    describe,
)
from folkmoot.rooms.limits import MAX_READ, PAGE_BYTES
from folkmoot.rooms.model import ReadRoom, UnreadRooms

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.rooms import MessagePage, Rooms, Visitor


LAST_SEQ = 2**53
"""Later than any message; a larger number is no number of a message in JSON."""


GROUP_NAMES: Final[tuple[str, ...]] = get_args(Group)

GROUPS: Final[dict[Group, tuple[str, ...]]] = {
    "chat": ("chat.message", f"mcp.notification.{chat.METHOD}"),
    "proposal": ("mcp.proposal", "mcpx.withdraw", "mcpx.reject", "system.proposal"),
    "request": ("mcp.request", "mcpx.begin"),
    "response": ("mcp.response",),
    "presence": ("system.presence",),
    "reasoning": ("reasoning",),
}
"""Groups of kinds in one word, and how the kinds in each begin."""

CHAT_MEMBERS: Final = (
    *("text", "format", "thread_id", "reply_to", "mentions"),
    *(chat.REPLACES, chat.DELETED),
)


class HistoryMessage(Struct, frozen=True, gc=False):
    """A stored message of a room."""

    seq: int
    ts: str
    id: str
    kind: str
    sender: str = msgspec.field(name="from")
    to: tuple[str, ...] = ()
    correlation_id: tuple[str, ...] = ()
    payload: Raw = Raw(b"{}")
    context: str | None = None


_heard = msgspec.json.Decoder(HistoryMessage).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


def read_stored(raw: bytes | Raw) -> HistoryMessage:
    return _heard(raw)


def envelope(
    kind: str, payload: dict[str, Any], *, to: Iterable[str] = (), about: str | None = None
) -> bytes:
    """A message to a room, as its sender writes it; the gateway adds the rest."""
    members: dict[str, Any] = {"protocol": PROTOCOL, "kind": kind}
    if to:
        members["to"] = to
    if about is not None:
        members["correlation_id"] = [about]
    return strict.encode({**members, "payload": payload})


def group_of(kind: str) -> Group:
    """The group a kind is in."""
    for name, beginnings in GROUPS.items():
        if any(kind == it or kind.startswith(f"{it}.") for it in beginnings):
            return name
    return "other"


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A message in the few words a model needs: of chat what was said, else the payload."""

    seq: int
    ts: str
    sender: str = field(name="from")
    kind: str
    id: str
    to: tuple[str, ...] | UnsetType = UNSET
    correlation_id: tuple[str, ...] | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    thread_id: str | UnsetType = UNSET
    reply_to: str | UnsetType = UNSET
    mentions: list[str] | UnsetType = UNSET
    replaces: str | UnsetType = UNSET
    deleted: bool | UnsetType = UNSET


def message_view(message: HistoryMessage) -> ShownMessage:
    """A message as a model sees it."""
    said: dict[str, Any] = {"payload": message.payload}
    if group_of(message.kind) == "chat":
        payload = _object(message.payload)
        params = payload["params"] if "jsonrpc" in payload else payload
        said = {name: params[name] for name in CHAT_MEMBERS if params.get(name) is not None}
    return ShownMessage(
        seq=message.seq,
        ts=message.ts,
        sender=message.sender,
        kind=message.kind,
        id=message.id,
        to=message.to or UNSET,
        correlation_id=message.correlation_id or UNSET,
        **said,
    )


RoomName: TypeAlias = Annotated[str, describe("Name of the room")]
Seq: TypeAlias = Annotated[int, Meta(ge=0, le=LAST_SEQ)]


class Say(Arguments, frozen=True, kw_only=True):
    """Words for everyone in a room."""

    room: RoomName
    text: Annotated[str, describe("What to say")]
    format: (
        Annotated[
            Literal["plain", "markdown"], describe("How the text is written. Defaults to plain.")
        ]
        | None
    ) = None
    reply_to: Annotated[str, describe("The id of the message this answers")] | None = None
    mentions: (
        Annotated[
            list[str], describe("Names of the participants to mention", max_length=MAX_RECIPIENTS)
        ]
        | None
    ) = None
    thread_id: (
        Annotated[str, describe("A name for the conversation within the room, if there are many")]
        | None
    ) = None
    replaces: (
        Annotated[str, describe("The id of a message of yours that this takes the place of")] | None
    ) = None


class SaidMessage(Struct, frozen=True):
    """A message that is part of a room's history now."""

    room: str
    id: str
    seq: int


async def say(call: Call[Say]) -> SaidMessage:
    """Say something; answered once it is part of the room's history."""
    given = msgspec.structs.asdict(call.arguments)
    room = given.pop("room")
    return await broadcast(call, room, {k: it for k, it in given.items() if it is not None})


class DeleteMessage(Arguments, frozen=True, kw_only=True):
    """A chat message of the caller's."""

    room: RoomName
    message_id: Annotated[str, describe("The id of the message")]


async def delete_message(call: Call[DeleteMessage]) -> SaidMessage:
    """Delete what the caller said; answered with the message that tells everyone so."""
    given = call.arguments
    body = {"text": chat.GONE, chat.REPLACES: given.message_id, chat.DELETED: True}
    return await broadcast(call, given.room, body)


async def broadcast(call: Call[Any], room: str, params: dict[str, Any]) -> SaidMessage:
    """Send chat as the caller; answered once it is part of the room's history."""
    payload = {"jsonrpc": JSONRPC, "method": chat.METHOD, "params": params}
    raw = envelope(f"mcp.notification.{chat.METHOD}", payload)
    stored = read_stored(await call.services.rooms.post(call.visitor, room, raw))
    return SaidMessage(room, stored.id, stored.seq)


class Sought(Struct, frozen=True):
    """What a message must have to be found."""

    text: str | None = None
    sender: str | None = None
    kind: Group | None = None
    thread: str | None = None

    def matches(self, message: HistoryMessage) -> bool:
        if self.kind is not None and group_of(message.kind) != self.kind:
            return False
        if self.sender is not None and self.sender not in (message.sender, *message.to):
            return False
        if self.thread is None and self.text is None:
            return True
        seen = message_view(message)
        if self.thread is not None and self.thread not in (seen.thread_id, message.context):
            return False
        if self.text is None:
            return True
        # Decoded and written again, so that an escape hides nothing.
        words = seen.text if seen.payload is UNSET else msgspec.json.encode(_object(seen.payload))
        words = words.decode() if isinstance(words, bytes) else words or ""
        return self.text.casefold() in f"{seen.sender} {seen.kind} {words}".casefold()


async def search(
    rooms: Rooms, visitor: Visitor, room: str, sought: Sought, before: int | None, limit: int
) -> MessagePage:
    """The last messages before a place that are sought, and from where on they were looked for."""
    found: list[Raw] = []
    looked_at, size, start = 0, 0, before
    while True:
        page = await rooms.messages(visitor, room, before=start, limit=MAX_READ)
        if start is None:
            start = page.last_seq + 1
        looked_at += len(page.messages)
        for raw in reversed(page.messages):
            message = read_stored(raw)
            if sought.matches(message):
                size += len(bytes(raw))
                if found and size > PAGE_BYTES:
                    looked_at = MAX_MESSAGES_SEARCHED
                    break
                found.append(raw)
            start = message.seq
            if len(found) >= limit:
                break
        oldest = page.first_seq if page.oldest_seq is UNSET else page.oldest_seq
        if not page.messages:
            start = oldest
        if len(found) >= limit or start <= oldest or looked_at >= MAX_MESSAGES_SEARCHED:
            through = min(page.last_seq, (before or page.last_seq + 1) - 1)
            return replace(page, messages=found[::-1], from_seq=start, through_seq=through)


class Read(Arguments, frozen=True, kw_only=True):
    """Which part of a room's history, and whether to wait for more of it."""

    room: RoomName
    after: (
        Annotated[
            Seq,
            describe(
                "Return the messages after this seq, such as the last_seq of an earlier answer. "
                "With wait and without after, only what is new from now on."
            ),
        ]
        | None
    ) = None
    before: (
        Annotated[Seq, describe("Return the last messages before this seq, to look further back.")]
        | None
    ) = None
    limit: MessagesLimit = 50
    search: (
        Annotated[
            str,
            describe(
                "Return the latest messages with these words. To look further back, search again "
                "with the answer's looked_from as before. Not with after or wait.",
                min_length=1,
                max_length=MAX_SEARCH,
            ),
        ]
        | None
    ) = None
    kinds: (
        Annotated[
            list[Group],
            describe(
                "Return only these: chat is what is said, presence is who comes and goes, "
                "proposal is proposals and what becomes of them. If omitted, returns all.",
                max_length=len(GROUP_NAMES),
            ),
        ]
        | None
    ) = None
    wait: Annotated[
        int,
        describe(
            "Wait up to this many seconds for a message instead of polling. Returns as soon as one "
            "arrives. Default 0, max 55.",
            ge=0,
            le=MAX_READ_SECONDS,
        ),
    ] = 0


class RoomMessages(Struct, kw_only=True):
    """Some of a room's messages, oldest first."""

    room: str
    messages: list[ShownMessage] = field(default_factory=list)
    first_seq: int = 0
    """Where the room's history begins."""
    last_seq: int = 0
    """Everything up to here has been looked at: to read on, read after it."""
    more: bool = False
    """Whether the room has messages after it already."""
    looked_from: int | UnsetType = UNSET
    """From where on messages were searched."""


async def read(call: Call[Read]) -> RoomMessages:
    """Messages in their order, and from where to read on."""
    given = call.arguments
    if given.before is not None and (given.after is not None or given.wait):
        raise e.ArgumentInvalid("before cannot be combined with after or wait.", field="before")
    if given.search is not None:
        if given.after is not None or given.wait or given.kinds:
            raise e.ArgumentInvalid(
                "search can be combined with before and limit only.", field="search"
            )
        sought = Sought(given.search)
        rooms, most = call.services.rooms, given.limit
        page = await search(rooms, call.visitor, given.room, sought, given.before, most)
        found = read_page(page)
        # The latest that fit.
        while sum(size for _, size in found) > MAX_MESSAGES_BYTES and len(found) > 1:
            del found[0]
        cut = len(found) < len(page.messages)
        return RoomMessages(
            room=given.room,
            messages=[message_view(message) for message, _ in found],
            first_seq=page.first_seq,
            last_seq=page.last_seq,
            looked_from=found[0][0].seq if cut else page.from_seq,
        )
    reading = Reading(
        call.services.rooms,
        call.visitor,
        given.room,
        limit=given.limit,
        groups=frozenset(given.kinds or GROUP_NAMES),
    )
    if given.wait:
        waiting = reading.wait(given.after, given.wait)
        part = await wait_unless_left(call.caller, waiting)
        return part or RoomMessages(room=given.room, last_seq=given.after or 0)
    if given.after is not None:
        return await reading.after(given.after)
    return await reading.before(given.before)


class Reading(Struct, eq=False):
    """One read of a room's history for one visitor."""

    rooms: Rooms
    visitor: Visitor
    room: str
    limit: int
    groups: frozenset[str]
    _found: list[ShownMessage] = []
    _size: int = 0
    _full: bool = False

    async def after(self, seq: int) -> RoomMessages:
        """The first messages after a place."""
        part, looked_at = RoomMessages(room=self.room, messages=self._found, last_seq=seq), 0
        while True:
            place = part.last_seq
            page = await self._page(after=place)
            looked_at += len(page.messages)
            part.first_seq = page.first_seq
            if not page.messages:
                # Nothing is kept before where the history begins, and nothing is after its end.
                part.last_seq = min(max(place, page.first_seq - 1), page.last_seq)
            for message, size in read_page(page):
                if not self._take(message, size):
                    break
                part.last_seq = message.seq
            part.more = part.last_seq < page.last_seq
            stuck = part.last_seq <= place
            if self._full or stuck or not part.more or looked_at >= MAX_MESSAGES_SCANNED:
                return part

    async def before(self, seq: int | None) -> RoomMessages:
        """The last messages before a place, or of all."""
        looked_at, start = 0, seq
        while True:
            page = await self._page(before=start)
            looked_at += len(page.messages)
            for message, size in reversed(read_page(page)):
                if not self._take(message, size):
                    break
                start = message.seq
            if self._full or not page.messages or looked_at >= MAX_MESSAGES_SCANNED:
                break
        last = page.last_seq if seq is None else min(page.last_seq, max(seq - 1, 0))
        return RoomMessages(
            room=self.room,
            messages=self._found[::-1],
            first_seq=page.first_seq,
            last_seq=last,
            more=last < page.last_seq,
        )

    async def wait(self, seq: int | None, seconds: float) -> RoomMessages:
        """As `after`, but not before there is something, or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        place = (await self._page(limit=1)).last_seq if seq is None else seq
        while True:
            part = await self.after(place)
            remaining = until - loop.time()
            if part.messages or part.more or remaining <= 0:
                return part
            place = part.last_seq
            await self._page(after=place, limit=1, wait=remaining)

    def _take(self, message: HistoryMessage, size: int) -> bool:
        """Look at one more message; False if the answer has no room for it any more."""
        if group_of(message.kind) not in self.groups:
            return True
        if self._found and (self._full or self._size + size > MAX_MESSAGES_BYTES):
            self._full = True
            return False
        self._found.append(message_view(message))
        self._size += size
        self._full = len(self._found) >= self.limit
        return True

    async def _page(self, *, limit: int = 0, **place: Any) -> MessagePage:
        most = limit or (self.limit if len(self.groups) == len(GROUP_NAMES) else MAX_MESSAGES_READ)
        return await self.rooms.messages(self.visitor, self.room, limit=most, **place)


def read_page(page: MessagePage) -> list[tuple[HistoryMessage, int]]:
    """The messages of a page, each with its size."""
    return [(read_stored(raw), len(bytes(raw))) for raw in page.messages]


class MarkRead(Arguments, frozen=True, kw_only=True):
    """How far a room was read."""

    room: RoomName
    seq: (
        Annotated[Seq, describe("Seq of the last message that was read. If omitted, all of them.")]
        | None
    ) = None


async def mark_read(call: Call[MarkRead]) -> ReadRoom:
    """How much is unread after it."""
    given = call.arguments
    return await call.services.rooms.mark_read(call.visitor, given.room, given.seq)


async def unread_rooms(call: Call[Nothing]) -> UnreadRooms:
    """The rooms with something new."""
    return await call.services.rooms.unread_rooms(call.visitor)


MESSAGES = (
    Operation(
        name="room/say",
        description="Say something to everyone in a room. Returns the message's id and seq; give "
        "the seq to room_read as after, with wait, to get the answers.",
        handler=say,
        scope="rooms",
        effect="adds",
        reaches_others=True,
        routes=Absent("`room/post` says it as an envelope."),
        commands=("room say",),
    ),
    Operation(
        name="room/delete_message",
        description="Delete a chat message of yours: what it said is gone for everyone, its edits "
        "too. To change it instead, use room_say with replaces.",
        handler=delete_message,
        scope="rooms",
        effect="destroys",
        reaches_others=True,
        routes=Absent("`room/post` says it as an envelope, with `replaces` and `deleted`."),
        commands=Absent("In 'folkmoot room join' it is /delete."),
    ),
    Operation(
        name="room/read",
        description="Read a room's messages, oldest first: the newest ones, or those after or "
        "before a seq. To follow a conversation, call it again with the answer's last_seq as "
        "after, and with wait to return as soon as something new arrives.",
        handler=read,
        scope="rooms",
        who="guest",
        others_words=("messages",),
        waits="wait",
        routes=(READ_MESSAGES,),
        commands=("room history", "room tail"),
    ),
    Operation(
        name="room/mark_read",
        description="Mark a room as read, up to a message or all of it. Reading with room_read "
        "marks nothing. Returns how much is still unread; a position further back changes nothing.",
        handler=mark_read,
        scope="rooms",
        who="guest",
        routes=(
            Route(
                "PUT",
                "/v1/rooms/{room}/read",
                id="markRoomRead",
                summary="Mark a room as read",
                description="Up to the message with this `seq`, or without it all of it. Nobody "
                "else is told. It never moves back.",
                answer="How much is still unread.",
                example={"seq": 41},
            ),
        ),
        commands=("room join", "room tail"),
    ),
    Operation(
        name="room/unread",
        description="List the rooms with unread messages, mentions of you or an invitation.",
        handler=unread_rooms,
        scope="rooms",
        tool=Absent("`room/list` tells it of each room."),
        routes=(
            Route(
                "GET",
                "/v1/unread",
                id="listUnread",
                summary="List the rooms with something new",
                description="Rooms you are in with unread messages or mentions, and those you are "
                "invited to. Mail has `GET /v1/digest`.",
                answer="The rooms with something new.",
            ),
        ),
        commands=("room list",),
    ),
    POST,
)
