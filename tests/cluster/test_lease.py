"""A node acts only while its lease surely holds, and owns nothing from before a lapse."""

from __future__ import annotations

from folkmoot.cluster.lease import Lease
from folkmoot.cluster.messages import Place
from tests.cluster.ownership import LostRoom, Ownership


def test_a_lease_is_measured_from_before_its_renewal_was_sent() -> None:
    lease = Lease(5.0, margin=0.5)
    assert not lease.holds(0.0)
    sent = 10.0
    lease.renewed(sent, 13.0)
    assert lease.holds(14.4)
    assert not lease.holds(14.5)


def test_a_renewal_that_is_answered_late_begins_a_new_term() -> None:
    lease = Lease(5.0, margin=0.5)
    lease.renewed(0.0, 0.1)
    term = lease.term
    lease.renewed(1.0, 1.1)
    assert lease.holds(2.0, term)
    lease.renewed(7.0, 7.1)
    assert lease.holds(8.0)
    assert not lease.holds(8.0, term)


def test_answers_in_another_order_do_not_shorten_a_lease() -> None:
    lease = Lease(5.0, margin=0.5)
    first, second = 0.0, 1.0
    lease.renewed(second, 1.5)
    lease.renewed(first, 1.6)
    assert lease.until == 5.5


def test_what_was_owned_before_a_lapse_is_lost_even_if_the_lease_is_renewed() -> None:
    lease = Lease(5.0, margin=0.5)
    ownership = Ownership("n1", lease)
    lease.renewed(0.0, 0.1)
    taking = ownership.take(7, 0.2)
    assert taking is not None
    assert ownership.take(7, 0.2) is None, "one statement at a time"
    ownership.took(taking, Place("n1", 3), 0.3)
    assert ownership.find(7, 1.0) == Place("n1", 3)
    lease.renewed(9.0, 9.1)
    assert not ownership.may_act(7, 3, 9.2)
    assert ownership.poll(9.2) == [LostRoom(7, 3)]


def test_a_room_that_was_taken_too_slowly_is_not_owned() -> None:
    lease = Lease(5.0, margin=0.5)
    ownership = Ownership("n1", lease)
    lease.renewed(0.0, 0.1)
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
    lease.renewed(0.0, 0.1)
    ownership.is_draining = True
    assert ownership.take(7, 0.2) is None
