"""A coordinator: those who may not chat call its tool `chat.say`, and it speaks for them.

    FOLKMOOT_TOKEN=sk_… python examples/coordinator.py --room square --ban darn --per-minute 10

It refuses words it was told to, and more words than one may say in a minute; what is left it sends
to everyone as `notifications/chat/message`. `examples/README.md` shows the room this is made for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections import defaultdict, deque
from typing import Any, Literal

from folkmoot.client import Context, FolkmootError, Room, ToolFailed

MINUTE = 60.0
METHOD = "notifications/chat/message"


class Moderator:
    """Says no to unwanted words and to too many of them."""

    def __init__(self, banned: list[str], per_minute: int) -> None:
        words = "|".join(map(re.escape, banned))
        self._banned = re.compile(rf"\b(?:{words})\b", re.IGNORECASE) if words else None
        self._per_minute = per_minute
        self._said: defaultdict[str, deque[float]] = defaultdict(deque)

    def check(self, caller: str, text: str) -> None:
        """Raise what the caller is to be told, or count one more."""
        if not text.strip():
            raise ToolFailed("There is nothing to say.")
        if self._banned is not None and self._banned.search(text):
            raise ToolFailed("That is not a word for this room.")
        now, said = time.monotonic(), self._said[caller]
        while said and now - said[0] >= MINUTE:
            said.popleft()
        if len(said) >= self._per_minute:
            wait = MINUTE - (now - said[0])
            raise ToolFailed(f"That was a lot in a minute. Try again in {wait:.0f} seconds.")
        said.append(now)

    def forget(self, present: set[str]) -> None:
        """Keep no count of those who have left and have been silent since."""
        now = time.monotonic()
        for caller in [name for name in self._said if name not in present]:
            if not self._said[caller] or now - self._said[caller][-1] >= MINUTE:
                del self._said[caller]


async def coordinate(url: str, name: str, token: str, moderator: Moderator) -> None:
    """Come in, and speak for others until told to stop."""
    room = Room(url, room=name, token=token)

    @room.tool(name="chat.say")
    async def say(
        text: str,
        moderated_by: str,
        ctx: Context,
        format: Literal["plain", "markdown"] = "plain",  # noqa: A002 - the word of the protocol
        thread_id: str | None = None,
        reply_to: str | None = None,
        mentions: list[str] | None = None,
    ) -> dict[str, str]:
        """Say something to everyone in the room, if the coordinator lets it pass."""
        if moderated_by != room.me.id:
            raise ToolFailed(f"moderated_by must be {room.me.id}.")
        moderator.forget(set(room.participants))
        moderator.check(ctx.caller, text)
        body: dict[str, Any] = {"text": f"{ctx.caller}: {text}", "format": format}
        body |= {"on_behalf_of": ctx.caller}
        more = {"thread_id": thread_id, "reply_to": reply_to, "mentions": mentions}
        body |= {member: value for member, value in more.items() if value is not None}
        payload = {"jsonrpc": "2.0", "method": METHOD, "params": body}
        sent = await room.send(f"mcp.notification.{METHOD}", payload, correlation_id=ctx.request.id)
        return {"status": "broadcasted", "id": sent.id}

    async with room:
        print(f"{room.me.id} coordinates {name}.", flush=True)
        await room.run()


def main() -> int:
    """Read the options and run until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Speaks for those who may not chat.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--room", required=True, help="the room's name")
    parser.add_argument("--ban", action="append", default=[], help="a word not to be said")
    parser.add_argument("--per-minute", type=int, default=10, help="how much one may say")
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the coordinator's token")
    moderator = Moderator(options.ban, options.per_minute)
    try:
        asyncio.run(coordinate(options.url, options.room, token, moderator))
    except KeyboardInterrupt:
        pass
    except (FolkmootError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
