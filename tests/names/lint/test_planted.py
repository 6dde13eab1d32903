"""A project with one of every fault, and one without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.names.lint.rules import RULES
from tests.names.lint.projects import lint, write

PYPROJECT = """\
[project]
name = "shop"
version = "1.4.0"

[tool.folkmoot.names]
namespace = "shop"
"""

SERVER = """\
from fastmcp import FastMCP
from folkmoot.names import deprecated

mcp = FastMCP("shop")


@mcp.tool
def create_order(): ...                                            # missing-namespace

@mcp.tool(name="store:list_orders")                                # foreign-namespace
def list_orders(): ...

@mcp.tool(name="system:reboot")                                    # reserved foreign
def reboot(): ...

@mcp.tool(name="my-shop:buy")                                      # namespace-characters
def buy(): ...

@mcp.tool(name="3shop:buy_it")                                     # namespace-start
def buy_it(): ...

@mcp.tool(name="sh:buy_all")                                       # namespace-length
def buy_all(): ...

@mcp.tool(name="shop:cancel-order")                                # tool-characters
def cancel(): ...

@mcp.tool(name="shop:2pay")                                        # tool-start
def pay(): ...

@mcp.tool(name="shop:x")                                           # tool-length
def x(): ...

@mcp.tool(name="shop:get")                                         # generic-name
def get(): ...

@mcp.tool(name="shop:a_name_that_is_so_long_that_no_model_api_takes_it_whatever_one_does")
def long(): ...

@mcp.tool(name="shop:a_name_that_is_long_with_what_a_client_puts_before_it")
def longish(): ...

@mcp.tool(name="shop:twice")
def first(): ...

@mcp.tool(name="shop:twice")                                       # collision
def second(): ...

@mcp.tool(name="shop:read_page")
def read_page(): ...

@mcp.tool(name="shop_read_page")                                   # safe-collision
def read_page_again(): ...

@mcp.resource("/templates/x")                                      # plain-resource
def r1(): ...

@mcp.resource("shop/templates/x")                                  # uri-separator
def r2(): ...

@mcp.resource("shop://Templates/x")                                # type-characters
def r3(): ...

@mcp.resource("shop://2d/x")                                       # type-start
def r4(): ...

@mcp.resource("shop://t/x")                                        # type-length
def r5(): ...

@mcp.resource("shop://template/{name}")                            # singular-type
def r6(name): ...

@mcp.resource("shop://templates")                                  # id-empty
def r7(): ...

@mcp.resource("shop://templates/Daily Report")                     # id-characters
def r8(): ...

@mcp.resource("shop://templates/../x")                             # id-dots
def r9(): ...

@mcp.resource("shop://templates/a?raw")                            # query-pair
def q1(): ...

@mcp.resource("shop://templates/b?max size=1")                     # query-key
def q2(): ...

@mcp.resource("shop://templates/c?a=1&a=2")                        # query-repeated
def q3(): ...

@mcp.resource("shop://templates/d?a=b c")                          # query-value
def q4(): ...

@mcp.tool(name="shop:sell")                                        # undeprecated
def sell(): ...

@mcp.tool(name="shop:sell_v2")
def sell_v2(): ...

@mcp.tool(name="shop:gone")                                        # past-removal
@deprecated(since="1.2.0", removed_in="1.4.0")
def gone(): ...

@mcp.tool(name="shop:going")                                       # removal-missing
def going():
    "Deprecated: use something else."

@mcp.tool(name="shop:backwards")                                   # removal-order, past-removal
@deprecated(since="1.4.0", removed_in="1.2.0")
def backwards(): ...

@mcp.tool(name="shop:someday")                                     # version-syntax
@deprecated(since="1.4.0", removed_in="someday")
def someday(): ...

