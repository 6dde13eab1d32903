"""The nouns: what the actions of a mailbox take and answer, in the words and order of the wire."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import UNSET, Struct, UnsetType

Priority: TypeAlias = Literal["urgent", "normal", "low", "fyi"]
Mode: TypeAlias = Literal["server_assisted", "e2e"]
State: TypeAlias = Literal["active", "archived", "muted", "starred"]

PRIORITIES: tuple[Priority, ...] = get_args(Priority)
STATES: tuple[State, ...] = get_args(State)

SERVER_ASSISTED: Mode = "server_assisted"
E2E: Mode = "e2e"


GONE_HANDLE = "[deleted]"
GONE_NAME = "Deleted account"
"""What stands for someone who deleted their account; no handle is spelled like this."""


class EncryptedPayload(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a client encrypted by itself: kept and returned exactly as it was given."""

    ciphertext: str
    nonce: str
    sender_public_key: str


Content: TypeAlias = str | EncryptedPayload
"""What a message may hold: a body of text, or a payload that was encrypted elsewhere."""
NONCE_BYTES = 24


class Sent(Struct, frozen=True, gc=False):
    """A message that was stored; `to` is the recipient's present handle."""

    message_id: str
    thread_id: str
    to: str
    encryption_mode: Mode
    created_at: int
    quota_warning: str | UnsetType = UNSET
    """What a sender is told who has stored nearly as much as one may."""


class MailMessage(Struct, frozen=True, gc=False):
    """A message as one of its two sides reads it.

    `body` is null for E2E, which has its `encrypted_payload`, and for one that was changed at
    rest, which says so in `error`.
    """

    id: str
    thread_id: str
    from_handle: str
    to_handle: str
    body: str | None
    priority: Priority
    encryption_mode: Mode
    reply_to: str | None
    created_at: int
    unread: bool
    """Whether the reader had not read it before; what they sent themselves never is."""
    encrypted_payload: EncryptedPayload | UnsetType = UNSET
    error: str | UnsetType = UNSET


class MailPage(Struct, frozen=True):
    """Messages, newest first, and the cursor of older ones if there are any.

    `seqs` is what to tell `Mail.mark_delivered` once the answer was handed over: nothing after a
    peek, or when there is nothing to mark.
    """

    messages: list[MailMessage]
    next_cursor: str | None = None
    seqs: tuple[int, ...] = ()


class Thread(Struct, frozen=True, gc=False, omit_defaults=True):
    """A thread as one of its members sees it."""

    id: str
    subject: str
    other_handle: str
    other_display_name: str
    last_message_body: str | None
    last_message_at: int
    unread_count: int
    member_state: State
    last_read_at: int
    created_at: int
    updated_at: int
    last_message_own: bool = False
    """Whether the last message is the member's own."""


class ThreadPage(Struct, frozen=True):
    """Threads, the one with the newest message first, and the cursor of the next ones if any."""

    threads: list[Thread]
    next_cursor: str | None = None


class Conversation(Struct, frozen=True):
    """One thread with a page of its messages."""

    thread: Thread
    page: MailPage


class Digest(Struct, frozen=True):
    """What is unread: how much, in how many threads, from whom (newest first) and how urgent."""

    total_unread: int
    threads_with_unread: int
    recent_senders: list[str]
    urgent_count: int
    more_senders: int | UnsetType = UNSET
    """How many senders are left out of a list that was cut."""
