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
    OWN,
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
    listings = listings_of(tmp_path, mail=tools("send"), docs=tools("writeFile", "readFile"))
    theirs = ["docs:read_file", "docs:write_file", "mail:send"]
    assert names_of(listings.tools(EVERYTHING, "canonical")) == [*OWN, *theirs]
    safe = read(listings.tools(EVERYTHING, "safe"))["tools"]
    assert [each["name"] for each in safe[2:]] == ["docs_read_file", "docs_write_file", "mail_send"]
    for each in safe:
        assert each["title"] == each["_meta"]["folkmoot/name"]
        assert each["title"].replace("/", "_").replace(":", "_") == each["name"]


def test_only_what_may_be_called_is_listed(tmp_path):
    docs = tools("read_file", "read_all", "write")
    listings = listings_of(tmp_path, docs=docs, mail=tools("send"))
    call = "mcp.request.tools/call:docs"
    some = Rights([f"{call}:read_*", f"!{call}:read_all", "mcp.proposal.*"])
    assert names_of(listings.tools(some, "canonical"))[2:] == ["docs:read_file"]
    assert names_of(listings.tools(NOTHING, "canonical")) == list(OWN)


@pytest.mark.requirement("gateway.resources-aggregated")
def test_resources_templates_and_prompts_are_listed_by_the_right_to_them(tmp_path):
    offer = Inventory(
        resources=({"uri": "file:///a", "name": "a"}, {"uri": "docs://notes/b", "name": "b"}),
        templates=({"uriTemplate": "file:///{path}", "name": "files"},),
        prompts=({"name": "sumUp", "title": "Sum up"},),
    )
    listings = listings_of(tmp_path, docs=offer, mail=offer)

    def listed(rights: Rights) -> list[list[str]]:
        pages = (listings.resources(rights), listings.templates(rights))
        resources, templates = map(read, pages)
        return [
            [each["uri"] for each in resources["resources"]],
            [each["uriTemplate"] for each in templates["resourceTemplates"]],
            [each["name"] for each in read(listings.prompts(rights, "safe"))["prompts"]],
        ]

    docs = ["docs://file/-/-/a", "docs://notes/b"]
    assert listed(EVERYTHING) == [
        [*docs, "mail://docs/-/notes/b", "mail://file/-/-/a"],
        ["docs://file/-/-/{path}", "mail://file/-/-/{path}"],
        ["docs_sum_up", "mail_sum_up"],
    ]
    notes = Rights(["mcp.request.resources/read:docs://notes/*", "mcp.request.prompts/get:mail:*"])
    assert listed(notes) == [["docs://notes/b"], [], ["mail_sum_up"]]
    prompt = read(listings.prompts(EVERYTHING, "safe"))["prompts"][0]
    assert (prompt["title"], prompt["_meta"]) == ("Sum up", {"folkmoot/name": "docs:sum_up"})
    canonical = read(listings.prompts(EVERYTHING, "canonical"))["prompts"]
    assert canonical[0]["name"] == "docs:sum_up"


def test_the_safe_style_has_no_combinators_at_the_root_of_a_schema(tmp_path):
    offer = Inventory(tools=(tool("pick", inputSchema=COMBINED),))
    listings = listings_of(tmp_path, docs=offer)
    assert read(listings.tools(EVERYTHING, "canonical"))["tools"][2]["inputSchema"] == COMBINED
    safe = read(listings.tools(EVERYTHING, "safe"))["tools"][2]["inputSchema"]
    assert safe == {"type": "object", "properties": COMBINED["properties"]}


def test_a_stateless_client_is_told_more_around_a_list(tmp_path):
    listings = listings_of(tmp_path, docs=tools("read"))
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
    listings = listings_of(tmp_path, docs=LIES)
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
    faults = " ".join(catalogue_of(tmp_path, docs=LIES).faults["docs"])
    for name in ("docs:bad_schema", "docs:wrong_schema", "docs:bad_text", "docs:odder"):
        assert name in faults
    assert "docs:plain" not in faults
    assert "docs:listing" not in faults


