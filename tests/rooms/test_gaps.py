"""What a node's packets lost on their way is read from the store, or whoever hears comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from folkmoot.cluster import decode
from folkmoot.cluster.messages import Spoken, ToEdge
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor
from tests import nats, postgres
from tests.rooms.gathering import Ear, chat
from tests.rooms.nodes import Member

pytestmark = [*nats.NEEDED, *postgres.needs_own()]


class Losing:
    """Loses the messages of a room on their way from its owner, until it is told to stop."""

    def __init__(self, owner: Member) -> None:
        self.lost: list[Spoken] = []
        self.loses = True
        self._owner, self._send = owner, owner.bus.send
        owner.bus.send = self.send

    def send(self, node: str, data: bytes) -> bool:
        packet = decode(data)
        if self.loses and isinstance(packet, ToEdge):
            spoken = [
                item for one in packet.batches for item in one.items if isinstance(item, Spoken)
            ]
            if spoken:
                self.lost += spoken
                return True
        return bool(self._send(node, data))


@pytest.fixture
async def losing(one: Member, ann: Visitor, ear: Ear) -> AsyncIterator[Losing]:
    """What lost a word of `ann` on its way to `bob`, and still does."""
    losing = Losing(one)
    await one.rooms.post(ann, "square", chat("lost on the way"))
    await nats.until(lambda: losing.lost)
    yield losing  # noqa: PT022 - as async fixtures are


@pytest.fixture
async def ear(one: Member, two: Member, ann: Visitor, bob: Visitor) -> AsyncIterator[Ear]:
    """Where `bob` hears a room at a node that is not its owner."""
    await one.host(ann)
    yield (await two.join(bob))[0]  # noqa: PT022 - as async fixtures are


async def hears(ear: Ear, *texts: str) -> None:
    await ear._until(lambda: texts[-1] in ear.texts or not ear.is_open)
    assert ear.texts == list(texts)
    assert ear.is_open


async def test_what_was_lost_on_its_way_to_a_node_is_read_from_the_store(one, ann, ear, losing):
    losing.loses = False
    await one.rooms.post(ann, "square", chat("and later"))
    await hears(ear, "lost on the way", "and later")


async def test_a_store_that_cannot_be_read_is_asked_again_for_what_was_lost(
    one, two, ann, ear, losing
):
    room: Any = two.rooms._nodes.rooms[0]  # type: ignore[union-attr]
    read, refused = room.store.read, 0

    async def unreachable(*_: Any, **__: Any) -> Any:
        nonlocal refused
        refused += 1
        raise e.DatabaseUnreachable("The database is away.")

    room.store.read = unreachable
    losing.loses = False
    await nats.until(lambda: refused >= 2)
    room.store.read = read
    await one.rooms.post(ann, "square", chat("and later"))
    await hears(ear, "lost on the way", "and later")


async def test_whoever_did_not_hear_what_the_store_has_no_more_comes_back(one, ear, losing):
    live = next(iter(one.rooms._live))
    await one.rooms._upkeep._trim(live, live.machine.seq + 1)
    losing.loses = False
    await ear.until_closed()
    assert (ear.code, ear.texts) == (CloseCode.RESTARTING, [])
