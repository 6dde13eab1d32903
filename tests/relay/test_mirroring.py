"""Headers that repeat arguments, after an interceptor or a person changed the arguments."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.message import Request
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.headers import as_value
from folkmoot.mcp.wire import VERSION_KEY
from folkmoot.relay.exchanges import mirrored


def call(**arguments: Any) -> Request:
    params = {"name": "ship", "arguments": arguments, "_meta": {VERSION_KEY: "2026-07-28"}}
    return Request(id=1, method="tools/call", params=params)


@pytest.mark.requirement("mcp.param-headers")
@pytest.mark.parametrize(
    ("before", "now", "given", "told"),
    [
        ({"region": "eu"}, {"region": "us"}, "eu", "us"),
        ({"region": "eu"}, {"region": "Łódź"}, "eu", as_value("Łódź")),
        ({"region": "Łódź"}, {"region": "us"}, as_value("Łódź"), "us"),
        ({"to": {"region": "eu"}}, {"to": {"region": "us"}}, "eu", "us"),
        ({"region": "eu", "text": "eu"}, {"region": "us", "text": "eu"}, "eu", "us"),
        ({"region": "eu"}, {"region": None}, "eu", None),
        ({"region": "eu"}, {}, "eu", None),
        ({"region": True}, {"region": False}, "true", "false"),
        ({"region": "eu"}, {"region": "eu", "more": 1}, "eu", "eu"),
        # What cannot be told is left to the server.
        ({"a": "eu", "b": "eu"}, {"a": "us", "b": "eu"}, "eu", "eu"),
        ({"region": "eu"}, {"region": "us"}, "other", "other"),
        ({"region": ["eu"]}, {"region": ["us"]}, "eu", "eu"),
    ],
)
def test_a_header_that_repeats_an_argument_repeats_what_it_is_now(before, now, given, told):
    headers = Headers((("mcp-param-region", given), ("user-agent", "eu")))
    changed = mirrored(headers, call(**now), call(**before))
    assert (changed.get("mcp-param-region"), changed.get("user-agent")) == (told, "eu")
    assert (changed.get("mcp-method"), changed.get("mcp-name")) == ("tools/call", "ship")
