"""Every name that one module registers, in the order of its source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from folkmoot.names.lint.declarations import Declarations
from folkmoot.names.lint.model import Declared, LintNote
from folkmoot.names.lint.modules import (
    Function,
    Module,
    ModuleScope,
    Site,
    bind,
    blocks,
    last_part,
)
from folkmoot.names.lint.servers import (
    COPIES,
    DECORATORS,
    DEFINITIONS,
    FACTORIES,
    FACTORY,
    METHODS,
    RUN_TIME,
    RegistrationStyle,
    ServerObjects,
    is_mcp,
)
from folkmoot.names.lint.values import Values

Branches: TypeAlias = tuple[tuple[int, int], ...]


class Registrations:
    """Walks one module and collects `declared` names and `notes`."""

    def __init__(self, module: Module, values: Values, servers: ServerObjects) -> None:
        self.module = module
        self.values = values
        self.servers = servers
        self.declaring = Declarations(module, values)
        self.declared: list[Declared] = []
        self.notes: list[LintNote] = []
        self._done: set[int] = set()
        self._inside = ""
        # The module as it is while it runs: the same name may be one server, then another.
        self._walk(module.tree.body, (ModuleScope(),), ())

    def _walk(
        self,
        body: Iterable[ast.stmt],
        scopes: tuple[ModuleScope, ...],
        branches: Branches,
        owner: ast.ClassDef | None = None,
    ) -> None:
        for statement in body:
            site = Site(self.module, scopes)
            for expression in own_expressions(statement):
                self._calls(site, expression, branches)
            bind(scopes[-1], statement, surely=not branches)
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._decorated(site, statement, branches)
                    inner = ModuleScope()
                    for argument in arguments(statement):
                        inner.bind(argument.arg, owned(argument, owner))
                    around, self._inside = self._inside, f"{self._inside}.{statement.name}"
                    self._walk(statement.body, (*scopes, inner), branches)
                    self._inside = around
                case ast.ClassDef():
                    self._walk(statement.body, (*scopes, ModuleScope()), branches, statement)
                case _:
                    for at, block in branching(statement):
                        here = branches if at is None else (*branches, (statement.lineno, at))
                        self._walk(block, scopes, here)

    def _add(self, found: Declared | LintNote | None) -> None:
        if isinstance(found, LintNote):
            self.notes.append(found)
        elif found is not None:
            self.declared.append(found)

    def _decorated(self, site: Site, function: Function, branches: Branches) -> None:
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            style = DECORATORS.get(last_part(target))
            server = None if style is None else self._server(site, target, decorating=True)
            if style is not None and server is not None:
                self._add(
                    self.declaring.decorated(
                        site, style, decorator, call, function, server=server, branches=branches
                    )
                )

    def _server(self, site: Site, target: ast.expr, *, decorating: bool) -> str | None:
        """The server whose method this is; the decorators of FastMCP itself have none yet."""
        if is_mcp(site.dotted(target)):
            return "?"
        if not isinstance(target, ast.Attribute):
            return None
        server = self.servers.find(site, target.value)
        # Other libraries have methods of these names too, but hardly ever as decorators.
        if server is None or not (decorating or server.sure):
            return None
        return server.key

    def _calls(self, site: Site, expression: ast.expr, branches: Branches) -> None:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and id(node) not in self._done:
                self._call(site, node, branches)

    def _call(self, site: Site, node: ast.Call, branches: Branches) -> None:
        # `mcp.tool(name="x")(function)`
        inner = node.func if isinstance(node.func, ast.Call) else None
        target = inner.func if inner is not None else node.func
        name = last_part(target)
        if name in DECORATORS:
            server = self._server(site, target, decorating=inner is not None)
            if server is not None:
                if inner is not None:
                    self._done.add(id(inner))
                self._applied(site, DECORATORS[name], node, inner, server, branches)
        elif inner is None and name in METHODS:
            server = self._server(site, target, decorating=False)
            if server is not None:
                self._given(site, METHODS[name], node, server, branches)
        elif inner is None and name in RUN_TIME and self._is_server_call(site, target):
            self.notes.append(self.declaring.note(RUN_TIME[name], node))
        elif inner is None:
            self._constructed(site, node, name, branches)

    def _is_server_call(self, site: Site, target: ast.expr) -> bool:
        if is_mcp(site.dotted(target)):
            return True
        if not isinstance(target, ast.Attribute):
            return False
        found = self.servers.find(site, target.value)
        return self.servers.is_class(site, target.value) or (found is not None and found.sure)

    def _applied(
        self,
        site: Site,
        style: RegistrationStyle,
        node: ast.Call,
        inner: ast.Call | None,
        server: str,
        branches: Branches,
    ) -> None:
        """A decorator that is called, with the function or before decorating it."""
        call = node if inner is None else inner
        function: ast.expr | None = None
        if inner is not None:
            function = node.args[0] if node.args else None
        elif (
            call.args and self.values.text(site, call.args[0]) is None and style.kind != "resource"
        ):
            function = call.args[0]
        self._add(
            self.declaring.called(site, style, call, function, server=server, branches=branches)
        )

    def _given(
        self, site: Site, style: RegistrationStyle, node: ast.Call, server: str, branches: Branches
    ) -> None:
        """A method that takes a function, or something that has its name already."""
        function = node.args[0] if node.args else keyword(node, "fn") or keyword(node, "tool")
        if self._ready(site, function) and keyword(node, *style.names) is None:
            return
        self._add(
            self.declaring.called(site, style, node, function, server=server, branches=branches)
        )

    def _ready(self, site: Site, node: ast.expr | None) -> bool:
        """Whether something was made into a tool elsewhere, where we see it too."""
        if isinstance(node, ast.Call):
            return True
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        found = self.values.follow(site, node)
        if found is None:
            return False
        where, what = found
        if isinstance(what, Function):
            marks = (
                each.func if isinstance(each, ast.Call) else each for each in what.decorator_list
            )
            return any(
                last_part(each) in DECORATORS and is_mcp(where.dotted(each)) for each in marks
            )
        return isinstance(what, ast.Call)

    def _constructed(self, site: Site, node: ast.Call, name: str, branches: Branches) -> None:
        """`types.Tool(name="…")`, `Tool.from_function(…)` and their like."""
        server = f"{self.module.file.path}#{self._inside}"
        target, function = node.func, None
        if isinstance(target, ast.Attribute) and name in COPIES:
            # A copy keeps the name it has unless it is given another.
            again = keyword(node, "name") is not None
            style = DEFINITIONS.get(self._class(site, target.value)) if again else None
        elif isinstance(target, ast.Attribute) and name == FACTORY:
            style = FACTORIES.get(self._class(site, target.value))
            function = node.args[0] if node.args else keyword(node, "fn")
        else:
            style = DEFINITIONS.get(self._class(site, target))
        if style is not None:
            self._add(
                self.declaring.called(site, style, node, function, server=server, branches=branches)
            )
        elif self.servers.is_class(site, target):
            self._listed(site, node, branches)

    def _listed(self, site: Site, node: ast.Call, branches: Branches) -> None:
        """`FastMCP(tools=[function, …])`."""
        tools, made = keyword(node, "tools"), self.servers.find(site, node)
        if made is None or not isinstance(tools, ast.List | ast.Tuple):
            return
        for each in tools.elts:
            if not self._ready(site, each):
                bare = ast.Call(func=node.func, args=[each], keywords=[])
                self._add(
                    self.declaring.called(
                        site,
                        METHODS["add_tool"],
                        ast.copy_location(bare, each),
                        each,
                        server=made.key,
                        branches=branches,
                    )
                )

    def _class(self, site: Site, node: ast.expr) -> str:
        """The name of a class of an MCP library; empty for anything else."""
        dotted = site.dotted(node)
        return dotted.rpartition(".")[2] if dotted is not None and is_mcp(dotted) else ""


def keyword(node: ast.Call, *names: str) -> ast.expr | None:
    """An argument by its name."""
    return next((each.value for each in node.keywords if each.arg in names), None)


def arguments(function: Function) -> Iterator[ast.arg]:
    """All parameters of a function."""
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from (each for each in (given.vararg, given.kwarg) if each is not None)


def owned(argument: ast.arg, owner: ast.ClassDef | None) -> ast.arg:
    """A parameter; `self` is one of its class, which may be a server's."""
    if owner is None or argument.arg != "self" or argument.annotation is not None:
        return argument
    return ast.arg(arg="self", annotation=ast.Name(id=owner.name))


def own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement that are not in a block of it, nor its decorators."""
    for name, value in ast.iter_fields(statement):
        if name == "decorator_list":
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield each
            elif isinstance(each, ast.withitem):
                yield each.context_expr
            elif isinstance(each, ast.arguments):
                yield from (default for default in (*each.defaults, *each.kw_defaults) if default)
            elif isinstance(each, ast.keyword):
                yield each.value


def branching(statement: ast.stmt) -> Iterator[tuple[int | None, list[ast.stmt]]]:
    """The blocks of a statement, numbered where only one of them is run."""
    match statement:
        case ast.If(body=body, orelse=otherwise):
            yield 0, body
            if otherwise:
                yield 1, otherwise
        case ast.Try() | ast.TryStar():
            yield 0, statement.body
            yield 0, statement.orelse
            for at, handler in enumerate(statement.handlers):
                yield at + 1, handler.body
            yield None, statement.finalbody
        case ast.Match(cases=cases):
            for at, case in enumerate(cases):
                yield at, case.body
        case _:
            for block in blocks(statement):
                yield None, block
