"""Talking in a room: saying something, and reading what is said, in pages of bounded work.

Programs read and post messages whole, in the bytes that are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from folkmoot.core import chat, strict
from folkmoot.core import errors as e
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC
from folkmoot.operations.call import run_until, wait_unless_left
from folkmoot.operations.declare import Topic, get, post, put
from folkmoot.operations.limits import (
    MAX_INTEGER,
    MAX_MESSAGES_BYTES,
    MAX_MESSAGES_READ,
    MAX_MESSAGES_SCANNED,
    MAX_MESSAGES_SEARCHED,
    MAX_READ_SECONDS,
    MAX_RECIPIENTS,
    MAX_SEARCH,
)
from folkmoot.operations.mail import MessagesLimit
from folkmoot.operations.row import Absent, describe
from folkmoot.rooms.limits import MAX_READ, MAX_WAIT_SECONDS, PAGE_BYTES
from folkmoot.rooms.model import ROOM_PATTERN, MessagePage, ReadRoom, StoredJson, UnreadRooms, ref

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.rooms import Rooms, Visitor


PATH: Final = "/v1/rooms/{room}/messages"
LAST_SEQ = 2**53
"""Later than any message; a larger number is no number of a message in JSON."""


Group: TypeAlias = Literal[
    "chat", "proposal", "request", "response", "presence", "reasoning", "other"
]
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

RoomName: TypeAlias = Annotated[str, "Name of the room"]
RoomInPath: TypeAlias = Annotated[
    str, describe("The room's name.", schema={"pattern": ROOM_PATTERN})
]
Seq: TypeAlias = Annotated[int, Meta(ge=0, le=LAST_SEQ)]
SeqInQuery: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]

talk = Topic(scope="rooms")


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


def given(left_out: Any, /, **members: Any) -> dict[str, Any]:
    """The members that were given: those that are not what stands for one left out."""
    return {name: it for name, it in members.items() if it is not left_out}


async def send(
    call: Call,
    room: str,
    kind: str,
    payload: dict[str, Any],
    *,
    to: str | None = None,
    about: str | None = None,
) -> HistoryMessage:
    """Post a message as the caller, and return the stored message."""
    raw = envelope(kind, payload, to=() if to is None else (to,), about=about)
    return read_stored(await call.services.rooms.post(call.visitor, room, raw))


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


class SaidMessage(Struct, frozen=True):
    """A message that is part of a room's history now."""

    room: str
    id: str
    seq: int


@talk.adds(
    "room/say",
    Absent("`room/post` says it as an envelope."),
    reaches_others=True,
    commands=("room say",),
)
async def say(
    call: Call,
    room: RoomName,
    text: Annotated[str, "What to say"],
    *,
    format: Annotated[  # noqa: A002 - as a chat message calls it
        Literal["plain", "markdown"], "How the text is written. Defaults to plain."
    ]
    | None = None,
    reply_to: Annotated[str, "The id of the message this answers"] | None = None,
    mentions: Annotated[
        list[str], describe("Names of the participants to mention", max_length=MAX_RECIPIENTS)
    ]
    | None = None,
    thread_id: Annotated[str, "A name for the conversation within the room, if there are many"]
    | None = None,
    replaces: Annotated[str, "The id of a message of yours that this takes the place of"]
    | None = None,
) -> SaidMessage:
    """Say something to everyone in a room. Returns the message's id and seq; give the seq to
    room_read as after, with wait, to get the answers.
    """
    said = given(
        None,
        text=text,
        format=format,
        reply_to=reply_to,
        mentions=mentions,
        thread_id=thread_id,
        replaces=replaces,
    )
    return await broadcast(call, room, said)


@talk.destroys(
    "room/delete_message",
    Absent("`room/post` says it as an envelope, with `replaces` and `deleted`."),
    reaches_others=True,
    commands=Absent("In 'folkmoot room join' it is /delete."),
)
async def delete_message(
    call: Call, room: RoomName, message_id: Annotated[str, "The id of the message"]
) -> SaidMessage:
    """Delete a chat message of yours: what it said is gone for everyone, its edits too. To change
    it instead, use room_say with replaces.
    """
    body = {"text": chat.GONE, chat.REPLACES: message_id, chat.DELETED: True}
    return await broadcast(call, room, body)


async def broadcast(call: Call, room: str, params: dict[str, Any]) -> SaidMessage:
    """Send chat as the caller; answered once it is part of the room's history."""
    payload = {"jsonrpc": JSONRPC, "method": chat.METHOD, "params": params}
    stored = await send(call, room, f"mcp.notification.{chat.METHOD}", payload)
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


