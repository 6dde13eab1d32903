"""The headers that repeat a message, as the SDK's own server reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from folkmoot.mcp.client.headers import Mirror, as_value, stateless_version, wrong_mark
from tests.mcp.client.places import SCHEMA
from tests.mcp.client.saying import notice, request, said

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


@given(st.text())
def test_a_value_is_written_as_the_sdk_writes_it(text):
    assert as_value(text) == encode_header_value(text)
    assert decode_header_value(as_value(text)) == text


def test_a_message_tells_its_era():
    assert stateless_version(request("tools/list", _meta=META)) == "2026-07-28"
    old = {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    for other in (
        request("tools/list", _meta=old),
        request("tools/list", _meta=[]),
        notice("a"),
        said({"jsonrpc": "2.0", "id": 1, "result": {"_meta": META}}),
        said({"jsonrpc": "2.0", "id": 1, "method": "a", "params": [META]}),
    ):
        assert stateless_version(other) is None


def test_method_and_name_are_repeated():
    asked = request("resources/read", uri="file:///ä")
    assert Mirror().headers(asked, "2026-07-28") == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "resources/read",
        "mcp-name": encode_header_value("file:///ä"),
    }
    assert "mcp-name" not in Mirror().headers(request("tools/call", name=7), "2026-07-28")


def test_arguments_are_repeated_as_the_tools_schema_wishes():
    arguments: dict[str, Any] = {"region": "süd", "deep": {"count": 3}, "other": "x"}
    mirror = Mirror()
    asked = request("tools/call", name="t", arguments=arguments)
    assert not [name for name in mirror.headers(asked, "1") if name.startswith("mcp-param")]
    mirror.learn({"tools": [{"name": "t", "inputSchema": SCHEMA}, 7, {"name": 1}]})
    made = mirror.headers(asked, "2026-07-28")
    assert validate_mcp_param_headers(SCHEMA, arguments, made) is None
    expected = mcp_param_headers(x_mcp_header_map(SCHEMA), arguments)
    assert {k.lower(): v for k, v in expected.items()}.items() <= made.items()
    mirror.learn({"tools": [{"name": "t", "inputSchema": {}}]})
    assert "mcp-param-region" not in mirror.headers(asked, "2026-07-28")


def test_what_cannot_be_repeated_is_left_out():
    marked = {"type": "string", "x-mcp-header": "A"}
    schema = {
        "properties": {
            "a": marked,
            "again": marked,
            "list": {"type": ["string"], "x-mcp-header": "B"},
            "bad": {"type": "string", "x-mcp-header": "b d"},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "long": {"type": "string", "x-mcp-header": "Long"},
            "huge": {"type": "integer", "x-mcp-header": "Huge"},
            "nothing": {"type": "string", "x-mcp-header": "Nothing"},
        }
    }
    mirror = Mirror()
    mirror.learn({"tools": [{"name": "t", "inputSchema": schema}]})
    arguments = {"list": "x", "bad": "x", "flag": True, "long": "x" * 10_000, "nothing": None}
    asked = request("tools/call", name="t", arguments=arguments | {"huge": 10**18})
    made = mirror.headers(asked, "2026-07-28")
    assert {name for name in made if name.startswith("mcp-param-")} == {
        "mcp-param-flag",
        "mcp-param-huge",
    }
    assert made["mcp-param-flag"] == "true"


@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        ({"a": {"type": "string", "x-mcp-header": "Region"}}, ""),
        ({"a": {"properties": {"b": {"type": "integer", "x-mcp-header": "B"}}}}, ""),
        ({"x-mcp-header": {"type": "string"}}, ""),
        ({"a": {"default": {"x-mcp-header": ""}}}, ""),
        ({"a": {"type": "string", "x-mcp-header": ""}}, "is not the name of a header"),
        ({"a": {"type": "string", "x-mcp-header": 1}}, "is not the name of a header"),
        ({"a": {"type": "string", "x-mcp-header": "Région"}}, "is not the name of a header"),
        ({"a": {"type": "number", "x-mcp-header": "A"}}, "neither a string, an integer nor"),
        ({"a": {"type": ["string"], "x-mcp-header": "A"}}, "neither a string, an integer nor"),
        (
            {
                "a": {"type": "string", "x-mcp-header": "My"},
                "b": {"type": "string", "x-mcp-header": "my"},
            },
            "names a header twice",
        ),
        (
            {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
            "is not on a property of the arguments",
        ),
        (
            {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}},
            "is not on a property of the arguments",
        ),
    ],
)
def test_what_is_wrong_with_the_marks_of_a_schema_is_told(properties, wrong):
    schema = {"type": "object", "properties": properties}
    told = wrong_mark(schema)
    assert wrong in told
    assert bool(told) is bool(wrong) is (find_invalid_x_mcp_header(schema) is not None)
