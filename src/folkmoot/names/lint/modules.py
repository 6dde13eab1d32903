"""Parsed modules: their bindings, the meaning of a name in them, and AST helpers."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct, field

from folkmoot.names.lint.model import NameSource
from folkmoot.names.lint.project import FileText, SourceUnreadable

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Bound: TypeAlias = ast.expr | ast.arg | Function | ast.ClassDef | None
"""What a name is bound to; None for something that only running the code would tell."""

SOURCE_FOLDERS: Final = frozenset({"src", "lib", "python"})


class ModuleScope(Struct):
    """The names of one module, class or function."""

    names: dict[str, Bound] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    """Those that are bound to different things, depending on what happens."""

    def bind(self, name: str, what: Bound, *, surely: bool = True) -> None:
        """Bind a name from here on."""
        if not surely and name in self.names:
            self.unsure.add(name)
        elif surely:
            self.unsure.discard(name)
        self.names[name] = what


class Module(Struct, kw_only=True):
    """One file, parsed."""

    name: str
    """Dotted, as far as its path tells."""
    file: FileText
    tree: ast.Module
    package: bool = False
    imports: dict[str, str] = field(default_factory=dict)
    """Local names with what they stand for, dotted and whole."""
    starred: tuple[str, ...] = ()
    """Modules of which everything is imported."""
    scope: ModuleScope = field(default_factory=ModuleScope)
    """As it is when all of the module has run."""
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    """What is assigned to `self.NAME`, in whichever class."""

    @property
    def speaks_mcp(self) -> bool:
        """Whether it imports a library of MCP."""
        stands_for = (*self.imports.values(), *self.starred)
        return any(each.split(".")[0] in MCP_ROOTS for each in stands_for)


MCP_ROOTS: Final = frozenset({"mcp", "fastmcp", "mcp_types"})


def parse(path: str, file: FileText) -> Module:
    """A file as a module; raises `Unreadable` with what the parser says."""
    tree = parsed(file.text)
    parts = path.removesuffix(".pyw").removesuffix(".py").strip("/").split("/")
    while len(parts) > 1 and parts[0] in SOURCE_FOLDERS:
        parts = parts[1:]
    package = parts[-1] == "__init__"
    module = Module(
        name=".".join(parts[:-1] if package else parts), file=file, tree=tree, package=package
    )
    starred: list[str] = []
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            module.imports |= plain_imports(node)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(module, node)
            for alias in node.names:
                if alias.name == "*":
                    starred.append(origin)
                else:
                    module.imports[alias.asname or alias.name] = f"{origin}.{alias.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and is_name(target.value, "self"):
                    module.attributes.setdefault(target.attr, node.value)
    module.starred = tuple(starred)
    bind_all(module.scope, tree.body, surely=True)
    return module


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those in functions and classes too."""
    left = [body]
    while left:
        for statement in left.pop():
            yield statement
            left.extend(blocks(statement))
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                left.append(statement.body)


def parsed(text: str) -> ast.Module:
    """The syntax tree of a source; raises `Unreadable`."""
    try:
        with warnings.catch_warnings():
            # What the parser warns of is not about names.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceUnreadable(f"It is not Python: {error.msg}.", error.lineno or 1) from None
    except (RecursionError, MemoryError):
        raise SourceUnreadable("It is nested too deeply to be read.") from None
    except ValueError as error:
        raise SourceUnreadable(f"It is not Python: {error}.") from None


def plain_imports(node: ast.Import) -> dict[str, str]:
    """What `import a.b` and `import a.b as c` bind."""
    return {
        alias.asname or alias.name.split(".")[0]: (
            alias.name if alias.asname else alias.name.split(".")[0]
        )
        for alias in node.names
    }


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that something is imported from; one without a package begins with a dot."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".") if module.name else []
    up = node.level - 1 if module.package else node.level
    base = parts[: len(parts) - up] if up else parts
    dots = "." if up > len(parts) or not base else ""
    return dots + ".".join([*base, *([node.module] if node.module else [])])