async def find(
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


@talk.reads(
    "room/read",
    who="guest",
    others_words=("messages",),
    waits="wait",
    commands=("room history", "room tail"),
)
async def read(
    call: Call,
    room: RoomName,
    *,
    after: Annotated[
        Seq,
        "Return the messages after this seq, such as the last_seq of an earlier answer. With wait "
        "and without after, only what is new from now on.",
    ]
    | None = None,
    before: Annotated[Seq, "Return the last messages before this seq, to look further back."]
    | None = None,
    limit: MessagesLimit = 50,
    search: Annotated[
        str,
        describe(
            "Return the latest messages with these words. To look further back, search again with "
            "the answer's looked_from as before. Not with after or wait.",
            min_length=1,
            max_length=MAX_SEARCH,
        ),
    ]
    | None = None,
    kinds: Annotated[
        list[Group],
        describe(
            "Return only these: chat is what is said, presence is who comes and goes, proposal is "
            "proposals and what becomes of them. If omitted, returns all.",
            max_length=len(GROUP_NAMES),
        ),
    ]
    | None = None,
    wait: Annotated[
        int,
        describe(
            "Wait up to this many seconds for a message instead of polling. Returns as soon as one "
            "arrives. Default 0, max 55.",
            ge=0,
            le=MAX_READ_SECONDS,
        ),
    ] = 0,
) -> RoomMessages:
    """Read a room's messages, oldest first: the newest ones, or those after or before a seq. To
    follow a conversation, call it again with the answer's last_seq as after, and with wait to
    return as soon as something new arrives.
    """
    if before is not None and (after is not None or wait):
        raise e.ArgumentInvalid("before cannot be combined with after or wait.", field="before")
    rooms = call.services.rooms
    if search is not None:
        if after is not None or wait or kinds:
            raise e.ArgumentInvalid(
                "search can be combined with before and limit only.", field="search"
            )
        page = await find(rooms, call.visitor, room, Sought(search), before, limit)
        found = read_page(page)
        # The latest that fit.
        while sum(size for _, size in found) > MAX_MESSAGES_BYTES and len(found) > 1:
            del found[0]
        cut = len(found) < len(page.messages)
        return RoomMessages(
            room=room,
            messages=[message_view(message) for message, _ in found],
            first_seq=page.first_seq,
            last_seq=page.last_seq,
            looked_from=found[0][0].seq if cut else page.from_seq,
        )
    groups = frozenset(kinds or GROUP_NAMES)
    reading = Reading(rooms, call.visitor, room, limit=limit, groups=groups)
    if wait:
        part = await wait_unless_left(call.caller, reading.wait(after, wait))
        return part or RoomMessages(room=room, last_seq=after or 0)
    if after is not None:
        return await reading.after(after)
    return await reading.before(before)


@read.at(
    get(
        PATH,
        "readMessages",
        "Read messages",
        "In order: with `after` the first messages that follow it, otherwise the last ones. A page "
        "ends early when it comes to more than 1 MiB; one message is always shown.",
        answer="A page of messages.",
    )
)
async def read_whole(
    call: Call,
    room: RoomInPath,
    *,
    after: Annotated[SeqInQuery, "Only messages with a greater `seq`."] | None = None,
    before: Annotated[SeqInQuery, "Only messages with a smaller `seq`."] | None = None,
    limit: Annotated[int, describe("How many at most.", ge=1, le=MAX_READ)] = 50,
    wait: Annotated[
        int,
        describe(
            "Seconds to wait if there is nothing after `after` yet (or without it: new).",
            ge=0,
            le=int(MAX_WAIT_SECONDS),
        ),
    ] = 0,
    fold: Annotated[
        bool,
        "Count presence and protocol messages, such as `tools/list` and progress, in `folded` "
        "instead of returning them. Not with `wait`.",
    ] = False,
    search: Annotated[
        str,
        describe(
            "Only messages with these words, in any case. A search looks back from `before`, or "
            "the end, through some thousand messages; go on with `from_seq` as `before`.",
            min_length=1,
            max_length=MAX_SEARCH,
        ),
    ]
    | None = None,
    sender: Annotated[
        str, describe("Only from or to this participant.", min_length=1, max_length=MAX_SEARCH)
    ]
    | None = None,
    kind: Annotated[Group, "Only messages of this kind, in one word."] | None = None,
    thread: Annotated[
        str, describe("Only chat of this thread.", min_length=1, max_length=MAX_SEARCH)
    ]
    | None = None,
) -> MessagePage:
    """What was said, in order."""
    rooms, sought = call.services.rooms, Sought(search, sender, kind, thread)
    if sought != Sought():
        if wait or fold or after is not None:
            raise e.QueryInvalid("A search cannot be combined with after, wait or fold.")
        return await find(rooms, call.visitor, room, sought, before, limit)
    place: dict[str, Any] = {"after": after, "before": before, "limit": limit, "fold": fold}
    page = None
    if wait:
        if before is not None or fold:
            raise e.QueryInvalid("wait cannot be combined with before or fold.")
        waiting = rooms.messages(call.visitor, room, **place, wait=wait)
        page = await run_until(call.caller.leaving, waiting)
    return page or await rooms.messages(call.visitor, room, **place, wait=0)


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


@talk.changes(
    "room/mark_read",
    put(
        "/v1/rooms/{room}/read",
        "markRoomRead",
        "Mark a room as read",
        "Up to the message with this `seq`, or without it all of it. Nobody else is told. It never "
        "moves back.",
        answer="How much is still unread.",
        example={"seq": 41},
    ),
    who="guest",
    commands=("room join", "room tail"),
)
async def mark_read(
    call: Call,
    room: RoomName,
    *,
    seq: Annotated[Seq, "Seq of the last message that was read. If omitted, all of them."]
    | None = None,
) -> ReadRoom:
    """Mark a room as read, up to a message or all of it. Reading with room_read marks nothing.
    Returns how much is still unread; a position further back changes nothing.
    """
    return await call.services.rooms.mark_read(call.visitor, room, seq)


@talk.reads(
    "room/unread",
    get(
        "/v1/unread",
        "listUnread",
        "List the rooms with something new",
        "Rooms you are in with unread messages or mentions, and those you are invited to. Mail has "
        "`GET /v1/digest`.",
        answer="The rooms with something new.",
    ),
    tool=Absent("`room/list` tells it of each room."),
    commands=("room list",),
)
async def unread_rooms(call: Call) -> UnreadRooms:
    """List the rooms with unread messages, mentions of you or an invitation."""
    return await call.services.rooms.unread_rooms(call.visitor)


BODY: Final = strict.Limits(message_bytes=256 * 1024, nesting=16)
"""How much of a message that was refused is read for its kind."""

SAID: Final = tuple(
    error
    for error in e.ERRORS.values()
    if issubclass(
        error,
        (
            e.UnsupportedProtocol,
            e.InvalidEnvelope,
            e.KindError,
            e.CapabilityError,
            e.CapabilityDenied,
            e.ProposalRequired,
            e.BlockedByInterceptor,
            e.RoomError,
            e.RateLimited,
        ),
    )
    and not issubclass(error, (e.TargetLeft, e.RequestTimedOut, e.RoomFull, e.TooManyConnections))
)
"""What something that is said in a room may be refused with; the rest of its tree comes later."""


class PostedMessage(Struct, frozen=True):
    """A message as everyone in the room receives it."""


def posted(stored: bytes) -> dict[str, Any]:
    """A stored message as an answer: the same bytes."""
    return cast("dict[str, Any]", Raw(stored))


@talk.adds(
    "room/post",
    post(
        PATH,
        "postMessage",
        "Say something",
        status=201,
        answer="The message as everyone gets it.",
        body="message",
        example={
            "protocol": "mcpx/v1",
            "kind": "chat.message",
            "payload": {"text": "Good morning!"},
        },
    ),
    who="guest",
    reaches_others=True,
    judged=False,
    gives=PostedMessage,
    errors=SAID,
    tool=Absent("Each thing that can be said has a tool of its own, such as `room/say`."),
    commands=Absent("Each thing that can be said has a command of its own, such as `room say`."),
)
async def post_message(
    call: Call,
    room: RoomInPath,
    message: Annotated[StoredJson, describe("The message.", schema=ref("Envelope"))],
) -> dict[str, Any]:
    """One envelope, checked as on a WebSocket and then sent to everyone in the room. A refusal has
    the content of `system.error`.
    """
    from folkmoot.rooms.machine.wire import readable

    raw = bytes(message)
    try:
        stored = await call.services.rooms.post(call.visitor, room, raw, admitted=False)
    except e.RoomDoorError:
        raise
    except e.FolkmootError as error:
        # As `system.error` says it on a WebSocket.
        if error.data.get("attempted_kind") is None:
            error.data["attempted_kind"] = readable(raw, BODY)[1]
        raise
    return posted(stored)
