"""How long people hear nothing when the node of a room is killed or stops, in simulated time.

A real machine may be busy with something else; this one is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.cluster import world
from tests.cluster.world import LEASE_SECONDS, Client, Node, World

SEEDS = range(25)
TAKE_OVER_SECONDS = LEASE_SECONDS + 2.0
HAND_OVER_SECONDS = 0.5


def talk(there: World, seconds: float, at: Sequence[Node]) -> float:
    """Have everyone speak all the time, at these nodes; how long someone heard nothing at most."""
    longest, ends = 0.0, there.now + seconds
    heard = {client.name: (client.last, there.now) for client in there.clients}
    while there.now < ends:
        for client in there.clients:
            if client.node is None:
                client.connect(there.random.choice(at))
            client.say(again=True)
        there.advance(world.STEP)
        for client in there.clients:
            last, when = heard[client.name]
            longest = max(longest, there.now - when)
            if client.last != last:
                heard[client.name] = client.last, there.now
    return longest


def owner(there: World) -> Node:
    return next(one for one in there.nodes if one.room is not None)


def people(seed: int) -> World:
    """Three nodes, and people in a room who talk."""
    there = World(seed)
    there.clients = [Client(there, name) for name in ("ada", "bob", "cy", "dee")]
    talk(there, 5.0, there.nodes)
    return there


@pytest.mark.parametrize("seed", SEEDS)
def test_people_are_heard_again_in_time_when_a_node_is_killed(seed):
    there = people(seed)
    epoch = there.database.epoch
    there.stop(owner(there))
    assert talk(there, 2 * TAKE_OVER_SECONDS, there.nodes) <= TAKE_OVER_SECONDS
    assert there.database.epoch > epoch
    there.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_people_elsewhere_hardly_notice_that_a_node_stops(seed, monkeypatch):
    monkeypatch.setattr(world, "STEP", 0.05)
    there = people(seed)
    epoch, node = there.database.epoch, owner(there)
    others = [one for one in there.nodes if one is not node]
    for client in there.clients:
        client.leave()
    talk(there, 2.0, others)
    node.stops_at = there.now + 1.0
    assert talk(there, 3.0, others) < HAND_OVER_SECONDS
    assert there.database.epoch > epoch
    there.settle()
