"""Messages: sending, answering, reading and deleting them, and the app that shows them."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from folkmoot.core import errors as e
from folkmoot.mail.limits import MAX_IDEMPOTENCY_KEY, MAX_WAIT_SECONDS
from folkmoot.mail.model import (
    Digest,
    EncryptedPayload,
    MailMessage,
    MailPage,
    Priority,
    Sent,
    Thread,
)
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.limits import MAX_SENDERS_NAMED
from folkmoot.operations.rate_limits import MISSED, by_user, every_try
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Cursor,
    Nothing,
    Operation,
    OperationLimit,
    Route,
    describe,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

INBOX_APP: Final = "ui://mmp-inbox"
APP_TYPE: Final = "text/html;profile=mcp-app"
OLD_APP_TYPE: Final = "application/vnd.mcp.app+html"
"""What MMP calls the type of an app; the Apps extension has had another name for it since."""
APP_TYPES: Final = (APP_TYPE, OLD_APP_TYPE)
APP_META: Final = {
    "ui": {
        "csp": {"connectDomains": [], "resourceDomains": []},
        "permissions": {"clipboardWrite": {}},
        "prefersBorder": True,
    }
}
"""What a host may know of the app before it shows it: it loads nothing, and would like to copy."""

MessagesLimit = Annotated[
    int, describe("Maximum number of messages to return. Default 50, max 100.", ge=1, le=100)
]
Peek = Annotated[bool, describe("If true, the returned messages stay unread. Default false.")]
IdempotencyKey = Annotated[
    str,
    describe(
        "A key of your own for this message, such as a UUID. If no answer arrives, call again with "
        "the same key: within 24 hours that returns the first message and sends nothing twice.",
        schema={"minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY},
    ),
]


class DescribedPayload(EncryptedPayload, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a client encrypted by itself, with what the specification says of its members."""

    ciphertext: Annotated[str, describe("Base64-encoded NaCl box ciphertext")]
    nonce: Annotated[str, describe("Base64-encoded 24-byte nonce")]
    sender_public_key: Annotated[str, describe("Base64-encoded sender public key")]


class Send(Arguments, frozen=True, kw_only=True):
    """A message to someone."""

    __exactly_one__ = ("body", "encrypted_payload")
    __uuids__ = ("reply_to",)

    to: Annotated[str, describe("Recipient handle (without @ prefix)")]
    body: (
        Annotated[
            str,
            describe(
                "Plaintext message body. Server will encrypt using server-side keys. Mutually "
                "exclusive with encrypted_payload."
            ),
        ]
        | None
    ) = None
    encrypted_payload: (
        Annotated[
            DescribedPayload,
            describe("Pre-encrypted payload for E2E encryption. Mutually exclusive with body."),
        ]
        | None
    ) = None
    priority: Annotated[Priority, describe("Message priority. Defaults to normal.")] = "normal"
    reply_to: Annotated[str, describe("Message ID this is a reply to (UUID)")] | None = None
    idempotency_key: IdempotencyKey | None = None


async def send(call: Call[Send]) -> Sent:
    """Send a message; answered once it is stored."""
    return await call.services.mail.send(call.account, **asdict(call.arguments))


class Reply(Arguments, frozen=True, kw_only=True):
    """An answer to a message."""

    __exactly_one__ = ("body", "encrypted_payload")
    __uuids__ = ("message_id",)

    message_id: Annotated[str, describe("The UUID of the message to reply to")]
    body: Annotated[str, describe("Plaintext reply body (server encrypts)")] | None = None
    encrypted_payload: (
        Annotated[EncryptedPayload, describe("Pre-encrypted payload for E2E encryption")] | None
    ) = None
    priority: Priority = "normal"
    idempotency_key: IdempotencyKey | None = None


async def reply(call: Call[Reply]) -> Sent:
    """Answer a message in its thread."""
    mail = call.services.mail
    whole = await mail.resolve_id_prefix(call.account, call.arguments.message_id)
    return await mail.reply(call.account, **asdict(replace(call.arguments, message_id=whole)))


class ReadInbox(Arguments, frozen=True, kw_only=True):
    """Which messages, and whether to wait for them."""

    __uuids__ = ("thread_id",)

    thread_id: (
        Annotated[
            str,
            describe(
                "Filter to a specific thread (UUID). If omitted, returns messages across all "
                "threads."
            ),
        ]
        | None
    ) = None
    limit: MessagesLimit = 50
    before: (
        Annotated[int, describe("Return messages before this epoch timestamp (for pagination).")]
        | None
    ) = None
    cursor: Cursor | None = None
    peek: Peek = False
    wait: Annotated[
        int,
        describe(
            "Wait up to this many seconds for a new message instead of polling. Returns as soon as "
            "one arrives. Default 0, max 55.",
            ge=0,
            le=MAX_WAIT_SECONDS,
        ),
    ] = 0


class Messages(Struct, frozen=True):
    """A page of messages, newest first."""

    messages: list[MailMessage]
    next_cursor: str | None


async def inbox(call: Call[ReadInbox]) -> Messages:
    """Recent messages; they count as read once the answer has arrived."""
    reading = call.services.mail.inbox(call.account, **asdict(call.arguments))
    page = await (wait_unless_left(call.caller, reading) if call.arguments.wait else reading)
    return Messages(*deliver_page(call, page or MailPage([])))


