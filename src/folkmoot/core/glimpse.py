"""The id of a message that cannot be decoded, if it is in one of the usual places."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from folkmoot.core.message import MessageId, is_message_id

REACH: Final = 512
"""How far from either end of a message its id is looked for."""

_START: Final = rb"(?:\xef\xbb\xbf)?\s*\{\s*"
_JSONRPC: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_ID: Final = rb'"id"\s*:\s*(-?[0-9]{1,19}|"[^"\\\x00-\x1f]{0,256}")\s*'
_TAIL: Final = re.compile(rb"," + rb"\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Glimpse:
    """Looks for the id of messages that have one of these members beside it.

    Only places are looked at that no text inside the message can imitate.
    """

    def __init__(self, *members: bytes) -> None:
        named = rb'"(?:' + b"|".join(members) + rb')"\s*:'
        self._before = re.compile(_START + _JSONRPC + _ID + rb",\s*" + _JSONRPC + named)
        self._after = re.compile(_START + _JSONRPC + named)

    def id_of(self, raw: bytes) -> MessageId | None:
        """The id, or None where it is not in such a place."""
        found = self._before.match(raw[:REACH])
        if found is None and self._after.match(raw[:REACH]):
            found = _TAIL.search(raw[-REACH:])
        if found is None:
            return None
        try:
            message_id = msgspec.json.decode(found[1])
        except ValueError:
            return None
        return message_id if is_message_id(message_id) else None
