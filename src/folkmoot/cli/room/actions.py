"""What someone at the live view can do: say something, decide, and the commands of the input line.

What is sent is sent beside everything else, so that typing never waits for the hub; what the hub
refuses is shown with what is allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeAlias
from uuid import uuid4

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from folkmoot.cli.credentials import checked_handle
from folkmoot.cli.limits import MAX_UNSENT
from folkmoot.cli.options import ArgumentMistake, read_arguments, usage
from folkmoot.cli.output import one_line
from folkmoot.cli.room import slash
from folkmoot.cli.room.draw import DIM, INDENT, draw, hung, participant
from folkmoot.cli.room.follow import LinkedTasks
from folkmoot.cli.room.messages import Look, look, mentioned, note, replaced
from folkmoot.cli.room.proposals import (
    Holder,
    WaitingProposal,
    WaitingProposals,
    doer,
    fulfilment,
    numbered,
)
from folkmoot.cli.room.screen import Screen, Situation, fitting, offered_keys
from folkmoot.cli.room.sentences import allowed
from folkmoot.cli.room.slash import Toolbox
from folkmoot.client import OfferedTool, Room
from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.mcp.wire import TOOLS_CALL

Sending: TypeAlias = Callable[[], Awaitable[Any]]

INVITE: Final = "room.invite"
SAID: Final = chat.PATTERNS[:2]
MAX_OWN: Final = 200
"""Messages of one's own that can be edited by their numbers."""
DEEP: Final = Text("    ")
"""In front of the lines of a tool but the first."""
BESIDE: Final = 30
"""Columns that what a command does needs beside how it is written."""


class TerminalQuestion(Struct, frozen=True):
    """Something the input line asks; `answered` gets what is typed."""

    prompt: str
    answered: Callable[[str], None]