def bind_all(scope: ModuleScope, body: Iterable[ast.stmt], *, surely: bool) -> None:
    """Bind what statements bind, in their order, without looking into functions."""
    for statement in body:
        bind(scope, statement, surely=surely)
        for inner in blocks(statement):
            bind_all(scope, inner, surely=False)


def bind(scope: ModuleScope, statement: ast.stmt, *, surely: bool = True) -> None:
    """Bind what one statement binds itself."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            scope.bind(statement.name, statement, surely=surely)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                bind_target(scope, target, value, surely=surely)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
            known = value if value is not None else ast.arg(arg=name, annotation=annotation)
            scope.bind(name, known, surely=surely)
        case ast.AugAssign(target=ast.Name(id=name)):
            scope.bind(name, None, surely=surely)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            bind_target(scope, target, None, surely=surely)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    bind_target(scope, item.optional_vars, item.context_expr, surely=surely)
        case _:
            pass


def bind_target(
    scope: ModuleScope, target: ast.expr, value: ast.expr | None, *, surely: bool
) -> None:
    """Bind a name, or each of several; those of a tuple are matched where both sides show them."""
    if isinstance(target, ast.Name):
        scope.bind(target.id, value, surely=surely)
    elif isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if same and isinstance(value, ast.Tuple | ast.List) else None
        for at, each in enumerate(target.elts):
            bind_target(scope, each, values[at] if values else None, surely=surely)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies in a statement that run in the same scope."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if inner:
            yield inner
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body


def is_name(node: ast.AST, name: str) -> bool:
    """Whether an expression is just this name."""
    return isinstance(node, ast.Name) and node.id == name


class Modules:
    """All modules of a project, found by any ending of their names that is theirs alone."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.all = list(modules)
        self._by_name: dict[str, Module | None] = {}
        for module in self.all:
            parts = module.name.split(".")
            for at in range(len(parts)):
                ending = ".".join(parts[at:])
                self._by_name[ending] = None if ending in self._by_name else module
        # A whole name is its module's, whatever else ends in it.
        self._by_name |= {module.name: module for module in self.all}
        self.tops = {module.name.split(".")[0] for module in self.all}

    def split(self, dotted: str) -> tuple[Module, list[str]] | None:
        """The module of a dotted name, and what is left of the name inside it."""
        parts = dotted.lstrip(".").split(".")
        for count in range(len(parts), 0, -1):
            module = self._by_name.get(".".join(parts[:count]))
            if module is not None:
                return module, parts[count:]
        return None

    def ours(self, dotted: str) -> bool:
        """Whether a dotted name belongs to the project, as far as one can tell."""
        return dotted.startswith(".") or dotted.split(".")[0] in self.tops


class Site(Struct, frozen=True):
    """Where an expression stands: its module, and the scopes around it, the innermost last."""

    module: Module
    scopes: tuple[ModuleScope, ...] = ()

    def lookup(self, name: str) -> tuple[Bound, bool] | None:
        """What a name is bound to here, and whether surely; None if it is not bound at all."""
        for scope in (*reversed(self.scopes), self.module.scope):
            if name in scope.names:
                return scope.names[name], name not in scope.unsure
        return None

    def dotted(self, node: ast.expr) -> str | None:
        """What an expression of names and dots stands for, if it begins with an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or self.lookup(node.id) is not None:
            return None
        head = self.module.imports.get(node.id)
        return None if head is None else ".".join([head, *reversed(parts)])


PLAIN: Final = re.compile(r"""[uU]?(["'])(?:(?!\1)[^\\\r\n])*\1""")
"""A literal whose text stands between its quotes as it is."""


def literal(module: Module, node: ast.Constant) -> NameSource:
    """How a string literal is written; its span is given where other text can simply replace it."""
    if not hasattr(node, "lineno"):
        return NameSource(how="literal")
    span = module.file.span(node)
    source = module.file.slice(span)
    if PLAIN.fullmatch(source) is None:
        return NameSource(how="literal")
    return NameSource(how="literal", span=span, text=str(node.value))


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
