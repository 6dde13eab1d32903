"""What an account leaves behind in rooms when it is deleted, and what becomes of that.

What it said stays where it was said. A room that nobody can come into any more goes.
"""

from __future__ import annotations

import msgspec

from folkmoot.accounts import Account
from folkmoot.core.ports import Store, Tx
from folkmoot.rooms import queries, queries_backends
from folkmoot.rooms.model import RoomId, RoomRecord


async def leave_all_rooms(tx: Tx, account: Account) -> None:
    """Within the deletion of an account: what it is to rooms, and what it may do there, is gone."""
    for room_id in await queries.remove_account(tx, account.id):
        await queries_backends.forget_account(tx, room_id, account.id)
        # Read again where another change of the room came first.
        while not await _drop_grants(tx, room_id, account.id):
            pass


async def _drop_grants(tx: Tx, room_id: RoomId, account_id: str) -> bool:
    record = await queries.room_by_id(tx, room_id)
    if record is None or account_id not in record.grants:
        return True
    grants = {id_: held for id_, held in record.grants.items() if id_ != account_id}
    return await queries.update_room(tx, msgspec.structs.replace(record, grants=grants))


async def remove_if_deserted(store: Store, record: RoomRecord) -> bool:
    """Remove a room that is not open, with what was said in it, when nobody is left who may come.

    It must not be live.
    """
    if record.access == "open" or not await store.read(lambda tx: is_deserted(tx, record.id)):
        return False
    return await store.write(lambda tx: queries.delete_if_deserted(tx, record.id))


async def is_deserted(tx: Tx, room_id: RoomId) -> bool:
    """Whether a room has no member, nobody who was invited, and no guest."""
    row = await tx.fetch_one(
        "SELECT 1 FROM rooms r WHERE r.id = ? AND NOT EXISTS (SELECT 1 FROM room_members m "
        "WHERE m.room_id = r.id AND m.state <> 'banned') "
        "AND NOT EXISTS (SELECT 1 FROM room_guests g WHERE g.room_id = r.id)",
        (room_id,),
    )
    return row is not None
