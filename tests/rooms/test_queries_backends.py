"""The SQL of the backends that take part in rooms."""

from __future__ import annotations

from folkmoot.rooms import queries


async def test_a_room_has_the_backends_it_was_last_given(store):
    square, other = await store.room("square"), await store.room("other")
    put = queries.put_backends
    await store.write(put, square.id, ("github", "files"))
    await store.write(put, other.id, ("docs",))
    await store.write(put, square.id, ("github", "mail"))
    found = await store.read(queries.backends_by_room, (square.id, other.id, 99))
    assert found == {square.id: ("github", "mail"), other.id: ("docs",), 99: ()}
    await store.write(queries.delete_room, other.id)
    found = await store.read(queries.backends_by_room, (square.id, other.id))
    assert found == {square.id: ("github", "mail"), other.id: ()}
