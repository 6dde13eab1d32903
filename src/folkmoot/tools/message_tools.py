"""Messages: sending, answering, reading and deleting them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from folkmoot.mail import MOST_KEY_CHARACTERS, MOST_SECONDS, EncryptedPayload, Page, Priority
from folkmoot.tools.account_tools import MISSED, by_user
from folkmoot.tools.model import Arguments, Call, Payload, Rate, Tool
from folkmoot.tools.patience import patiently
from folkmoot.tools.people_tools import PageLimit, every_try
from folkmoot.tools.schemas import CURSOR, choice, integer, obj, one_of, switch, text

LAST_SECOND = 2**53
"""Later than any message; a larger `before` means the same."""

Wait = Annotated[int, Meta(ge=0, le=MOST_SECONDS)]


class Send(Arguments, frozen=True, kw_only=True):
    """A message to someone."""

    to: str
    body: str | None = None
    encrypted_payload: EncryptedPayload | None = None
    priority: Priority = "normal"
    reply_to: str | None = None
    idempotency_key: str | None = None


async def send(call: Call[Send]) -> Payload:
    """Send a message; answered once it is stored."""
    given = call.arguments
    return await call.services.mail.send(
        call.account,
        given.to,
        body=given.body,
        encrypted_payload=given.encrypted_payload,
        priority=given.priority,
        reply_to=given.reply_to,
        idempotency_key=given.idempotency_key,
    )


class Reply(Arguments, frozen=True, kw_only=True):
    """An answer to a message."""

    message_id: str
    body: str | None = None
    encrypted_payload: EncryptedPayload | None = None
    priority: Priority = "normal"
    idempotency_key: str | None = None


async def reply(call: Call[Reply]) -> Payload:
    """Answer a message in its thread."""
    given = call.arguments
    mail = call.services.mail
    return await mail.reply(
        call.account,
        await mail.whole_id(call.account, given.message_id),
        body=given.body,
        encrypted_payload=given.encrypted_payload,
        priority=given.priority,
        idempotency_key=given.idempotency_key,
    )


class Inbox(Arguments, frozen=True, kw_only=True):
    """Which messages, and whether to wait for them."""

    thread_id: str | None = None
    limit: PageLimit = 50
    before: int | None = None
    cursor: str | None = None
    peek: bool = False
    wait: Wait = 0


async def inbox(call: Call[Inbox]) -> Payload:
    """Recent messages; they count as read once the answer has arrived."""
    given = call.arguments
    reading = call.services.mail.inbox(
        call.account,
        thread_id=given.thread_id,
        limit=given.limit,
        before=None if given.before is None else min(given.before, LAST_SECOND),
        cursor=given.cursor,
        peek=given.peek,
        wait=given.wait,
    )
    if not given.wait:
        return take_page(call, await reading)
    return take_page(call, await patiently(call.caller, reading) or Page([]))


def take_page(call: Call[Any], page: Page) -> dict[str, Any]:
    """A page of messages as it is shown; it counts as read when the answer has arrived."""
    if page.seqs:
        call.delivered = lambda: call.services.mail.mark_delivered(call.account, page.seqs)
    return {"messages": page.messages, "next_cursor": page.next_cursor}


class MessageId(Arguments, frozen=True, kw_only=True):
    """One message."""

    message_id: str


async def delete_message(call: Call[MessageId]) -> Payload:
    """Remove the caller's copy of a message."""
    mail = call.services.mail
    message_id = await mail.whole_id(call.account, call.arguments.message_id)
    await mail.delete_message(call.account, message_id)
    return {"message_id": message_id, "message": "Message deleted."}


SEND_RATE = Rate("send", by_user, every_try)
IDEMPOTENCY_KEY = text(
    "A key of your own for this message, such as a UUID. If no answer arrives, call again with the "
    "same key: within 24 hours that returns the first message and sends nothing twice.",
    minLength=1,
    maxLength=MOST_KEY_CHARACTERS,
)

MESSAGE_TOOLS = (
    Tool(
        name="msg/send",
        description="Send a message to another MMP user. Provide either a plaintext body (server "
        "encrypts) or an encrypted_payload (for E2E). Creates a thread if needed.",
        schema=obj(
            {
                "to": text("Recipient handle (without @ prefix)"),
                "body": text(
                    "Plaintext message body. Server will encrypt using server-side keys. Mutually "
                    "exclusive with encrypted_payload."
                ),
                "encrypted_payload": obj(
                    {
                        "ciphertext": text("Base64-encoded NaCl box ciphertext"),
                        "nonce": text("Base64-encoded 24-byte nonce"),
                        "sender_public_key": text("Base64-encoded sender public key"),
                    },
                    ("ciphertext", "nonce", "sender_public_key"),
                    description="Pre-encrypted payload for E2E encryption. Mutually exclusive with "
                    "body.",
                ),
                "priority": choice(
                    "urgent",
                    "normal",
                    "low",
                    "fyi",
                    description="Message priority. Defaults to normal.",
                ),
                "reply_to": text("Message ID this is a reply to (UUID)"),
                "idempotency_key": IDEMPOTENCY_KEY,
            },
            ("to",),
            **one_of("body", "encrypted_payload"),
        ),
        arguments=Send,
        handler=send,
        rates=(SEND_RATE, MISSED),
        kind="adds",
        open_world=True,
    ),
    Tool(
        name="msg/inbox",
        description="Retrieve your recent messages. Server-assisted messages are returned "
        "decrypted; E2E messages include ciphertext for client-side decryption.",
        schema=obj(
            {
                "thread_id": text(
                    "Filter to a specific thread (UUID). If omitted, returns messages across all "
                    "threads."
                ),
                "limit": integer(
                    "Maximum number of messages to return. Default 50, max 100.",
                    minimum=1,
                    maximum=100,
                ),
                "before": integer("Return messages before this epoch timestamp (for pagination)."),
                "cursor": CURSOR,
                "peek": switch("If true, the returned messages stay unread. Default false."),
                "wait": integer(
                    "Wait up to this many seconds for a new message instead of polling. Returns as "
                    "soon as one arrives. Default 0, max 55.",
                    minimum=0,
                    maximum=MOST_SECONDS,
                ),
            }
        ),
        arguments=Inbox,
        handler=inbox,
        waits="wait",
        others=("messages",),
    ),
    Tool(
        name="msg/reply",
        description="Reply to a specific message. Automatically routes to the correct thread and "
        "sets the reply_to reference.",
        schema=obj(
            {
                "message_id": text("The UUID of the message to reply to"),
                "body": text("Plaintext reply body (server encrypts)"),
                "encrypted_payload": obj(
                    {
                        "ciphertext": {"type": "string"},
                        "nonce": {"type": "string"},
                        "sender_public_key": {"type": "string"},
                    },
                    ("ciphertext", "nonce", "sender_public_key"),
                    description="Pre-encrypted payload for E2E encryption",
                ),
                "priority": {"type": "string", "enum": ["urgent", "normal", "low", "fyi"]},
                "idempotency_key": IDEMPOTENCY_KEY,
            },
            ("message_id",),
            **one_of("body", "encrypted_payload"),
        ),
        arguments=Reply,
        handler=reply,
        rates=(SEND_RATE,),
        kind="adds",
        open_world=True,
    ),
    Tool(
        name="msg/delete_message",
        description="Delete your copy of a message. The other participant keeps theirs.",
        schema=obj(
            {"message_id": text("The UUID of the message to delete, or how it begins")},
            ("message_id",),
        ),
        arguments=MessageId,
        handler=delete_message,
        kind="destroys",
    ),
)
