"""An agent that says again what is said to it, and offers a tool that does the same.

    FOLKMOOT_TOKEN=sk_… python examples/echo_agent.py --url http://127.0.0.1:8420 --room square

It answers chat that names it, as recipient or in the mentions, and never its own words.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from folkmoot.client import Context, FolkmootError, Gap, Message, RateLimited, Room


def means(message: Message, me: str) -> bool:
    """Whether a message is chat for this agent."""
    mentions = message.payload.get("mentions") or ()
    is_named = me in message.to or me in mentions
    return message.text is not None and is_named and message.sender != me


async def answer(room: Room, message: Message) -> None:
    """Say it again; when that was too much, wait as long as the hub asks for."""
    text = f"{message.sender} said: {message.text}"
    while True:
        try:
            await room.say(text, to=message.sender, reply_to=message.id)
        except RateLimited as refused:
            await asyncio.sleep(refused.data["retry_after"])
        else:
            return


async def echo(url: str, name: str, token: str) -> None:
    """Come in, and answer until told to stop."""
    room = Room(url, room=name, token=token)

    @room.tool(name="echo")
    def say_again(text: str, ctx: Context) -> dict[str, str]:
        """Answers with the words it was called with."""
        return {"text": text, "from": ctx.caller}

    async with room:
        print(f"{room.me.id} is in {name}.", flush=True)
        async for message in room:
            if isinstance(message, Gap):
                print(f"Messages up to {message.seq} were missed.", file=sys.stderr)
            elif means(message, room.me.id):
                await answer(room, message)


def main() -> int:
    """Read the options and run until Ctrl-C."""
    parser = argparse.ArgumentParser(description="An agent that says again what is said to it.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--room", required=True, help="the room's name")
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the agent's token")
    try:
        asyncio.run(echo(options.url, options.room, token))
    except KeyboardInterrupt:
        pass
    except (FolkmootError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
