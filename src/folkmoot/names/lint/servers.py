"""Which objects of a source are MCP servers, and the ways to register a name with one."""

from __future__ import annotations

import ast
import re
from typing import Final, NamedTuple

from msgspec import Struct

from folkmoot.names.limits import MAX_IMPORT_DEPTH
from folkmoot.names.lint.model import Kind
from folkmoot.names.lint.modules import (
    MCP_ROOTS,
    Bound,
    Function,
    Site,
    last_part,
)
from folkmoot.names.lint.values import Values


class RegistrationStyle(NamedTuple):
    """What a decorator, method or class registers, and which arguments hold the name."""

    kind: Kind
    names: tuple[str, ...]
    """Keywords of the name, or of the URI."""
    position: int | None = None
    """Which positional argument is the same."""
    function: int | None = None
    """Which positional argument is the function, whose own name is the name if none is given."""


DECORATORS: Final[dict[str, RegistrationStyle]] = {
    "tool": RegistrationStyle("tool", ("name",), 0),
    "prompt": RegistrationStyle("prompt", ("name",), 0),
    "resource": RegistrationStyle("resource", ("uri",), 0),
}
"""Methods of servers that decorate functions; FastMCP has them as functions too."""

METHODS: Final[dict[str, RegistrationStyle]] = {
    "add_tool": RegistrationStyle("tool", ("name",), 1, 0),
    "add_prompt": RegistrationStyle("prompt", ("name",), 1, 0),
    "add_resource_fn": RegistrationStyle("resource", ("uri",), 1, 0),
}
"""Methods of servers that take a function; what is a tool already has its name from there."""

DEFINITIONS: Final[dict[str, RegistrationStyle]] = {
    "Tool": RegistrationStyle("tool", ("name",)),
    "FunctionTool": RegistrationStyle("tool", ("name",)),
    "Prompt": RegistrationStyle("prompt", ("name",)),
    "FunctionPrompt": RegistrationStyle("prompt", ("name",)),
    "Resource": RegistrationStyle("resource", ("uri",)),
    "BinaryResource": RegistrationStyle("resource", ("uri",)),
    "DirectoryResource": RegistrationStyle("resource", ("uri",)),
    "FileResource": RegistrationStyle("resource", ("uri",)),
    "FunctionResource": RegistrationStyle("resource", ("uri",)),
    "HttpResource": RegistrationStyle("resource", ("uri",)),
    "TextResource": RegistrationStyle("resource", ("uri",)),
    "ResourceTemplate": RegistrationStyle("template", ("uri_template", "uriTemplate")),
    "FunctionResourceTemplate": RegistrationStyle("template", ("uri_template", "uriTemplate")),
}
"""What low-level handlers list, and what servers are given ready-made."""

FACTORIES: Final[dict[str, RegistrationStyle]] = {
    name: RegistrationStyle(style.kind, style.names, None if style.names == ("name",) else 1, 0)
    for name, style in DEFINITIONS.items()
}
"""`Tool.from_function(…)` and its like."""
FACTORY: Final = "from_function"
COPIES: Final = frozenset({"from_tool"})
"""Methods that make another of one that has a name, which stays unless another is given."""

RUN_TIME: Final = {
    "from_openapi": "The names of this server are made from an OpenAPI description at run time.",
    "from_fastapi": "The names of this server are made from a web application at run time.",
    "as_proxy": "The names of this server are those of another one.",
    "create_proxy": "The names of this server are those of another one.",
    "mount": "A server that is mounted may give its names another prefix.",
    "import_server": "A server that is mounted may give its names another prefix.",
}
"""Calls after which a server has names that no source shows, or others than it shows."""


SERVER_CLASSES: Final = frozenset({
    "FastMCP", "FastMCPApp", "FastMCPOpenAPI", "FastMCPProxy", "LocalProvider", "MCPServer",
})  # fmt: skip
"""What has decorators for tools: servers of FastMCP and of the official SDK, and their parts."""
PLAINLY_NAMED: Final = frozenset({"Apps"})
"""More of them, whose names others may have too."""
MAKERS: Final = frozenset({"create_proxy", "from_openapi", "from_fastapi", "from_client"})
LIKELY: Final = re.compile(r"(?:^|_)mcp(?:$|_|[0-9])", re.IGNORECASE)
UNKNOWN: Final = "?"
"""Stands for the server that is given to a function, whichever that is."""


class ServerObject(Struct, frozen=True):
    """A server object: where it is created, and whether it certainly is one."""

    key: str
    sure: bool


