"""Edits: chat that takes the place of what its sender said before, or takes it away.

The history has both: the earlier message as it is now, which names its edits, and each edit as it
came. Where a message is deleted its words are gone, and those of its edits with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from folkmoot.core.chat import DELETED, REPLACES
from folkmoot.core.ports import Tx
from folkmoot.rooms.limits import MAX_EDITS
from folkmoot.rooms.machine import Append
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.queries_messages import pick, rewrite

EDITS: Final = "edits"
"""The member of a message, beside its payload, that has the `seq`s of its edits."""
STAYS: Final[tuple[str, ...]] = ("thread_id", "reply_to")
"""What an edit leaves of a body."""

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_value: Callable[[bytes | Raw], Any] = msgspec.json.decode
_raw: Callable[[Any], Raw] = lambda value: Raw(msgspec.json.encode(value))  # noqa: E731


def changed(edit: Append, find: Callable[[int], bytes | None]) -> dict[int, bytes]:
    """The messages that an edit changes, as they are then; `find` has those that are kept."""
    seq = int(edit.about or 0)
    stored = find(seq)
    if stored is None:
        return {}
    new, old, earlier = body_of(edit.data), body_of(stored), edits_of(stored)
    if old.get(DELETED) or (len(earlier) >= MAX_EDITS and not new.get(DELETED)):
        return {}
    body = {name: old[name] for name in STAYS if name in old}
    body |= {name: value for name, value in new.items() if name not in (REPLACES, *STAYS)}
    found = {seq: rewritten(stored, body, [*earlier, edit.seq])}
    if new.get(DELETED):
        kept = ((each, find(each)) for each in earlier)
        found |= {each: rewritten(data, new, []) for each, data in kept if data is not None}
    return found


def rewritten(stored: bytes, body: dict[str, Any], edits: Sequence[int]) -> bytes:
    """A stored message with another body, in the spelling it has."""
    members = _members(stored)
    payload = _value(members["payload"])
    if "jsonrpc" in payload:
        members["payload"] = _raw({**payload, "params": body})
    else:
        # The format stands in the body now.
        members |= {"kind": _raw("chat.message"), "payload": _raw(body)}
    if edits:
        members[EDITS] = _raw(edits)
    return msgspec.json.encode(members)


def body_of(stored: bytes) -> dict[str, Any]:
    """What a stored chat message says, in either spelling."""
    payload: dict[str, Any] = _value(_members(stored)["payload"])
    body: dict[str, Any] = payload["params"] if "jsonrpc" in payload else payload
    return body


def edits_of(stored: bytes) -> list[int]:
    """The `seq`s of the edits of a stored message."""
    edits = _members(stored).get(EDITS)
    return [] if edits is None else _value(edits)


async def store(tx: Tx, room_id: RoomId, edit: Append) -> tuple[dict[int, bytes], int]:
    """Change what is stored by an edit; what is changed, and by how much it grew."""
    known = await pick(tx, room_id, [int(edit.about or 0)])
    stored = next(iter(known.values()), b"")
    if stored and body_of(edit.data).get(DELETED) and not body_of(stored).get(DELETED):
        known |= await pick(tx, room_id, edits_of(stored))
        for seq in known:
            sql = "DELETE FROM room_mentions WHERE room_id = ? AND seq = ?"
            await tx.execute(sql, (room_id, seq))
    found = changed(edit, known.get)
    return found, await rewrite(tx, room_id, edit.account or "", found) if found else 0
