"""The catalogue as backends come, change and go."""

from __future__ import annotations

import asyncio
import logging

import pytest

from folkmoot.core import errors as e
from folkmoot.gateway.model import Inventory
from tests.gateway.scripted import ALL, Scripted, tool


def names(hub: object) -> list[str]:
    return [row.key for row in hub.gateway.catalogue.rows("tools")]


async def test_what_each_backend_offers_is_listed_together_and_changes_are_told(gate):
    changes: list[tuple[str, set[str]]] = []
    gate.store.bus.listen(
        "backend.*", lambda event: changes.append((event.subject, set(event.data["lists"])))
    )
    await gate.has(Scripted("files"), tools=(tool("read"),))
    await gate.has(Scripted("github"), tools=(tool("star"),), prompts=({"name": "p"},))
    assert names(gate) == ["files:read", "github:star"]
    github = ("backend.github", {"tools", "prompts"})
    assert changes == [("backend.files", {"tools"}), github]
    await gate.gateway.arrived("files", Inventory(tools=(tool("read"),)))
    assert len(changes) == 2, "the same again is no change"
    gate.gateway.detach("github")
    assert names(gate) == ["files:read"]
    assert changes[2:] == [github]


async def test_a_backend_that_is_away_is_left_out_and_said_to_be_and_is_back_when_it_is_back(gate):
    await gate.has(Scripted("files"), tools=(tool("read"),))
    gate.gateway.lost("files", "It ended.")
    assert names(gate) == []
    listed = bytes(gate.gateway.listings.tools(ALL, "safe"))
    assert b'"folkmoot/absent":{"files":"It ended."}' in listed
    await gate.gateway.arrived("files", Inventory(tools=(tool("read"),)))
    assert names(gate) == ["files:read"]


async def test_a_backend_that_is_removed_while_it_arrives_does_not_come_back(gate):
    gate.gateway.attach(Scripted("files"))
    many = Inventory(tools=tuple(tool(f"t{n}") for n in range(600)))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(gate.gateway.arrived("files", many))
        await asyncio.sleep(0)
        gate.gateway.detach("files")
    assert names(gate) == []
    await gate.gateway.arrived("files", many)
    assert names(gate) == []


async def test_nothing_is_accepted_of_a_backend_that_is_not_there(gate):
    with pytest.raises(e.BackendUnknown):
        await gate.gateway.accept("nobody")


@pytest.mark.requirement("gateway.collision-refused")
async def test_what_cannot_be_shown_is_in_the_log_once(gate, caplog):
    with caplog.at_level(logging.WARNING, "folkmoot.gateway"):
        colliding = tool("readFile"), tool("read_file")
        await gate.has(Scripted("files"), tools=colliding)
        await gate.gateway.arrived("files", Inventory(tools=colliding))
        assert names(gate) == []
    (line,) = caplog.records
    (fault,) = line.faults
    assert "'readFile'" in fault
    assert "'read_file'" in fault
