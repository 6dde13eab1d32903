"""The limits of `bridge`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

HUB_ANSWER_SECONDS: Final = 30.0
"""How long the hub may take to answer a call of the bridge's own."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""The largest answer of the hub; a page of mail has about one mebibyte of boxes."""
MAX_REASON: Final = 500
"""Characters of the hub's reason that an error repeats."""
MAX_KEY_FILE_BYTES: Final = 4 * 1024 * 1024
"""The largest file of keys that is read."""
MAX_PREVIOUS_KEYS: Final = 16
"""Earlier keys kept to read old mail; the oldest is dropped first."""
MIN_PASSPHRASE: Final = 12
"""Characters of a passphrase that protects exported keys."""
MIN_DIFFERENT_CHARACTERS: Final = 5
"""Different characters in such a passphrase."""
MAX_KDF_PASSES: Final = 16
"""Passes of Argon2 that an imported file may ask for."""
MAX_KDF_MEMORY: Final = 1024 * 1024 * 1024
"""Bytes of memory that an imported file may ask for."""
LEDGER_BUSY_SECONDS: Final = 10.0
"""How long one bridge waits for another's transaction."""
MAX_LETTERS: Final = 50_000
"""Letters of one account that are remembered; the oldest are dropped first."""
MAX_PINS: Final = 10_000
"""Correspondents of one account whose keys are pinned; none is dropped for another."""
MAX_REPLY_PAGES: Final = 5
"""Pages of mail that are searched for the message that is replied to."""
MAX_LOOKUPS_PER_PAGE: Final = 20
"""Unknown correspondents who are looked up for one page of mail."""
MAX_REMEMBERED_LOOKUPS: Final = 1_000
"""Correspondents who are remembered as looked up."""
MAX_CLOCK_SKEW: Final = 86_400
"""Seconds by which two honest clocks and a queue may differ."""
MAX_NAME: Final = 320
"""Characters of an id or a handle."""
MAX_PAGES_TO_MARK: Final = 256
"""Pages that wait to be marked read; further ones stay unread."""
MARK_SECONDS: Final = 5.0
"""How long the next read of mail waits until the last one is marked."""
LAST_MARK_SECONDS: Final = 2.0
"""How long a bridge that ends waits until the last mail is marked read."""
