"""A node acts only while its lease surely holds, and trusts its caches while they are fresh."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from folkmoot.cluster.lease import Freshness, Lease
from folkmoot.cluster.limits import TRUST_SECONDS
from folkmoot.cluster.ownership import LostRoom, Ownership, Place


def test_a_lease_is_measured_from_before_its_renewal_was_sent() -> None:
    lease = Lease(5.0, margin=0.5)
    assert not lease.holds(0.0)
    sent = lease.renewing(10.0)
    lease.renewed(sent, 13.0)
    assert lease.holds(14.4)
    assert not lease.holds(14.5)


def test_a_renewal_that_is_answered_late_begins_a_new_term() -> None:
    lease = Lease(5.0, margin=0.5)
    lease.renewed(lease.renewing(0.0), 0.1)
    term = lease.term
    lease.renewed(lease.renewing(1.0), 1.1)
    assert lease.holds(2.0, term)
    lease.renewed(lease.renewing(7.0), 7.1)
    assert lease.holds(8.0)
    assert not lease.holds(8.0, term)


def test_answers_in_another_order_do_not_shorten_a_lease() -> None:
    lease = Lease(5.0, margin=0.5)
    first, second = lease.renewing(0.0), lease.renewing(1.0)
    lease.renewed(second, 1.5)
    lease.renewed(first, 1.6)
    assert lease.until == 5.5


def test_what_was_owned_before_a_lapse_is_lost_even_if_the_lease_is_renewed() -> None:
    lease = Lease(5.0, margin=0.5)
    ownership = Ownership("n1", lease)
    lease.renewed(lease.renewing(0.0), 0.1)
    taking = ownership.take(7, 0.2)
    assert taking is not None
    assert ownership.take(7, 0.2) is None, "one statement at a time"
    ownership.took(taking, Place("n1", 3), 0.3)
    assert ownership.find(7, 1.0) == Place("n1", 3)
    lease.renewed(lease.renewing(9.0), 9.1)
    assert not ownership.may_act(7, 3, 9.2)
    assert ownership.poll(9.2) == [LostRoom(7, 3)]


def test_a_room_that_was_taken_too_slowly_is_not_owned() -> None:
    lease = Lease(5.0, margin=0.5)
    ownership = Ownership("n1", lease)
    lease.renewed(lease.renewing(0.0), 0.1)
    taking = ownership.take(7, 0.2)
    assert taking is not None
    ownership.took(taking, Place("n1", 3), 4.9)
    assert ownership.find(7, 4.9) is None


def test_what_is_known_of_rooms_elsewhere_can_be_doubted() -> None:
    ownership = Ownership("n1", Lease(5.0))
    ownership.hear(7, Place("n2", 4))
    ownership.hear(7, Place("n3", 3))
    assert ownership.find(7, 0.0) == Place("n2", 4)
    ownership.doubt()
    assert ownership.find(7, 0.0) is None


def test_a_node_that_drains_takes_no_room() -> None:
    lease = Lease(5.0)
    ownership = Ownership("n1", lease)
    lease.renewed(lease.renewing(0.0), 0.1)
    ownership.is_draining = True
    assert ownership.take(7, 0.2) is None


class Caches(RuleBasedStateMachine):
    """A token is revoked on one node; another one has it cached, and may miss the event."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.changes = 0
        self.revoked_at: dict[str, float] = {}
        self.fresh = Freshness()
        self.cached: set[str] = set()
        self.under_way: list[tuple[float, int]] = []

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 3.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds

    @rule(token=st.sampled_from("abcdef"), missed=st.booleans())
    def revoke(self, token: str, missed: bool) -> None:
        if token not in self.revoked_at:
            self.changes += 1
            self.revoked_at[token] = self.now
            if not missed:
                self.cached.discard(token)

    @rule()
    def ask_for_counters(self) -> None:
        self.under_way.append((self.now, self.changes))

    @rule(at=st.integers(0, 3))
    def counters_come(self, at: int) -> None:
        if self.under_way:
            sent, changes = self.under_way.pop(at % len(self.under_way))
            if "token" in self.fresh.read({"token": changes}, sent):
                self.cached.clear()

    @rule()
    def beat(self) -> None:
        self.ask_for_counters()
        self.counters_come(len(self.under_way) - 1)

    @rule(
        token=st.sampled_from("abcdef"),
        seconds=st.sampled_from([0.5, 1.0, 3.0]),
        beats=st.booleans(),
    )
    def a_revocation_is_missed(self, token: str, seconds: float, beats: bool) -> None:
        self.use(token)
        self.revoke(token, missed=True)
        self.time_goes_by(seconds)
        if beats:
            self.beat()
        self.use(token)

    @rule(token=st.sampled_from("abcdef"))
    def use(self, token: str) -> None:
        if token in self.cached and self.fresh.trusts(self.now):
            revoked = self.revoked_at.get(token)
            assert revoked is None or self.now - revoked < TRUST_SECONDS
        elif token not in self.revoked_at:
            self.cached.add(token)


def run(**more: Any) -> None:
    checked = settings(
        deadline=None,
        max_examples=100,
        stateful_step_count=20,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        **more,
    )
    run_state_machine_as_test(Caches, settings=checked)


def test_a_revoked_token_is_refused_within_two_seconds_also_when_the_event_is_missed() -> None:
    run()


@pytest.mark.parametrize("broken", ["trusts", "read"])
def test_a_cache_that_forgets_to_doubt_is_found(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: Freshness, counters: Any, sent: float) -> frozenset[str]:
        self._read_at = sent
        return frozenset()

    mutants = {"trusts": lambda self, now: True, "read": read}
    monkeypatch.setattr(Freshness, broken, mutants[broken])
    with pytest.raises(AssertionError):
        run(database=None, derandomize=True)
