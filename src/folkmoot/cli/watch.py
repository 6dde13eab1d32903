"""Wakes someone: a line, a command or a notice on the desktop for what is new and for them."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from html import escape
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from msgspec import Struct

from folkmoot.cli.commands import account_command, spelled
from folkmoot.cli.limits import MAX_ASKS, WATCH_AGAIN_SECONDS
from folkmoot.cli.options import JsonOption, flag, option
from folkmoot.cli.output import one_line, say
from folkmoot.cli.room.decide import what
from folkmoot.cli.show import at, word
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient

PREVIEW: Final = 120
RECENT: Final = 20
"""Messages among which a new one is looked for."""
NOTIFY: Final = "notify-send"
SCRIPT: Final = 'on run said\ndisplay notification (item 1 of said) with title "Folkmoot"\nend run'
TEMPORARY: Final = ("hub_stopping", "hub_full", "connections_exceeded")
"""Refusals after which the hub is asked again."""
MISSED: Final = "Something may have been missed: see 'folkmoot inbox' and 'folkmoot asks'."


class News(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something new that is for the user."""

    about: str
    """`mail`, `mention`, `invitation`, `ask` or `answer`."""
    text: str
    """In one line."""
    by: str = ""
    id: str = ""
    thread: str = ""
    room: str = ""


def news_of(hub: HubClient, handle: str, name: str, data: dict[str, Any]) -> News | None:
    """What an event is to the user; None if it is nothing that they want to be woken for."""
    match name, data:
        case "mail.received", {"message_id": id_, "thread_id": thread, "muted": False}:
            found = [it for it in hub.list_messages(limit=RECENT).messages if it.id == id_]
            if not found:
                return News(about="mail", text="New mail.", id=id_, thread=thread)
            mail = found[0]
            words = one_line(" ".join((mail.body or "(encrypted)").split()))
            text = f"{at(mail.from_handle)}: {words[:PREVIEW]}"
            return News(about="mail", text=text, by=mail.from_handle, id=id_, thread=thread)
        case "room.unread", {"room": room, "change": "mention"}:
            return News(about="mention", text=f"You were mentioned in {word(room)}.", room=room)
        case "room.membership", {"room": room, "state": "invited"}:
            return News(about="invitation", text=f"You are invited to {word(room)}.", room=room)
        case "room.proposal", {"room": room, "proposal": id_, "change": "made"}:
            return asked(hub, room, id_)
        case "ask.changed", {"id": id_, "change": "made" | "ended" | "done"}:
            return ask(hub, handle, id_)
    return None


def asked(hub: HubClient, room: str, id_: str) -> News | None:
    """A proposal, if it is for the user to decide."""
    for it in hub.list_asks(limit=MAX_ASKS).asks:
        if it.proposal and it.proposal.id == id_:
            text = f"{at(it.by)} proposes in {word(room)}: {what(it)[:PREVIEW]}"
            return News(about="ask", text=text, by=it.by, id=id_, room=room)
    return None


def ask(hub: HubClient, handle: str, id_: str) -> News | None:
    """What a program asks the user, or what became of what theirs asked."""
    found = hub.get_ask(id_)
    called = f"{word(found.tool)} {spelled(found.arguments)}"[:PREVIEW]
    if found.state == "open" and found.to == handle:
        return News(about="ask", text=f"{at(found.by)} asks: {called}", by=found.by, id=id_)
    if found.state != "open" and found.by == handle:
        return News(about="answer", text=f"{word(found.state)}: {called}", by=found.to, id=id_)
    return None


KINDS: Final = ("mail", "mention", "invitation", "ask", "answer")


def checked_kinds(given: Any) -> Any:
    """Kinds of news, with commas between them."""
    for name in () if given is None else given.split(","):
        if name not in KINDS:
            raise typer.BadParameter(f"must be of {', '.join(KINDS)}, not {one_line(name)!r}")
    return given


OnlyOption = Annotated[
    str | None,
    option("--only", "WHAT,…", f"Only some of {', '.join(KINDS)}.", checked_kinds),
]
DesktopOption = Annotated[bool, flag("--desktop", "Show a notice on the desktop.")]
OnceOption = Annotated[bool, flag("--once", "End after the first.")]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND",
        help="Run this for each, with it as JSON on the standard input. Put -- before it.",
        show_default=False,
    ),
]


@account_command
def watch(
    hub: HubClient,
    command: CommandArgument = None,
    only: OnlyOption = None,
    *,
    desktop: DesktopOption = False,
    once: OnceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what is new for you as it comes.

    That is mail, mentions, invitations to rooms, what you are asked, and answers to what you asked.
    Each is a line; with --json an object. Commands run one after another, without a shell. If the
    hub is away, it is waited for.
    """
    if command and which(command[0]) is None:
        raise typer.BadParameter(f"{one_line(command[0])}: there is no such command")
    shows = notifier() if desktop else None
    kinds = KINDS if only is None else only.split(",")
    place, handle = "", hub.get_account().handle

    def take(name: str, id_: str, data: Any) -> None:
        nonlocal place
        news = None
        if name == "reload" and data != {"reason": "rights"}:
            say(MISSED, err=True)
        # What is gone by now is no news.
        with suppress(e.ToolRefused):
            news = news_of(hub, handle, name, data)
        if news is not None and news.about in kinds:
            say(msgspec.json.encode(news).decode() if as_json else f"{news.about}: {news.text}")
            if shows is not None:
                run([*shows, escape(news.text) if shows[0] == NOTIFY else news.text], b"")
            if command:
                run(command, msgspec.json.encode(news))
            if once:
                raise typer.Exit
        place = id_ or place

    with suppress(KeyboardInterrupt):
        while True:
            try:
                hub.follow(take, place)
            except (e.HubUnreachable, e.ToolRefused) as error:
                if error.data.get("refused", "hub_stopping") not in TEMPORARY:
                    raise
                say("The hub is away; waiting for it.", err=True)
                time.sleep(WATCH_AGAIN_SECONDS)


def run(command: list[str], given: bytes) -> None:
    """Run a command to its end; one that fails is told of."""
    done = subprocess.run(command, input=given, check=False)  # noqa: S603 - the user's own
    if done.returncode:
        say(f"{one_line(command[0])} ended with exit code {done.returncode}.", err=True)


def notifier() -> list[str]:
    """The command that shows a notice, without its text."""
    if sys.platform == "darwin":
        return ["osascript", "-e", SCRIPT]
    if which(NOTIFY) is None:
        raise typer.BadParameter(f"--desktop needs {NOTIFY}, which libnotify has")
    return [NOTIFY, "--app-name=Folkmoot", "--", "Folkmoot"]
