"""The nouns: messages, participants, proposals, and gaps in what was received."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import chat
from folkmoot.core import errors as e

CHAT_NOTICE: Final = f"mcp.notification.{chat.METHOD}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class Message(Struct, frozen=True, kw_only=True):
    """A message of the room. Everyone gets the same ones, the sender included."""

    seq: int
    """Its place in the history; messages come in this order."""
    id: str
    sender: str
    kind: str
    """As the sender wrote it; the context may have been left out."""
    payload: dict[str, Any]
    """Empty where there is none."""
    to: tuple[str, ...] = ()
    """Who is meant; empty means everyone."""
    correlation_id: tuple[str, ...] = ()
    context: str | None = None
    ts: str = ""
    """When the hub accepted it, in RFC 3339."""
    raw: bytes = b""
    """The bytes it came as."""

    @property
    def base(self) -> str:
        """The kind without its context."""
        return self.kind.partition(":")[0]

    @property
    def text(self) -> str | None:
        """What is said in chat, in either spelling; None if this is no chat."""
        return self._said("text")

    @property
    def mentions(self) -> tuple[str, ...]:
        """Who is mentioned in chat, by name."""
        named = self._chat.get("mentions")
        return tuple(filter(_is_text, named)) if isinstance(named, list) else ()

    @property
    def reply_to(self) -> str | None:
        """The id of the message that this chat answers, if it says so."""
        return self._said("reply_to")

    @property
    def thread_id(self) -> str | None:
        """The thread that this chat belongs to, if it says so."""
        return self._said("thread_id")

    @property
    def replaces(self) -> str | None:
        """The id of the sender's own earlier message that this chat takes the place of."""
        return self._said(chat.REPLACES)

    @property
    def is_deleted(self) -> bool:
        """Whether its sender deleted it, or deletes with it the message that it replaces."""
        return self._chat.get(chat.DELETED) is True

    @property
    def _chat(self) -> dict[str, Any]:
        """The body of chat, in either spelling; empty if this is no chat."""
        base = self.base
        body: Any = None
        if base == "chat.message" or base.startswith("chat.message."):
            body = self.payload
        elif base == CHAT_NOTICE:
            body = self.payload.get("params")
        return body if isinstance(body, dict) else {}

    def _said(self, name: str) -> str | None:
        said = self._chat.get(name)
        return said if isinstance(said, str) else None

    def __repr__(self) -> str:
        """Who and what, never the payload: a message in a log must not tell what was said."""
        return f"{type(self).__name__}(seq={self.seq}, {self.kind}, sender={self.sender!r})"


class Gap(Message, frozen=True, kw_only=True):
    """Messages that were missed and cannot be had again; comes in their place.

    The room goes on after `seq`. Where `reason` is `epoch_changed` the room began anew, and its
    numbers with it.
    """

    after: int = 0
    """The last message before the gap."""
    reason: str = ""
    """`history_gone`, `epoch_changed`, `seq_unknown` or `skipped`."""


def make_gap(after: int, through: int, reason: str) -> Gap:
    """A gap behind `after`; it has the kind `client.gap`, which no hub sends."""
    payload = {"after": after, "through": through, "reason": reason}
    return Gap(
        seq=through,
        id="",
        sender="",
        kind="client.gap",
        payload=payload,
        after=after,
        reason=reason,
    )


class Participant(Struct, frozen=True):
    """Someone who is in the room."""

    id: str
    type: str = "person"
    role: str = "member"
    offers_tools: bool | None = None
    """Whether it says that it answers calls; only `Room.list_participants` knows."""


class ParticipantPage(Struct, frozen=True):
    """Some of those who are in the room, as they are fetched."""

    participants: list[Participant]
    next_cursor: str | None = None
    away: list[Participant] = []


class OfferedTool(Struct, frozen=True):
    """A tool that a participant offers."""

    by: str
    """Whose it is: whom to call."""
    definition: dict[str, Any]
    """As the participant lists it: `name`, `description`, `inputSchema` and so on."""

    @property
    def name(self) -> str:
        return str(self.definition["name"])


class ToolPage(Struct, frozen=True):
    """The tools of participants, as they are fetched."""

    tools: list[dict[str, Any]]
    unanswered: list[str] = []


class HistoryPage(Struct, frozen=True):
    """Some messages of the history, as they are fetched."""

    messages: list[dict[str, Any]]


class Me(Struct, frozen=True):
    """The participant that this program is, with its rights."""

    id: str
    type: str = "person"
    role: str = "member"
    capabilities: tuple[Any, ...] = ()
    """Patterns, and objects where the payload is constrained."""


