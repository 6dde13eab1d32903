"""What stands for a secret: equal for equal secrets, and of no use to whoever has not the key."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

KEY_BYTES: Final = 32
MOST_KEY_BYTES: Final = 64
DIGITS: Final = 12

PLACEHOLDER: Final = re.compile(rf"\[redacted:[a-z]+:[0-9a-f]{{{DIGITS}}}\]")
_ID_LABEL: Final = b"folkmoot tape"


class Placeholders:
    """Makes placeholders under a key. `id` names the key and tells nothing of it."""

    def __init__(self, key: bytes) -> None:
        if not KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
            raise ValueError("A key of redaction has 32 to 64 bytes.")
        self._key = key
        self.id = blake2b(_ID_LABEL, key=key, digest_size=8, person=b"key id").hexdigest()

    def of(self, secret: str, kind: str) -> str:
        """The placeholder of a secret; one that is a placeholder already stays what it is."""
        if PLACEHOLDER.fullmatch(secret):
            return secret
        data = secret.encode("utf-8", "surrogatepass")
        digest = blake2b(data, key=self._key, digest_size=DIGITS // 2).hexdigest()
        return f"[redacted:{kind}:{digest}]"
