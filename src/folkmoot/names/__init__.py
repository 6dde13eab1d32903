"""Names: the conventions for tools and resources of MCP servers, and their spellings.

A tool is `ns:tool` and a resource `ns://type/id`: made, read and checked here for any server. The
*canonical* name (`msg/send`, `ns:tool`) is the only one the hub thinks in; `wire` spells it for
clients and reads every spelling back.
"""

from __future__ import annotations

from folkmoot.core.errors import InvalidName
from folkmoot.names.canonical import (
    Namespace,
    ResourceUri,
    ToolName,
    check_free_namespace,
    make_resource_template,
    make_resource_uri,
    make_tool_name,
    parse_resource_uri,
    parse_tool_name,
    validate_namespace,
    validate_resource_template,
    validate_resource_uri,
    validate_tool_name,
)
from folkmoot.names.deprecation import (
    Deprecation,
    Stage,
    deprecated,
    stage,
)
from folkmoot.names.grammar import RESERVED_NAMES, RULES
from folkmoot.names.nearest import (
    namespace_from_slug,
    nearest_namespace,
    nearest_resource_uri,
    nearest_tool_name,
    snake_case,
)
from folkmoot.names.safe_names import (
    RESERVED_NAMESPACES,
    STYLES,
    NameStyle,
    WireNames,
    safe_name,
)

__all__ = [
    "RESERVED_NAMES",
    "RESERVED_NAMESPACES",
    "RULES",
    "STYLES",
    "Deprecation",
    "InvalidName",
    "NameStyle",
    "Namespace",
    "ResourceUri",
    "Stage",
    "ToolName",
    "WireNames",
    "check_free_namespace",
    "deprecated",
    "make_resource_template",
    "make_resource_uri",
    "make_tool_name",
    "namespace_from_slug",
    "nearest_namespace",
    "nearest_resource_uri",
    "nearest_tool_name",
    "parse_resource_uri",
    "parse_tool_name",
    "safe_name",
    "snake_case",
    "stage",
    "validate_namespace",
    "validate_resource_template",
    "validate_resource_uri",
    "validate_tool_name",
]
