"""What a node's packets lost on their way is read from the store, or whoever hears comes back."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture
async def ear(one: Member, two: Member, ann: Visitor, bob: Visitor) -> Ear:
    """Where `bob` hears a room at a node that is not its owner."""
    await one.host(ann)
    return (await two.join(bob))[0]


@pytest.fixture
async def end_losing(one: Member, ann: Visitor, ear: Ear) -> Callable[[], None]:
    """A word of `ann` was lost on its way to `bob`, as the next ones are until this is called."""
    lost: list[Spoken] = []
    send = one.bus.send

    def losing(node: str, data: bytes) -> bool:
        packet = decode(data)
        batches = packet.batches if isinstance(packet, ToEdge) else ()
        spoken = [item for one in batches for item in one.items if isinstance(item, Spoken)]
        lost.extend(spoken)
        return bool(spoken) or bool(send(node, data))

    one.bus.send = losing
    await one.rooms.post(ann, "square", chat("lost on the way"))
    await nats.until(lambda: lost)
    return lambda: setattr(one.bus, "send", send)


@pytest.mark.parametrize(
    "failures",
    [[], [e.DatabaseUnreachable("The database is away.")] * 2, [ValueError("not thought of")]],
    ids=["read", "away", "broken"],
)
async def test_what_was_lost_on_its_way_to_a_node_is_read_from_the_store_at_last(
    one, two, ann, ear, end_losing, failures
):
    store = two.rooms._nodes.rooms[0].store
    read, left = store.read, list(failures)

    async def failing(*given: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return await read(*given, **named)

    store.read = failing
    end_losing()
    await nats.until(lambda: not left)
    await one.rooms.post(ann, "square", chat("and later"))
    await ear.until_text("and later")
    assert ear.texts == ["lost on the way", "and later"]
    assert ear.is_open


async def test_whoever_did_not_hear_what_the_store_has_no_more_comes_back(one, ear, end_losing):
    live = next(iter(one.rooms._live))
    await one.rooms._upkeep._trim(live, live.machine.seq + 1)
    end_losing()
    await ear.until_closed()
    assert (ear.code, ear.texts) == (CloseCode.RESTARTING, [])
