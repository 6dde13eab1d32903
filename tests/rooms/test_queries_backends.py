"""The SQL of the backends that take part in rooms."""

from __future__ import annotations

from pathlib import Path

from folkmoot.core.ports import Row, Tx
from folkmoot.rooms import queries
from folkmoot.rooms.access import leave_all_rooms
from tests.mail.support import NOON
from tests.rooms.storehouse import opened


async def rows(tx: Tx) -> list[Row]:
    return await tx.fetch("SELECT room_id, namespace, added_by FROM room_backends ORDER BY 1, 2")


async def test_a_room_has_the_backends_it_was_last_given_and_each_keeps_who_brought_it(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as house:
        ann, bob = await house.people("ann", "bob")
        square, other = await house.room("square"), await house.room("other")
        put = queries.put_backends
        await house.write(put, square.id, ("github", "files"), ann.id, NOON)
        await house.write(put, other.id, ("docs",), bob.id, NOON)
        await house.write(put, square.id, ("github", "mail"), bob.id, NOON + 1)
        found = await house.read(queries.backends_by_room, (square.id, other.id, 99))
        assert found == {square.id: ("github", "mail"), other.id: ("docs",), 99: ()}
        assert await house.read(rows) == [
            (square.id, "github", ann.id),
            (square.id, "mail", bob.id),
            (other.id, "docs", bob.id),
        ]
        await house.write(queries.delete_room, other.id)
        assert len(await house.read(rows)) == 2


async def test_what_a_deleted_account_brought_stays_and_nothing_tells_that_it_did(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as house:
        (ann,) = await house.people("ann")
        square = await house.room("square")
        await house.put(square, ann)
        await house.write(queries.put_backends, square.id, ("github",), ann.id, NOON)
        await house.write(leave_all_rooms, ann)
        assert await house.read(rows) == [(square.id, "github", None)]
