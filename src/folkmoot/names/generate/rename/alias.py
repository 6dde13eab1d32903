"""The old name kept for two releases: a function beside the renamed one, marked as deprecated."""

from __future__ import annotations

import ast
import json
import tokenize
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.rename.renaming import Renaming
from folkmoot.names.generate.rename.sources import Change, Source
from folkmoot.names.lint.model import Declared

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
MARK = "deprecated"
LINE = 100


class Deprecating(NamedTuple):
    """When the old name goes, and where `deprecated` is imported from."""

    since: str
    removed_in: str
    module: str


def alias_changes(
    source: Source, declared: Declared, renaming: Renaming, when: Deprecating, *, rename: bool
) -> Iterator[Change]:
    """What keeps the old name of a decorated function.

    With `rename` the function gets the new name in Python too, and the alias its old one. Raises
    `ProjectUnusable` for a name that no decorated function has.
    """
    tree = source.tree()
    function, decorator = find_function(tree, declared)
    _, new = renaming.own
    called = new if rename else function.name
    alias = function.name if rename else f"{function.name}_{MARK}"
    if any(alias == it.name for it in functions(tree) if it is not function):
        raise refusal(declared, f"there is a function {alias} already")
    if rename:
        name = source.text.index(function.name, def_start(source, function))
        yield Change(name, name + len(function.name), new)
    _, end = source.span(function)
    text = alias_text(source, function, decorator, declared, renaming, when, alias, called)
    yield Change(end, end, text)
    yield from import_changes(source, tree, when.module)


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def find_function(tree: ast.Module, declared: Declared) -> tuple[Function, ast.expr]:
    """The function that a name belongs to, and the decorator that gives it."""
    line = declared.place.line if declared.place else 0
    for function in functions(tree):
        for decorator in function.decorator_list:
            named = declared.written.how == "function" and declared.function == function.name
            within = decorator.lineno <= line <= (decorator.end_lineno or decorator.lineno)
            if within or (named and line == function.lineno):
                check_free(tree, function, declared)
                return function, decorator
    raise refusal(declared, "no decorated function has it")


def check_free(tree: ast.Module, function: Function, declared: Declared) -> None:
    """Refuse a method: how it is called from outside of its class is not known here."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    if any(function in it.body for it in classes):
        raise refusal(declared, "its function is a method")


def refusal(declared: Declared, why: str) -> ProjectUnusable:
    """That the old name cannot be kept."""
    at = f" ({declared.place.path}:{declared.place.line})" if declared.place else ""
    return ProjectUnusable(
        f"{declared.name}{at} cannot be kept under its old name: {why}. With --no-alias it is "
        "renamed, and the old name is gone."
    )


def def_start(source: Source, function: Function) -> int:
    """Where the name of the function is looked for."""
    start, _ = source.span(function)
    return source.text.index("def", start) + 3


def alias_text(
    source: Source,
    function: Function,
    decorator: ast.expr,
    declared: Declared,
    renaming: Renaming,
    when: Deprecating,
    alias: str,
    called: str,
) -> str:
    """The function that has the old name."""
    indent = " " * function.col_offset
    registered = "@" + source.text[slice(*source.span(decorator))]
    if declared.written.how == "function" and alias != renaming.own[0]:
        registered = with_name(registered, declared)
    marked = (
        f"@{MARK}(since={json.dumps(when.since)}, removed_in={json.dumps(when.removed_in)}, "
        f"use={json.dumps(renaming.new, ensure_ascii=False)})"
    )
    summary = (ast.get_docstring(function) or "").split("\n\n")[0]
    told = f"Deprecated: use {renaming.new} instead. {' '.join(summary.split())}".strip()
    if len(told) + len(indent) + 10 > LINE:
        told = f"Deprecated: use {renaming.new} instead."
    waits = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    body = [f'"""{told}"""', f"return {waits}{called}({arguments(function)})"]
    inside = f"{indent}    "
    gap = "\n" * (3 if not indent else 2)
    lines = [registered, marked, header(source, function, alias)]
    quoted = [line.replace("\\", "\\\\") if line.startswith('"""') else line for line in body]
    return gap + "\n".join([*(indent + it for it in lines), *(inside + it for it in quoted)])


def with_name(registered: str, declared: Declared) -> str:
    """The decorator with the old name in it, which was the function's."""
    name = f"name={json.dumps(declared.name)}"
    if not registered.endswith(")"):
        return f"{registered}({name})"
    inner = registered[:-1].rstrip()
    return f"{inner}{name})" if inner.endswith("(") else f"{inner.rstrip(',')}, {name})"


def header(source: Source, function: Function, name: str) -> str:
    """`def name(…) -> …:` as the function has it, under another name."""
    start, _ = source.span(function)
    text = source.text[start:]
    depth = 0
    end = len(text)
    inner = Source(text, source.where)
    for token in inner.tokens():
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                end = inner.at(*token.end)
                break
    at = text.index(function.name, text.index("def") + 3)
    return text[:at] + name + text[at + len(function.name) : end]


def arguments(function: Function) -> str:
    """The arguments passed on as they came."""
    taken = function.args
    parts = [it.arg for it in (*taken.posonlyargs, *taken.args)]
    parts += [f"*{taken.vararg.arg}"] if taken.vararg else []
    parts += [f"{it.arg}={it.arg}" for it in taken.kwonlyargs]
    parts += [f"**{taken.kwarg.arg}"] if taken.kwarg else []
    return ", ".join(parts)


def import_changes(source: Source, tree: ast.Module, module: str) -> Iterator[Change]:
    """The import of `deprecated`, where it is not there yet."""
    imports = [it for it in tree.body if isinstance(it, ast.Import | ast.ImportFrom)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [it.asname or it.name for it in node.names]
            if MARK in names:
                return
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            start, end = source.span(node)
            names = sorted({*(ast.unparse(it) for it in node.names), MARK})
            line = f"from {module} import {', '.join(names)}"
            if "\n" not in source.text[start:end] and len(line) <= LINE:
                yield Change(start, end, line)
                return
    line = f"from {module} import {MARK}"
    if imports:
        _, end = source.span(imports[-1])
        yield Change(end, end, f"\n{line}")
        return
    first = tree.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start, end = source.span(first)
    yield Change(end, end, f"\n\n{line}") if documented else Change(start, start, f"{line}\n\n")
