"""Held messages decided about in a room of a real hub's machine, by those who may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from folkmoot.bus import MemoryBus
from folkmoot.client import Message, RequestFailed, Room
from folkmoot.core.verdict import Hold
from folkmoot.proxy.held import HeldMessages
from folkmoot.relay.deciding_room import DecidingRoom
from tests.client.hub import CuttingHub, cutting_hub
from tests.client.support import SOON, enter, eventually, until
from tests.proxy.rules.support import TO_CLIENT, Clock, answer, call, envelope
from tests.proxy.test_held import Waits


class Town:
    """A room, a proxy that holds messages there, and its owner who decides."""

    def __init__(self, there: CuttingHub, owner: Room, tasks: asyncio.TaskGroup) -> None:
        self.hub = there
        self.owner = owner
        waits = Waits(tasks)
        self.held, self.hold = waits.held, waits.hold
        self._tasks = tasks

    def decide(self) -> None:
        room = DecidingRoom(self.held, self.hub.url, room="square", token="sk_proxy", backoff=SOON)
        self.deciding = self._tasks.create_task(room.run())

    async def restart(self) -> None:
        """End, with all that is held, and begin anew."""
        self.deciding.cancel()
        await asyncio.wait([self.deciding])
        for view in self.held.list():
            self.held.drop(view.id)
        welcomes = self.hub.welcomes
        self.decide()
        await eventually(lambda: self.hub.welcomes > welcomes)

    async def proposed(self) -> Message:
        return await until(self.owner, lambda it: it.kind.startswith("mcp.proposal."))


@pytest.fixture
async def there() -> AsyncIterator[Town]:
    async with cutting_hub() as there, asyncio.TaskGroup() as tasks, enter(there, "alice") as owner:
        made = Town(there, owner, tasks)
        made.decide()
        try:
            yield made
        finally:
            made.deciding.cancel()


async def test_whoever_fulfils_the_proposal_releases_the_message(there):
    waiting = await there.hold(call("delete", {"path": "/x"}), reason="Really?")
    said = await until(there.owner, lambda it: it.text is not None)
    assert said.text == "Held message 1, tools/call delete, by the rule “ask first”: Really?"
    proposal = await there.proposed()
    assert proposal.kind == "mcp.proposal.tools/call:delete"
    assert proposal.payload["params"] == {"name": "delete", "arguments": {"path": "/x"}}
    result = await there.owner.fulfil(proposal)
    assert result == {"content": [{"type": "text", "text": "Released held message 1."}]}
    assert await waiting == "released"


async def test_a_rejection_drops_the_message_with_its_reason(there):
    waiting = await there.hold(call("delete"))
    await there.owner.reject(await there.proposed(), "Not on a Friday.")
    assert await waiting == "The message was held and dropped: Not on a Friday. (alice)"


async def test_what_is_no_request_is_released_by_a_request_made_for_it(there):
    waiting = await there.hold(answer({"ok": 1}), TO_CLIENT)
    proposal = await there.proposed()
    assert proposal.kind == "mcp.proposal.folkmoot/release"
    assert proposal.payload["params"]["preview"] == '{"ok":1}'
    await there.owner.fulfil(proposal)
    assert await waiting == "released"
    large = await there.hold(call("x", {"text": "y" * 100_000}))
    assert (await there.proposed()).kind == "mcp.proposal.folkmoot/release"
    there.held.release(2)
    assert await large == "released"


async def test_what_is_decided_elsewhere_is_withdrawn_and_cannot_be_fulfilled_any_more(there):
    waiting = await there.hold(call("delete"))
    proposal = await there.proposed()
    # Once another one was proposed, the proxy knows that the first is stored.
    another = await there.hold(call("move"))
    await there.proposed()
    there.held.release(1)
    assert await waiting == "released"
    withdrawn = await until(there.owner, lambda it: it.base == "mcpx.withdraw.proposal")
    assert withdrawn.correlation_id == (proposal.id,)
    there.held.release(2)
    await another


async def test_a_fulfilment_of_what_is_held_no_longer_is_answered_with_an_error(there):
    await there.hold(call("delete"))
    proposal = await there.proposed()
    await there.restart()
    with pytest.raises(RequestFailed, match="no longer held"):
        await there.owner.fulfil(proposal)


async def test_a_room_that_cannot_be_reached_is_told_once_and_joined_later(caplog):
    def told() -> int:
        return sum("cannot be decided" in record.message for record in caplog.records)

    async with cutting_hub() as there:
        await there.close()
        held = HeldMessages(Clock(), MemoryBus())
        room = DecidingRoom(held, there.url, room="square", token="sk_proxy", backoff=SOON)
        assert "sk_proxy" not in repr(room)
        async with asyncio.TaskGroup() as tasks:
            deciding = tasks.create_task(room.run())
            waiting = tasks.create_task(held.hold(envelope(call("delete")), "r", Hold()))
            with caplog.at_level(logging.WARNING, "folkmoot.proxy"):
                await eventually(lambda: told() == 1)
            assert len(held) == 1
            await there.open()
            async with enter(there, "alice"):
                await eventually(lambda: "mcp.proposal.tools/call:delete" in there.kinds())
            held.release(1)
            await waiting
            deciding.cancel()
    assert told() == 1


async def test_a_lost_connection_comes_back_and_the_proposal_still_counts(there):
    waiting = await there.hold(call("delete"))
    proposal = await there.proposed()
    welcomes = there.hub.welcomes
    there.hub.cut("proxy")
    await eventually(lambda: there.hub.welcomes > welcomes)
    await eventually(lambda: "proxy" in there.owner.participants)
    await there.owner.fulfil(proposal)
    assert await waiting == "released"