@mcp.prompt(name="plan_day")                                       # missing-namespace
def plan_day(): ...
"""

EXPECTED = {
    ("register-missing", ""),
    ("missing-namespace", "create_order"),
    ("foreign-namespace", "store:list_orders"),
    ("foreign-namespace", "system:reboot"),
    ("reserved-namespace", "system:reboot"),
    ("namespace-characters", "my-shop:buy"),
    ("namespace-start", "3shop:buy_it"),
    ("namespace-length", "sh:buy_all"),
    ("tool-characters", "shop:cancel-order"),
    ("tool-start", "shop:2pay"),
    ("tool-length", "shop:x"),
    ("generic-name", "shop:get"),
    ("long-name", "shop:a_name_that_is_so_long_that_no_model_api_takes_it_whatever_one_does"),
    ("long-client-name", "shop:a_name_that_is_long_with_what_a_client_puts_before_it"),
    ("collision", "shop:twice"),
    ("safe-collision", "shop_read_page"),
    ("plain-resource", "/templates/x"),
    ("uri-separator", "shop/templates/x"),
    ("type-characters", "shop://Templates/x"),
    ("type-start", "shop://2d/x"),
    ("type-length", "shop://t/x"),
    ("singular-type", "shop://template/{name}"),
    ("id-empty", "shop://templates"),
    ("id-characters", "shop://templates/Daily Report"),
    ("id-dots", "shop://templates/../x"),
    ("query-pair", "shop://templates/a?raw"),
    ("query-key", "shop://templates/b?max size=1"),
    ("query-repeated", "shop://templates/c?a=1&a=2"),
    ("query-value", "shop://templates/d?a=b c"),
    ("undeprecated", "shop:sell"),
    ("past-removal", "shop:gone"),
    ("removal-missing", "shop:going"),
    ("past-removal", "shop:backwards"),
    ("removal-order", "shop:backwards"),
    ("version-syntax", "shop:someday"),
    ("missing-namespace", "plan_day"),
    ("unreadable", ""),
}

ELSEWHERE = {"mixed-namespaces", "register-outdated", "uri-length"}
"""Rules that cannot be broken beside the others; they have tests of their own."""


@pytest.mark.requirement(
    "names.namespaced-in-ecosystem",
    "names.resources-are-uris",
    "names.versioned-names",
    "names.consistent-namespace",
    "names.generic-names",
    "names.plural-types",
    "names.collisions",
    "names.deprecation-n-plus-2",
)
def test_the_planted_faults_are_found_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"pyproject.toml": PYPROJECT, "src/shop/server.py": SERVER, "src/shop/broken.py": "def ("},
    )
    found = lint(tmp_path).findings
    assert sorted((each.rule, each.name) for each in found) == sorted(EXPECTED)
    assert {rule for rule, _ in EXPECTED} | ELSEWHERE == set(RULES)
    for each in found:
        assert each.severity == RULES[each.rule].severity
        assert each.message.endswith((".", "?"))
        assert each.place is not None
    lines = SERVER.splitlines()
    for each in found:
        if each.place is not None and each.place.path == "src/shop/server.py" and each.name:
            assert each.name in lines[each.place.line - 1]


CLEAN = """\
from fastmcp import FastMCP
from folkmoot.names import Namespace, deprecated

ns = Namespace("shop")
mcp = FastMCP("shop")


@mcp.tool(name=ns.tool("create_order"))
def create_order(item: str) -> str:
    \"\"\"Create an order.\"\"\"


@mcp.tool(name="workflow:execute".replace("workflow", "shop"))
def execute() -> None: ...


@mcp.tool(name="shop:process_data")
@deprecated(since="1.4.0", removed_in="1.6.0", use="shop:process_data_v2")
def process_data(legacy_format: dict) -> dict: ...


@mcp.tool(name="shop:process_data_v2")
def process_data_v2(new_format: dict) -> dict: ...


@mcp.resource(ns.make_resource_uri("templates", "daily-report.md"), mime_type="text/markdown")
def daily() -> str:
    \"\"\"Daily report template.\"\"\"


@mcp.resource("shop://docs/{doc_id}/tables/{table}?limit=100")
def tables(doc_id: str, table: str) -> str:
    \"\"\"A table of a document.\"\"\"


@mcp.resource("ui://shop/orders.html")
def page() -> str: ...


@mcp.prompt(name="shop:plan_day")
def plan_day() -> str:
    \"\"\"Plan a day.\"\"\"
"""


def test_a_project_that_follows_the_conventions_has_nothing_to_find(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT,
            "src/shop/server.py": CLEAN,
            "tests/test_server.py": "from fastmcp import FastMCP\nm = FastMCP()\nm.tool(f)",
        },
    )
    linting = lint(tmp_path, ignore=("register-missing",))
    assert linting.findings == []
    assert len(linting.project.declared) == 7
    assert [note.place.line for note in linting.project.notes] == [13]
