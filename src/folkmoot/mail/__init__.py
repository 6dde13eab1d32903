"""Mail: messages between two people, and each person's own copy of them.

Two people have one *thread*; each is a *member* of it, in a *state* of their own. A *message* is
stored once, encrypted; each side has a *copy* of it, which is read, unread or deleted by itself.
Messages have one order, their *sequence*, and lists are read in it from the newest, a *page* at a
time. A body is encrypted here, as a NaCl *box*, or by the client, as an *encrypted payload* that is
only stored. A sender may give a message an *idempotency key*, so that it is not sent twice.
`mail.py` is what others use: each action there is one unit of the store, over the statements in
`queries*.py`. `Retention` removes what is older than the hub keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading
from folkmoot.mail.limits import MAX_IDEMPOTENCY_KEY, MAX_WAIT_SECONDS
from folkmoot.mail.model import (
    GONE_HANDLE,
    PRIORITIES,
    STATES,
    Conversation,
    Digest,
    EncryptedPayload,
    MailMessage,
    MailPage,
    Mode,
    Priority,
    Sent,
    State,
    Thread,
    ThreadPage,
)

if TYPE_CHECKING:
    from folkmoot.mail.limits import MAX_BODY_CHARACTERS
    from folkmoot.mail.mail import Mail
    from folkmoot.mail.retention import Retention
    from folkmoot.mail.waiting import is_notable, is_urgent, subject_of_mailbox
else:
    __getattr__ = loading(
        __name__,
        {
            "mail": "MAX_BODY_CHARACTERS Mail",
            "retention": "Retention",
            "waiting": "is_notable is_urgent subject_of_mailbox",
        },
    )
