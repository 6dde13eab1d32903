"""Mail: read, send, reply, and change conversations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from folkmoot.cli.credentials import (
    AsOption,
    TextArgument,
    UrlOption,
    YesOption,
    checked_handle,
    confirm,
    handle_argument,
    signed_in,
    text_of,
)
from folkmoot.cli.options import JsonOption, choice, flag, number
from folkmoot.cli.output import moment, one_line, say, say_data
from folkmoot.cli.show import (
    Column,
    at,
    short,
    tell_messages,
    tell_table,
    word,
)
from folkmoot.core.errors import ToolRefused
from folkmoot.core.uuids import is_beginning

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client.methods import MailMessage, Sent, Thread, ThreadDone, ThreadState


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PREVIEW = 60


def checked_id(value: Any) -> Any:
    """The ids of messages, checked before the command begins: a handle is none."""
    for given in value if isinstance(value, list) else [value]:
        name = given.strip().lower()
        if not (UUID.fullmatch(name) or is_beginning(name)):
            raise typer.BadParameter(
                f"must be a message's id as it is shown, such as 3f2a9c1d, not {one_line(given)!r}"
            )
    return value


RecipientArgument = Annotated[str, handle_argument("The recipient.")]
MessageArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The message to reply to: its id as shown.",
        callback=checked_id,
        show_default=False,
    ),
]
ThreadArgument = Annotated[
    str,
    typer.Argument(
        metavar="HANDLE|ID", help="The other person, or the conversation's id as shown.",
        show_default=False,
    ),
]  # fmt: skip
PeekOption = Annotated[
    bool, typer.Option("--peek", help="Leave everything unread.", show_default=False)
]
WaitOption = Annotated[
    int,
    number("--wait", 0, 55, "Show only new mail, and wait up to N seconds for it (at most 55)."),
]
LimitOption = Annotated[int | None, number("--limit", 1, 100, "How many (at most 100).")]
CursorOption = Annotated[
    str | None,
    typer.Option(
        "--cursor", metavar="CURSOR", help="Continue where an earlier page ended.",
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
    """Show your mail, newest first, and mark it as read.

    Unread messages are marked as new. Each message shows how it was encrypted: e2e, which only the
    two of you can read, or server-assisted, which the hub could read.
    """
    hub, login = signed_in(url, handle)
    page = hub.list_messages(limit=limit, cursor=cursor, wait=wait or None)
    if as_json:
        say_data(page)
    else:
        tell_messages(page.messages, login.handle)
        if not page.messages:
            say("No new mail." if wait else "No mail.", err=True)
        if page.next_cursor:
            say(f"\nMore: --cursor {word(page.next_cursor)}", err=True)
    if not peek:
        mark_read(hub, page.messages)


def mark_read(hub: HubClient, messages: Iterable[MailMessage]) -> None:
    """Mark what was shown as read; what comes meanwhile stays new."""
    unread: dict[str, list[str]] = {}
    for message in messages:
        if message.unread:
            unread.setdefault(message.thread_id, []).append(message.id)
    for thread_id, ids in unread.items():
        hub.mark_read(thread_id, message_ids=ids)


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
    """Show one conversation and mark it as read.

    Both sides are shown, and the latest message is at the end.
    """
    hub, login = signed_in(url, handle)
    page = hub.read_thread(thread_id_of(hub, which), limit=limit, cursor=cursor)
    if as_json:
        say_data(page)
    else:
        if page.next_cursor:
            say(f"Earlier messages: --cursor {word(page.next_cursor)}\n", err=True)
        tell_messages(reversed(page.messages), login.handle)
        if not page.messages:
            say("No messages yet.", err=True)
    if not peek:
        mark_read(hub, page.messages)


def thread_id_of(hub: HubClient, which: str) -> str:
    """The id of the conversation with someone, or of the one whose id this is or begins."""
    given = which.strip().lower()
    if UUID.fullmatch(given):
        return given
    handle, ids, begun = checked_handle(which), dict[str, str](), list[str]()
    maybe_id = is_beginning(given)
    for found in all_threads(hub):
        ids[found.other_handle] = found.id
        if maybe_id and found.id.startswith(given):
            begun.append(found.id)
        if handle in ids and not maybe_id:
            return ids[handle]
    named = [ids[handle]] if handle in ids else []
    if len({*named, *begun}) > 1:
        raise ToolRefused(
            f"{one_line(given)} may be more than one conversation: give @HANDLE or the whole id."
        )
    if named or begun:
        return (named or begun)[0]
    # They may have another handle by now.
    with suppress(ToolRefused, KeyError):
        return ids[hub.look_up(handle).handle]
    raise ToolRefused(f"You have no conversation with @{one_line(handle)}.")


def all_threads(hub: HubClient) -> Iterator[Thread]:
    """Every conversation, page by page."""
    page = hub.list_threads()
    yield from page.threads
    while page.next_cursor:
        page = hub.list_threads(cursor=page.next_cursor)
        yield from page.threads


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
    hub, _ = signed_in(url, handle)
    page = hub.list_threads(state=cast("Any", state), limit=limit, cursor=cursor)
    if as_json:
        say_data(page)
        return
    columns = (
        Column("With", "bold"), Column("New", named=True), Column("When", "dim"),
        Column("State", "dim"), Column("Id", "dim"), Column("Last message", wide=True),
    )  # fmt: skip
    tell_table(columns, map(thread_row, page.threads), "No conversations.")
    if page.next_cursor:
        say(f"More: --cursor {word(page.next_cursor)}", err=True)


def thread_row(found: Thread) -> tuple[str, ...]:
    """One conversation in a line."""
    preview = word(found.last_message_body)
    if len(preview) > PREVIEW:
        preview = f"{preview[: PREVIEW - 1]}…"
    return (
        at(found.other_handle),
        word(found.unread_count or ""),
        moment(found.last_message_at),
        word(found.member_state),
        short(found.id),
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
    """Send a message."""
    hub, _ = signed_in(url, handle)
    tell_sent(
        hub.send_message(to, body=text_of(text), priority=cast("Any", priority)), as_json=as_json
    )


def reply(
    message: MessageArgument,
    text: TextArgument,
    priority: PriorityOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Reply to a message."""
    hub, _ = signed_in(url, handle)
    sent = hub.reply_to_message(message, body=text_of(text), priority=cast("Any", priority))
    tell_sent(sent, as_json=as_json)


