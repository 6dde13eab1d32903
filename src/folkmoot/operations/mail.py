"""Messages: sending, answering, reading and deleting them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.mail.limits import MAX_IDEMPOTENCY_KEY, MAX_WAIT_SECONDS
from folkmoot.mail.model import EncryptedPayload, MailMessage, MailPage, Priority, Sent
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.declare import UUID, Topic, delete, get, post
from folkmoot.operations.rate_limits import MISSED, by_user, every_try
from folkmoot.operations.row import Cursor, OperationLimit, describe

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH = "/v1/messages"
MessagesLimit = Annotated[
    int, describe("Maximum number of messages to return. Default 50, max 100.", ge=1, le=100)
]
Peek = Annotated[bool, "If true, the returned messages stay unread. Default false."]
IdempotencyKey = Annotated[
    str,
    describe(
        "A key of your own for this message, such as a UUID. If no answer arrives, call again with "
        "the same key: within 24 hours that returns the first message and sends nothing twice.",
        schema={"minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY},
    ),
]
SEND_LIMIT = OperationLimit("send", by_user, every_try)
sending = Topic(
    scope="mail.send",
    reaches_others=True,
    exactly_one=("body", "encrypted_payload"),
    limits=(SEND_LIMIT,),
    once="idempotency_key",
    errors=(
        e.UserNotFound,
        e.CannotSend,
        e.CannotSendToSelf,
        e.ContentMissing,
        e.ContentTwice,
        e.MessageNotFound,
        e.ThreadNotFound,
        e.AccessDenied,
        e.QuotaExceeded,
    ),
)
mail = Topic(scope="mail.read")


class DescribedPayload(EncryptedPayload, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a client encrypted by itself, with what the specification says of its members."""

    ciphertext: Annotated[str, describe("Base64-encoded NaCl box ciphertext")]
    nonce: Annotated[str, describe("Base64-encoded 24-byte nonce")]
    sender_public_key: Annotated[str, describe("Base64-encoded sender public key")]


@sending.adds(
    "msg/send",
    post(
        PATH,
        "sendMessage",
        "Send a message",
        status=201,
        example={"to": "bob", "body": "Is the boat ready?"},
    ),
    limits=(SEND_LIMIT, MISSED),
    commands=("send",),
)
async def send(
    call: Call,
    to: Annotated[str, "Recipient handle (without @ prefix)"],
    *,
    body: Annotated[
        str,
        "Plaintext message body. Server will encrypt using server-side keys. Mutually exclusive "
        "with encrypted_payload.",
    ]
    | None = None,
    encrypted_payload: Annotated[
        DescribedPayload, "Pre-encrypted payload for E2E encryption. Mutually exclusive with body."
    ]
    | None = None,
    priority: Annotated[Priority, "Message priority. Defaults to normal."] = "normal",
    reply_to: Annotated[str, "Message ID this is a reply to (UUID)", UUID] | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> Sent:
    """Send a message to another MMP user. Provide either a plaintext body (server encrypts) or an
    encrypted_payload (for E2E). Creates a thread if needed.
    """
    return await call.services.mail.send(
        call.account,
        to,
        body=body,
        encrypted_payload=encrypted_payload,
        priority=priority,
        reply_to=reply_to,
        idempotency_key=idempotency_key,
    )


class Messages(Struct, frozen=True):
    """A page of messages, newest first."""

    messages: list[MailMessage]
    next_cursor: str | None


@mail.changes(
    "msg/inbox",
    get(PATH, "listMessages", "Read your messages", fixed={"peek": True}),
    others_words=("messages",),
    waits="wait",
    errors=(e.ThreadNotFound, e.AccessDenied),
    commands=("inbox",),
)
async def inbox(
    call: Call,
    *,
    thread_id: Annotated[
        str,
        "Filter to a specific thread (UUID). If omitted, returns messages across all threads.",
        UUID,
    ]
    | None = None,
    limit: MessagesLimit = 50,
    before: Annotated[int, "Return messages before this epoch timestamp (for pagination)."]
    | None = None,
    cursor: Cursor | None = None,
    peek: Peek = False,
    wait: Annotated[
        int,
        describe(
            "Wait up to this many seconds for a new message instead of polling. Returns as soon as "
            "one arrives. Default 0, max 55.",
            ge=0,
            le=MAX_WAIT_SECONDS,
        ),
    ] = 0,
) -> Messages:
    """Retrieve your recent messages. Server-assisted messages are returned decrypted; E2E messages
    include ciphertext for client-side decryption.
    """
    reading = call.services.mail.inbox(
        call.account,
        thread_id=thread_id,
        limit=limit,
        before=before,
        cursor=cursor,
        peek=peek,
        wait=wait,
    )
    page = await (wait_unless_left(call.caller, reading) if wait else reading)
    return Messages(*deliver_page(call, page or MailPage([])))


def deliver_page(call: Call, page: MailPage) -> tuple[list[MailMessage], str | None]:
    """The messages of a page and its cursor; they count as read when the answer has arrived."""
    if page.seqs:
        call.delivered = partial(call.services.mail.mark_delivered, call.account, page.seqs)
    return page.messages, page.next_cursor


@sending.adds(
    "msg/reply",
    post(
        PATH + "/{message_id}/replies",
        "replyToMessage",
        "Reply to a message",
        status=201,
        example={"body": "At six."},
    ),
    commands=("reply",),
)
async def reply(
    call: Call,
    message_id: Annotated[str, "The UUID of the message to reply to", UUID],
    *,
    body: Annotated[str, "Plaintext reply body (server encrypts)"] | None = None,
    encrypted_payload: Annotated[EncryptedPayload, "Pre-encrypted payload for E2E encryption"]
    | None = None,
    priority: Priority = "normal",
    idempotency_key: IdempotencyKey | None = None,
) -> Sent:
    """Reply to a specific message. Automatically routes to the correct thread and sets the reply_to
    reference.
    """
    whole = await call.services.mail.resolve_id_prefix(call.account, message_id)
    return await call.services.mail.reply(
        call.account,
        whole,
        body=body,
        encrypted_payload=encrypted_payload,
        priority=priority,
        idempotency_key=idempotency_key,
    )


class MessageDeleted(Struct, frozen=True):
    """A message deleted from the caller's side."""

    message_id: str
    message: str


@mail.destroys(
    "msg/delete_message",
    delete(PATH + "/{message_id}", "deleteMessage", "Delete your copy of a message"),
    scope="mail.delete",
    errors=(e.MessageNotFound, e.AccessDenied),
    commands=("mail delete",),
)
async def delete_message(
    call: Call,
    message_id: Annotated[str, "The UUID of the message to delete, or its first characters", UUID],
) -> MessageDeleted:
    """Delete your copy of a message. The other participant keeps theirs."""
    whole = await call.services.mail.resolve_id_prefix(call.account, message_id)
    await call.services.mail.delete_message(call.account, whole)
    return MessageDeleted(whole, "Message deleted.")
