"""What the backends offer, as one catalogue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.capability import Rights
from folkmoot.gateway.catalogue import Catalogue, Spellings
from folkmoot.gateway.limits import MAX_DEFINITION_BYTES
from folkmoot.gateway.model import Inventory
from folkmoot.gateway.part import make_part
from folkmoot.names import WireNames, safe_name
from tests.gateway.support import EVERYTHING, NOTHING, OWN, catalogue_of, parts_of, tool, tools

NAMESPACES = st.sampled_from(["docs", "doc", "docs1", "mail", "abcdefghijklmnopqrst"])
NAMES = st.builds(
    "{}:{}".format, NAMESPACES, st.from_regex(r"[a-z][a-z0-9_]{1,70}", fullmatch=True)
)

OFFER = Inventory(
    tools=(tool("readFile", title="Read a file"), tool("write_file")),
    resources=({"uri": "file:///a.txt", "name": "a"}, {"uri": "docs://notes/b", "name": "b"}),
    templates=({"uriTemplate": "file:///{path}", "name": "files"},),
    prompts=({"name": "sumUp", "title": "Sum up", "description": "Sums up."},),
)


@pytest.mark.requirement("gateway.tools-aggregated", "gateway.resources-aggregated")
def test_what_all_backends_offer_is_found_under_their_namespaces(tmp_path):
    catalogue = catalogue_of(tmp_path, docs=OFFER, mail=OFFER)
    for namespace in ("docs", "mail"):
        assert catalogue.tools[f"{namespace}:read_file"].own == "readFile"
        assert catalogue.prompts[f"{namespace}:sum_up"].own == "sumUp"
        assert catalogue.resources[f"{namespace}://file///a.txt"].own == "file:///a.txt"
        assert catalogue.templates[f"{namespace}://file///{{path}}"].own == "file:///{path}"
    assert catalogue.resources["docs://notes/b"].own == "docs://notes/b"
    assert catalogue.resources["mail://docs//notes/b"].own == "docs://notes/b"
    listed = [row.key.partition(":") for row in catalogue.rows("tools")]
    assert listed == [(ns, ":", t) for ns in ("docs", "mail") for t in ("read_file", "write_file")]


@pytest.mark.requirement("wire-name.prompts")
def test_tools_and_prompts_are_found_by_either_spelling(tmp_path):
    long = "x" * 100
    offer = Inventory(
        tools=(tool("readFile"), tool(long)), prompts=({"name": "sumUp"}, {"name": long})
    )
    catalogue = catalogue_of(tmp_path, docs=offer)
    for find, names, own in (
        (catalogue.tool, catalogue.names, "readFile"),
        (catalogue.prompt, catalogue.prompt_names, "sumUp"),
    ):
        short = "docs:read_file" if own == "readFile" else "docs:sum_up"
        for canonical, known in ((short, own), (f"docs:{long}", long)):
            assert names.spell(canonical, "safe") == safe_name(canonical)
            for style in ("safe", "canonical"):
                found: Any = find(names.spell(canonical, style))
                assert found.own == known
        for nobodys in ("readFile", "docs", "docs:", "docs_", "_", "", "msg_send", "other:read"):
            assert find(nobodys) is None
    # The names of the hub are in the table too.
    for spelled, name in (("msg_send", "msg/send"), ("msg/send", "msg/send"), ("msg_other", None)):
        assert catalogue.names.canonical(spelled) == name
    assert catalogue.names.spell("msg/send", "safe") == "msg_send"


@pytest.mark.requirement("wire-name.bijection")
@given(st.sets(NAMES, max_size=20))
def test_tables_of_several_backends_are_the_table_of_all_their_names(names):
    by_namespace: dict[str, list[str]] = {}
    for name in names:
        by_namespace.setdefault(name.partition(":")[0], []).append(name)
    tables = {namespace: WireNames(theirs) for namespace, theirs in by_namespace.items()}
    spellings, whole = Spellings(tables, OWN), WireNames([*names, *OWN])
    for name in [*names, *OWN]:
        safe = whole.spell(name, "safe")
        assert spellings.spell(name, "safe") == safe
        assert spellings.canonical(safe) == spellings.canonical(name) == name


def test_the_parts_of_other_backends_are_taken_as_they_are(tmp_path):
    parts = parts_of(tmp_path, {"docs": OFFER, "mail": OFFER})
    before = Catalogue(parts)
    after = Catalogue({**parts, **parts_of(tmp_path, {"mail": tools("other")})})
    assert after.tools["docs:read_file"] is before.tools["docs:read_file"]
    assert after.tool("mail:other") is not None
    assert after.tool("mail:read_file") is None
    assert before.tool("mail:read_file") is not None


def test_what_a_backend_that_is_away_offers_is_found_and_not_listed(tmp_path):
    catalogue = catalogue_of(
        tmp_path, {"docs": "It is away.", "new": "Not yet."}, docs=OFFER, mail=OFFER
    )
    assert {row.entry.namespace for row in catalogue.rows("tools")} == {"mail"}
    assert catalogue.tool("docs_read_file") is not None
    assert catalogue.resource("docs://file///a.txt") == ("docs", "file:///a.txt")
    assert catalogue.namespace_of("new_anything") == "new"
    assert catalogue.namespace_of("new:anything") == "new"
    assert catalogue.namespace_of("never:anything") is None


def test_any_uri_of_a_backend_leads_to_it_listed_or_not(tmp_path):
    catalogue = catalogue_of(tmp_path, docs=OFFER)
    assert catalogue.resource("docs://file///never/seen") == ("docs", "file:///never/seen")
    assert catalogue.resource("docs://notes/c") == ("docs", "docs://notes/c")
    assert catalogue.canonical_uri("ui://docs/view") == "docs://ui//view"
    assert catalogue.resource("docs://ui//view") == ("docs", "ui://view")
    for nobodys in ("mmp://mailboxes/inbox", "file:///a", "docs:read_file", "", "docs://docs//a/b"):
        assert catalogue.resource(nobodys) is None


def test_a_tool_keeps_its_title_and_one_without_has_its_canonical_name(tmp_path):
    offer = Inventory(
        tools=(
            tool("read", title="Read a file", _meta={"folkmoot/name": "msg/send", "a": 1}),
            tool("look", title="Look", annotations={"title": "Look here", "readOnlyHint": True}),
            tool("undo", annotations={"idempotentHint": True}),
            tool("show", annotations={"title": "Show it"}),
        )
    )
    found = catalogue_of(tmp_path, docs=offer).tools
    read, look = found["docs:read"], found["docs:look"]
    titles = [found[f"docs:{name}"].definition["title"] for name in ("read", "undo", "show")]
    assert titles == ["Read a file", "docs:undo", "Show it"]
    assert read.definition["_meta"] == {"folkmoot/name": "docs:read", "a": 1}
    assert "annotations" not in read.definition
    assert look.definition["title"] == "Look"
    assert look.definition["annotations"]["title"] == "Look here"
    assert [entry.repeatable for entry in (read, look, found["docs:undo"])] == [False, True, True]


async def test_a_tool_that_has_changed_is_found_as_it_was_and_not_listed(pins):
    await make_part("docs", tools("read", "write"), pins)
    changed = Inventory(tools=(tool("read", description="Other."), tool("write")))
    catalogue = Catalogue({"docs": await make_part("docs", changed, pins)})
    read = catalogue.tools["docs:read"]
    assert read.quarantined
    assert read.definition["description"] == "Does read."
    assert [row.key for row in catalogue.rows("tools")] == ["docs:write"]
    assert any("docs:read" in fault for fault in catalogue.faults["docs"])
    await pins.accept("docs", "read")
    catalogue = Catalogue({"docs": await make_part("docs", changed, pins)})
    assert catalogue.tools["docs:read"].definition["description"] == "Other."
    assert not catalogue.faults


def test_faults_are_told_and_do_not_go_on_for_ever(tmp_path):
    offer = Inventory(
        tools=(*(tool("") for _ in range(300)), tool("createIssue"), tool("create_issue")),
        resources=({"name": "no uri"}, {"uri": "file:///" + "x" * 2_000}, {"uri": "file:///\n"}),
        faults=("A page could not be read.",),
    )
    catalogue = catalogue_of(tmp_path, docs=offer)
    assert not catalogue.tools | catalogue.resources
    first, *rest = catalogue.faults["docs"]
    assert (first, len(rest)) == ("A page could not be read.", 100)
    few = catalogue_of(tmp_path, docs=Inventory(resources=offer.resources))
    assert len(few.faults["docs"]) == 3


def test_a_definition_that_is_too_large_is_not_shown(tmp_path):
    large = "x" * MAX_DEFINITION_BYTES
    offer = Inventory(
        tools=(tool("huge", _meta={"x": large}), tool("read", description=large[:100_000])),
        prompts=({"name": "huge", "description": large},),
        resources=({"uri": "file:///a", "description": large},),
    )
    catalogue = catalogue_of(tmp_path, docs=offer)
    assert list(catalogue.tools) == ["docs:read"]
    assert len(catalogue.tools["docs:read"].definition["description"]) == 64 * 1024
    assert not catalogue.prompts | catalogue.resources
    assert len(catalogue.faults["docs"]) == 3


def test_a_name_that_is_nearly_right_leads_to_the_one_that_is_meant(tmp_path):
    catalogue = catalogue_of(tmp_path, docs=tools("read_file", "write_file"), mail=tools("send"))
    only_writes = Rights(["mcp.request.tools/call:docs:write_*"])
    for name, rights, nearest in (
        ("docs_readfile", EVERYTHING, "docs:read_file"),
        ("docs:Write_File", EVERYTHING, "docs:write_file"),
        ("dosc:write_file", EVERYTHING, "docs:write_file"),
        ("something_else", EVERYTHING, None),
        ("docs_readfile", NOTHING, None),
        ("docs_readfile", only_writes, None),
        ("x" * 100_000, EVERYTHING, None),
    ):
        assert catalogue.nearest(name, rights) == nearest


TASKS_OF_HANDSHAKE = {"tasks": {"requests": {"tools": {"call": {}}}}}
TASKS_OF_STATELESS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.parametrize(
    ("capabilities", "stateless"), [(TASKS_OF_HANDSHAKE, False), (TASKS_OF_STATELESS, True)]
)
@pytest.mark.requirement("gateway.tasks")
def test_tools_are_listed_with_whether_they_are_run_as_tasks(capabilities, stateless, tmp_path):
    said: dict[str, Any] = {"must": "required", "may": "optional"}
    silent: dict[str, Any] = {"never": "forbidden", "odd": ["required"]}
    running = [tool(name, execution={"taskSupport": it}) for name, it in (said | silent).items()]
    offer = Inventory(
        tools=(*running, tool("silent")), capabilities=capabilities, stateless=stateless
    )
    catalogue = catalogue_of(tmp_path, docs=offer)
    assert len(catalogue.tools) == 5
    shown = {name: each.definition.get("execution") for name, each in catalogue.tools.items()}
    told = {name: it for name, it in shown.items() if it is not None}
    assert told == {f"docs:{name}": {"taskSupport": it} for name, it in said.items()}
    assert catalogue.tools["docs:must"].task_support == "required"


@pytest.mark.parametrize(
    ("capabilities", "stateless"),
    [({}, False), (TASKS_OF_HANDSHAKE, True), (TASKS_OF_STATELESS, False), ({"tasks": []}, False)],
)
def test_a_tool_that_can_only_be_run_as_a_task_needs_a_server_that_offers_tasks(
    capabilities, stateless, tmp_path
):
    tools = (
        tool("slow", execution={"taskSupport": "required"}),
        tool("quick", execution={"taskSupport": "optional"}),
    )
    offer = Inventory(tools=tools, capabilities=capabilities, stateless=stateless)
    catalogue = catalogue_of(tmp_path, docs=offer)
    assert list(catalogue.tools) == ["docs:quick"]
    assert "execution" not in catalogue.tools["docs:quick"].definition
    assert catalogue.faults["docs"] == (
        "docs:slow can only be run as a task, which its server does not offer, and is not shown.",
    )


@pytest.mark.parametrize("stateless", [True, False])
def test_a_tool_whose_headers_cannot_be_sent_is_not_listed(stateless, tmp_path):
    def marked(name: str, header: str) -> dict[str, Any]:
        region = {"type": "string", "x-mcp-header": header}
        return tool(name, inputSchema={"type": "object", "properties": {"region": region}})

    offer = Inventory(
        tools=(marked("good", "Region"), marked("bad", "My Region")), stateless=stateless
    )
    catalogue = catalogue_of(tmp_path, docs=offer)
    if not stateless:
        # Before the stateless era the mark means nothing.
        assert set(catalogue.tools) == {"docs:bad", "docs:good"}
        return
    assert list(catalogue.tools) == ["docs:good"]
    assert catalogue.faults["docs"] == (
        "docs:bad is not shown: in its schema, x-mcp-header is not the name of a header.",
    )
