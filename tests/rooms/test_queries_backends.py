"""The SQL of the backends that take part in rooms."""

from __future__ import annotations

from pathlib import Path

from folkmoot.rooms import queries
from tests.rooms.storehouse import opened


async def test_a_room_has_the_backends_it_was_last_given(tmp_path: Path) -> None:
    async with opened(tmp_path) as house:
        square, other = await house.room("square"), await house.room("other")
        put = queries.put_backends
        await house.write(put, square.id, ("github", "files"))
        await house.write(put, other.id, ("docs",))
        await house.write(put, square.id, ("github", "mail"))
        found = await house.read(queries.backends_by_room, (square.id, other.id, 99))
        assert found == {square.id: ("github", "mail"), other.id: ("docs",), 99: ()}
        await house.write(queries.delete_room, other.id)
        found = await house.read(queries.backends_by_room, (square.id, other.id))
        assert found == {square.id: ("github", "mail"), other.id: ()}
