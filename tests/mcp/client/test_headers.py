"""Which headers pass, and which never do."""

from __future__ import annotations

import pytest

from folkmoot.core.transport import Headers
from folkmoot.mcp.client.headers import (
    ANSWER_HEADERS,
    NEVER,
    REQUEST_HEADERS,
    allowed,
)


def test_what_the_tables_name_passes_in_its_order_and_nothing_else():
    pairs = [
        ("Mcp-Session-Id", "7"),
        ("Authorization", "Bearer x"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("MCP-Param-Region", "eu"),
        ("Last-Event-ID", "3"),
    ]
    session, login, _, region, last = [(name.lower(), value) for name, value in pairs]
    assert list(allowed(pairs, REQUEST_HEADERS)) == [session, login, region, last]
    assert list(allowed(pairs, ANSWER_HEADERS)) == [session, region]
    more = allowed([("X-Api-Key", "k")], REQUEST_HEADERS, ["x-API-key"])
    assert more == Headers((("x-api-key", "k"),))


@pytest.mark.parametrize("name", sorted(NEVER))
def test_what_belongs_to_one_connection_never_passes(name):
    for table in (REQUEST_HEADERS, ANSWER_HEADERS):
        assert not allowed([(name.title(), "x")], table, [name])


def test_a_value_that_would_begin_a_header_of_its_own_does_not_pass():
    assert not allowed([("mcp-name", "a\r\nx: y")], REQUEST_HEADERS)