class RoomActions:
    """The hands of someone in a room."""

    def __init__(
        self, room: Room, screen: Screen, company: LinkedTasks, now: Situation, holder: Holder
    ) -> None:
        self._room = room
        self._screen = screen
        self._company = company
        self._now = now
        self._holder = holder
        self._raw = False
        self.deciding = WaitingProposals(room.me.id, holder=holder)
        self.toolbox = Toolbox(room)
        self.question: TerminalQuestion | None = None
        self._own: dict[str, str] = {}

    def show(self, seen: Look) -> None:
        """Let the transcript go on with a message."""
        self._screen.print(lambda screen: draw(screen, seen, self._room.me.id, raw=self._raw))

    def see(self, envelope: Mapping[str, Any]) -> None:
        """Remember what one said oneself, by its number."""
        kind, me = str(envelope.get("kind")), self._room.me.id
        if envelope.get("from") == me and kind.startswith(SAID) and not replaced(envelope):
            self._own[str(envelope["seq"])] = str(envelope["id"])
            if len(self._own) > MAX_OWN:
                del self._own[next(iter(self._own))]

    def note(self, text: str) -> None:
        """Add a note of the program itself to the conversation."""
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
        if key not in offered_keys(self.deciding, self.deciding.shown):
            return True
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

    def _next(self, _: WaitingProposal | None = None) -> None:
        shown = self.deciding.next()
        if shown and not fitting(shown, self._screen.width, self._screen.height)[1]:
            self.show(shown.look)

    def _approve(self, shown: WaitingProposal, whom: str | None = None) -> None:
        number = shown.look.seq
        if shown.look.cut:
            self.note(
                f"Proposal #{number} is too long to be shown in full. 'folkmoot room proposals "
                f"{self._room.name} --json' shows it, and 'folkmoot room approve' approves it."
            )
            return
        target = doer(shown.envelope, whom)
        if target is None:
            self.question = TerminalQuestion(
                f"Who should do #{number}? ",
                lambda typed: self._approve(shown, checked_handle(typed)),
            )
            return
        made = fulfilment(shown.envelope, target, uuid4().hex)
        kind, payload = made.pop("kind"), made.pop("payload")
        self.deciding.hide()
        self._send(partial(self._room.send, kind, payload, **made))

    def _reject(self, shown: WaitingProposal) -> None:
        def answered(reason: str) -> None:
            self.deciding.hide()
            self._send(partial(self._room.reject, shown.id, reason))

        self.question = TerminalQuestion(f"Why not #{shown.look.seq}? ", answered)

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
            raise slash.Misused(f"You have no open proposal #{number}.")
        self._send(partial(self._room.withdraw, mine.id))

    def _edit_typed(self, rest: str) -> None:
        id_, text = self._mine(rest)
        if not text:
            raise slash.misused("edit")
        whom = mentioned(text, self._room.participants)
        self._send(partial(self._room.say, text, mentions=whom, replaces=id_))

    def _delete_typed(self, rest: str) -> None:
        id_, more = self._mine(rest)
        if more:
            raise slash.misused("delete")
        self._own = {number: each for number, each in self._own.items() if each != id_}
        self._send(partial(self._room.delete, id_))

    def _mine(self, rest: str) -> tuple[str, str]:
        """The id of the message of one's own that is meant, and what else was typed."""
        if not rest.startswith("#"):
            if not self._own:
                raise slash.Misused("You have said nothing here yet.")
            return next(reversed(self._own.values())), rest
        number, _, rest = rest[1:].partition(" ")
        if number not in self._own:
            raise slash.Misused(f"#{number} is none of the last messages you wrote.")
        return self._own[number], rest.strip()

    def _waiting(self, command: str, which: str) -> WaitingProposal:
        number = slash.proposal_number(command, which)
        waiting = numbered(self.deciding.all, number)
        if waiting is None:
            raise slash.Misused(f"There is no open proposal #{number}.")
        return waiting

    def _tools_typed(self, rest: str) -> None:
        self._send(partial(self._list_tools, checked_handle(rest) or None))

    async def _list_tools(self, who: str | None) -> None:
        listing = await self.toolbox.tools(who)
        if listing.refusal is not None and not listing.offers:
            raise listing.refusal
        if listing.offers:
            self._screen.print(lambda screen: draw_tools(screen, listing.offers))
        elif not listing.silent:
            nobody = "Nobody here offers tools."
            self.note(nobody if who is None else f"{one_line(who)} offers no tools.")
        if listing.silent:
            self.note(f"No answer from {', '.join(map(one_line, listing.silent))}.")

    def _call_typed(self, rest: str) -> None:
        self._send(partial(self._call, slash.read_asked("call", rest)))

    async def _call(self, asked: slash.TypedCall) -> None:
        """Call a tool; without the right to call it, propose the call."""
        to, schema = await self.toolbox.find(asked.name, asked.to)
        arguments = read_arguments(asked.words, schema)
        made = slash.as_message("mcp.request", TOOLS_CALL, asked.name, arguments)
        try:
            await self._room.send(made.kind, {**made.payload, "id": uuid4().hex}, to=to)
        except e.ProposalRequired:
            await self._propose_call(asked.name, arguments, to)

    async def _propose_call(self, tool: str, arguments: dict[str, Any], to: str) -> None:
        made = slash.proposal(TOOLS_CALL, tool, arguments)
        sent = await self._room.send(made.kind, made.payload, to=to)
        self.note(f"You can't call {one_line(tool)} yourself, so it was proposed as #{sent.seq}.")

    def _propose_typed(self, rest: str) -> None:
        self._send(partial(self._propose, slash.read_asked("propose", rest)))

    async def _propose(self, asked: slash.TypedCall) -> None:
        method, context = slash.method_of(asked.name)
        schema = None
        if method == TOOLS_CALL and asked.words and not asked.words[0].startswith("{"):
            with suppress(e.ToolRefused):
                schema = (await self.toolbox.find(context or "", asked.to))[1]
        made = slash.proposal(method, context, read_arguments(asked.words, schema))
        await self._room.send(made.kind, made.payload, to=asked.to or ())

    def _raw_typed(self, _: str) -> None:
        self._raw = not self._raw
        how = "with their kinds" if self._raw else "in words"
        self.note(f"Messages are shown {how} from now on.")

    def _help(self, _: str) -> None:
        offered = slash.offered(self._holder)
        width = max(len(it.usage) for it in offered.values())
        wide = self._screen.width >= width + BESIDE

        def commands(screen: Console) -> None:
            for it in offered.values():
                what, usage = Text(it.what, DIM), Text(it.usage.ljust(width + 2))
                if wide:
                    screen.print(hung(screen, what, usage, first=usage), soft_wrap=True)
                else:
                    screen.print(Text(it.usage))
                    screen.print(hung(screen, what, INDENT, first=INDENT), soft_wrap=True)
            if slash.DECIDING & offered.keys():
                screen.print(Text(slash.ABOUT_TAB, DIM))

        self._screen.print(commands)

    def _who(self, _: str) -> None:
        def everyone(screen: Console) -> None:
            for it in sorted(self._room.participants.values(), key=lambda who: who.id):
                screen.print(Text.assemble(participant(it.id), (f"  {it.type}, {it.role}", DIM)))

        self._screen.print(everyone)
        self._company.also(self._away())
        self.note(f"You can: {allowed(list(self._room.me.capabilities))}")

    async def _away(self) -> None:
        with suppress(e.FolkmootError):
            away = ", ".join(f"@{who.id}" for who in await self._room.list_away())
            if away:
                self.note(f"Away: {away}")

    def _quit(self, _: str) -> None:
        self._screen.leave()

    def _send(self, send: Sending) -> None:
        if self._now.waiting >= MAX_UNSENT:
            self.note("Too many messages are waiting to be sent. Try again in a moment.")
            return
        self._now.waiting += 1
        self._company.also(self._sent(send))

    async def _sent(self, send: Sending) -> None:
        try:
            await send()
        except e.RoomLeft:
            pass
        except ArgumentMistake as error:
            self.note(str(error))
        except e.ToolRefused as error:
            self.note(error.message)
        except e.FolkmootError as error:
            self.show(look(refusal(error)))
        finally:
            self._now.waiting -= 1
            self._screen.refresh()


