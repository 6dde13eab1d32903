"""Archiving, starring, muting and deleting conversations, and deleting messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.asking import AsOption, UrlOption, YesOption, confirm, signed_in
from folkmoot.cli.mail import ThreadArgument, checked_id, thread_id_of
from folkmoot.cli.options import JsonOption, flag
from folkmoot.cli.output import say
from folkmoot.cli.show import short, word
from folkmoot.cli.text import one_line, say_data

if TYPE_CHECKING:
    from folkmoot.client.methods import ThreadDone, ThreadState

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
