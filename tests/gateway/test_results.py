"""URIs inside what backends answer."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

from folkmoot.core.message import Response
from folkmoot.gateway.mapping import canonical_uri, own_uri, shown_uri
from folkmoot.gateway.results import fault_of, map_meta, map_result, outcome_of

FILE, HERE = "file:///a.txt", "docs://file/-/-/a.txt"
LINK = {"type": "resource_link", "uri": FILE, "name": "a"}
EMBEDDED = {"type": "resource", "resource": {"uri": FILE, "text": f"see {FILE}"}}
TEXT = {"type": "text", "text": FILE}


def mapped(value: Any) -> Any:
    """The value with the URI replaced where a member is called `uri`."""
    if isinstance(value, list):
        return [mapped(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {k: HERE if (k, v) == ("uri", FILE) else mapped(v) for k, v in value.items()}


RESULTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"content": [TEXT, LINK, EMBEDDED], "isError": False}),
    ("tools/call", {"content": [{"type": "tool_result", "content": [LINK]}]}),
    ("resources/read", {"contents": [{"uri": FILE, "text": "x"}, {"uri": FILE, "blob": "eA=="}]}),
    ("prompts/get", {"messages": [{"role": "user", "content": EMBEDDED}]}),
    ("prompts/get", {"messages": [{"role": "user", "content": [TEXT, LINK]}]}),
    (
        "tools/call",
        {
            "resultType": "input_required",
            "requestState": "s",
            "inputRequests": {
                "a": {
                    "method": "sampling/createMessage",
                    "params": {"messages": [{"role": "user", "content": LINK}]},
                },
                "b": {"method": "elicitation/create", "params": {"message": FILE}},
            },
        },
    ),
]


@pytest.mark.requirement("gateway.result-uris")
@pytest.mark.parametrize(("method", "result"), RESULTS)
def test_links_and_embedded_resources_are_mapped_and_nothing_else(method, result):
    before = copy.deepcopy(result)
    told = map_result(method, result, "docs")
    assert told == mapped(before)
    assert told != before
    assert result == before


@pytest.mark.requirement("gateway.result-uris")
def test_a_uri_of_a_result_can_be_read_back_and_is_canonical_in_a_room():
    shown, canonical = (
        map_result("tools/call", {"content": [LINK, EMBEDDED]}, "docs", canonical=in_room)
        for in_room in (False, True)
    )
    uri = canonical["content"][0]["uri"]
    assert uri == canonical["content"][1]["resource"]["uri"] == "docs://file///a.txt"
    assert canonical_uri(shown["content"][0]["uri"], {"docs"}) == uri
    assert own_uri("docs", uri) == FILE


@pytest.mark.parametrize(
    ("method", "result", "fault"),
    [
        ("tools/call", "done", "it must be an object"),
        ("tools/call", {}, "`content` must be a list of objects"),
        ("tools/call", {"content": "done"}, "`content` must be a list of objects"),
        ("tools/call", {"content": ["done"]}, "`content` must be a list of objects"),
        ("tools/call", {"content": []}, None),
        ("tools/call", {"structuredContent": {"a": 1}}, None),
        ("tools/call", {"resultType": "input_required", "inputRequests": {}}, None),
        ("prompts/get", {"messages": {}}, "`messages` must be a list of objects"),
        ("resources/read", {"content": []}, "`contents` must be a list of objects"),
        ("completion/complete", {"values": []}, "`completion` must be an object"),
        ("ping", {}, None),
    ],
)
def test_what_a_client_cannot_use_is_no_result(method, result, fault):
    assert fault_of(method, result) == fault
    assert (outcome_of(method, Response(id=1, result=result)) == "invalid") is (fault is not None)


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", {"content": [TEXT], "structuredContent": {"uri": FILE, "links": [LINK]}}),
        ("tools/call", {"content": [{**LINK, "uri": "docs://files/a"}]}),
        ("tools/call", {"content": [LINK["uri"], None, {"type": "resource"}, {"type": ["x"]}]}),
        ("tools/call", {"content": {"uri": FILE}, "_meta": {"uri": FILE, "ui": FILE}}),
        ("tools/call", {"content": [{"type": "resource_link", "uri": 7}]}),
        ("resources/read", {"contents": "none", "uri": FILE}),
        ("prompts/get", {"messages": [{"role": "user"}, "x"]}),
        ("completion/complete", {"completion": {"values": [FILE]}}),
        ("ping", {"content": [LINK]}),
        ("tools/call", {"resultType": "input_required", "inputRequests": [LINK]}),
    ],
)
def test_where_nothing_is_mapped_the_result_is_the_same_object(method, result):
    assert map_result(method, result, "docs") is result


def test_an_app_is_named_in_the_scheme_its_hosts_take():
    meta = {
        "ui": {"resourceUri": "ui://view", "visibility": ["app"]},
        "ui/resourceUri": "ui://view",
    }
    assert map_meta(meta, partial(shown_uri, "docs")) == {
        "ui": {"resourceUri": "ui://docs/view", "visibility": ["app"]},
        "ui/resourceUri": "ui://docs/view",
    }
    shown = {"type": "resource", "resource": {"uri": "ui://view", "text": "<p>"}}
    told = map_result("tools/call", {"content": [shown], "_meta": meta}, "docs")
    assert told["content"][0]["resource"]["uri"] == "ui://docs/view"
    assert told["_meta"]["ui/resourceUri"] == "ui://docs/view"


def test_contents_within_contents_are_followed_only_so_far():
    nested: dict[str, Any] = LINK
    for _ in range(2_000):
        nested = {"type": "tool_result", "content": [nested]}
    result = {"content": [nested]}
    assert map_result("tools/call", result, "docs") is result
