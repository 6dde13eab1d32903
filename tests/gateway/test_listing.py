"""Lists as clients get them."""

from __future__ import annotations

import base64

import pytest
from mcp_types.methods import validate_server_result

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.gateway import listing
from folkmoot.gateway.catalogue import Catalogue
from folkmoot.gateway.listing import Listings
from folkmoot.gateway.model import Inventory
from tests.gateway.support import (
    EVERYTHING,
    NOTHING,
    SERVER_INFO,
    catalogue_of,
    listings_of,
    names_of,
    parts_of,
    read,
    tool,
    tools,
)

COMBINED = {
    "type": "object",
    "properties": {"a": {"anyOf": [{"type": "string"}]}},
    "oneOf": [{"required": ["a"]}],
}
LIES = Inventory(
    tools=(
        tool("no_schema", inputSchema=None),
        tool("bad_schema", inputSchema="object"),
        tool("wrong_schema", inputSchema={"type": "array"}),
        tool("untyped", inputSchema={"properties": {"a": {"type": "string"}}}),
        tool("unsure", inputSchema={"type": ["object", "null"], "required": True}),
        tool("wrong_inside", inputSchema={"type": "object", "properties": [], "required": [1]}),
        tool("bad_text", description=7, title=["x"], _meta="x", icons="x", outputSchema=[]),
        tool("bad_icons", icons=[{"src": 7}, "x", {"src": "data:,", "theme": "red", "sizes": 4}]),
        tool("bad_hints", annotations={"readOnlyHint": "yes", "title": 7, "extra": 1}),
        tool("listing", outputSchema={"type": "array"}, execution={"taskSupport": "optional"}),
        tool("plain", unknown={"kept": True}),
    ),
    prompts=(
        {"name": "odd", "arguments": [{"name": "a", "required": "yes"}, {"description": "x"}, 7]},
        {"name": "odder", "arguments": {}, "description": []},
    ),
    resources=(
        {"uri": "file:///a", "size": "big", "mimeType": 7, "annotations": {"priority": 9}},
        {"uri": "file:///b", "name": 7, "annotations": {"audience": ["nobody"]}, "size": True},
    ),
    templates=({"uriTemplate": "file:///{a}", "annotations": "x"},),
)


@pytest.mark.requirement("gateway.tools-aggregated")
def test_tools_are_listed_in_the_style_that_is_asked_for_the_hubs_own_first(tmp_path):
    catalogue = catalogue_of(tmp_path, mail=tools("send"), docs=tools("writeFile", "readFile"))
    listings = listings_of(catalogue)
    assert names_of(listings.tools(EVERYTHING, "canonical")) == [
        "msg/send",
        "msg/inbox",
        "docs:read_file",
        "docs:write_file",
        "mail:send",
    ]
    safe = read(listings.tools(EVERYTHING, "safe"))["tools"]
    assert [each["name"] for each in safe[2:]] == ["docs_read_file", "docs_write_file", "mail_send"]
    for each in safe:
        assert each["title"] == each["_meta"]["folkmoot/name"]
        assert each["title"].replace("/", "_").replace(":", "_") == each["name"]


def test_only_what_may_be_called_is_listed(tmp_path):
    catalogue = catalogue_of(
        tmp_path, docs=tools("read_file", "read_all", "write"), mail=tools("send")
    )
    listings = listings_of(catalogue)
    some = Rights(
        [
            "mcp.request.tools/call:docs:read_*",
            "!mcp.request.tools/call:docs:read_all",
            "mcp.proposal.*",
        ]
    )
    assert names_of(listings.tools(some, "canonical"))[2:] == ["docs:read_file"]
    assert names_of(listings.tools(NOTHING, "canonical")) == ["msg/send", "msg/inbox"]


