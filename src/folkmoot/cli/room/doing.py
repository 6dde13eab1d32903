"""What someone at the live view can do: say something, decide, and the commands of the input line.

What is sent is sent beside everything else, so that typing never waits for the hub; what the hub
refuses is shown with what is allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import uuid4

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from folkmoot.cli.asking import checked_handle
from folkmoot.cli.room import slash
from folkmoot.cli.room.deciding import Deciding, Waiting, numbered
from folkmoot.cli.room.draw import DIM, draw, participant
from folkmoot.cli.room.fulfilment import doer, fulfilment
from folkmoot.cli.room.look import Look, look, note
from folkmoot.cli.room.mentions import mentioned
from folkmoot.cli.room.screen import Screen
from folkmoot.cli.room.status import Situation, fitting
from folkmoot.cli.room.stay import Company
from folkmoot.cli.room.tellers import allowed
from folkmoot.client import Room
from folkmoot.core.errors import FolkmootError, RoomLeft

Sending: TypeAlias = Callable[[], Awaitable[Any]]

INVITE: Final = "room.invite"
AT_ONCE: Final = 64
"""Messages that may be on their way before more are refused here."""
BESIDE: Final = 30
"""Columns that what a command does needs beside how it is written."""


class Question(Struct, frozen=True):
    """Something the input line asks; `answered` gets what is typed."""

    prompt: str
    answered: Callable[[str], None]


class Doing:
    """The hands of someone in a room."""

    def __init__(self, room: Room, screen: Screen, company: Company, now: Situation) -> None:
        self._room = room
        self._screen = screen
        self._company = company
        self._now = now
        self.deciding = Deciding(room.me.id)
        self.question: Question | None = None

    def show(self, seen: Look) -> None:
        """Let the transcript go on with a message."""
        self._screen.print(lambda screen: draw(screen, seen, self._room.me.id))

    def note(self, text: str) -> None:
        """Let it go on with something nobody said."""
        told = note(text, present_moment())
        self._screen.print(lambda screen: draw(screen, told, ""))

    def line(self, text: str) -> None:
        """A line was typed: an answer, a command, or something to be said."""
        question, self.question = self.question, None
        if not text.strip():
            return
        if question is not None:
            question.answered(text.strip())
            return
        try:
            self._obey(*slash.read(text))
        except slash.Misused as error:
            self.note(str(error))

    def _obey(self, name: str, rest: str) -> None:
        if not name:
            whom = mentioned(rest, self._room.participants)
            self._send(partial(self._room.say, rest, mentions=whom))
        elif name in LOCAL:
            LOCAL[name](self, rest)
        else:
            made = slash.sending(name, rest)
            if made.kind == INVITE:
                # The hub answers only the inviter whether it could be done.
                self._send(partial(self._room.invite, made.payload["handle"]))
                return
            self._send(partial(self._room.send, made.kind, made.payload, to=made.to))

    def choose(self, key: str) -> bool:
        """A key was pressed on an empty line; whether it meant something."""
        if self.question is not None:
            return False
        if key == "tab":
            self._next()
            return True
        if self.deciding.shown is None:
            return False
        CHOICES[key](self, self.deciding.shown)
        return True

    def escape(self) -> bool:
        """Out of a question, or away from a proposal; whether there was one."""
        if self.question is None and self.deciding.shown is None:
            return False
        if self.question is not None:
            self.question = None
            self._screen.clear_input()
        else:
            self.deciding.hide()
        return True

    def _next(self, _: Waiting | None = None) -> None:
        shown = self.deciding.next()
        if shown and not fitting(shown, self._screen.width, self._screen.height)[1]:
            self.show(shown.look)

    def _approve(self, shown: Waiting, whom: str | None = None) -> None:
        number = shown.look.seq
        if shown.look.cut:
            self.note(
                f"Proposal #{number} is too long to be shown whole. 'folkmoot room proposals "
                f"{self._room.name} --json' shows it, and 'folkmoot room approve' approves it."
            )
            return
        target = doer(shown.envelope, whom)
        if target is None:
            self.question = Question(
                f"Who is to do #{number}? ",
                lambda typed: self._approve(shown, checked_handle(typed)),
            )
            return
        made = fulfilment(shown.envelope, target, uuid4().hex)
        kind, payload = made.pop("kind"), made.pop("payload")
        self.deciding.hide()
        self._send(partial(self._room.send, kind, payload, **made))

    def _reject(self, shown: Waiting) -> None:
        def answered(reason: str) -> None:
            self.deciding.hide()
            self._send(partial(self._room.reject, shown.id, reason))

        self.question = Question(f"Why not #{shown.look.seq}? ", answered)

    def _approve_typed(self, rest: str) -> None:
        which, _, whom = rest.partition(" ")
        self._approve(self._waiting("approve", which), checked_handle(whom) or None)

    def _reject_typed(self, rest: str) -> None:
        which, _, reason = rest.partition(" ")
        shown = self._waiting("reject", which)
        if not reason.strip():
            raise slash.misused("reject")
        self._send(partial(self._room.reject, shown.id, reason.strip()))

    def _withdraw_typed(self, rest: str) -> None:
        number = slash.proposal_number("withdraw", rest)
        mine = numbered(self.deciding.mine, number)
        if mine is None:
            raise slash.Misused(f"No proposal #{number} of yours waits for a decision.")
        self._send(partial(self._room.withdraw, mine.id))

    def _waiting(self, command: str, which: str) -> Waiting:
        number = slash.proposal_number(command, which)
        waiting = numbered(self.deciding, number)
        if waiting is None:
            raise slash.Misused(f"No proposal #{number} waits for your decision.")
        return waiting

    def _help(self, _: str) -> None:
        width = max(len(it.usage) for it in slash.SLASHES.values())
        wide = self._screen.width >= width + BESIDE

        def commands(screen: Console) -> None:
            for it in slash.SLASHES.values():
                usage = it.usage.ljust(width + 2) if wide else f"{it.usage}\n  "
                screen.print(Text.assemble(usage, (it.what, DIM)))
            screen.print(Text(slash.ABOUT_TAB, DIM))

        self._screen.print(commands)

    def _who(self, _: str) -> None:
        def everyone(screen: Console) -> None:
            for it in sorted(self._room.participants.values(), key=lambda who: who.id):
                screen.print(Text.assemble(participant(it.id), (f"  {it.type}, {it.role}", DIM)))

        self._screen.print(everyone)
        self.note(f"You may: {allowed(list(self._room.me.capabilities))}")

    def _quit(self, _: str) -> None:
        self._screen.leave()

    def _send(self, send: Sending) -> None:
        if self._now.waiting >= AT_ONCE:
            self.note("Too much waits to be sent; try again in a moment.")
            return
        self._now.waiting += 1
        self._company.also(self._sent(send))

    async def _sent(self, send: Sending) -> None:
        try:
            await send()
        except RoomLeft:
            pass
        except FolkmootError as error:
            self.show(look(refusal(error)))
        finally:
            self._now.waiting -= 1
            self._screen.refresh()


LOCAL: Final[dict[str, Callable[[Doing, str], None]]] = {
    "help": Doing._help,
    "who": Doing._who,
    "approve": Doing._approve_typed,
    "reject": Doing._reject_typed,
    "withdraw": Doing._withdraw_typed,
    "quit": Doing._quit,
}
"""Commands that do more than send one message."""

CHOICES: Final[dict[str, Callable[[Doing, Waiting], None]]] = {
    "a": Doing._approve,
    "r": Doing._reject,
    "n": Doing._next,
}
"""What the letters do with the proposal that is shown."""


def present_moment() -> str:
    """Now, as messages have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def refusal(error: FolkmootError) -> dict[str, Any]:
    """A refusal as the hub tells it."""
    payload = {**error.data, "error": error.code, "message": error.message}
    moment = present_moment()
    return {"kind": "system.error", "from": "gateway", "ts": moment, "payload": payload}
