"""Mail: read, send, reply, and change conversations."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import folkmoot.operations as ops
from folkmoot.cli import people
from folkmoot.cli.commands import Note, Output, Table, account_command, every, group
from folkmoot.cli.credentials import (
    TextArgument,
    YesOption,
    checked_handle,
    confirm,
    handle_argument,
    text_of,
)
from folkmoot.cli.options import JsonOption, argument, choice, flag, number, option
from folkmoot.cli.output import moment, one_line, say, say_data
from folkmoot.cli.show import (
    Column,
    at,
    short,
    show_messages,
    word,
)
from folkmoot.cli.views import View
from folkmoot.core import errors as e
from folkmoot.core.uuids import is_beginning, is_uuid

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.cli.credentials import Login
    from folkmoot.mail.model import MailMessage, Sent, Thread
    from folkmoot.operations.threads import ThreadDone, ThreadState


PREVIEW = 60


def checked_id(value: Any) -> Any:
    """The ids of messages, checked before the command begins: a handle is none."""
    for given in value if isinstance(value, list) else [value]:
        name = given.strip().lower()
        if not (is_uuid(name) or is_beginning(name)):
            raise typer.BadParameter(
                f"must be a message's id as it is shown, such as 3f2a9c1d, not {one_line(given)!r}"
            )
    return value


RecipientArgument = Annotated[str, handle_argument("The recipient.")]
MessageArgument = Annotated[
    str, argument("ID", "The message to reply to: its id as shown.", checked_id)
]
ThreadArgument = Annotated[
    str, argument("HANDLE|ID", "The other person, or the conversation's id as shown.")
]
PeekOption = Annotated[bool, flag("--peek", "Leave everything unread.")]
WaitOption = Annotated[
    int,
    number("--wait", 0, 55, "Show only new mail, and wait up to N seconds for it (at most 55)."),
]
LimitOption = Annotated[int, number("--limit", 1, 100, "How many (at most 100).")]
CursorOption = Annotated[
    str | None, option("--cursor", "CURSOR", "Continue where an earlier page ended.")
]
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


@account_command
def inbox(
    hub: HubClient,
    login: Login,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    *,
    peek: PeekOption = False,
    wait: WaitOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Show your mail, newest first, and mark it as read.

    Unread messages are marked as new. Each message shows how it was encrypted: e2e, which only the
    two of you can read, or server-assisted, which the hub could read.
    """
    page = hub.list_messages(limit=limit, cursor=cursor, wait=wait)
    if as_json:
        say_data(page)
    else:
        show_messages(page.messages, login.handle)
        if not page.messages:
            say("No new mail." if wait else "No mail.", err=True)
        if page.next_cursor:
            say(f"\nMore: --cursor {word(page.next_cursor)}", err=True)
    if not peek:
        mark_read(hub, page.messages)


def mark_read(hub: HubClient, messages: Iterable[MailMessage]) -> None:
    """Mark the messages that were shown as read; later ones stay unread."""
    unread: dict[str, list[str]] = {}
    for message in messages:
        if message.unread:
            unread.setdefault(message.thread_id, []).append(message.id)
    for thread_id, ids in unread.items():
        hub.mark_read(thread_id, message_ids=ids)