class HistoryBounds(Struct, frozen=True):
    """Which messages the hub keeps."""

    last_seq: int
    first_seq: int = 1
    enabled: bool = True


class Resumed(Struct, frozen=True):
    """What the hub says of a wish to go on where the last connection ended."""

    complete: bool
    reason: str | None = None


class OpenRequest(Struct, frozen=True):
    """Something that was asked of this program's account and is not answered yet."""

    id: str
    seq: int = 0
    kind: str = ""
    requester: str = ""
    state: str = "waiting"
    """`waiting`: nobody has begun it; `running`: a connection of the account has; `interrupted`:
    one had, and did not come back."""
    message: dict[str, Any] | None = None
    """The request itself, where it was fetched."""


class OpenProposal(Struct, frozen=True):
    """An open proposal of someone else, on which this program may decide."""

    id: str
    seq: int = 0
    kind: str = ""
    proposer: str = ""
    to: tuple[str, ...] = ()
    rejections: int = 0
    reason: str | None = None
    """Why it should be done, where it was fetched and the proposer says so."""
    message: dict[str, Any] | None = None
    """The proposal itself, where it was fetched."""


class Waiting(Struct, frozen=True):
    """What waits for this program: the oldest first, and whether there is more."""

    requests: tuple[OpenRequest, ...] = ()
    proposals: tuple[OpenProposal, ...] = ()
    more: bool = False


class WaitingList(Waiting, frozen=True):
    """A page of what waits for this program, with its messages."""


class ServingState(Struct, frozen=True):
    """Which connection of the account runs what it is asked."""

    you: bool
    connection: str | None = None


class ServingNotice(ServingState, frozen=True):
    """Another connection serves from now on, or something was interrupted."""

    requests: tuple[OpenRequest, ...] = ()
    more: bool = False


class Welcome(Struct, frozen=True):
    """The first message on a connection, and the one after a change of rights."""

    you: Me
    epoch: str
    history: HistoryBounds
    participants: tuple[Participant, ...] = ()
    participants_total: int = 0
    quorum: int = 1
    resume: Resumed | None = None
    serving: ServingState | None = None
    """None from a hub that does not know of it."""
    waiting: Waiting = Waiting()
    credential: str | None = None

    def __repr__(self) -> str:
        """Without the credential."""
        return f"Welcome({self.you.id!r}, epoch={self.epoch!r})"


class Invitation(Struct, frozen=True):
    """How someone enters: with the token of an account, or once with a guest's token."""

    room: str = ""
    handle: str | None = None
    guest: str | None = None
    token: str | None = None
    expires_at: Any = None

    def __repr__(self) -> str:
        """Without the token."""
        return f"Invitation({self.handle or self.guest!r})"


class Progress(Struct, frozen=True):
    """How far a request has come."""

    progress: float
    total: float | None = None
    message: str | None = None


class ToolResult(Struct, frozen=True):
    """What a tool answered."""

    content: tuple[dict[str, Any], ...] = ()
    structured: Any = None

    @property
    def text(self) -> str:
        parts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "\n".join(part for part in parts if isinstance(part, str))


class Received(Struct, frozen=True):
    """A message as the hub sends it; those for one connection alone have no `seq`."""

    kind: str
    id: str
    sender: str = msgspec.field(name="from")
    seq: int | None = None
    ts: str = ""
    to: tuple[str, ...] = ()
    correlation_id: tuple[str, ...] = ()
    context: str | None = None
    payload: dict[str, Any] | None = None

    def __repr__(self) -> str:
        """Without the payload, which may hold a secret."""
        return f"Received({self.kind})"


_decode = msgspec.json.Decoder(Received).decode


def read(data: bytes) -> Received:
    """Read what the hub sent."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise e.AnswerInvalid("The hub sent something that is no message of a room.") from None


def stored(heard: Received, data: bytes) -> Message:
    """A message that has its place in the history."""
    return Message(
        seq=heard.seq or 0,
        id=heard.id,
        sender=heard.sender,
        kind=heard.kind,
        payload=heard.payload or {},
        to=heard.to,
        correlation_id=heard.correlation_id,
        context=heard.context,
        ts=heard.ts,
        raw=data,
    )


def read_welcome(heard: Received) -> Welcome:
    try:
        return msgspec.convert(heard.payload, Welcome)
    except msgspec.ValidationError:
        raise e.AnswerInvalid("The hub's welcome cannot be understood.") from None


def failed(error: Any) -> e.RequestFailed:
    """The JSON-RPC error of an answer as one that can be raised."""
    told = error if isinstance(error, dict) else {}
    words = told.get("message")
    return e.RequestFailed(str(words) if words else "The request failed.", error=told)
