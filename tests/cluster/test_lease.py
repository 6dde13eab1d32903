"""A node acts only while its lease surely holds, and owns nothing from before a lapse."""

from __future__ import annotations

from folkmoot.cluster.lease import Lease


def test_a_lease_is_measured_from_before_its_renewal_was_sent():
    lease = Lease(5.0, margin=0.5)
    assert not lease.holds(0.0)
    sent = 10.0
    lease.renewed(sent, 13.0)
    assert lease.holds(14.4)
    assert not lease.holds(14.5)


def test_a_renewal_that_is_answered_late_begins_a_new_term():
    lease = Lease(5.0, margin=0.5)
    lease.renewed(0.0, 0.1)
    term = lease.term
    lease.renewed(1.0, 1.1)
    assert lease.holds(2.0, term)
    lease.renewed(7.0, 7.1)
    assert lease.holds(8.0)
    assert not lease.holds(8.0, term)


def test_answers_in_another_order_do_not_shorten_a_lease():
    lease = Lease(5.0, margin=0.5)
    first, second = 0.0, 1.0
    lease.renewed(second, 1.5)
    lease.renewed(first, 1.6)
    assert lease.until == 5.5
