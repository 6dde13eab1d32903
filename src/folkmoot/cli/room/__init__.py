"""`folkmoot room`: rooms from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from folkmoot.cli.commands import Output, group
from folkmoot.cli.credentials import (
    AsOption,
    GuestPass,
    HubOption,
    TextArgument,
    changing,
    hub_at,
    hub_for,
    text_of,
)
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import complain, console, on_terminal, one_line, say, say_data
from folkmoot.cli.room import calls, decide, manage
from folkmoot.cli.room import options as opts
from folkmoot.cli.room.messages import Looks, mentioned, plain
from folkmoot.cli.room.options import (
    Entrance,
    entrance,
    post,
    present,
    room_command,
)
from folkmoot.cli.show import word
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.rooms.model import MessagePage


PAGE: Final = 100
DEFAULT: Final = 50


@room_command
def say_in(
    hub: HubClient,
    name: opts.RoomArgument,
    text: TextArgument,
    to: opts.ToOption = None,
    *,
    markdown: opts.MarkdownOption = False,
) -> Output:
    """Say something to everyone in a room."""
    said = text_of(text)
    if not said.strip():
        raise typer.BadParameter("the text is empty")
    payload: dict[str, Any] = {"text": said, "format": "markdown" if markdown else "plain"}
    if "@" in said and (whom := mentioned(said, {it.id for it in present(hub, name)})):
        payload["mentions"] = whom
    answer = post(hub, name, "chat.message", payload, to=to)
    return Output(answer, f"Sent to {name}, as message {word(answer.get('seq'))}.")


@room_command
def history(
    entrance: Entrance,
    name: opts.RoomArgument,
    limit: opts.HistoryLimitOption = DEFAULT,
    after: opts.AfterOption = None,
    before: opts.BeforeOption = None,
    *,
    raw: opts.RawOption = False,
) -> Output:
    """Show the messages of a room, the latest last."""
    if after is not None and before is not None:
        raise typer.BadParameter("--after and --before cannot be combined")
    found = read(entrance.client, name, limit, after, before)
    forward = after is not None
    return Output(found, lambda: show_page(found, entrance, forward=forward, raw=raw))


def read(
    hub: HubClient, name: str, limit: int, after: int | None, before: int | None
) -> MessagePage:
    """As many messages as were asked for, page by page; a page may end early."""
    messages: list[dict[str, Any]] = []
    forward = after is not None
    while True:
        most = min(PAGE, limit - len(messages))
        page = hub.read_messages(name, limit=most, after=after, before=before)
        new = page.messages
        messages = [*messages, *new] if forward else [*new, *messages]
        if not new or len(messages) >= limit:
            return msgspec.structs.replace(page, messages=messages)
        if forward:
            after = number(new[-1])
        else:
            before = number(new[0])


def number(message: dict[str, Any]) -> int:
    seq = message.get("seq")
    return seq if isinstance(seq, int) else 0


def show_page(found: MessagePage, who: Entrance, *, forward: bool, raw: bool = False) -> None:
    """Messages, and how to see those before or after them."""
    looks = Looks()
    messages = found.messages
    if on_terminal():
        from folkmoot.cli.room.draw import draw

        screen = console()
        for message in messages:
            draw(screen, looks.look(message), who.name, raw=raw)
    else:
        for message in messages:
            say(plain(looks.look(message)))
    if not messages:
        say("No messages.", err=True)
    elif forward and number(messages[-1]) < found.last_seq:
        say(f"More: --after {number(messages[-1])}", err=True)
    elif not forward and number(messages[0]) > (found.oldest_seq or found.first_seq):
        say(f"More: --before {number(messages[0])}", err=True)


VARIABLE: Final = "FOLKMOOT_INVITATION"


def join(
    name: opts.RoomArgument,
    url: HubOption = None,
    handle: AsOption = None,
    *,
    invitation: opts.InvitationOption = False,
) -> None:
    """Enter a room: read, talk, decide on proposals.

    On a terminal there is an input line; /help lists the commands, and Ctrl-C leaves. Otherwise
    each message is printed as a line (number, time, sender, kind, text), and each line of standard
    input is sent to the room, until it ends.
    """
    import asyncio

    if invitation and handle is not None:
        raise typer.BadParameter("--invitation and --as cannot be combined")
    who = enter_as_guest(name, url) if invitation else entrance(name, url, handle)
    if at_terminal():
        # The screen is a quarter of a second to import, which only those who look at it wait for.
        from folkmoot.cli.room.view import live

        asyncio.run(live(name, who))
        say(f"You left {name}.")
    else:
        from folkmoot.cli.room.follow import converse

        asyncio.run(converse(name, who))


@room_command
def tail(
    entrance: Entrance,
    name: opts.RoomArgument,
    after: opts.FromOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Print new messages, one per line, until Ctrl-C.

    With --json, each line is one envelope, as the hub sent it. A lost connection is resumed by
    itself, without gaps or duplicates.
    """
    import asyncio

    from folkmoot.cli.room.follow import tail as follow

    asyncio.run(follow(name, entrance, after, as_json=as_json))


def at_terminal() -> bool:
    """Whether someone sits at a terminal that can do more than print."""
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return both and os.environ.get("TERM") not in (None, "", "dumb")


def enter_as_guest(room: str, url: str | None) -> Entrance:
    """Give an invitation for a guest's credential, and keep that."""
    token = ask_invitation()
    guest: GuestPass | None = None
    try:
        with changing() as keyring:
            hub = hub_for(keyring, url)
            answer = hub_at(hub).exchange_invitation(room, token)
            guest = GuestPass(hub, room, answer.guest, answer.credential or "")
            keyring.put_guest(guest)
    except e.CredentialsUnusable as error:
        if guest is None:
            raise
        # The invitation is used up, so this one visit is all there will be.
        complain(f"{error.message} You will need another invitation to come back.", kind="warning")
    return Entrance(guest.hub, guest.name, guest.credential, guest=True)


def ask_invitation() -> str:
    """The invitation, typed, piped or from the environment; never an argument."""
    token = os.environ.get(VARIABLE, "").strip()
    if not token and sys.stdin is not None:
        if sys.stdin.isatty():
            token = str(typer.prompt("Invitation", hide_input=True, err=True)).strip()
        else:
            token = first_line(sys.stdin.fileno())
    if not token:
        raise typer.BadParameter(f"no invitation in {VARIABLE} or on the standard input")
    return one_line(token)


def first_line(descriptor: int) -> str:
    """One line and no byte more: what follows is to be said in the room."""
    line = b""
    while len(line) < 256 and not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            break
        line += byte
    return line.decode("utf-8", "replace").strip()


COMMANDS: dict[str, Callable[..., None]] = {
    "list": manage.list_rooms,
    "create": manage.create,
    "show": manage.show,
    "join": join,
    "say": say_in,
    "tail": tail,
    "history": history,
    "tools": calls.tools,
    "call": calls.call,
    "propose": calls.propose,
    "invite": manage.invite,
    "invites": manage.invites,
    "uninvite": manage.uninvite,
    "grant": decide.grant,
    "revoke": decide.revoke,
    "kick": decide.kick,
    "proposals": decide.proposals,
    "approve": decide.approve,
    "reject": decide.reject,
    "withdraw": decide.withdraw,
    "change": manage.change,
    "delete": manage.delete,
}

app = group(
    COMMANDS,
    "Live rooms for people, agents and tools. Without a command, list them.",
    manage.list_rooms,
)