def tell_sent(sent: Sent, *, as_json: bool) -> None:
    """That it is on its way, and under which id."""
    if as_json:
        say_data(sent)
    else:
        say(f"Sent to {at(sent.to)}: {short(sent.message_id)}")


UndoOption = Annotated[bool, flag("--undo", "Make it active again.")]
MessagesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID", help="The ids of the messages, as shown.",
        callback=checked_id, show_default=False,
    ),
]  # fmt: skip


def archive(
    which: ThreadArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Archive a conversation until a new message arrives.

    'folkmoot threads --state archived' lists archived ones.
    """
    hub, _ = signed_in(url, handle)
    do = hub.unarchive_thread if undo else hub.archive_thread
    tell(do(thread_id_of(hub, which)), as_json=as_json)


def star(
    which: ThreadArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Star a conversation, to find it again.

    'folkmoot threads --state starred' lists starred ones.
    """
    hub, _ = signed_in(url, handle)
    do = hub.unstar_thread if undo else hub.star_thread
    tell(do(thread_id_of(hub, which)), as_json=as_json)


def mute(
    which: ThreadArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Mute a conversation, so that it does not notify you.

    New messages still arrive, but do not end 'folkmoot inbox --wait'.
    """
    hub, _ = signed_in(url, handle)
    do = hub.unmute_thread if undo else hub.mute_thread
    tell(do(thread_id_of(hub, which)), as_json=as_json)


def delete(
    messages: MessagesArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Delete your copy of messages.

    The other side keeps theirs.
    """
    hub, _ = signed_in(url, handle)
    deleted: list[str] = []
    try:
        for message in messages:
            deleted.append(hub.delete_message(message).message_id)
            if not as_json:
                say(f"Deleted {short(deleted[-1])}.")
    finally:
        # Deleted messages are reported even if a later one could not be deleted.
        if as_json:
            say_data({"deleted": deleted})


def delete_thread(
    which: ThreadArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete your copy of a whole conversation.

    The other side keeps theirs. Asks first, unless --yes is given.
    """
    hub, _ = signed_in(url, handle)
    thread_id = thread_id_of(hub, which)
    confirm(f"Delete all your messages in {one_line(which)}? They cannot be restored.", yes=yes)
    tell(hub.delete_thread(thread_id), as_json=as_json)


def tell(answer: ThreadState | ThreadDone, *, as_json: bool) -> None:
    """The answer for a program, or its sentence for a person."""
    if as_json:
        say_data(answer)
    else:
        say(word(answer.message))
