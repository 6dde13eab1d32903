"""The hub of these tests is that of the tests of REST."""

from tests.transports.rest.conftest import clock, hub

__all__ = ["clock", "hub"]
