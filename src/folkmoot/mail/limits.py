"""The limits of `mail`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_SHARED_KEYS: Final = 8_192
"""Shared keys of two people in memory; the least recently used is derived again."""
MAX_CACHED_BODIES: Final = 8_192
"""Decrypted bodies in memory; the oldest is decrypted again."""
MAX_CACHED_BOX: Final = 2_048
"""Characters of a box whose body is kept in memory."""
MAX_SUBJECT: Final = 50
"""Characters of a thread's subject: the beginning of its first message."""
MAX_CACHED_SUBJECTS: Final = 8_192
"""Decrypted subjects in memory; the least recently used is decrypted again."""
MAX_CACHED_LISTS: Final = 256
"""Readers whose lists of threads are in memory; the others are read again."""
MAX_LISTS_OF_READER: Final = 2
"""Lists of threads in memory for one reader."""
IDEMPOTENCY_SECONDS: Final = 86_400
"""How long an idempotency key is remembered."""
MAX_BODY_CHARACTERS: Final = 100_000
"""Characters of the body of a message."""
MAX_MAIL_PAGE: Final = 100
"""Messages or threads on one page."""
MAX_WAIT_SECONDS: Final = 55
"""The longest that a call waits for mail."""
MAX_IDEMPOTENCY_KEY: Final = 255
"""Characters of an idempotency key."""
MAX_KEYS_FORGOTTEN: Final = 16
"""Expired idempotency keys that sending one message removes."""
MAX_DIGEST_SENDERS: Final = 50
"""Senders of unread messages that a digest lists."""
MAX_CURSOR: Final = 256
"""Characters of a cursor."""
MAX_PAGE_BYTES: Final = 1 << 20
"""Size of all boxes on a page of messages, unless its first alone is larger."""
MAX_THREADS_PAGE_BYTES: Final = 4 << 20
"""The same for a list of threads, of whose last messages only the beginnings are shown."""
MAX_PREVIEW: Final = 500
"""Characters of a message that a list of threads shows."""
MAX_OLD_REMOVED: Final = 100
"""Old messages that one transaction removes, so that other writers wait little."""
MAX_CLOCK_SKEW: Final = 3_600
"""Seconds by which a clock may have been set back; then times stand still instead of going back."""
