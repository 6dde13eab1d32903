"""Being in a room: the live view or plain lines, and following it from a script."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final

import typer

from folkmoot.cli.asking import AsOption, HubOption, UrlOption, hub_at, hub_for
from folkmoot.cli.credentials import GuestPass, changing
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import complain, say
from folkmoot.cli.room import options as given
from folkmoot.cli.room.entrance import Entrance, entrance
from folkmoot.cli.text import one_line
from folkmoot.core.errors import CredentialsUnusable

VARIABLE: Final = "FOLKMOOT_INVITATION"
LONGEST_TOKEN: Final = 256


def join(
    name: given.RoomArgument,
    url: HubOption = None,
    handle: AsOption = None,
    *,
    invitation: given.InvitationOption = False,
) -> None:
    """Enter a room: read, talk, decide on proposals.

    On a terminal there is an input line; /help lists the commands, and Ctrl-C leaves. Otherwise
    each message is printed as a line (number, time, sender, kind, text), and each line of standard
    input is sent to the room, until it ends.
    """
    if invitation and handle is not None:
        raise typer.BadParameter("--invitation and --as cannot be combined")
    who = come_in(name, url) if invitation else entrance(name, url, handle)
    if at_terminal():
        # The screen is a quarter of a second to import, which only those who look at it wait for.
        from folkmoot.cli.room.view import live

        asyncio.run(live(name, who))
        say(f"You left {name}.")
    else:
        from folkmoot.cli.room.follow import converse

        asyncio.run(converse(name, who))


def tail(
    name: given.RoomArgument,
    after: given.FromOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Print new messages, one per line, until Ctrl-C.

    With --json, each line is one envelope, as the hub sent it. A lost connection is resumed by
    itself, without gaps or duplicates.
    """
    who = entrance(name, url, handle)
    from folkmoot.cli.room.follow import tail as follow

    asyncio.run(follow(name, who, after, as_json=as_json))


def at_terminal() -> bool:
    """Whether someone sits at a terminal that can do more than print."""
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    return both and os.environ.get("TERM") not in (None, "", "dumb")


def come_in(room: str, url: str | None) -> Entrance:
    """Give an invitation for a guest's credential, and keep that."""
    token = ask_invitation()
    guest: GuestPass | None = None
    try:
        with changing() as keyring:
            hub = hub_for(keyring, url)
            answer = hub_at(hub).exchange_invitation(room, token)
            guest = GuestPass(hub, room, answer.guest, answer.credential or "")
            keyring.put_guest(guest)
    except CredentialsUnusable as error:
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
    while len(line) < LONGEST_TOKEN and not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            break
        line += byte
    return line.decode("utf-8", "replace").strip()