def test_tools_for_apps_alone_are_listed_to_clients_that_show_apps(tmp_path):
    ui = {"ui": {"resourceUri": "ui://view", "visibility": ["app"]}}
    both = {"ui": {"resourceUri": "ui://view", "visibility": ["model", "app"]}}
    offer = Inventory(tools=(tool("poll", _meta=ui), tool("show", _meta=both)))
    listings = listings_of(tmp_path, docs=offer)
    assert names_of(listings.tools(EVERYTHING, "safe")) == ["msg_send", "msg_inbox", "docs_show"]
    shown = read(listings.tools(EVERYTHING, "safe", apps=True))["tools"]
    assert [each["name"] for each in shown][2:] == ["msg_poll", "docs_poll", "docs_show"]
    assert shown[-1]["_meta"]["ui"]["resourceUri"] == "ui://docs/view"


def test_a_list_says_which_backends_are_missing_and_why(tmp_path):
    away = {"docs": "It does not answer.", "mail": "It has not been reached yet."}
    listings = listings_of(tmp_path, away, docs=tools("read"), files=tools("read"))
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
def test_nobody_is_told_of_backends_that_are_not_for_them(rights, told, tmp_path):
    listings = listings_of(tmp_path, {"docs": "Away.", "mail": "Away."})
    meta = read(listings.tools(Rights(rights), "safe"))["_meta"]
    assert meta.get("folkmoot/absent", {}).keys() == told


@pytest.mark.parametrize("page_size", [1, 4])
def test_pages_go_through_the_whole_list_once_also_through_the_hubs_own(tmp_path, page_size):
    names = [f"tool_{number:02}" for number in range(20)]
    offers = {"docs": tools(*names), "ab1": tools("one"), "ab": Inventory()}
    listings = listings_of(tmp_path, page_size=page_size, **offers)
    everything = names_of(listings_of(tmp_path, **offers).tools(EVERYTHING, "safe"))
    assert len(everything) == 23
    page = listings.tools(EVERYTHING, "safe")
    seen = names_of(page)
    while cursor := read(page).get("nextCursor"):
        assert len(seen) % page_size == 0
        page = listings.tools(EVERYTHING, "safe", cursor=cursor)
        assert listings.tools(EVERYTHING, "safe", cursor=cursor) is page
        seen += names_of(page)
    assert seen == everything


def test_a_cursor_survives_a_change_of_the_list(tmp_path):
    before = tools("b_tool", "d_tool", "f_tool", "h_tool")
    listings = listings_of(tmp_path, docs=before, page_size=4)
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


def test_what_is_no_cursor_or_is_that_of_another_list_is_refused_with_a_sentence(tmp_path):
    listings = listings_of(tmp_path, docs=tools("read"), page_size=1)
    half = base64.urlsafe_b64encode(b'["tools"]').decode()
    for cursor in ("", "x", "1", "ä", "====", half, "A" * 10_000):
        with pytest.raises(e.ArgumentInvalid, match="cursor must be the nextCursor"):
            listings.tools(EVERYTHING, "safe", cursor=cursor)
    cursor = read(listings.tools(EVERYTHING, "safe"))["nextCursor"]
    with pytest.raises(e.ArgumentInvalid):
        listings.prompts(EVERYTHING, "safe", cursor=cursor)


def test_a_page_is_made_once_for_everyone_with_the_same_rights(tmp_path):
    listings = listings_of(tmp_path, docs=tools("read"))
    page = listings.tools(EVERYTHING, "safe")
    assert listings.tools(EVERYTHING, "safe") is page
    assert listings.tools(NOTHING, "safe") is not page
    listings.renew(catalogue_of(tmp_path, docs=tools("read")))
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
    listings = listings_of(tmp_path, docs=tools("read", "write"))
    rights = [Rights(["*"]) for _ in range(3)]
    pages = [listings.tools(each, "safe") for each in rights]
    assert listings.tools(rights[2], "safe") is pages[2]
    assert listings.tools(rights[1], "safe") is pages[1]
    assert listings.tools(rights[0], "safe") is not pages[0]
    assert listings.tools(rights[2], "safe") is not pages[2]


def test_what_is_kept_ready_is_bounded_in_bytes(tmp_path, monkeypatch):
    listings = listings_of(tmp_path, docs=tools("read", "write"))
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
    listings = listings_of(tmp_path, docs=tools("read", "write"), page_size=3)
    page = listings.tools(EVERYTHING, "safe")
    for number in range(50):
        made_up = base64.urlsafe_b64encode(b'["tools","docs","docs:read%d"]' % number).decode()
        one = listings.tools(EVERYTHING, "safe", cursor=made_up.rstrip("="))
        assert names_of(one) == ["docs_write"]
        assert listings.tools(EVERYTHING, "safe", cursor=made_up.rstrip("=")) is not one
    assert listings.tools(EVERYTHING, "safe") is page
