"""One namespace with all that can be done in it."""

from __future__ import annotations

from collections.abc import Mapping

from folkmoot.names.grammar import (
    ResourceUri,
    ToolName,
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
from folkmoot.names.slugs import namespace_from_slug


class Namespace:
    """A namespace that is known to be valid: makes names in it, and refuses those of others."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        validate_namespace(name)
        self.name = name

    @classmethod
    def from_slug(cls, slug: str) -> Namespace:
        """The namespace of a project; see `namespace_from_slug`."""
        return cls(namespace_from_slug(slug))

    def tool(self, tool: str) -> str:
        """`myproject:create_task` of `create_task`."""
        return make_tool_name(self.name, tool)

    make_tool_name = tool

    def make_resource_uri(
        self, resource_type: str, resource_id: str, query: Mapping[str, str] | None = None
    ) -> str:
        """`myproject://docs/123?format=json` of `docs`, `123` and `{"format": "json"}`."""
        return make_resource_uri(self.name, resource_type, resource_id, query)

    def make_resource_template(self, resource_type: str, resource_id: str) -> str:
        """`myproject://tasks/{task_id}` of `tasks` and `{task_id}`."""
        return make_resource_template(self.name, resource_type, resource_id)

    def validate_tool_name(self, name: str) -> None:
        """Raise `InvalidName` unless it is a tool's or a prompt's name in this namespace."""
        validate_tool_name(name, self.name)

    def validate_resource_uri(self, uri: str) -> None:
        """Raise `InvalidName` unless it is a resource's URI in this namespace."""
        validate_resource_uri(uri, self.name)

    def validate_resource_template(self, template: str) -> None:
        """Raise `InvalidName` unless it is a template of URIs in this namespace."""
        validate_resource_template(template, self.name)

    def parse_tool_name(self, name: str) -> ToolName:
        """The halves of a tool's name in this namespace; raises `InvalidName`."""
        return parse_tool_name(name, self.name)

    def parse_resource_uri(self, uri: str) -> ResourceUri:
        """The parts of a resource's URI in this namespace; raises `InvalidName`."""
        return parse_resource_uri(uri, self.name)

    def owns(self, name: str) -> bool:
        """Whether a name or a URI begins with this namespace, valid or not: for routing."""
        return name.startswith(f"{self.name}:")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Namespace({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Namespace) else NotImplemented

    def __hash__(self) -> int:
        return hash((Namespace, self.name))