LOCAL: Final[dict[str, Callable[[RoomActions, str], None]]] = {
    "help": RoomActions._help,
    "who": RoomActions._who,
    "tools": RoomActions._tools_typed,
    "call": RoomActions._call_typed,
    "propose": RoomActions._propose_typed,
    "edit": RoomActions._edit_typed,
    "delete": RoomActions._delete_typed,
    "raw": RoomActions._raw_typed,
    "approve": RoomActions._approve_typed,
    "reject": RoomActions._reject_typed,
    "withdraw": RoomActions._withdraw_typed,
    "quit": RoomActions._quit,
}
"""Commands that do more than send one message."""

CHOICES: Final[dict[str, Callable[[RoomActions, WaitingProposal], None]]] = {
    "a": RoomActions._approve,
    "r": RoomActions._reject,
    "n": RoomActions._next,
}
"""What the letters do with the proposal that is shown."""


def draw_tools(screen: Console, offers: Sequence[OfferedTool]) -> None:
    """Print the tools by participant, each with its arguments and description."""
    for by, each in groupby(offers, key=lambda offer: offer.by):
        screen.print(participant(by))
        for offer in each:
            about = one_line(purpose(offer.definition))
            told = Text.assemble(usage(offer.definition), (f"  {about}" if about else "", DIM))
            screen.print(hung(screen, told, DEEP, first=INDENT), soft_wrap=True)


def purpose(definition: Mapping[str, Any]) -> str:
    """The first line of what a tool says of itself."""
    told = definition.get("description")
    return told.strip().partition("\n")[0] if isinstance(told, str) else ""


def present_moment() -> str:
    """The present time in the format of messages."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def refusal(error: e.FolkmootError) -> dict[str, Any]:
    """An error as a `system.error` message, as the hub would send it."""
    payload = {**error.data, "error": error.code, "message": error.message}
    moment = present_moment()
    return {"kind": "system.error", "from": "gateway", "ts": moment, "payload": payload}
