"""Whatever fails, in whatever order: what was acknowledged exists once, and nobody hears a gap.

Each run is a cluster whose network loses, doubles, delays and reorders, whose nodes pause, die and
drain, and whose clocks run apart. The mutants are hubs that leave out one precaution: the same runs
must find each of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from folkmoot.cluster.edge import Edge
from folkmoot.cluster.lease import Lease
from tests.cluster.world import Client, Node, World

picks = st.integers(0, 5)


class Cluster(RuleBasedStateMachine):
    """Three nodes, one room, and people who talk."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.world: Any = None

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.world = World(seed, durable=self.durable)
        self.world.clients = [Client(self.world, name) for name in ("ada", "bob", "cy")]
        self.world.advance(1.0)

    def node(self, at: int) -> Node:
        return self.world.nodes[at % len(self.world.nodes)]

    def owner(self) -> Node | None:
        return next((one for one in self.world.nodes if one.room is not None), None)

    @rule(at=picks, again=st.booleans(), ask=st.booleans())
    def someone_says(self, at: int, again: bool, ask: bool) -> None:
        self.world.clients[at % 3].say(again=again, ask=ask)

    @rule(count=st.integers(1, 4))
    def everyone_says(self, count: int) -> None:
        for client in self.world.clients * count:
            client.say(again=True)

    @rule(seconds=st.sampled_from([0.25, 0.25, 0.5, 1.0, 3.0, 6.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(
        loss=st.sampled_from([0.0, 0.1, 0.5]),
        doubling=st.sampled_from([0.0, 0.3]),
        delay=st.sampled_from([0.0, 0.3, 0.8]),
    )
    def the_network_is(self, loss: float, doubling: float, delay: float) -> None:
        self.world.loss, self.world.doubling, self.world.delay = loss, doubling, delay

    @rule(at=picks, cut=st.booleans())
    def a_node_lacks_the_bus(self, at: int, cut: bool) -> None:
        self.node(at).is_cut = cut

    @precondition(lambda self: self.world is not None and self.owner() is not None)
    @rule(seconds=st.sampled_from([0.5, 3.0, 6.0]), turns=st.integers(0, 8))
    def the_owner_pauses(self, seconds: float, turns: int) -> None:
        node = self.owner()
        assert node is not None
        for client in self.world.clients:
            client.say(again=True, ask=True)
        # Something is under way then: a packet, a statement or its answer.
        for _ in range(turns):
            self.world.turn()
        node.is_paused = True
        self.world.advance(seconds)
        node.is_paused = False

    @precondition(lambda self: self.world is not None and self.owner() is not None)
    @rule(turns=st.integers(0, 8), again=st.booleans())
    def the_owner_dies_while_people_speak(self, turns: int, again: bool) -> None:
        for client in self.world.clients:
            client.say(again=again)
        for _ in range(turns):
            self.world.turn()
        node = self.owner()
        if node is not None:
            self.world.stop(node)
            self.world.start()

    @rule(at=picks)
    def a_node_pauses_or_goes_on(self, at: int) -> None:
        self.node(at).is_paused = not self.node(at).is_paused

    @precondition(lambda self: self.world is not None and len(self.world.nodes) > 1)
    @rule(at=picks, of_owner=st.booleans())
    def a_node_dies(self, at: int, of_owner: bool) -> None:
        self.world.stop((of_owner and self.owner()) or self.node(at))
        self.world.start()

    @rule(at=picks, of_owner=st.booleans())
    def a_node_drains(self, at: int, of_owner: bool) -> None:
        node = (of_owner and self.owner()) or self.node(at)
        if node.stops_at is None:
            node.stops_at = self.world.now + 1.0
            self.world.start()

    @rule(at=picks)
    def a_client_moves(self, at: int) -> None:
        client = self.world.clients[at % 3]
        if client.node is not None and not client.node.is_paused:
            client.leave()

    def teardown(self) -> None:
        if self.world is not None:
            self.world.settle()


class ClusterInMemory(Cluster):
    """A room that is nowhere but at its owner."""

    durable = False


SETTINGS = settings(
    deadline=None,
    max_examples=60,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
    # To shrink takes minutes; the seed and the steps tell enough.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    print_blob=True,
)


def test_a_durable_room_survives_whatever_happens_to_its_nodes():
    run_state_machine_as_test(Cluster, settings=SETTINGS)


def test_a_room_in_memory_has_one_order_whatever_happens_to_its_nodes():
    run_state_machine_as_test(ClusterInMemory, settings=SETTINGS)


def found(machine: type[Cluster]) -> None:
    hunting = settings(
        SETTINGS, max_examples=1600, phases=[Phase.generate], database=None, derandomize=True
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=hunting)


@pytest.mark.long
@pytest.mark.parametrize("machine", [Cluster, ClusterInMemory])
def test_a_hub_that_acts_after_its_lease_is_found(machine, monkeypatch):
    monkeypatch.setattr(Lease, "holds", lambda self, now, term=None: True)
    found(machine)


@pytest.mark.long
def test_a_hub_that_fills_no_gaps_is_found(monkeypatch):
    def speak(self: Edge, item: Any, effects: Any) -> None:
        del effects
        self.delivered = max(self.delivered, item.first_seq + item.count - 1)

    kept = Edge._speak

    def without_gaps(self: Edge, item: Any, effects: Any) -> None:
        (kept if item.messages else speak)(self, item, effects)

    monkeypatch.setattr(Edge, "_speak", without_gaps)
    found(Cluster)


@pytest.mark.long
def test_a_hub_that_keeps_connections_with_unknown_messages_is_found(monkeypatch):
    def wait_on(self: Edge) -> list[Any]:
        self._is_silent = True
        return []

    monkeypatch.setattr(Edge, "_let_go_of_owner", Edge._hand_over)
    monkeypatch.setattr(Edge, "_fall_silent", wait_on)
    found(Cluster)
