"""A room in lines: what is said is printed as it comes, and what comes on stdin is said."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from folkmoot.cli.output import complain, say
from folkmoot.cli.room.entrance import Entrance
from folkmoot.cli.room.lines import plain, verbatim
from folkmoot.cli.room.look import Looks
from folkmoot.cli.room.mentions import mentioned
from folkmoot.cli.room.stay import Company, before, envelope_of, inside, missing
from folkmoot.cli.room.tellers import may_instead
from folkmoot.cli.room.typed import typed_lines
from folkmoot.cli.text import escape_json
from folkmoot.client import Gap
from folkmoot.core.errors import FolkmootError, RateLimited, ToolRefused

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client import Message, Room

LONGEST_WAIT: Final = 120.0
"""Seconds for which a refusal's wish to be asked later is heeded."""


class Follower:
    """Prints what is said in a room, a line each."""

    def __init__(self, *, as_json: bool) -> None:
        self._looks = Looks()
        self._as_json = as_json
        self.shown = 0
        """The last message that came and was printed."""
        self._before = 0
        """The last one from before that was; it may come again as one of the first."""
        self._until: int | None = None

    async def follow(self, room: Room) -> None:
        """Print all that comes, until the room ends."""
        async for message in room:
            self._print(message)
            if self._until is not None and self.shown >= self._until:
                return

    async def catch_up(self, rest: HubClient, room: Room, after: int) -> None:
        """Print what was said after a number, before we came."""
        expected = after + 1
        async for envelope in before(rest, room.name, after, room.last_seq):
            if envelope["seq"] > expected:
                lost = f"messages {expected} to {envelope['seq'] - 1} are no longer kept"
                complain(lost, kind="warning")
            self._before = envelope["seq"]
            expected = self._before + 1
            self._put(envelope, lambda it: escape_json(_compact(it)))

    def end_at(self, seq: int) -> bool:
        """Print no further than a number; whether that is reached already."""
        self._until = seq
        return self.shown >= seq

    def _print(self, message: Message) -> None:
        if isinstance(message, Gap):
            complain(missing(message), kind="warning")
        elif message.seq > self._before:
            self._put(envelope_of(message), lambda _: verbatim(message.raw))
        # After a gap the numbers may begin anew.
        self._before = 0 if isinstance(message, Gap) else self._before
        self.shown = message.seq

    def _put(self, envelope: dict[str, Any], as_json: Callable[[dict[str, Any]], str]) -> None:
        look = self._looks.look(envelope)
        say(as_json(envelope) if self._as_json else plain(look))


def _compact(envelope: dict[str, Any]) -> str:
    import json

    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


async def tail(name: str, who: Entrance, after: int | None, *, as_json: bool) -> None:
    """Follow a room until the reader is gone."""
    async with inside(name, who) as room:
        follower = Follower(as_json=as_json)
        if after is not None:
            await follower.catch_up(who.client, room, after)
        await Company().until_one_ends(follower.follow(room), reader_gone())


async def converse(name: str, who: Entrance) -> None:
    """Follow a room and say the lines of the standard input, until they end."""
    async with inside(name, who) as room:
        follower = Follower(as_json=False)
        speaker = Speaker(room)

        async def speak() -> None:
            await speaker.speak()
            if not follower.end_at(speaker.said):
                await asyncio.Event().wait()

        await Company().until_one_ends(follower.follow(room), speak(), reader_gone())
    if speaker.refused:
        raise ToolRefused(f"{speaker.refused} of the lines were refused.")


class Speaker:
    """Says lines, one after the other; waits where the hub asks for it."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.said = 0
        self.refused = 0

    async def speak(self) -> None:
        """Say the lines of the standard input to their end."""
        if sys.stdin is None:
            return
        async for line in typed_lines(sys.stdin.fileno()):
            try:
                await self._say(line)
            except FolkmootError as error:
                self.refused += 1
                complain(*refused(error))

    async def _say(self, line: str) -> None:
        whom = mentioned(line, self._room.participants)
        while True:
            try:
                self.said = (await self._room.say(line, mentions=whom)).seq
            except RateLimited as error:
                wait = error.data.get("retry_after")
                if not isinstance(wait, int | float) or not 0 <= wait <= LONGEST_WAIT:
                    raise
                complain(f"{error.message} Waiting.", kind="warning")
                await asyncio.sleep(wait)
            else:
                return


def refused(error: FolkmootError) -> list[str]:
    """A refusal in lines: why, and what is allowed."""
    return [error.message, *may_instead(error.code, error.data)]


async def reader_gone() -> None:
    """Wait until nobody reads our output any more; for ever where that cannot be told."""
    gone = asyncio.Event()
    descriptor = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        await gone.wait()
    loop = asyncio.get_running_loop()
    # The writing end of a pipe is never readable, unless its reader is gone.
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
    raise BrokenPipeError
