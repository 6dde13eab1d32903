"""What each package weighs, in lines of code: without blanks, comments, docstrings and imports.

A package that grows fails here, in the long tier. Whoever makes one lighter, or heavier on purpose,
writes the new number into the table; `python -m tests.test_structure` prints it.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "folkmoot"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

MOST = {
    "(modules)": 3_003,
    "accounts": 3_180,
    "asks": 646,
    "bridge": 1_902,
    "bus": 1_065,
    "cli": 10_705,
    "client": 2_794,
    "cluster": 1_187,
    "core": 4_161,
    "datafolder": 415,
    "gateway": 4_341,
    "mail": 1_380,
    "mcp": 6_830,
    "names": 1_946,
    "operations": 8_787,
    "proxy": 6_359,
    "relay": 6_869,
    "rooms": 9_822,
    "settings": 2_573,
    "store": 3_006,
    "telemetry": 914,
    "testing": 248,
    "transports": 8_009,
    "web": 852,
}
MOST_TESTS = 90_175


def code_lines(text: str) -> int:
    """How many lines hold code."""
    tree, left_out = ast.parse(text), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            left_out.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and at not in left_out for at, line in lines)


def weights() -> Counter[str]:
    """The weight of each package, and of the modules beside them."""
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).parts
        found[inside[0] if len(inside) > 1 else "(modules)"] += code_lines(path.read_text())
    return found


def weight_of_tests() -> int:
    return sum(code_lines(path.read_text()) for path in ROOT.glob("tests/**/*.py"))


@pytest.mark.long
def test_no_package_weighs_more_than_it_did():
    heavier = {name: weight for name, weight in weights().items() if weight > MOST.get(name, 0)}
    assert not heavier


@pytest.mark.long
def test_the_tests_weigh_no_more_than_they_did():
    assert weight_of_tests() <= MOST_TESTS


if __name__ == "__main__":
    for name, weight in sorted(weights().items()):
        print(f'    "{name}": {weight:_},')  # noqa: T201 - for whoever changes the table
    print(f"tests: {weight_of_tests():_}")  # noqa: T201
