"""Threads: listing and reading them, and marking, muting, archiving and deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from folkmoot.core import errors as e
from folkmoot.mail.model import Digest, MailMessage, State, ThreadPage
from folkmoot.mail.model import Thread as ThreadView
from folkmoot.operations.limits import MAX_MARKED_READ, MAX_ROOMS_TOLD
from folkmoot.operations.mail import MessagesLimit, Peek, deliver_page
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Cursor,
    Nothing,
    Operation,
    PageLimit,
    Route,
    describe,
)
from folkmoot.rooms.model import UnreadRoom

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


ThreadId = Annotated[str, describe("UUID of the thread")]


class Threads(Arguments, frozen=True, kw_only=True):
    """Which threads."""

    state: (
        Annotated[State, describe("Filter threads by state. If omitted, returns all threads.")]
        | None
    ) = None
    limit: PageLimit = 100
    cursor: Cursor | None = None


async def threads(call: Call[Threads]) -> ThreadPage:
    """The caller's threads, the one with the newest message first."""
    return await call.services.mail.threads(call.account, **asdict(call.arguments))


class ReadThread(Arguments, frozen=True, kw_only=True):
    """Which thread, and which part of it."""

    __uuids__ = ("thread_id",)

    thread_id: ThreadId
    limit: MessagesLimit = 50
    cursor: Cursor | None = None
    peek: Peek = False


class ThreadMessages(Struct, frozen=True):
    """A thread with a page of its messages, newest first."""

    thread: ThreadView
    messages: list[MailMessage]
    next_cursor: str | None


async def thread(call: Call[ReadThread]) -> ThreadMessages:
    """One thread, newest message first."""
    conversation = await call.services.mail.thread(call.account, **asdict(call.arguments))
    return ThreadMessages(conversation.thread, *deliver_page(call, conversation.page))


class HubDigest(Digest, frozen=True):
    """What is unread, and the rooms where someone waits for you: who mentions or invites you."""

    rooms: list[UnreadRoom] | UnsetType = UNSET


async def digest(call: Call[Nothing]) -> HubDigest:
    """What is unread."""
    services = call.services
    found = HubDigest(**asdict(await services.mail.digest(call.account)))
    if not services.permits(call.caller.principal, "room/unread"):
        return found
    unread = (await services.rooms.unread_rooms(call.visitor)).rooms
    waiting = [it for it in unread if it.mentions or it.invited][:MAX_ROOMS_TOLD]
    return replace(found, rooms=waiting) if waiting else found


class MarkRead(Arguments, frozen=True, kw_only=True):
    """One thread, or some messages of it."""

    __uuids__ = ("thread_id", "message_ids")

    thread_id: Annotated[str, describe("UUID of the thread to mark as read")]
    message_ids: (
        Annotated[
            list[str],
            describe("Mark only these messages of the thread (UUIDs).", max_length=MAX_MARKED_READ),
        ]
        | None
    ) = None


class ThreadDone(Struct, frozen=True):
    """The id of a changed thread, and a sentence that says what was done."""

    thread_id: str
    message: str


async def mark_read(call: Call[MarkRead]) -> ThreadDone:
    """Mark everything in a thread as read, or only what was named."""
    given = call.arguments
    await call.services.mail.mark_read(call.account, given.thread_id, given.message_ids)
    done = "Thread" if given.message_ids is None else "Messages"
    return ThreadDone(given.thread_id, f"{done} marked as read.")


class DeleteThread(Arguments, frozen=True, kw_only=True):
    """One thread, and whether the user agrees."""

    __uuids__ = ("thread_id",)

    thread_id: Annotated[str, describe("UUID of the thread to delete")]
    confirm: (
        Annotated[bool, describe("Whether to delete it; clients that can ask the user do so")]
        | None
    ) = None


async def delete_thread(call: Call[DeleteThread]) -> ThreadDone:
    """Remove a thread from the caller's mailbox."""
    thread_id = call.arguments.thread_id
    if call.arguments.confirm is False:
        raise e.ArgumentInvalid("Nothing was deleted: the user did not agree.", field="confirm")
    await call.services.mail.delete_thread(call.account, thread_id)
    return ThreadDone(thread_id, "Thread deleted.")


class ChangeState(Arguments, frozen=True, kw_only=True):
    """One thread, and whether its state is to be taken back."""

    __uuids__ = ("thread_id",)

    thread_id: ThreadId
    undo: bool = False


