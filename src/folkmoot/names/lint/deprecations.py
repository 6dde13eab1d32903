"""That a function is deprecated, however its source says so."""

from __future__ import annotations

import ast
import re
from typing import Final

from folkmoot.names.lint.expressions import last_part
from folkmoot.names.lint.model import Deprecation
from folkmoot.names.lint.modules import Function, Site
from folkmoot.names.lint.values import Values

MARKER: Final = "deprecated"
LOGGED: Final = frozenset({"warning", "warn", "error"})
SAID: Final = re.compile(
    r"\A\W*deprecated\b|\(deprecated\)|\bis deprecated\b|^\s*\.\. deprecated::",
    re.IGNORECASE | re.MULTILINE,
)
"""A description that says it of the thing itself; a tool may well be about deprecated things."""


def of_function(values: Values, site: Site, function: Function) -> Deprecation | None:
    """What a function's decorators, its docstring or what it logs say about its end."""
    for decorator in function.decorator_list:
        found = of_marker(values, site, decorator)
        if found is not None:
            return found
    first = site.module.file.span(function)
    place = site.module.file.place(first)
    if said(ast.get_docstring(function) or "") or any(map(logged, function.body)):
        return Deprecation(place=place)
    return None


def of_marker(values: Values, site: Site, node: ast.expr) -> Deprecation | None:
    """What `@deprecated(since=…, removed_in=…, use=…)` says; others of that name say less."""
    call = node.func if isinstance(node, ast.Call) else node
    if last_part(call) != MARKER:
        return None
    keywords = node.keywords if isinstance(node, ast.Call) else []
    given = {each.arg: values.text(site, each.value) for each in keywords if each.arg}
    return Deprecation(
        since=given.get("since"),
        removed_in=given.get("removed_in"),
        use=given.get("use"),
        place=site.module.file.place(site.module.file.span(node)),
    )


def said(text: str) -> bool:
    """Whether a description says that what it describes is deprecated."""
    return SAID.search(text) is not None


def logged(statement: ast.stmt) -> bool:
    """Whether a statement logs that something is deprecated."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=level), args=[message, *_])):
            texts = (node for node in ast.walk(message) if isinstance(node, ast.Constant))
            return level in LOGGED and any("deprecated" in str(each.value) for each in texts)
        case _:
            return False
