"""Your mail from a terminal: read, write, answer, look through conversations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from folkmoot.cli.asking import (
    AsOption,
    TextArgument,
    UrlOption,
    ask,
    checked_handle,
    handle_argument,
    signed_in,
    text_of,
)
from folkmoot.cli.client import HubClient
from folkmoot.cli.options import JsonOption, choice, number
from folkmoot.cli.output import say
from folkmoot.cli.show import Column, at, tell_messages, tell_table, word
from folkmoot.cli.text import moment, one_line, say_data
from folkmoot.core.errors import ToolRefused

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PREVIEW = 60

RecipientArgument = Annotated[str, handle_argument("Whom to write to.")]
MessageArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The message to answer.", show_default=False)
]
ThreadArgument = Annotated[
    str,
    typer.Argument(
        metavar="HANDLE|ID", help="With whom, or the conversation's id.", show_default=False
    ),
]
PeekOption = Annotated[
    bool, typer.Option("--peek", help="Leave everything unread.", show_default=False)
]
WaitOption = Annotated[
    int,
    number("--wait", 0, 55, "Show only what is new, and wait up to N seconds for it (at most 55)."),
]
LimitOption = Annotated[int | None, number("--limit", 1, 100, "How many (at most 100).")]
CursorOption = Annotated[
    str | None,
    typer.Option(
        "--cursor", metavar="CURSOR", help="Go on where an earlier answer ended.",
        show_default=False,
    ),
]  # fmt: skip
PriorityOption = Annotated[
    str | None,
    choice(
        "--priority", "LEVEL", ("urgent", "normal", "low", "fyi"), "urgent, normal, low or fyi."
    ),
]
StateOption = Annotated[
    str | None,
    choice(
        "--state", "STATE", ("active", "archived", "muted", "starred"),
        "Only active, archived, muted or starred ones.",
    ),
]  # fmt: skip


def inbox(
    limit: LimitOption = None,
    cursor: CursorOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    peek: PeekOption = False,
    wait: WaitOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Show your mail, newest first, and mark it as read."""
    hub, login = signed_in(url, handle)
    arguments = {"limit": limit, "cursor": cursor, "peek": peek or None, "wait": wait or None}
    answer = hub.call("msg/inbox", arguments, wait=wait)
    tell_page(answer, login.handle, "No new mail." if wait else "No mail.", as_json=as_json)


def thread(
    which: ThreadArgument,
    limit: LimitOption = None,
    cursor: CursorOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    peek: PeekOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show one conversation, both sides, and mark it as read."""
    hub, login = signed_in(url, handle)
    thread_id = which.lower() if UUID.fullmatch(which.lower()) else thread_with(hub, which)
    arguments = {
        "thread_id": thread_id, "limit": limit, "cursor": cursor, "peek": peek or None,
    }  # fmt: skip
    answer = hub.call("msg/thread", arguments)
    tell_page(answer, login.handle, "Nothing was written yet.", as_json=as_json)


def tell_page(answer: dict[str, Any], me: str, nothing: str, *, as_json: bool) -> None:
    """Messages and, when there are more, how to see them."""
    if as_json:
        say_data(answer)
        return
    messages = answer.get("messages") or []
    tell_messages(messages, me)
    if not messages:
        say(nothing, err=True)
    if after := answer.get("next_cursor"):
        say(f"\nThere is more: --cursor {word(after)}", err=True)


def thread_with(hub: HubClient, other: str) -> str:
    """The id of the conversation with someone, who may have another handle by now."""
    handle = checked_handle(other)
    ids: dict[Any, str] = {}
    for found in all_threads(hub):
        ids[found.get("other_handle")] = str(found.get("id"))
        if handle in ids:
            return ids[handle]
    with suppress(ToolRefused, KeyError):
        return ids[hub.call("msg/lookup", {"handle": handle}).get("handle")]
    raise ToolRefused(f"There is no conversation with @{one_line(handle)}.")


def all_threads(hub: HubClient) -> Iterator[dict[str, Any]]:
    """Every conversation, page by page."""
    cursor: dict[str, Any] = {}
    while True:
        answer = hub.call("msg/threads", cursor)
        yield from answer.get("threads") or []
        if not answer.get("next_cursor"):
            return
        cursor = {"cursor": answer["next_cursor"]}


def threads(
    state: StateOption = None,
    limit: LimitOption = None,
    cursor: CursorOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List your conversations, the latest first."""
    arguments = {"state": state, "limit": limit, "cursor": cursor}
    answer = ask(url, handle, "msg/threads", arguments)
    if as_json:
        say_data(answer)
        return
    columns = (
        Column("With", "bold"), Column("New"), Column("Last", "dim"), Column("State", "dim"),
        Column("Said", wide=True),
    )  # fmt: skip
    tell_table(columns, map(thread_row, answer.get("threads") or []), "No conversations.")
    if after := answer.get("next_cursor"):
        say(f"There is more: --cursor {word(after)}", err=True)


def thread_row(found: dict[str, Any]) -> tuple[str, ...]:
    """One conversation in a line."""
    preview = word(found.get("last_message_body"))
    if len(preview) > PREVIEW:
        preview = f"{preview[: PREVIEW - 1]}…"
    return (
        at(found.get("other_handle")),
        word(found.get("unread_count") or ""),
        moment(found.get("last_message_at")),
        word(found.get("member_state")),
        preview,
    )


def send(
    to: RecipientArgument,
    text: TextArgument,
    priority: PriorityOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write to someone."""
    arguments = {"to": to, "body": text_of(text), "priority": priority}
    tell_sent(ask(url, handle, "msg/send", arguments), as_json=as_json)


def reply(
    message: MessageArgument,
    text: TextArgument,
    priority: PriorityOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Answer a message."""
    arguments = {"message_id": message, "body": text_of(text), "priority": priority}
    tell_sent(ask(url, handle, "msg/reply", arguments), as_json=as_json)


def tell_sent(answer: dict[str, Any], *, as_json: bool) -> None:
    """That it is on its way, and under which id."""
    if as_json:
        say_data(answer)
    else:
        say(f"Sent to {at(answer.get('to'))}: {word(answer.get('message_id'))}")
