"""The page on security names tests that exist, for each risk of the lists it goes through."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import ROOT, pages

PAGE = "docs/operations/security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
OWASP, PRACTICES = "The OWASP MCP Top 10", "MCP's security best practices"


def sections(chapter: str) -> dict[str, str]:
    """The text below each heading of a chapter."""
    _, rest = (ROOT / PAGE).read_text(encoding="utf-8").split(f"\n## {chapter}\n", 1)
    _, *parts = rest.split("\n## ", 1)[0].split("\n### ")
    return dict(part.split("\n", 1) for part in parts)


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@pytest.mark.parametrize(
    ("path", "name"), sorted(set(NAMED.findall((ROOT / PAGE).read_text(encoding="utf-8"))))
)
def test_every_test_that_is_named_exists(path, name):
    assert name in functions(path)


def test_nothing_that_looks_like_a_test_is_named_in_another_way():
    said = {code for code in pages()[PAGE].code if code.startswith("tests/")}
    assert all(NAMED.fullmatch(f"`{code}`") for code in said)


@pytest.mark.parametrize("chapter", [OWASP, PRACTICES])
def test_every_risk_has_a_test_that_shows_what_is_done(chapter):
    for heading, text in sections(chapter).items():
        assert NAMED.search(text), heading


def test_all_ten_of_the_owasp_list_are_there():
    numbers = [heading.split()[0] for heading in sections(OWASP)]
    assert numbers == [f"MCP{number:02d}" for number in range(1, 11)]
