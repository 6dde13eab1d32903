"""A name is known through constants, f-strings and helpers; and where it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.names.lint.sources import read_sources
from tests.names.lint.projects import project, write

SERVER = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n"
USE = "\n@mcp.tool(name={})\ndef f(): ...\n"
HELPER = """
NAMESPACE = "shop"
def make_tool_name(tool: str) -> str:
    "Generate namespaced tool name."
    return f"{NAMESPACE}:{tool}"
"""
CHECKED = """
NAMESPACE = "shop"
def make_tool_name(tool, *, style="canonical"):
    name = f"{NAMESPACE}:{tool}"
    check(name)
    return name
"""

NAMES = {
    "constant": ('N = "shop:buy"', "N", "constant", "shop:buy"),
    "constant that is sure in the end": (
        'N = 1\nif X:\n    N = "no"\nN = "shop:buy"', "N", "constant", "shop:buy",
    ),
    "constant of a class": ('class C:\n    N = "shop:buy"', "C.N", "constant", "shop:buy"),
    "member of an enumeration": (
        'import enum\nclass C(enum.StrEnum):\n    N = "shop:buy"', "C.N.value", "constant",
        "shop:buy",
    ),
    "f-string": ('NAMESPACE = "shop"', 'f"{NAMESPACE}:buy"', "formatted", "buy"),
    "sum": ('NAMESPACE = "shop"', 'NAMESPACE + ":" + "buy"', "formatted", "buy"),
    "literals beside each other": ("", '"shop:" "buy"', "literal", ""),
    "helper of the project": (HELPER, 'make_tool_name("buy")', "helper", "buy"),
    "helper that checks": (CHECKED, 'make_tool_name("buy", style=s)', "helper", "buy"),
    "helper of another name": (
        'def n(x): return "shop:" + x', 'n("buy")', "helper", "buy",
    ),
    "helper of the library": (
        "from folkmoot.names import make_tool_name", 'make_tool_name("shop", "buy")', "helper",
        "buy",
    ),
    "namespace object": (
        'from folkmoot.names import Namespace\nns = Namespace("shop")', 'ns.tool("buy")', "helper",
        "buy",
    ),
    "namespace object at once": (
        "from folkmoot import names", 'names.Namespace("shop").make_tool_name("buy")', "helper",
        "buy",
    ),
    "method under a name": (
        'from folkmoot.names import Namespace\nname = Namespace("shop").tool', 'name("buy")',
        "helper", "buy",
    ),
    "namespace object in an f-string": (
        'from folkmoot.names import Namespace\nns = Namespace("shop")', 'f"{ns.name}:buy"',
        "formatted", "buy",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_a_name_is_known_and_where_its_own_part_is_written(case: str, tmp_path: Path) -> None:
    before, expression, how, written = NAMES[case]
    found = project(tmp_path, SERVER + before + USE.format(expression))
    [declared] = found.declared
    assert (declared.name, declared.written.how) == ("shop:buy", how)
    span = declared.written.span
    text = found.texts["server.py"]
    assert (text.slice(span).strip("\"'") if span else "") == written


URIS = {
    "f-string": 'f"{NAMESPACE}://docs/{{id}}"',
    "helper": 'make_resource_uri("docs", "{id}")',
    "helper by keywords": 'make_resource_uri(resource_type="docs", resource_id="{id}")',
}


@pytest.mark.parametrize("case", URIS)
def test_a_uri_is_known_too(case: str, tmp_path: Path) -> None:
    text = f"{SERVER}NAMESPACE = 'shop'\n@mcp.resource({URIS[case]})\ndef f(id): ...\n"
    [declared] = project(tmp_path, text).declared
    assert (declared.kind, declared.name) == ("template", "shop://docs/{id}")


def test_the_query_of_a_helper_is_part_of_the_uri(tmp_path: Path) -> None:
    text = (
        SERVER + "from folkmoot.names import make_resource_uri\n"
        "@mcp.resource(make_resource_uri('shop', 'docs', '1', {'format': 'json'}))\n"
        "def f(): ...\n"
    )
    assert project(tmp_path, text).declared[0].name == "shop://docs/1?format=json"


def test_constants_and_helpers_of_other_files_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "src/shop/__init__.py": "from shop.names import make_tool_name\n",
            "src/shop/names.py": HELPER + "OLD = 'shop:old'\n",
            "src/shop/server.py": (
                SERVER + "from . import make_tool_name\nfrom shop import names\n"
                '@mcp.tool(name=make_tool_name("buy"))\ndef buy(): ...\n'
                "@mcp.tool(name=names.OLD)\ndef old(): ...\n"
            ),
        },
    )
    found = read_sources([tmp_path])
    assert [each.name for each in found.declared] == ["shop:buy", "shop:old"]
    assert found.declared[1].written.path == "src/shop/names.py"
    assert found.namespace == "shop"


def test_a_constant_that_depends_on_something_is_not_known_elsewhere_either(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            "names.py": "N = 'shop:buy'\nif X:\n    N = 'shop:sell'\n",
            "server.py": SERVER + "from names import N\n@mcp.tool(name=N)\ndef f(): ...\n",
        },
    )
    found = read_sources([tmp_path])
    assert (found.declared, len(found.notes)) == ([], 1)


def test_names_that_stand_for_each_other_end(tmp_path: Path) -> None:
    text = (
        SERVER + "A = B\nB = A\n@mcp.tool(name=A)\ndef f(): ...\nC = f'{C}'\nmcp.tool(name=C)(f)\n"
    )
    found = project(tmp_path, text)
    assert (found.declared, len(found.notes)) == ([], 2)


def test_places_count_characters_and_begin_at_one(tmp_path: Path) -> None:
    text = SERVER + "X = 'ünï'; mcp.tool(name='shop:büy')(f)\n"
    [declared] = project(tmp_path, text).declared
    place = declared.place
    assert place is not None
    assert (place.line, place.column, place.end_line, place.end_column) == (3, 26, 3, 36)