@pytest.mark.requirement("gateway.resources-aggregated")
def test_resources_templates_and_prompts_are_listed_by_the_right_to_them(tmp_path):
    offer = Inventory(
        resources=({"uri": "file:///a", "name": "a"}, {"uri": "docs://notes/b", "name": "b"}),
        templates=({"uriTemplate": "file:///{path}", "name": "files"},),
        prompts=({"name": "sumUp", "title": "Sum up"},),
    )
    listings = listings_of(catalogue_of(tmp_path, docs=offer, mail=offer))
    resources = read(listings.resources(EVERYTHING))["resources"]
    assert [each["uri"] for each in resources] == [
        "docs://file/-/-/a",
        "docs://notes/b",
        "mail://docs/-/notes/b",
        "mail://file/-/-/a",
    ]
    templates = read(listings.templates(EVERYTHING))["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == [
        "docs://file/-/-/{path}",
        "mail://file/-/-/{path}",
    ]
    prompts = read(listings.prompts(EVERYTHING, "safe"))["prompts"]
    assert [each["name"] for each in prompts] == ["docs_sum_up", "mail_sum_up"]
    assert prompts[0]["title"] == "Sum up"
    assert prompts[0]["_meta"] == {"folkmoot/name": "docs:sum_up"}
    canonical = read(listings.prompts(EVERYTHING, "canonical"))["prompts"]
    assert canonical[0]["name"] == "docs:sum_up"

    notes = Rights(["mcp.request.resources/read:docs://notes/*", "mcp.request.prompts/get:mail:*"])
    assert [each["uri"] for each in read(listings.resources(notes))["resources"]] == [
        "docs://notes/b"
    ]
    assert read(listings.templates(notes))["resourceTemplates"] == []
    assert [each["name"] for each in read(listings.prompts(notes, "safe"))["prompts"]] == [
        "mail_sum_up"
    ]


def test_the_safe_style_has_no_combinators_at_the_root_of_a_schema(tmp_path):
    offer = Inventory(tools=(tool("pick", inputSchema=COMBINED),))
    listings = listings_of(catalogue_of(tmp_path, docs=offer))
    assert read(listings.tools(EVERYTHING, "canonical"))["tools"][2]["inputSchema"] == COMBINED
    safe = read(listings.tools(EVERYTHING, "safe"))["tools"][2]["inputSchema"]
    assert safe == {"type": "object", "properties": COMBINED["properties"]}


def test_a_stateless_client_is_told_more_around_a_list(tmp_path):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read")))
    told = read(listings.tools(EVERYTHING, "safe", stateless=True))
    assert {key: value for key, value in told.items() if key != "tools"} == {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
    }
    assert read(listings.tools(EVERYTHING, "safe", stateless=False)).keys() == {"tools"}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_whatever_a_backend_says_clients_can_read_the_list(tmp_path, version):
    stateless = version == "2026-07-28"
    catalogue = catalogue_of(tmp_path, docs=LIES)
    listings = listings_of(catalogue)
    page = read(listings.tools(EVERYTHING, "safe", stateless=stateless))
    prompts = read(listings.prompts(EVERYTHING, "safe", stateless=stateless))
    for method, told in (
        ("tools/list", page),
        ("prompts/list", prompts),
        ("resources/list", read(listings.resources(EVERYTHING, stateless=stateless))),
        ("resources/templates/list", read(listings.templates(EVERYTHING, stateless=stateless))),
    ):
        validate_server_result(method, version, told)
    assert len(page["tools"]) == 2 + len(LIES.tools)
    assert prompts["prompts"][0]["arguments"] == [{"name": "a"}]

    shown = {each["title"]: each for each in page["tools"]}
    assert shown["docs:untyped"]["inputSchema"]["properties"] == {"a": {"type": "string"}}
    assert shown["docs:plain"]["unknown"] == {"kept": True}
    assert shown["docs:bad_hints"]["annotations"] == {"extra": 1}
    assert shown["docs:bad_icons"]["icons"] == [{"src": "data:,"}]
    assert "execution" not in shown["docs:listing"]
    assert ("outputSchema" in shown["docs:listing"]) is stateless
    faults = " ".join(catalogue.faults["docs"])
    for name in ("docs:bad_schema", "docs:wrong_schema", "docs:bad_text", "docs:odder"):
        assert name in faults
    assert "docs:plain" not in faults
    assert "docs:listing" not in faults


