"""Strings known without running the code: literals, constants, helpers and deprecations."""

from __future__ import annotations

import ast
import re
from typing import Final

from msgspec import Struct, structs

from folkmoot.names.limits import MAX_IMPORT_DEPTH
from folkmoot.names.lint.model import DeclaredDeprecation, NameSource, TextSpan
from folkmoot.names.lint.modules import (
    Bound,
    Function,
    Modules,
    ModuleScope,
    Site,
    is_docstring,
    last_part,
    literal,
    member,
    parts,
)

NAMESPACE: Final = "NAMESPACE"
MAKERS: Final = {"make_tool_name": "tool", "make_resource_uri": "uri"}
"""The helpers of the conventions, as functions."""
METHODS: Final = {**MAKERS, "tool": "tool", "prompt": "tool", "resource": "uri"}
"""The same as methods of a `Namespace`."""
LIBRARY: Final = "folkmoot.names"


class Value(Struct, frozen=True):
    """A string, and how the source writes it."""

    text: str
    written: NameSource


class Values:
    """Finds the strings of a project; `namespace` is for helpers that hide their own."""

    def __init__(self, modules: Modules, namespace: str | None) -> None:
        self.modules = modules
        self.namespace = namespace

    def value(self, site: Site, node: ast.expr | None, depth: int = 0) -> Value | None:
        """The string an expression is; None if only running the code would tell."""
        if depth > MAX_IMPORT_DEPTH:
            return None
        match node:
            case ast.Constant(value=str(text)):
                return Value(text, literal(site.module, node))
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                return self._formatted(site, node, depth)
            case ast.Name() | ast.Attribute():
                return self._constant(site, node, depth)
            case ast.Call():
                return self._called(site, node, depth)
            case _:
                return None

    def text(self, site: Site, node: ast.expr | None, depth: int = 0) -> str | None:
        """The text of a value, without its place in the source."""
        found = self.value(site, node, depth)
        return None if found is None else found.text

    def follow(self, site: Site, node: ast.expr, depth: int = 0) -> tuple[Site, Bound] | None:
        """What a name, with or without dots, is bound to, and where that stands."""
        if depth > MAX_IMPORT_DEPTH:
            return None
        dotted = site.dotted(node)
        if dotted is not None:
            return self.imported(dotted, depth + 1)
        if isinstance(node, ast.Name):
            found = site.lookup(node.id)
            return None if found is None or not found[1] else (site, found[0])
        if not isinstance(node, ast.Attribute):
            return None
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            assigned = site.module.attributes.get(node.attr)
            return None if assigned is None else (Site(site.module), assigned)
        base = self.follow(site, node.value, depth + 1)
        if base is None:
            return None
        where, what = base
        if isinstance(what, ast.ClassDef):
            return member(where, what, node.attr)
        # A member of an enumeration has its string as `value`.
        return base if node.attr == "value" else None

    def imported(self, dotted: str, depth: int = 0) -> tuple[Site, Bound] | None:
        """What a dotted name is bound to in a module of the project."""
        split = self.modules.split(dotted)
        if split is None or not split[1] or depth > MAX_IMPORT_DEPTH:
            return None
        module, (name, *rest) = split
        if name not in module.scope.names:
            again = module.imports.get(name)
            return None if again is None else self.imported(".".join([again, *rest]), depth + 1)
        if name in module.scope.unsure:
            return None
        site, what = Site(module), module.scope.names[name]
        for attribute in rest:
            if not isinstance(what, ast.ClassDef):
                return (site, what) if attribute == "value" else None
            inside = member(site, what, attribute)
            if inside is None:
                return None
            site, what = inside
        return site, what

    def namespace_of(self, site: Site, node: ast.expr, depth: int = 0) -> str | None:
        """The namespace that a `Namespace(…)`, or a name for one, binds."""
        if depth > MAX_IMPORT_DEPTH:
            return None
        if isinstance(node, ast.Call):
            if last_part(node.func) != "Namespace" or not node.args:
                return None
            return self.text(site, node.args[0], depth + 1)
        found = self.follow(site, node, depth + 1)
        if found is None or not isinstance(found[1], ast.expr):
            return None
        return self.namespace_of(found[0], found[1], depth + 1)

    def _constant(self, site: Site, node: ast.Name | ast.Attribute, depth: int) -> Value | None:
        found = self.follow(site, node, depth + 1)
        if found is None:
            return self._namespace_attribute(site, node, depth)
        where, what = found
        if not isinstance(what, ast.expr):
            return None
        value = self.value(where, what, depth + 1)
        if value is None:
            return None
        path = value.written.path or where.module.file.path
        return Value(value.text, structs.replace(value.written, how="constant", path=path))

    def _namespace_attribute(
        self, site: Site, node: ast.Name | ast.Attribute, depth: int
    ) -> Value | None:
        """`ns.name`, of a `Namespace`."""
        if not isinstance(node, ast.Attribute) or node.attr not in {"name", "namespace"}:
            return None
        name = self.namespace_of(site, node.value, depth + 1)
        return None if name is None else Value(name, NameSource(how="constant"))

    def _formatted(self, site: Site, node: ast.JoinedStr | ast.BinOp, depth: int) -> Value | None:
        pieces = list(parts(node))
        texts = [self.text(site, piece, depth + 1) for piece in pieces]
        if not all(isinstance(text, str) for text in texts):
            return None
        whole = "".join(text for text in texts if text is not None)
        last = pieces[-1] if pieces else None
        own = whole.rpartition(":")[2]
        written = NameSource(how="formatted")
        if isinstance(last, ast.Constant) and "://" not in whole and texts[-1]:
            span = site.module.file.span(node)
            source = site.module.file.slice(span)
            if own and texts[-1].endswith(own) and source.count(own) == 1:
                start = span.start + source.index(own)
                own_span = TextSpan(start, start + len(own))
                written = NameSource(how="formatted", span=own_span, text=own, quoted=False)
        return Value(whole, written)

    def _called(self, site: Site, node: ast.Call, depth: int) -> Value | None:
        name, dotted = last_part(node.func), site.dotted(node.func) or ""
        method = self._method(site, node.func, depth)
        if method is not None:
            return self._made(*method, site, node, node.args, depth)
        if name in MAKERS and dotted.startswith(f"{LIBRARY}."):
            namespace = self.text(site, node.args[0], depth + 1) if node.args else None
            return self._made(MAKERS[name], namespace, site, node, node.args[1:], depth)
        where, what = self.follow(site, node.func, depth + 1) or (None, None)
        if where is not None and isinstance(what, ast.Attribute):
            method = self._method(where, what, depth)
            return method and self._made(*method, site, node, node.args, depth)
        if where is not None and isinstance(what, Function):
            value = self._returned(site, node, where, what, depth)
            if value is not None:
                return value
        if name not in MAKERS:
            return None
        namespace = self._own_namespace(where, depth) or self.namespace
        return self._made(MAKERS[name], namespace, site, node, node.args, depth)

    def _method(self, site: Site, node: ast.expr, depth: int) -> tuple[str, str] | None:
        """What a method of a `Namespace` makes, and in which namespace."""
        if not isinstance(node, ast.Attribute) or node.attr not in METHODS:
            return None
        namespace = self.namespace_of(site, node.value, depth + 1)
        return None if namespace is None else (METHODS[node.attr], namespace)

    def _own_namespace(self, site: Site | None, depth: int) -> str | None:
        """The constant `NAMESPACE` beside a helper."""
        if site is None:
            return None
        return self.text(Site(site.module), ast.Name(id=NAMESPACE), depth + 1)

    def _made(
        self,
        what: str,
        namespace: str | None,
        site: Site,
        node: ast.Call,
        args: list[ast.expr],
        depth: int,
    ) -> Value | None:
        """The result of one of the conventions' helper functions."""
        named = {each.arg: each.value for each in node.keywords if each.arg}
        wanted = ("tool",) if what == "tool" else ("resource_type", "resource_id")
        given = [*args, *(named[key] for key in wanted[len(args) :] if key in named)]
        values = [self.value(site, each, depth + 1) for each in given[: len(wanted)]]
        known = [value for value in values if value is not None]
        if namespace is None or len(known) != len(wanted):
            return None
        if what == "tool":
            written = structs.replace(known[0].written, how="helper")
            return Value(f"{namespace}:{known[0].text}", written)
        query = named.get("query") or (given[2] if len(given) > 2 else None)
        told = self._query(site, query, depth)
        if told is None:
            return None
        uri = f"{namespace}://{known[0].text}/{known[1].text}{told}"
        return Value(uri, NameSource(how="helper"))

    def _query(self, site: Site, node: ast.expr | None, depth: int) -> str | None:
        """The query that a dictionary of strings makes."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return ""
        if not isinstance(node, ast.Dict):
            return None
        pairs = [
            (self.text(site, key, depth + 1), self.text(site, value, depth + 1))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        if any(key is None or value is None for key, value in pairs):
            return None
        return "?" + "&".join(f"{key}={value}" for key, value in pairs) if pairs else ""

    def _returned(
        self, site: Site, node: ast.Call, where: Site, function: Function, depth: int
    ) -> Value | None:
        """What a function answers that does nothing but return a string made of its arguments."""
        body = [each for each in function.body if not is_docstring(each)]
        if len(body) != 1 or not isinstance(body[0], ast.Return):
            return None
        scope = ModuleScope()
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        given = [*zip(names, node.args, strict=False)]
        given += [(each.arg, each.value) for each in node.keywords if each.arg]
        values = {name: self.value(site, each, depth + 1) for name, each in given}
        for name in names:
            value = values.get(name)
            scope.names[name] = None if value is None else ast.Constant(value=value.text)
        found = self.text(Site(where.module, (scope,)), body[0].value, depth + 1)
        if found is None:
            return None
        inner = next(iter(values.values()), None)
        if inner is None or len(values) != 1 or not found.endswith(inner.text):
            return Value(found, NameSource(how="helper"))
        return Value(found, structs.replace(inner.written, how="helper"))


MARKER: Final = "deprecated"
LOGGED: Final = frozenset({"warning", "warn", "error"})
SAID: Final = re.compile(
    r"\A\W*deprecated\b|\(deprecated\)|\bis deprecated\b|^\s*\.\. deprecated::",
    re.IGNORECASE | re.MULTILINE,
)
"""A description that says it of the thing itself; a tool may well be about deprecated things."""


def deprecation_of(values: Values, site: Site, function: Function) -> DeclaredDeprecation | None:
    """The deprecation declared by a function's decorators, docstring or log calls."""
    for decorator in function.decorator_list:
        found = deprecation_by(values, site, decorator)
        if found is not None:
            return found
    first = site.module.file.span(function)
    place = site.module.file.place(first)
    if says_deprecated(ast.get_docstring(function) or "") or any(map(logged, function.body)):
        return DeclaredDeprecation(place=place)
    return None


def deprecation_by(values: Values, site: Site, node: ast.expr) -> DeclaredDeprecation | None:
    """What `@deprecated(since=…, removed_in=…, use=…)` says; others of that name say less."""
    call = node.func if isinstance(node, ast.Call) else node
    if last_part(call) != MARKER:
        return None
    keywords = node.keywords if isinstance(node, ast.Call) else []
    given = {each.arg: values.text(site, each.value) for each in keywords if each.arg}
    return DeclaredDeprecation(
        since=given.get("since"),
        removed_in=given.get("removed_in"),
        use=given.get("use"),
        place=site.module.file.place(site.module.file.span(node)),
    )


def says_deprecated(text: str) -> bool:
    """Whether a description says that its subject is deprecated."""
    return SAID.search(text) is not None


def logged(statement: ast.stmt) -> bool:
    """Whether a statement logs that something is deprecated."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=level), args=[message, *_])):
            texts = (node for node in ast.walk(message) if isinstance(node, ast.Constant))
            return level in LOGGED and any("deprecated" in str(each.value) for each in texts)
        case _:
            return False