@account_command
def thread(
    hub: HubClient,
    login: Login,
    which: ThreadArgument,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    *,
    peek: PeekOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show one conversation and mark it as read.

    Both sides are shown, and the latest message is at the end.
    """
    page = hub.read_thread(thread_id_of(hub, which), limit=limit, cursor=cursor)
    if as_json:
        say_data(page)
    else:
        if page.next_cursor:
            say(f"Earlier messages: --cursor {word(page.next_cursor)}\n", err=True)
        show_messages(reversed(page.messages), login.handle)
        if not page.messages:
            say("No messages yet.", err=True)
    if not peek:
        mark_read(hub, page.messages)


def thread_id_of(hub: HubClient, which: str) -> str:
    """The id of the conversation with someone, or of the one whose id this is or begins."""
    given = which.strip().lower()
    if is_uuid(given):
        return given
    handle, ids, begun = checked_handle(which), dict[str, str](), list[str]()
    maybe_id = is_beginning(given)
    for found in every(hub.list_threads, "threads"):
        ids[found.other_handle] = found.id
        if maybe_id and found.id.startswith(given):
            begun.append(found.id)
        if handle in ids and not maybe_id:
            return ids[handle]
    named = [ids[handle]] if handle in ids else []
    if len({*named, *begun}) > 1:
        raise e.ToolRefused(
            f"{one_line(given)} fits more than one conversation. Give @HANDLE or the whole id."
        )
    if named or begun:
        return (named or begun)[0]
    # They may have another handle by now.
    with suppress(e.ToolRefused, KeyError):
        return ids[hub.look_up(handle).handle]
    raise e.ToolRefused(f"You have no conversation with @{one_line(handle)}.")


@account_command
def threads(
    hub: HubClient,
    state: StateOption = None,
    limit: LimitOption = 100,
    cursor: CursorOption = None,
) -> Output:
    """List your conversations, the latest first."""
    page = hub.list_threads(state=cast("Any", state), limit=limit, cursor=cursor)
    columns = (
        Column("With", "bold"), Column("New", named=True), Column("When", "dim"),
        Column("State", "dim"), Column("Id", "dim"), Column("Last message", wide=True),
    )  # fmt: skip
    table = Table(columns, map(thread_row, page.threads), "No conversations.")
    more = Note(f"More: --cursor {word(page.next_cursor)}") if page.next_cursor else None
    return Output(page, table, more)


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


@account_command
def send(
    hub: HubClient, to: RecipientArgument, text: TextArgument, priority: PriorityOption = None
) -> Output:
    """Send a message."""
    with people.existing(to):
        return sent(hub.send_message(to, body=text_of(text), priority=cast("Any", priority)))


@account_command
def reply(
    hub: HubClient, message: MessageArgument, text: TextArgument, priority: PriorityOption = None
) -> Output:
    """Reply to a message."""
    return sent(hub.reply_to_message(message, body=text_of(text), priority=cast("Any", priority)))


def sent(message: Sent) -> Output:
    """That a message is on its way, and under which id."""
    return Output(message, f"Sent to {at(message.to)}: {short(message.message_id)}")


digest = View(lambda: ops.threads.digest, "Read what is unread, in short.")

UndoOption = Annotated[bool, flag("--undo", "Make it active again.")]
MessagesArgument = Annotated[
    list[str], argument("ID", "The ids of the messages, as shown.", checked_id)
]


@account_command
def archive(hub: HubClient, which: ThreadArgument, *, undo: UndoOption = False) -> Output:
    """Archive a conversation until a new message arrives.

    'folkmoot mail list --state archived' lists archived ones.
    """
    return done(hub.archive_thread(thread_id_of(hub, which), undo=undo))


@account_command
def star(hub: HubClient, which: ThreadArgument, *, undo: UndoOption = False) -> Output:
    """Star a conversation, to find it again.

    'folkmoot mail list --state starred' lists starred ones.
    """
    return done(hub.star_thread(thread_id_of(hub, which), undo=undo))


@account_command
def mute(hub: HubClient, which: ThreadArgument, *, undo: UndoOption = False) -> Output:
    """Mute a conversation, so that it does not notify you.

    New messages still arrive, but do not end 'folkmoot inbox --wait'.
    """
    return done(hub.mute_thread(thread_id_of(hub, which), undo=undo))


@account_command
def delete(hub: HubClient, messages: MessagesArgument, *, as_json: JsonOption = False) -> None:
    """Delete your copy of messages.

    The other side keeps theirs.
    """
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


@account_command
def delete_thread(hub: HubClient, which: ThreadArgument, *, yes: YesOption = False) -> Output:
    """Delete your copy of a whole conversation.

    The other side keeps theirs. Asks first, unless --yes is given.
    """
    thread_id = thread_id_of(hub, which)
    confirm(f"Delete all your messages in {one_line(which)}? They cannot be restored.", yes=yes)
    return done(hub.delete_thread(thread_id))


def done(answer: ThreadState | ThreadDone) -> Output:
    """The hub's own sentence about a change."""
    return Output(answer, word(answer.message))


app = group(
    {
        "inbox": inbox,
        "send": send,
        "reply": reply,
        "list": threads,
        "show": thread,
        "archive": archive,
        "star": star,
        "mute": mute,
        "delete": delete,
        "delete-thread": delete_thread,
        "find": people.find,
        "lookup": people.lookup,
        "block": people.block,
        "unblock": people.unblock,
        "blocked": people.blocked,
    },
    "Conversations, contacts, and people you write to.",
)
app.add_typer(people.contacts_app, name="contacts")