class Archive(ChangeState, frozen=True, kw_only=True):
    """A thread to archive."""

    undo: Annotated[bool, describe("If true, unarchive (restore to active). Default false.")] = (
        False
    )


class Star(ChangeState, frozen=True, kw_only=True):
    """A thread to star."""

    undo: Annotated[bool, describe("If true, unstar (restore to active). Default false.")] = False


class Mute(ChangeState, frozen=True, kw_only=True):
    """A thread to mute."""

    undo: Annotated[bool, describe("If true, unmute (restore to active). Default false.")] = False


class ThreadState(Struct, frozen=True):
    """A thread, and the state it is in now."""

    thread_id: str
    state: State
    message: str


DO, UNDO = {"undo": False}, {"undo": True}


def changing(action: str, done: str, takes: type[ChangeState], more: str = "") -> Operation:
    """The operation that puts a thread into a state, and back."""

    async def handler(call: Call[ChangeState]) -> ThreadState:
        given = call.arguments
        change = getattr(call.services.mail, action)
        changed = await change(call.account, given.thread_id, undo=given.undo)
        message = f"Thread {'un' if given.undo else ''}{done}."
        return ThreadState(changed.thread_id, changed.state, message)

    path, undo = f"/v1/threads/{{thread_id}}/{action}", f"un{action}"
    return Operation(
        name=f"msg/{action}",
        description=f"{action.capitalize()} or {undo} a thread.{more}",
        takes=takes,
        handler=handler,
        scope="mail.read",
        tool="app",
        errors=(e.ThreadNotFound, e.AccessDenied),
        routes=(
            Route("PUT", path, f"{action}Thread", f"{action.capitalize()} a thread", fixed=DO),
            Route("DELETE", path, f"{undo}Thread", f"{undo.capitalize()} a thread", fixed=UNDO),
        ),
        commands=(f"mail {action}",),
    )


THREADS = (
    Operation(
        name="msg/threads",
        description="List your message threads with previews, unread counts, and participant info.",
        handler=threads,
        scope="mail.read",
        others_words=("threads",),
        routes=(Route("GET", "/v1/threads", "listThreads", "List your threads"),),
        commands=("mail list",),
    ),
    Operation(
        name="msg/thread",
        description="Read one conversation with the messages of both sides, newest first. What is "
        "returned counts as read unless peek is true.",
        handler=thread,
        effect="changes",
        scope="mail.read",
        others_words=("thread", "messages"),
        errors=(e.ThreadNotFound, e.AccessDenied),
        routes=(
            Route(
                "GET",
                "/v1/threads/{thread_id}",
                "readThread",
                "Read a thread",
                "The messages of both sides, newest first. They stay unread.",
                fixed={"peek": True},
            ),
        ),
        commands=("mail show",),
    ),
    Operation(
        name="msg/digest",
        description="Get a summary of your unread messages and recent activity.",
        handler=digest,
        scope="mail.read",
        reaches_others=True,
        routes=(Route("GET", "/v1/digest", "getDigest", "Read what is unread, in short"),),
        commands=("digest",),
    ),
    Operation(
        name="msg/delete_thread",
        description="Delete a thread from your mailbox. The other participant keeps theirs.",
        handler=delete_thread,
        scope="mail.delete",
        asks="confirm",
        errors=(e.ThreadNotFound, e.AccessDenied),
        routes=(
            Route(
                "DELETE",
                "/v1/threads/{thread_id}",
                "deleteThread",
                "Delete a thread from your mailbox",
                fixed={"confirm": True},
            ),
        ),
        commands=("mail delete-thread",),
    ),
    Operation(
        name="msg/mark_read",
        description="Mark all messages in a thread as read.",
        handler=mark_read,
        scope="mail.read",
        tool="app",
        errors=(e.ThreadNotFound, e.AccessDenied, e.MessageNotFound),
        routes=(
            Route(
                "PUT",
                "/v1/threads/{thread_id}/read",
                "markRead",
                "Mark a thread as read",
                example={"message_ids": []},
            ),
        ),
        commands=Absent("`inbox` and `mail show` mark what they show."),
    ),
    changing("archive", "archived", Archive),
    changing("star", "starred", Star),
    changing("mute", "muted", Mute, " Muted threads do not generate notifications."),
)