class ServerObjects:
    """Tells servers from other objects with methods of the same names."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.modules = values.modules

    def find(self, site: Site, node: ast.expr, depth: int = 0) -> ServerObject | None:
        """The server that an expression is; None for anything else."""
        if depth > MAX_IMPORT_DEPTH:
            return None
        match node:
            case ast.Call():
                return self._made(site, node, depth)
            case ast.Await(value=value):
                return self.find(site, value, depth + 1)
            case ast.Name():
                return self._named(site, node, depth)
            case ast.Attribute():
                return self._attribute(site, node, depth)
            case _:
                return None

    def is_class(self, site: Site, node: ast.expr | None, depth: int = 0) -> bool:
        """Whether an expression names a class of servers, or a class derived from one."""
        match node:
            case ast.Constant(value=str(text)):
                # An annotation in quotes.
                return text.split("[")[0].rpartition(".")[2] in SERVER_CLASSES
            case ast.Subscript(value=value):
                return self.is_class(site, value, depth)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.is_class(site, left, depth) or self.is_class(site, right, depth)
            case ast.Name() | ast.Attribute():
                if self._origin(site, node) in SERVER_CLASSES:
                    return True
                if self._origin(site, node) in PLAINLY_NAMED and is_mcp(site.dotted(node)):
                    return True
                found = (
                    self.values.follow(site, node, depth + 1) if depth < MAX_IMPORT_DEPTH else None
                )
                where, what = found or (site, None)
                bases = what.bases if isinstance(what, ast.ClassDef) else []
                return any(self.is_class(where, base, depth + 1) for base in bases)
            case _:
                return False

    def _origin(self, site: Site, node: ast.expr) -> str:
        """The last part of the original name behind a local one."""
        dotted = site.dotted(node)
        return last_part(node) if dotted is None else dotted.rpartition(".")[2]

    def _made(self, site: Site, node: ast.Call, depth: int) -> ServerObject | None:
        key = f"{site.module.file.path}:{getattr(node, 'lineno', 0)}"
        if self.is_class(site, node.func):
            return ServerObject(key, sure=True)
        if isinstance(node.func, ast.Attribute) and self.is_class(site, node.func.value):
            return ServerObject(key, sure=True)
        if last_part(node.func) in MAKERS and is_mcp(site.dotted(node.func)):
            return ServerObject(key, sure=True)
        found = self.values.follow(site, node.func, depth + 1)
        if found is None:
            return None
        where, what = found
        if isinstance(what, Function):
            return ServerObject(key, sure=True) if self._returns(where, what, depth) else None
        return None

    def _returns(self, site: Site, function: Function, depth: int) -> bool:
        """Whether a function says, or shows, that it returns a server."""
        if function.returns is not None:
            return self.is_class(site, function.returns)
        made = {
            target.id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                value = node.value
                if isinstance(value, ast.Name):
                    value = made.get(value.id, value)
                if isinstance(value, ast.Call) and depth < MAX_IMPORT_DEPTH:
                    return self._made(site, value, depth + 1) is not None
        return False

    def _named(self, site: Site, node: ast.Name, depth: int) -> ServerObject | None:
        found = site.lookup(node.id)
        if found is not None:
            return self._bound(site, node.id, found[0], depth)
        dotted = site.dotted(node)
        if dotted is not None:
            return self._imported(site, dotted, depth)
        starred = any(self.modules.ours(each) or is_mcp(each) for each in site.module.starred)
        return ServerObject(UNKNOWN, sure=False) if starred and LIKELY.search(node.id) else None

    def _attribute(self, site: Site, node: ast.Attribute, depth: int) -> ServerObject | None:
        dotted = site.dotted(node)
        if dotted is not None:
            return self._imported(site, dotted, depth)
        found = self.values.follow(site, node, depth + 1)
        if found is not None:
            return self._bound(found[0], node.attr, found[1], depth)
        return ServerObject(UNKNOWN, sure=False) if LIKELY.search(node.attr) else None

    def _bound(self, site: Site, name: str, what: Bound, depth: int) -> ServerObject | None:
        match what:
            case ast.arg(annotation=annotation) if annotation is not None:
                sure = self.is_class(site, annotation)
                return ServerObject(UNKNOWN, sure=True) if sure else None
            case None | ast.arg():
                likely = LIKELY.search(name) is not None
                return ServerObject(UNKNOWN, sure=False) if likely else None
            case ast.Call():
                made = self._made(site, what, depth)
                if made is not None or not self._hidden(site, what):
                    return made
                likely = site.module.speaks_mcp or LIKELY.search(name) is not None
                return ServerObject(UNKNOWN, sure=False) if likely else None
            case ast.expr():
                return self.find(site, what, depth + 1)
            case _:
                return None

    def _hidden(self, site: Site, node: ast.Call) -> bool:
        """Whether a call leads into the project, but not to anything that tells what it returns."""
        dotted = site.dotted(node.func)
        if dotted is None:
            return self.values.follow(site, node.func) is None
        return self.modules.ours(dotted) and self.modules.split(dotted) is None

    def _imported(self, site: Site, dotted: str, depth: int) -> ServerObject | None:
        found = self.values.imported(dotted)
        if found is not None:
            return self._bound(found[0], dotted.rpartition(".")[2], found[1], depth + 1)
        if not self.modules.ours(dotted) or self.modules.split(dotted) is not None:
            return None
        # A module of the project that we were not given to read.
        likely = site.module.speaks_mcp or LIKELY.search(dotted.rpartition(".")[2]) is not None
        return ServerObject(UNKNOWN, sure=False) if likely else None


def is_mcp(dotted: str | None) -> bool:
    """Whether something comes from a library of MCP."""
    return dotted is not None and dotted.split(".")[0] in MCP_ROOTS