def test_tools_for_apps_alone_are_listed_to_clients_that_show_apps(tmp_path):
    ui = {"ui": {"resourceUri": "ui://view", "visibility": ["app"]}}
    both = {"ui": {"resourceUri": "ui://view", "visibility": ["model", "app"]}}
    offer = Inventory(tools=(tool("poll", _meta=ui), tool("show", _meta=both)))
    listings = listings_of(catalogue_of(tmp_path, docs=offer))
    assert names_of(listings.tools(EVERYTHING, "safe")) == ["msg_send", "msg_inbox", "docs_show"]
    shown = read(listings.tools(EVERYTHING, "safe", apps=True))["tools"]
    assert [each["name"] for each in shown][2:] == ["msg_poll", "docs_poll", "docs_show"]
    assert shown[-1]["_meta"]["ui"]["resourceUri"] == "ui://docs/view"


def test_a_list_says_which_backends_are_missing_and_why(tmp_path):
    away = {"docs": "It does not answer.", "mail": "It has not been reached yet."}
    catalogue = catalogue_of(tmp_path, away, docs=tools("read"), files=tools("read"))
    listings = listings_of(catalogue)
    for stateless in (False, True):
        told = read(listings.tools(EVERYTHING, "canonical", stateless=stateless))
        assert [each["name"] for each in told["tools"]][2:] == ["files:read"]
        assert told["_meta"]["folkmoot/absent"] == away
    assert read(listings.resources(EVERYTHING))["_meta"]["folkmoot/absent"] == away


@pytest.mark.parametrize(
    ("rights", "told"),
    [
        (["mcp.request.tools/call:docs:read"], {"docs"}),
        (["mcp.request.*"], {"docs", "mail"}),
        (["mcp.request.*", "!mcp.request.tools/call:docs:*"], {"mail"}),
        (["mcp.request.*", "!mcp.request.tools/call:docs:read"], {"docs", "mail"}),
        (["mcp.request.tools/call:files:*", "mcp.request.resources/read:docs://*"], set()),
        ([], set()),
    ],
)
def test_nobody_is_told_of_backends_that_are_not_for_them(rights, told):
    listings = listings_of(Catalogue({}, {"docs": "Away.", "mail": "Away."}))
    meta = read(listings.tools(Rights(rights), "safe"))["_meta"]
    assert meta.get("folkmoot/absent", {}).keys() == told


def test_pages_go_through_the_whole_list_once(tmp_path):
    names = [f"tool_{number:02}" for number in range(20)]
    catalogue = catalogue_of(tmp_path, docs=tools(*names), ab1=tools("one"), ab=Inventory())
    listings = listings_of(catalogue, page_size=4)
    everything = names_of(listings_of(catalogue).tools(EVERYTHING, "safe"))
    assert len(everything) == 23
    seen: list[str] = []
    cursor = None
    for _ in range(6):
        assert cursor is not None or not seen
        page = listings.tools(EVERYTHING, "safe", cursor=cursor)
        assert listings.tools(EVERYTHING, "safe", cursor=cursor) is page
        seen += names_of(page)
        cursor = read(page).get("nextCursor")
    assert (seen, cursor) == (everything, None)


def test_a_page_ends_within_the_hubs_own_tools_too(tmp_path):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read")), page_size=1)
    first = listings.tools(EVERYTHING, "safe")
    second = listings.tools(EVERYTHING, "safe", cursor=read(first)["nextCursor"])
    assert (names_of(first), names_of(second)) == (["msg_send"], ["msg_inbox"])


def test_a_cursor_survives_a_change_of_the_list(tmp_path):
    before = tools("b_tool", "d_tool", "f_tool", "h_tool")
    listings = listings_of(catalogue_of(tmp_path, docs=before), page_size=4)
    cursor = read(listings.tools(EVERYTHING, "canonical"))["nextCursor"]
    for names, following in (
        (("a_tool", "b_tool", "e_tool", "f_tool"), ["docs:e_tool", "docs:f_tool"]),
        (("a_tool", "h_tool"), ["docs:h_tool"]),
        (("a_tool",), []),
    ):
        listings.renew(Catalogue(parts_of(tmp_path, {"docs": tools(*names)}, hold_new=False)))
        page = listings.tools(EVERYTHING, "canonical", cursor=cursor)
        assert names_of(page) == following
        assert "nextCursor" not in read(page)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "1", "ä", "====", base64.urlsafe_b64encode(b'["tools"]').decode(), "A" * 10_000],
)
def test_what_is_no_cursor_is_refused_with_a_sentence(tmp_path, cursor):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read")))
    with pytest.raises(e.ArgumentInvalid, match="cursor must be the nextCursor"):
        listings.tools(EVERYTHING, "safe", cursor=cursor)