def deliver_page(call: Call[Any], page: MailPage) -> tuple[list[MailMessage], str | None]:
    """The messages of a page and its cursor; they count as read when the answer has arrived."""
    if page.seqs:
        call.delivered = partial(call.services.mail.mark_delivered, call.account, page.seqs)
    return page.messages, page.next_cursor


class DeleteMessage(Arguments, frozen=True, kw_only=True):
    """One message."""

    __uuids__ = ("message_id",)

    message_id: Annotated[
        str, describe("The UUID of the message to delete, or its first characters")
    ]


class MessageDeleted(Struct, frozen=True):
    """A message deleted from the caller's side."""

    message_id: str
    message: str


async def delete_message(call: Call[DeleteMessage]) -> MessageDeleted:
    """Remove the caller's copy of a message."""
    mail = call.services.mail
    message_id = await mail.resolve_id_prefix(call.account, call.arguments.message_id)
    await mail.delete_message(call.account, message_id)
    return MessageDeleted(message_id, "Message deleted.")


class InboxOpened(Struct, frozen=True):
    """What the app shows first, and what a client without apps can read out."""

    resource: str
    hub: str
    """What the caller reached the hub at: keys that are taken elsewhere name it."""
    handle: str
    message: str
    digest: Digest
    threads: list[Thread]


async def open_inbox(call: Call[Nothing]) -> InboxOpened:
    """The inbox at a glance."""
    mail = call.services.mail
    digest = await mail.digest(call.account)
    page = await mail.threads(call.account, limit=20)
    return InboxOpened(
        INBOX_APP,
        call.caller.base_url,
        call.account.handle,
        summary(digest),
        digest,
        page.threads,
    )


def summary(digest: Digest) -> str:
    """A digest in one sentence."""
    unread, threads = digest.total_unread, digest.threads_with_unread
    if not unread:
        return "You have no unread messages."
    sentence = (
        f"You have {unread} unread message{'s' if unread > 1 else ''} "
        f"in {threads} thread{'s' if threads > 1 else ''}"
    )
    if digest.recent_senders:
        named = digest.recent_senders[:MAX_SENDERS_NAMED]
        sentence += f", from {', '.join(f'@{handle}' for handle in named)}"
        sentence += " and others" if len(digest.recent_senders) > MAX_SENDERS_NAMED else ""
    return f"{sentence}; {digest.urgent_count} urgent." if digest.urgent_count else f"{sentence}."


@cache
def inbox_page() -> str:
    """The app as one HTML document, which `make app` builds."""
    return files("folkmoot").joinpath("web", "built", "inbox.html").read_text("utf-8")


SEND_LIMIT = OperationLimit("send", by_user, every_try)
UNSENT = (
    *(
        e.UserNotFound,
        e.CannotSend,
        e.CannotSendToSelf,
        e.ContentMissing,
        e.ContentTwice,
        e.MessageNotFound,
    ),
    *(e.ThreadNotFound, e.AccessDenied, e.QuotaExceeded),
)
"""Why a message may not be sent."""

MESSAGES = (
    Operation(
        name="msg/send",
        description="Send a message to another MMP user. Provide either a plaintext body (server "
        "encrypts) or an encrypted_payload (for E2E). Creates a thread if needed.",
        handler=send,
        scope="mail.send",
        reaches_others=True,
        limits=(SEND_LIMIT, MISSED),
        once="idempotency_key",
        errors=UNSENT,
        routes=(
            Route(
                "POST",
                "/v1/messages",
                "sendMessage",
                "Send a message",
                status=201,
                example={"to": "bob", "body": "Is the boat ready?"},
            ),
        ),
        commands=("send",),
    ),
    Operation(
        name="msg/inbox",
        description="Retrieve your recent messages. Server-assisted messages are returned "
        "decrypted; E2E messages include ciphertext for client-side decryption.",
        handler=inbox,
        effect="changes",
        scope="mail.read",
        others_words=("messages",),
        waits="wait",
        errors=(e.ThreadNotFound, e.AccessDenied),
        routes=(
            Route(
                "GET", "/v1/messages", "listMessages", "Read your messages", fixed={"peek": True}
            ),
        ),
        commands=("inbox",),
    ),
    Operation(
        name="msg/reply",
        description="Reply to a specific message. Automatically routes to the correct thread and "
        "sets the reply_to reference.",
        handler=reply,
        scope="mail.send",
        reaches_others=True,
        limits=(SEND_LIMIT,),
        once="idempotency_key",
        errors=UNSENT,
        routes=(
            Route(
                "POST",
                "/v1/messages/{message_id}/replies",
                "replyToMessage",
                "Reply to a message",
                status=201,
                example={"body": "At six."},
            ),
        ),
        commands=("reply",),
    ),
    Operation(
        name="msg/delete_message",
        description="Delete your copy of a message. The other participant keeps theirs.",
        handler=delete_message,
        scope="mail.delete",
        errors=(e.MessageNotFound, e.AccessDenied),
        routes=(
            Route(
                "DELETE",
                "/v1/messages/{message_id}",
                "deleteMessage",
                "Delete your copy of a message",
            ),
        ),
        commands=("mail delete",),
    ),
)

APP = (
    Operation(
        name="msg/open_inbox",
        description="Open the interactive inbox UI in your MCP client (requires MCP App support).",
        handler=open_inbox,
        scope="mail.read",
        effect="reads",
        others_words=("threads",),
        app=INBOX_APP,
        routes=Absent("It opens an app in an MCP client."),
        commands=Absent("It opens an app in an MCP client."),
    ),
)
