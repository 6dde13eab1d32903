"""Threads: listing them, reading one, and what each side makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from msgspec import Meta

from folkmoot.core.errors import ArgumentInvalid
from folkmoot.mail import State
from folkmoot.tools.account_tools import Nothing
from folkmoot.tools.message_tools import take_page
from folkmoot.tools.model import Arguments, Call, Payload, Schema, Tool
from folkmoot.tools.people_tools import PageLimit
from folkmoot.tools.schemas import CURSOR, LIMIT, choice, integer, obj, switch, text, texts

MOST_MARKED = 100
"""Messages that one call marks read: as many as one page shows."""


class Threads(Arguments, frozen=True, kw_only=True):
    """Which threads."""

    state: State | None = None
    limit: PageLimit = 100
    cursor: str | None = None


async def threads(call: Call[Threads]) -> Payload:
    """The caller's threads, the one with the newest message first."""
    given = call.arguments
    return await call.services.mail.threads(
        call.account, state=given.state, limit=given.limit, cursor=given.cursor
    )


class Thread(Arguments, frozen=True, kw_only=True):
    """Which thread, and which part of it."""

    thread_id: str
    limit: PageLimit = 50
    cursor: str | None = None
    peek: bool = False


async def thread(call: Call[Thread]) -> Payload:
    """One conversation, both sides of it, newest first."""
    given = call.arguments
    conversation = await call.services.mail.thread(
        call.account, given.thread_id, limit=given.limit, cursor=given.cursor, peek=given.peek
    )
    return {"thread": conversation.thread, **take_page(call, conversation.page)}


async def digest(call: Call[Nothing]) -> Payload:
    """What is unread."""
    return await call.services.mail.digest(call.account)


class MarkRead(Arguments, frozen=True, kw_only=True):
    """One thread, or some messages of it."""

    thread_id: str
    message_ids: Annotated[list[str], Meta(max_length=MOST_MARKED)] | None = None


async def mark_read(call: Call[MarkRead]) -> Payload:
    """Mark everything in a thread as read, or only what was named."""
    given = call.arguments
    await call.services.mail.mark_read(call.account, given.thread_id, given.message_ids)
    done = "Thread" if given.message_ids is None else "Messages"
    return {"thread_id": given.thread_id, "message": f"{done} marked as read."}


class DeleteThread(Arguments, frozen=True, kw_only=True):
    """One thread, and whether the user agrees."""

    thread_id: str
    confirm: bool | None = None


async def delete_thread(call: Call[DeleteThread]) -> Payload:
    """Remove a thread from the caller's mailbox."""
    thread_id = call.arguments.thread_id
    if call.arguments.confirm is False:
        raise ArgumentInvalid("Nothing was deleted: the user did not agree.", field="confirm")
    await call.services.mail.delete_thread(call.account, thread_id)
    return {"thread_id": thread_id, "message": "Thread deleted."}


class ChangeState(Arguments, frozen=True, kw_only=True):
    """One thread, and whether its state is to be taken back."""

    thread_id: str
    undo: bool = False


def changing(
    action: str, done: str, undone: str
) -> Callable[[Call[ChangeState]], Awaitable[Payload]]:
    """The handler of a tool that puts a thread into a state, and back."""

    async def handler(call: Call[ChangeState]) -> Payload:
        given = call.arguments
        change = getattr(call.services.mail, action)
        changed = await change(call.account, given.thread_id, undo=given.undo)
        return {
            "thread_id": changed.thread_id,
            "state": changed.state,
            "message": f"Thread {undone if given.undo else done}.",
        }

    return handler


def undoable(words: str) -> Schema:
    """The schema of a tool that can be undone."""
    return obj(
        {"thread_id": text("UUID of the thread"), "undo": switch(f"If true, {words}.")},
        ("thread_id",),
    )


THREAD_TOOLS = (
    Tool(
        name="msg/threads",
        description="List your message threads with previews, unread counts, and participant info.",
        schema=obj(
            {
                "state": choice(
                    "active",
                    "archived",
                    "muted",
                    "starred",
                    description="Filter threads by state. If omitted, returns all threads.",
                ),
                "limit": LIMIT,
                "cursor": CURSOR,
            }
        ),
        arguments=Threads,
        handler=threads,
        kind="reads",
        others=("threads",),
    ),
    Tool(
        name="msg/thread",
        description="Read one conversation with the messages of both sides, newest first. What is "
        "returned counts as read unless peek is true.",
        schema=obj(
            {
                "thread_id": text("UUID of the thread"),
                "limit": integer(
                    "Maximum number of messages to return. Default 50, max 100.",
                    minimum=1,
                    maximum=100,
                ),
                "cursor": CURSOR,
                "peek": switch("If true, the returned messages stay unread. Default false."),
            },
            ("thread_id",),
        ),
        arguments=Thread,
        handler=thread,
        others=("thread", "messages"),
    ),
    Tool(
        name="msg/digest",
        description="Get a summary of your unread messages and recent activity.",
        schema=obj({}),
        arguments=Nothing,
        handler=digest,
        kind="reads",
        open_world=True,
    ),
    Tool(
        name="msg/delete_thread",
        description="Delete a thread from your mailbox. The other participant keeps theirs.",
        schema=obj(
            {
                "thread_id": text("UUID of the thread to delete"),
                "confirm": switch("Whether to delete it; clients that can ask the user do so"),
            },
            ("thread_id",),
        ),
        arguments=DeleteThread,
        handler=delete_thread,
        asks="confirm",
        kind="destroys",
    ),
    Tool(
        name="msg/mark_read",
        description="Mark all messages in a thread as read.",
        schema=obj(
            {
                "thread_id": text("UUID of the thread to mark as read"),
                "message_ids": texts(
                    "Mark only these messages of the thread (UUIDs).", most=MOST_MARKED
                ),
            },
            ("thread_id",),
        ),
        arguments=MarkRead,
        handler=mark_read,
        app_only=True,
    ),
    Tool(
        name="msg/archive",
        description="Archive or unarchive a thread.",
        schema=undoable("unarchive (restore to active). Default false"),
        arguments=ChangeState,
        handler=changing("archive", "archived", "unarchived"),
        app_only=True,
    ),
    Tool(
        name="msg/star",
        description="Star or unstar a thread.",
        schema=undoable("unstar (restore to active). Default false"),
        arguments=ChangeState,
        handler=changing("star", "starred", "unstarred"),
        app_only=True,
    ),
    Tool(
        name="msg/mute",
        description="Mute or unmute a thread. Muted threads do not generate notifications.",
        schema=undoable("unmute (restore to active). Default false"),
        arguments=ChangeState,
        handler=changing("mute", "muted", "unmuted"),
        app_only=True,
    ),
)
