"""What is shown of a room is stored: proposals, decisions and who is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec import UNSET

from folkmoot.core import errors as e
from tests.rooms.gathering import Ear, Gathering, envelope
from tests.stores import held_writes

PROPOSAL = envelope("mcp.proposal.tools/call", {"method": "tools/call", "params": {"name": "mow"}})
BUSY_SECONDS = 0.05


@asynccontextmanager
async def busy(hub: Gathering) -> AsyncIterator[None]:
    """While the writer has something else to do, and a moment longer."""
    held = asyncio.Event()

    async def hold() -> None:
        async with held_writes(hub.store):
            held.set()
            await asyncio.sleep(BUSY_SECONDS)

    holding = asyncio.ensure_future(hold())
    await held.wait()
    yield
    await holding


@pytest.mark.requirement("proposal.shown-when-stored")
async def test_a_proposal_is_shown_once_it_is_stored_and_with_its_message(hub):
    live, ear = await hub.meet(hub.bob)
    async with busy(hub):
        live.receive(ear, PROPOSAL)
        (shown,) = await hub.rooms.proposals(hub.ann, "square")
        assert shown.message is not UNSET
        assert live.delivered >= shown.seq


@pytest.mark.requirement("proposal.shown-when-stored")
async def test_a_decision_is_shown_once_it_is_stored(hub):
    live, ear = await hub.meet(hub.bob)
    live.receive(ear, PROPOSAL)
    await ear.until_kind("mcp.proposal.tools/call")
    (open_,) = await hub.rooms.proposals(hub.ann, "square")
    own, _ = await hub.join(hub.ann)
    reject = {"correlation_id": [open_.id], "payload": {"reason": "no need"}}
    async with busy(hub):
        live.receive(own, envelope("mcpx.reject.proposal", **reject))
        (shown,) = await hub.rooms.proposals(hub.bob, "square")
        assert (shown.state, live.delivered) == ("rejected", live.machine.seq)


@pytest.mark.requirement("proposal.shown-when-stored")
async def test_what_could_not_be_stored_is_never_shown(hub, monkeypatch):
    live, ear = await hub.meet(hub.bob)

    async def fails(*_: object) -> None:
        raise e.RoomUnavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr("folkmoot.rooms.queries_messages.insert", fails)
        live.receive(ear, PROPOSAL)
        # The room fails, and may have been loaded anew before anyone looks.
        with suppress(e.RoomUnavailable):
            assert await hub.rooms.proposals(hub.ann, "square") == []
    assert await hub.rooms.proposals(hub.ann, "square") == []


async def test_someone_is_listed_as_present_once_that_is_stored(hub):
    live, _ = await hub.meet(hub.ann)
    role = (await hub.rooms.enter(hub.bob, "square")).role
    async with busy(hub):
        live.join(Ear(), hub.bob, role)
        here = await hub.rooms.participants(hub.ann, "square")
        assert [one["id"] for one in here] == ["ann", "bob"]
        assert live.delivered == live.machine.seq
