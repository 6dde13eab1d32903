"""The hub of these tests and its people are those of the tests of REST."""

from tests.transports.rest.conftest import ann, bob, clock, hub

__all__ = ["ann", "bob", "clock", "hub"]
