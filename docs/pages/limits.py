"""`reference/limits.md`: the limits of each package, from its `limits.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from docs.pages.markdown import code, document, table

SOURCE = Path(__file__).parents[2] / "src" / "folkmoot"
ABOUT = (
    "Sizes, counts and times that no setting changes. Those that a setting changes are in "
    "[settings](settings.md); queues and caches, and what happens when they are full, are in "
    "[the architecture](../architecture.md#what-things-cost). Each package has its limits in its "
    "`limits.py`."
)


def page() -> str:
    """The whole page: a table for each package."""
    parts = ["# Limits", ABOUT]
    for path in sorted(SOURCE.glob("*/limits.py")):
        rows = [[code(name), shown(name, value), told] for name, value, told in limits(path)]
        if rows:
            parts += [f"## {code(path.parent.name)}", table(["Name", "Limit", "What"], rows)]
    return document(*parts)


def limits(path: Path) -> Iterator[tuple[str, float, str]]:
    """Name, value and sentence of each limit of a module."""
    module = import_module(f"folkmoot.{path.parent.name}.limits")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    yield from documented(body, module)
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from documented(node.body, getattr(module, node.name)())


def documented(body: list[ast.stmt], values: object) -> Iterator[tuple[str, float, str]]:
    """The numbers of a module, or of a struct of limits, that a sentence follows."""
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr):
            name = ast.unparse(node.target)
            value = getattr(values, name)
            if isinstance(value, int | float):
                yield name, value, ast.literal_eval(after.value)


def shown(name: str, value: float) -> str:
    """A limit with its unit, as far as its name tells it."""
    if name.endswith("_SECONDS"):
        for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
            if value > size and value % size == 0:
                return f"{int(value) // size:,} {unit}"
        return f"{value:g} s"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size and value % size == 0 and ("BYTES" in name or value >= 1 << 20):
            return f"{int(value) // size} {unit}"
    return f"{value:,}"
