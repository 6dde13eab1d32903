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


def marked(header: Any, kind: Any = "string") -> dict[str, Any]:
    """The schema of an argument that a header repeats."""
    return {"type": kind, "x-mcp-header": header}


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
    schema = {
        "properties": {
            "a": marked("A"),
            "again": marked("A"),
            "list": marked("B", ["string"]),
            "bad": marked("b d"),
            "flag": marked("Flag", "boolean"),
            "long": marked("Long"),
            "huge": marked("Huge", "integer"),
            "nothing": marked("Nothing"),
        }
    }
    mirror = Mirror()
    mirror.learn({"tools": [{"name": "t", "inputSchema": schema}]})
    arguments = {"list": "x", "bad": "x", "flag": True, "long": "x" * 10_000, "nothing": None}
    asked = request("tools/call", name="t", arguments=arguments | {"huge": 10**18})
    made = mirror.headers(asked, "2026-07-28")
    named = {name for name in made if name.startswith("mcp-param-")}
    assert named == {"mcp-param-flag", "mcp-param-huge"}
    assert made["mcp-param-flag"] == "true"


NO_NAME, NO_VALUE = "is not the name of a header", "neither a string, an integer nor"
ELSEWHERE = "is not on a property of the arguments"


@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        ({"a": marked("Region")}, ""),
        ({"a": {"properties": {"b": marked("B", "integer")}}}, ""),
        ({"x-mcp-header": {"type": "string"}}, ""),
        ({"a": {"default": {"x-mcp-header": ""}}}, ""),
        ({"a": marked("")}, NO_NAME),
        ({"a": marked(1)}, NO_NAME),
        ({"a": marked("Région")}, NO_NAME),
        ({"a": marked("A", "number")}, NO_VALUE),
        ({"a": marked("A", ["string"])}, NO_VALUE),
        ({"a": marked("My"), "b": marked("my")}, "names a header twice"),
        ({"a": {"type": "array", "items": marked("A")}}, ELSEWHERE),
        ({"a": {"anyOf": [marked("A")]}}, ELSEWHERE),
    ],
)
def test_what_is_wrong_with_the_marks_of_a_schema_is_told(properties, wrong):
    schema = {"type": "object", "properties": properties}
    told = wrong_mark(schema)
    assert wrong in told
    assert bool(told) is bool(wrong) is (find_invalid_x_mcp_header(schema) is not None)