def test_the_cursor_of_one_list_is_none_of_another(tmp_path):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read")), page_size=1)
    cursor = read(listings.tools(EVERYTHING, "safe"))["nextCursor"]
    with pytest.raises(e.ArgumentInvalid):
        listings.prompts(EVERYTHING, "safe", cursor=cursor)


def test_a_page_is_made_once_for_everyone_with_the_same_rights(tmp_path):
    catalogue = catalogue_of(tmp_path, docs=tools("read"))
    listings = listings_of(catalogue)
    page = listings.tools(EVERYTHING, "safe")
    assert listings.tools(EVERYTHING, "safe") is page
    assert listings.tools(NOTHING, "safe") is not page
    listings.renew(catalogue)
    assert listings.tools(EVERYTHING, "safe") is not page


def test_a_page_is_bounded_in_bytes_and_always_has_something(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_LIST_PAGE_BYTES", 1_000)
    big = Inventory(tools=(tool("a_tool", description="x" * 5_000), tool("b_tool"), tool("c_tool")))
    listings = Listings(server_info=SERVER_INFO)
    listings.renew(catalogue_of(tmp_path, docs=big))
    first = listings.tools(EVERYTHING, "canonical")
    assert names_of(first) == ["docs:a_tool"]
    rest = listings.tools(EVERYTHING, "canonical", cursor=read(first)["nextCursor"])
    assert names_of(rest) == ["docs:b_tool", "docs:c_tool"]


def test_the_lists_that_were_asked_for_longest_ago_are_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "MAX_CACHED_LISTS", 2)
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read", "write")))
    rights = [Rights(["*"]) for _ in range(3)]
    pages = [listings.tools(each, "safe") for each in rights]
    assert listings.tools(rights[2], "safe") is pages[2]
    assert listings.tools(rights[1], "safe") is pages[1]
    assert listings.tools(rights[0], "safe") is not pages[0]
    assert listings.tools(rights[2], "safe") is not pages[2]


def test_what_is_kept_ready_is_bounded_in_bytes(tmp_path, monkeypatch):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read", "write")))
    rights = [Rights(["*"]) for _ in range(3)]
    size = len(memoryview(listings.tools(EVERYTHING, "safe")))
    monkeypatch.setattr(listing, "MAX_CACHED_LIST_BYTES", 2 * size)
    pages = [listings.tools(each, "safe") for each in rights]
    assert listings.tools(rights[2], "safe") is pages[2]
    assert listings.tools(rights[1], "safe") is pages[1]
    assert listings.tools(rights[0], "safe") is not pages[0]
    monkeypatch.setattr(listing, "MAX_CACHED_LIST_BYTES", size - 1)
    assert listings.tools(NOTHING, "safe") is listings.tools(NOTHING, "safe")
    assert listings.tools(EVERYTHING, "safe") is not listings.tools(EVERYTHING, "safe")


def test_made_up_cursors_do_not_push_out_what_is_kept_ready(tmp_path):
    listings = listings_of(catalogue_of(tmp_path, docs=tools("read", "write")), page_size=3)
    page = listings.tools(EVERYTHING, "safe")
    for number in range(50):
        made_up = base64.urlsafe_b64encode(b'["tools","docs","docs:read%d"]' % number).decode()
        one = listings.tools(EVERYTHING, "safe", cursor=made_up.rstrip("="))
        assert names_of(one) == ["docs_write"]
        assert listings.tools(EVERYTHING, "safe", cursor=made_up.rstrip("=")) is not one
    assert listings.tools(EVERYTHING, "safe") is page
