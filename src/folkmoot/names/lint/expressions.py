"""Small questions about expressions and statements."""

from __future__ import annotations

import ast
import re
from typing import Final

from folkmoot.names.lint.model import Written
from folkmoot.names.lint.modules import Bound, Module, Site

PLAIN: Final = re.compile(r"""[uU]?(["'])(?:(?!\1)[^\\\r\n])*\1""")
"""A literal whose text stands between its quotes as it is."""


def literal(module: Module, node: ast.Constant) -> Written:
    """How a string literal is written; its span is given where other text can simply replace it."""
    if not hasattr(node, "lineno"):
        return Written(how="literal")
    span = module.file.span(node)
    source = module.file.slice(span)
    if PLAIN.fullmatch(source) is None:
        return Written(how="literal")
    return Written(how="literal", span=span, text=str(node.value))


def parts(node: ast.expr) -> list[ast.expr]:
    """The pieces that an f-string or a sum of strings is put together from."""
    pieces: list[ast.expr] = []
    left = [node]
    while left:
        each = left.pop()
        match each:
            case ast.JoinedStr(values=values):
                left.extend(reversed(values))
            case ast.BinOp(left=first, op=ast.Add(), right=second):
                left.extend((second, first))
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                left.append(value)
            case _:
                pieces.append(each)
    return pieces


def member(site: Site, what: ast.ClassDef, name: str) -> tuple[Site, Bound] | None:
    """What a class binds a name to in its body."""
    for statement in what.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return site, value
            case ast.AnnAssign(target=ast.Name(id=found), value=value) if found == name:
                return None if value is None else (site, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name == name:
                return site, statement
            case _:
                pass
    return None


def last_part(node: ast.expr) -> str:
    """The name behind the last dot; empty for what is no name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is only a literal."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
