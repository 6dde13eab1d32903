"""Chat in a room, the tool that sends it, and how fast a participant may send anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from folkmoot.core import chat, strict
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.mcpx import Identifier
from folkmoot.core.message import JSONRPC
from folkmoot.core.tokenbuckets import TokenBuckets
from folkmoot.ratelimits import AccountRates, Limit, Rate, rate_limited

SAY_KIND: Final = f"mcp.request.tools/call:{chat.TOOL}"
NOTIFIED_KIND: Final = f"mcp.notification.{chat.METHOD}"

_STRING: Final = {"type": "string"}
SAY: Final[Mapping[str, Any]] = {
    "name": chat.TOOL,
    "description": "Say something to everyone in the room.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": _STRING,
            "format": {"enum": list(chat.FORMATS)},
            "thread_id": _STRING,
            "reply_to": _STRING,
            "mentions": {"type": "array", "items": _STRING},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
}
"""The tool `chat.say`, as the gateway lists it."""

_OPTIONAL: Final = ("thread_id", "reply_to")


class PlainBody(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The payload of plain chat: a text, and perhaps its format."""

    text: Annotated[str, Meta(min_length=1)]
    format: Literal["plain", "text", "markdown"] | UnsetType = UNSET


@strict.learnt
class PlainChat(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A chat message with nothing that could need a closer look; reading it checks all of it."""

    protocol: Literal["mcpx/v1"]
    kind: Literal["chat.message"]
    payload: PlainBody
    id: Identifier | None = None


PLAIN_VALUES: Final = 8
"""More values than plain chat has."""
PLAIN_KINDS: Final[Mapping[Any, Kind]] = {UNSET: parse("chat.message"), **chat.SHORT}
"""The effective kind by the format."""

_read_plain = msgspec.json.Decoder(PlainChat).decode
_encode = msgspec.json.Encoder().encode
_ID_BYTES: Final = len(',"id":""')
_FIXED_BYTES: Final = {
    format_: len(_encode(PlainChat("mcpx/v1", "chat.message", PlainBody("", format_))))
    for format_ in PLAIN_KINDS
}
"""The length of plain chat without its text, by the format."""


def read_plain(raw: bytes) -> PlainChat | None:
    """A message as plain chat; None where it is anything else, or not certain to be.

    No string is longer than in its JSON, nor made longer by encoding it: so where the lengths are
    the same nothing was left out, no duplicate, no null and no blank, and the bytes can be passed
    on as they are. They are first compared without encoding, as it is with most strings.
    """
    try:
        said = _read_plain(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    body, id_ = said.payload, said.id
    text = body.text
    size = _FIXED_BYTES[body.format] + len(text)
    if id_ is not None:
        if not id_.isprintable():
            return None
        size += _ID_BYTES + len(id_)
    if (size != len(raw) and len(_encode(said)) != len(raw)) or text.isspace():
        return None
    return said


def check_body(body: dict[str, Any]) -> None:
    """Refuse what a chat's optional members may not be; the core has seen to text and format."""
    if len(body) == 1 + ("format" in body):
        return
    for name in _OPTIONAL:
        if type(body.get(name, "")) is not str:
            raise e.PayloadInvalid(f"The {name} of a chat message must be a string.")
    if type(body.get(chat.REPLACES, "")) is not str:
        raise e.PayloadInvalid("The replaces of a chat message must be the id of one.")
    if body.get(chat.DELETED, True) is not True or (chat.DELETED in body) > (chat.REPLACES in body):
        raise e.PayloadInvalid('The deleted of a chat message is true, beside "replaces".')
    mentions = body.get("mentions", [])
    if type(mentions) is not list or not all(type(name) is str for name in mentions):
        raise e.PayloadInvalid("The mentions of a chat message must be a list of names.")


def check_arguments(arguments: Any) -> dict[str, Any]:
    """The arguments of `chat.say`, which takes no others than it says."""
    try:
        chat.check_body(arguments)
        check_body(arguments)
    except e.KindError as error:
        raise e.ParamsInvalid(error.message) from None
    unknown = arguments.keys() - SAY["inputSchema"]["properties"].keys()
    if unknown:
        raise e.ParamsInvalid(f"{chat.TOOL} takes no argument {min(unknown)[:64]}.")
    return dict(arguments)


def notification(arguments: dict[str, Any]) -> dict[str, Any]:
    """The payload broadcast for a call of `chat.say`."""
    return {"jsonrpc": JSONRPC, "method": chat.METHOD, "params": arguments}


def said(id_: str) -> dict[str, Any]:
    """The result of `chat.say`, as a tool's result."""
    answer = {"status": "broadcasted", "id": id_}
    text = strict.encode(answer).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": answer}


class ChatRates(Entity):
    """How much each account said lately, however it was spelled and on whichever connection.

    A bucket holds as many messages as a limit names and fills up again in the limit's time, so a
    burst passes and a flood does not. It outlives a connection: to leave and come back gains
    nothing.
    """

    _buckets: TokenBuckets[str] = field(default_factory=TokenBuckets)

    def take(self, account: str, limit: Limit | None, now: float) -> None:
        """Count one more, or raise `RateLimited` with the time to wait."""
        if limit is None:
            return
        if wait := self._buckets.take(account, limit.most, limit.seconds, now):
            raise rate_limited("You are sending messages too fast.", wait, limit.setting)

    def take_whole(self, account: str, limit: Limit | None, count: int, now: float) -> bool:
        """Count so many more together, if none of them is too much."""
        return limit is None or self._buckets.take_whole(
            account, limit.most, limit.seconds, now, count
        )

    def give_back(self, account: str, limit: Limit | None, count: int) -> None:
        """Count so many less: they are counted one by one instead."""
        if limit is not None:
            self._buckets.give_back(account, limit.most, count)


ANSWERS: Final = ("mcp.response.", "mcp.notification.notifications/progress", "mcpx.begin.")
"""How the kinds begin that need an open request."""


class Rates(Struct, frozen=True):
    """The rates of a room, for each participant alone."""

    sent: Rate
    """Of what a participant begins."""
    answers: Rate
    """Of answers and progress, which others asked for."""


class SendRates(Entity):
    """How much each account sent lately, on whichever connection and by whichever transport."""

    _sent: AccountRates = field(default_factory=AccountRates)
    _answers: AccountRates = field(default_factory=AccountRates)

    def take(self, account: str, rates: Rates, base: str, size: int, now: float) -> None:
        """Count a message of a kind, or raise `RateLimited` with the time to wait."""
        if base.startswith(ANSWERS):
            self._answers.take(account, rates.answers, size, now)
        else:
            self._sent.take(account, rates.sent, size, now)

    def take_whole(self, account: str, rates: Rates, count: int, size: int, now: float) -> bool:
        """Count messages that a participant begins together, if none exceeds the rate."""
        return self._sent.take_whole(account, rates.sent, count, size, now)
