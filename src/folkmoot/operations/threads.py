"""Threads: listing and reading them, and marking, muting, archiving and deleting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from folkmoot.core import errors as e
from folkmoot.mail.model import Digest, MailMessage, State, ThreadPage
from folkmoot.mail.model import Thread as ThreadView
from folkmoot.operations.declare import UUID, Declaring, Topic, delete, get, put
from folkmoot.operations.limits import MAX_MARKED_READ, MAX_ROOMS_TOLD
from folkmoot.operations.mail import MessagesLimit, Peek, deliver_page
from folkmoot.operations.row import Absent, Cursor, PageLimit, describe
from folkmoot.rooms.model import UnreadRoom

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH = "/v1/threads/{thread_id}"
ThreadId = Annotated[str, "UUID of the thread", UUID]
NOT_MINE = (e.ThreadNotFound, e.AccessDenied)
mail = Topic(scope="mail.read")


@mail.reads(
    "msg/threads",
    get("/v1/threads", "listThreads", "List your threads"),
    others_words=("threads",),
    commands=("mail list",),
)
async def threads(
    call: Call,
    *,
    state: Annotated[State, "Filter threads by state. If omitted, returns all threads."]
    | None = None,
    limit: PageLimit = 100,
    cursor: Cursor | None = None,
) -> ThreadPage:
    """List your message threads with previews, unread counts, and participant info."""
    return await call.services.mail.threads(call.account, limit=limit, cursor=cursor, state=state)


class ThreadMessages(Struct, frozen=True):
    """A thread with a page of its messages, newest first."""

    thread: ThreadView
    messages: list[MailMessage]
    next_cursor: str | None


@mail.changes(
    "msg/thread",
    get(
        PATH,
        "readThread",
        "Read a thread",
        "The messages of both sides, newest first. They stay unread.",
        fixed={"peek": True},
    ),
    others_words=("thread", "messages"),
    errors=NOT_MINE,
    commands=("mail show",),
)
async def thread(
    call: Call,
    thread_id: ThreadId,
    *,
    limit: MessagesLimit = 50,
    cursor: Cursor | None = None,
    peek: Peek = False,
) -> ThreadMessages:
    """Read one conversation with the messages of both sides, newest first. What is returned counts
    as read unless peek is true.
    """
    found = await call.services.mail.thread(
        call.account, thread_id, limit=limit, cursor=cursor, peek=peek
    )
    return ThreadMessages(found.thread, *deliver_page(call, found.page))


class HubDigest(Digest, frozen=True):
    """What is unread, the rooms where someone waits for you, who mentions or invites you, and how
    many programs wait for your decision.
    """

    rooms: list[UnreadRoom] | UnsetType = UNSET
    asks: int | UnsetType = UNSET
    """How many there are, if any; `ask/list` has them."""


@mail.reads(
    "msg/digest",
    get("/v1/digest", "getDigest", "Read what is unread, in short"),
    reaches_others=True,
    commands=("digest",),
)
async def digest(call: Call) -> HubDigest:
    """Get a summary of your unread messages and recent activity."""
    services, principal = call.services, call.caller.principal
    found = HubDigest(**asdict(await services.mail.digest(call.account)))
    if services.permits(principal, "room/unread"):
        unread = (await services.rooms.unread_rooms(call.visitor)).rooms
        waiting = [it for it in unread if it.mentions or it.invited][:MAX_ROOMS_TOLD]
        found = replace(found, rooms=waiting or UNSET)
    if services.permits(principal, "ask/list"):
        found = replace(found, asks=await services.asks.count_waiting(call.account.id) or UNSET)
    return found


class ThreadDone(Struct, frozen=True):
    """The id of a changed thread, and a sentence that says what was done."""

    thread_id: str
    message: str


@mail.destroys(
    "msg/delete_thread",
    delete(PATH, "deleteThread", "Delete a thread from your mailbox", fixed={"confirm": True}),
    scope="mail.delete",
    asks="confirm",
    errors=NOT_MINE,
    commands=("mail delete-thread",),
)
async def delete_thread(
    call: Call,
    thread_id: Annotated[str, "UUID of the thread to delete", UUID],
    *,
    confirm: Annotated[bool, "Whether to delete it; clients that can ask the user do so"]
    | None = None,
) -> ThreadDone:
    """Delete a thread from your mailbox. The other participant keeps theirs."""
    if confirm is False:
        raise e.ArgumentInvalid("Nothing was deleted: the user did not agree.", field="confirm")
    await call.services.mail.delete_thread(call.account, thread_id)
    return ThreadDone(thread_id, "Thread deleted.")


@mail.changes(
    "msg/mark_read",
    put(PATH + "/read", "markRead", "Mark a thread as read", example={"message_ids": []}),
    tool="app",
    errors=(*NOT_MINE, e.MessageNotFound),
    commands=Absent("`inbox` and `mail show` mark what they show."),
)
async def mark_read(
    call: Call,
    thread_id: Annotated[str, "UUID of the thread to mark as read", UUID],
    *,
    message_ids: Annotated[
        list[str],
        describe("Mark only these messages of the thread (UUIDs).", max_length=MAX_MARKED_READ),
        UUID,
    ]
    | None = None,
) -> ThreadDone:
    """Mark all messages in a thread as read."""
    await call.services.mail.mark_read(call.account, thread_id, message_ids)
    done = "Thread" if message_ids is None else "Messages"
    return ThreadDone(thread_id, f"{done} marked as read.")


class ThreadState(Struct, frozen=True):
    """A thread, and the state it is in now."""

    thread_id: str
    state: State
    message: str


def state(verb: str) -> Declaring:
    """An operation that puts a thread into a state, and back."""
    path, undo = f"{PATH}/{verb}", f"un{verb}"
    return mail.changes(
        f"msg/{verb}",
        put(path, f"{verb}Thread", f"{verb.capitalize()} a thread", fixed={"undo": False}),
        delete(path, f"{undo}Thread", f"{undo.capitalize()} a thread", fixed={"undo": True}),
        tool="app",
        errors=NOT_MINE,
        commands=(f"mail {verb}",),
    )


async def put_into(call: Call, thread_id: str, done: State, *, undo: bool) -> ThreadState:
    to: State = "active" if undo else done
    await call.services.mail.set_state(call.account, thread_id, to)
    return ThreadState(thread_id, to, f"Thread {'un' * undo}{done}.")


@state("archive")
async def archive(
    call: Call,
    thread_id: ThreadId,
    *,
    undo: Annotated[bool, "If true, unarchive (restore to active). Default false."] = False,
) -> ThreadState:
    """Archive or unarchive a thread."""
    return await put_into(call, thread_id, "archived", undo=undo)


@state("star")
async def star(
    call: Call,
    thread_id: ThreadId,
    *,
    undo: Annotated[bool, "If true, unstar (restore to active). Default false."] = False,
) -> ThreadState:
    """Star or unstar a thread."""
    return await put_into(call, thread_id, "starred", undo=undo)


@state("mute")
async def mute(
    call: Call,
    thread_id: ThreadId,
    *,
    undo: Annotated[bool, "If true, unmute (restore to active). Default false."] = False,
) -> ThreadState:
    """Mute or unmute a thread. Muted threads do not generate notifications."""
    return await put_into(call, thread_id, "muted", undo=undo)
