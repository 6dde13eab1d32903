"""Saying something in a room, and reading what was said, without staying there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from folkmoot.cli.asking import AsOption, TextArgument, UrlOption, text_of
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import console, on_terminal, say
from folkmoot.cli.room import options as given
from folkmoot.cli.room.entrance import Entrance, entrance, hub_of, post, present
from folkmoot.cli.room.lines import plain
from folkmoot.cli.room.look import Looks
from folkmoot.cli.room.mentions import mentioned
from folkmoot.cli.show import word
from folkmoot.cli.text import say_data

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client.methods import MessagePage

PAGE: Final = 100
DEFAULT: Final = 50


def say_in(
    name: given.RoomArgument,
    text: TextArgument,
    to: given.ToOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    markdown: given.MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say something to everyone in a room."""
    said = text_of(text)
    if not said.strip():
        raise typer.BadParameter("the text is empty")
    payload: dict[str, Any] = {"text": said, "format": "markdown" if markdown else "plain"}
    hub = hub_of(name, url, handle)
    if "@" in said and (whom := mentioned(said, {it.id for it in present(hub, name)})):
        payload["mentions"] = whom
    answer = post(hub, name, "chat.message", payload, to=to)
    if as_json:
        say_data(answer)
    else:
        say(f"Sent to {name}, as message {word(answer.get('seq'))}.")


def history(
    name: given.RoomArgument,
    limit: given.HistoryLimitOption = DEFAULT,
    after: given.AfterOption = None,
    before: given.BeforeOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    raw: given.RawOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the messages of a room, the latest last."""
    if after is not None and before is not None:
        raise typer.BadParameter("--after and --before cannot be combined")
    who = entrance(name, url, handle)
    found = read(who.client, name, limit, after, before)
    if as_json:
        say_data(found)
    else:
        tell(found, who, forward=after is not None, raw=raw)


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
    """The number of a message."""
    seq = message.get("seq")
    return seq if isinstance(seq, int) else 0


def tell(found: MessagePage, who: Entrance, *, forward: bool, raw: bool = False) -> None:
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
