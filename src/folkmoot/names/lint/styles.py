"""The ways of registering a name that are understood, as tables."""

from __future__ import annotations

from typing import Final, NamedTuple

from folkmoot.names.lint.model import Kind


class Style(NamedTuple):
    """What a decorator, method or class registers, and which arguments hold the name."""

    kind: Kind
    names: tuple[str, ...]
    """Keywords of the name, or of the URI."""
    position: int | None = None
    """Which positional argument is the same."""
    function: int | None = None
    """Which positional argument is the function, whose own name is the name if none is given."""


DECORATORS: Final[dict[str, Style]] = {
    "tool": Style("tool", ("name",), 0),
    "prompt": Style("prompt", ("name",), 0),
    "resource": Style("resource", ("uri",), 0),
}
"""Methods of servers that decorate functions; FastMCP has them as functions too."""

METHODS: Final[dict[str, Style]] = {
    "add_tool": Style("tool", ("name",), 1, 0),
    "add_prompt": Style("prompt", ("name",), 1, 0),
    "add_resource_fn": Style("resource", ("uri",), 1, 0),
}
"""Methods of servers that take a function; what is a tool already has its name from there."""

CLASSES: Final[dict[str, Style]] = {
    "Tool": Style("tool", ("name",)),
    "FunctionTool": Style("tool", ("name",)),
    "Prompt": Style("prompt", ("name",)),
    "FunctionPrompt": Style("prompt", ("name",)),
    "Resource": Style("resource", ("uri",)),
    "BinaryResource": Style("resource", ("uri",)),
    "DirectoryResource": Style("resource", ("uri",)),
    "FileResource": Style("resource", ("uri",)),
    "FunctionResource": Style("resource", ("uri",)),
    "HttpResource": Style("resource", ("uri",)),
    "TextResource": Style("resource", ("uri",)),
    "ResourceTemplate": Style("template", ("uri_template", "uriTemplate")),
    "FunctionResourceTemplate": Style("template", ("uri_template", "uriTemplate")),
}
"""What low-level handlers list, and what servers are given ready-made."""

FACTORIES: Final[dict[str, Style]] = {
    name: Style(style.kind, style.names, None if style.names == ("name",) else 1, 0)
    for name, style in CLASSES.items()
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
