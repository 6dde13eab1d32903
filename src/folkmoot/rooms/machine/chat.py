"""Chat in a room: what is chat, how often it may be said, and the tool that says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from folkmoot.core import chat, strict
from folkmoot.core.errors import PayloadInvalid, RateLimited
from folkmoot.core.message import JSONRPC
from folkmoot.ratelimits import Limit, TokenBuckets, in_words, named

MOST_BUCKETS: Final = 100_000

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


def check_body(body: dict[str, Any]) -> None:
    """Refuse what a chat's optional members may not be; the core has seen to text and format."""
    if len(body) == 1 + ("format" in body):
        return
    for name in _OPTIONAL:
        if type(body.get(name, "")) is not str:
            raise PayloadInvalid(f"The {name} of a chat message must be a string.")
    mentions = body.get("mentions", [])
    if type(mentions) is not list or not all(type(name) is str for name in mentions):
        raise PayloadInvalid("The mentions of a chat message must be a list of names.")


def check_arguments(arguments: Any) -> dict[str, Any]:
    """The arguments of `chat.say`, which takes no others than it says."""
    chat.check_body(arguments)
    check_body(arguments)
    unknown = arguments.keys() - SAY["inputSchema"]["properties"].keys()
    if unknown:
        raise PayloadInvalid(f"{chat.TOOL} takes no argument {min(unknown)[:64]}.")
    return dict(arguments)


def notification(arguments: dict[str, Any]) -> dict[str, Any]:
    """The payload that is broadcast for someone who called `chat.say`."""
    return {"jsonrpc": JSONRPC, "method": chat.METHOD, "params": arguments}


def said(id_: str) -> dict[str, Any]:
    """The result of `chat.say`, as a tool's result."""
    answer = {"status": "broadcasted", "id": id_}
    text = strict.encode(answer).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": answer}


class ChatRates:
    """How much each account said lately, however it was spelled and on whichever connection.

    A bucket holds as many messages as a limit names and fills up again in the limit's time, so a
    burst passes and a flood does not. It outlives a connection: to leave and come back gains
    nothing.
    """

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets = TokenBuckets[str](MOST_BUCKETS)

    def take(self, account: str, limit: Limit | None, now: float) -> None:
        """Count one more, or raise `RateLimited` with the time to wait."""
        if limit is None:
            return
        seconds = self._buckets.take(account, limit.most, limit.seconds / limit.most, now)
        if seconds:
            sentence = f"You are sending messages too fast. Try again in {in_words(seconds)}."
            raise RateLimited(sentence + named(limit.setting), retry_after=seconds)
