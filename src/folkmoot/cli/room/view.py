"""The live view: someone at a terminal, in a room. What comes is drawn above the input line."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from folkmoot.cli.room.actions import RoomActions
from folkmoot.cli.room.follow import (
    LinkedTasks,
    envelope_of,
    in_thread,
    inside,
    missing,
)
from folkmoot.cli.room.messages import Looks
from folkmoot.cli.room.options import Entrance, proposed
from folkmoot.cli.room.proposals import Holder, WaitingProposals
from folkmoot.cli.room.screen import NameCompleter, Screen, Situation, card, status_line
from folkmoot.cli.room.sentences import allowed, new_in
from folkmoot.client import Gap, Message, Room
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient


BACKLOG: Final = 30
"""Messages from before that are shown to one who comes in."""
LOOK_SECONDS: Final = 0.2
ENDS: Final = (signal.SIGTERM, signal.SIGHUP)


async def live(name: str, who: Entrance) -> None:
    """Be in a room at a terminal, until one leaves."""
    async with inside(name, who) as room:
        await LiveView(room, who.client).run()


class LiveView:
    """One person in one room, at one terminal."""

    def __init__(self, room: Room, rest: HubClient) -> None:
        self._room = room
        self._rest = rest
        self._looks = Looks()
        self._now = Situation(room.name, room.me.id, len(room.participants))
        self._company = LinkedTasks()
        self._holder = Holder(lambda: room.me.capabilities)
        self._screen = Screen(self, NameCompleter(self._names, self._holder))
        self._doing = RoomActions(room, self._screen, self._company, self._now, self._holder)
        self._rights = room.me.capabilities
        self._away: list[str] = []
        self._shown = 0
        """The last message from before that was shown; it may come again as one of the first."""

    async def run(self) -> None:
        """Be at the terminal until one leaves, or the room ends."""
        await self._begin()
        loop = asyncio.get_running_loop()
        for each in ENDS:
            loop.add_signal_handler(each, self._screen.leave)
        try:
            await self._company.until_one_ends(self._at_terminal(), self._follow(), self._watch())
        finally:
            for each in ENDS:
                loop.remove_signal_handler(each)

    async def _at_terminal(self) -> None:
        # The terminal may be closed behind our back.
        with suppress(EOFError):
            await self._screen.run()

    async def _begin(self) -> None:
        """Show what was said lately, and find what waits for a decision."""
        room, name = self._room, self._room.name
        page = await in_thread(
            lambda: self._rest.read_messages(name, before=room.last_seq + 1, limit=BACKLOG)
        )
        for envelope in page.messages:
            seen = self._looks.look(envelope)
            self._doing.show(seen)
            self._doing.see(envelope)
            self._shown = seen.seq or self._shown
        await self._find_waiting()
        self._away = [who.id for who in await room.list_away()]
        found = await asyncio.to_thread(self._rest.get_room, name)
        new = f" New: {new_in(found)}." if found.unread else ""
        self._doing.note(f"You are {room.me.id} in {name}.{new} /help lists what you can type.")

    def _names(self) -> set[str]:
        return {*self._room.participants, *self._away}

    async def _find_waiting(self) -> None:
        found = await in_thread(lambda: proposed(self._rest, self._room.name, "open"))
        room = await in_thread(lambda: self._rest.get_room(self._room.name))
        self._doing.deciding = deciding = WaitingProposals(
            self._room.me.id, room.policy.quorum, self._holder
        )
        for proposal in reversed(found):
            if proposal.message:
                deciding.see(proposal.message)

    async def _follow(self) -> None:
        async for message in self._room:
            await self._receive(message)

    async def _receive(self, message: Message) -> None:
        if isinstance(message, Gap):
            lost = missing(message)
            self._doing.note(f"{lost[0].upper()}{lost[1:]}.")
            # After a gap the numbers may start again.
            self._shown = 0
            with suppress(e.FolkmootError):
                await self._find_waiting()
        elif message.seq > self._shown:
            envelope = envelope_of(message)
            self._doing.show(self._looks.look(envelope))
            self._doing.see(envelope)
            self._doing.deciding.see(envelope)
            self._doing.toolbox.see(envelope)
        self._now.here = len(self._room.participants)
        self._screen.refresh()

    async def _watch(self) -> None:
        """Tell of what no message tells: the connection, and one's own rights."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            live = self._room.is_connected
            if live is not self._now.live:
                self._now.live = live
                self._doing.note("The connection is back." if live else "The connection is lost.")
            if self._room.me.capabilities != self._rights:
                self._rights = self._room.me.capabilities
                self._doing.note(f"You can now: {allowed(list(self._rights))}")
            here = len(self._room.participants)
            if here != self._now.here:
                self._now.here = here
                self._screen.refresh()

    def prompt(self) -> str:
        """What stands before the input."""
        question = self._doing.question
        return question.prompt if question else f"{self._room.me.id}> "

    def status(self, width: int) -> StyleAndTextTuples:
        return status_line(self._now, self._doing.deciding, width)

    def card(self, width: int, height: int) -> StyleAndTextTuples:
        """The proposal that is to be decided."""
        return card(self._doing.deciding, width, height)

    def enter(self, text: str) -> None:
        """A line was typed."""
        self._doing.line(text)

    def typing(self, text: str) -> None:
        """Whoever types something else looks at no proposal: a letter of it must decide nothing."""
        if text and self._doing.question is None:
            self._doing.deciding.hide()

    def key(self, name: str) -> bool:
        """Tab shows the next proposal; the letters decide on the one that is shown."""
        return self._doing.choose(name)

    def escape(self) -> bool:
        """Out of a question, or away from a proposal."""
        return self._doing.escape()
