"""Canonical names, made, parsed and validated: `ns:tool` and `ns://type/id`."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple, NoReturn

from folkmoot.core import errors as e
from folkmoot.names.grammar import (
    NAMESPACE,
    RESERVED_NAMES,
    TYPE,
    Fault,
    decoded,
    encoded,
    id_fault,
    part_fault,
    query_fault,
    resource_template_fault,
    resource_uri_fault,
    tool_name_fault,
)
from folkmoot.names.nearest import (
    nearest_namespace,
    nearest_resource_uri,
    nearest_tool_name,
    refuse,
    truncated,
)


class ToolName(NamedTuple):
    """The two halves of a tool's name."""

    namespace: str
    tool: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.tool}"


class ResourceUri(NamedTuple):
    """The parts of a resource's URI; the values of the query are decoded."""

    namespace: str
    type: str
    id: str
    query: dict[str, str]

    def __str__(self) -> str:
        return make_resource_uri(self.namespace, self.type, self.id, self.query)


def validate_namespace(name: str, expected_namespace: str | None = None) -> None:
    """Raise `InvalidName` unless the text is a namespace, and the expected one if that is given."""
    if fault := part_fault(NAMESPACE, name):
        refuse(
            f"Invalid namespace: {truncated(name)}. Must match pattern: [a-z][a-z0-9]{{2,19}}",
            name,
            fault,
            nearest_namespace(name),
        )
    if expected_namespace is not None and name != expected_namespace:
        validate_namespace(expected_namespace)
        _refuse_foreign(
            f"Wrong namespace. Expected: {expected_namespace}, got: {truncated(name)}",
            name,
            expected_namespace,
        )


def check_free_namespace(namespace: str, taken: Container[str] = ()) -> None:
    """Raise `InvalidName` unless a server can take the namespace.

    It must be valid, not reserved, and not among `taken`: the handles of people and the namespaces
    of other servers.
    """
    validate_namespace(namespace)
    for rule, others in (("reserved-namespace", RESERVED_NAMES), ("taken-namespace", taken)):
        if namespace in others:
            nearest = nearest_namespace(f"{namespace}tools")
            refuse(
                f"The namespace {namespace} cannot be taken",
                namespace,
                Fault(rule, 0),
                None if nearest in taken else nearest,
            )


def validate_tool_name(name: str, expected_namespace: str | None = None) -> None:
    """Raise `InvalidName` unless the text is `ns:tool`, in the expected namespace if one is given.

    The names of prompts follow the same rules.
    """
    parse_tool_name(name, expected_namespace)


def parse_tool_name(name: str, expected_namespace: str | None = None) -> ToolName:
    """The two halves of a valid name; raises as `validate_tool_name` does."""
    _check_expected(expected_namespace)
    if fault := tool_name_fault(name):
        _refuse_tool(name, fault, expected_namespace)
    namespace, _, tool = name.partition(":")
    if expected_namespace is not None and namespace != expected_namespace:
        _refuse_foreign(
            f"Wrong namespace in tool name. Expected: {expected_namespace}:*, "
            f"got: {truncated(name)}",
            name,
            f"{expected_namespace}:{tool}",
        )
    return ToolName(namespace, tool)


def make_tool_name(namespace: str, tool: str) -> str:
    """`myproject:create_task` of `myproject` and `create_task`; raises `InvalidName`."""
    validate_namespace(namespace)
    name = f"{namespace}:{tool}"
    if fault := tool_name_fault(name):
        _refuse_tool(name, fault, namespace)
    return name


def validate_resource_uri(uri: str, expected_namespace: str | None = None) -> None:
    """Raise `InvalidName` unless the text is `ns://type/id…[?k=v&…]`, in the expected namespace."""
    _check_expected(expected_namespace)
    fault = resource_uri_fault(uri, expected_namespace)
    nearest = nearest_resource_uri(uri, expected_namespace) if fault else None
    _check_uri(uri, fault, expected_namespace, nearest)


def validate_resource_template(template: str, expected_namespace: str | None = None) -> None:
    """Raise `InvalidName` unless the text is a resource URI with `{…}` in its id or its query."""
    _check_expected(expected_namespace)
    fault = resource_template_fault(template, expected_namespace)
    _check_uri(template, fault, expected_namespace, nearest=None)


def make_resource_template(namespace: str, resource_type: str, resource_id: str) -> str:
    """`myproject://tasks/{task_id}` of `myproject`, `tasks` and `{task_id}`; raises `InvalidName`.

    A query is written as RFC 6570 has it, behind the id: `{task_id}{?format}`.
    """
    validate_namespace(namespace)
    template = f"{namespace}://{resource_type}/{resource_id}"
    fault = part_fault(TYPE, resource_type, len(namespace) + 3)
    _check_uri(template, fault or resource_template_fault(template), namespace, nearest=None)
    return template


def parse_resource_uri(uri: str, expected_namespace: str | None = None) -> ResourceUri:
    """The parts of a valid URI; raises as `validate_resource_uri` does."""
    validate_resource_uri(uri, expected_namespace)
    namespace, _, rest = uri.partition("://")
    path, _, query = rest.partition("?")
    kind, _, identifier = path.partition("/")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return ResourceUri(
        namespace, kind, identifier, {key: decoded(value) or "" for key, _, value in pairs}
    )


def make_resource_uri(
    namespace: str,
    resource_type: str,
    resource_id: str,
    query: Mapping[str, str] | None = None,
) -> str:
    """The URI of its parts, with the query's values percent-encoded; raises `InvalidName`.

    An id may have several segments, such as `abc123/tables/grid-1`.
    """
    validate_namespace(namespace)
    asked = "&".join(f"{key}={_encoded(value)}" for key, value in (query or {}).items())
    uri = f"{namespace}://{resource_type}/{resource_id}" + (f"?{asked}" if query else "")
    at = len(namespace) + 3
    # Each part by itself: a type with a slash in it would be read back as something else.
    fault = (
        part_fault(TYPE, resource_type, at)
        or id_fault(resource_id, at + len(resource_type) + 1)
        or (query_fault(asked, len(uri) - len(asked)) if query else None)
        or resource_uri_fault(uri)
    )
    if fault:
        _refuse_uri(uri, fault, nearest_resource_uri(uri, namespace))
    return uri


def _encoded(value: str) -> str:
    """A value encoded for a query; characters it cannot hold are left for the grammar to find."""
    written = encoded(value)
    return value if written is None else written


def _check_expected(expected: str | None) -> None:
    if expected is not None:
        validate_namespace(expected)


def _check_uri(uri: str, fault: Fault | None, expected: str | None, nearest: str | None) -> None:
    if fault:
        _refuse_uri(uri, fault, nearest)
    namespace, _, rest = uri.partition("://")
    if expected is not None and namespace != expected:
        _refuse_foreign(
            f"Wrong namespace in resource URI. Expected: {expected}://*, got: {truncated(uri)}",
            uri,
            f"{expected}://{rest}",
        )


def _refuse_uri(uri: str, fault: Fault, nearest: str | None) -> NoReturn:
    refuse(
        f"Invalid resource URI: {truncated(uri)}. Must match pattern: namespace://type/id",
        uri,
        fault,
        nearest,
    )


def _refuse_tool(name: str, fault: Fault, expected: str | None) -> NoReturn:
    refuse(
        f"Invalid tool name: {truncated(name)}. "
        f"Must match pattern: {expected or 'namespace'}:tool_name",
        name,
        fault,
        nearest_tool_name(name, expected),
    )


def _refuse_foreign(message: str, name: str, nearest: str) -> NoReturn:
    raise e.InvalidName(
        f"{message}. Did you mean {truncated(nearest)}?",
        name=truncated(name),
        rule="foreign-namespace",
        position=0,
        nearest=nearest,
    )


class Namespace:
    """A namespace that is known to be valid: makes names in it, and refuses those of others."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        validate_namespace(name)
        self.name = name

    def make_tool_name(self, tool: str) -> str:
        """`myproject:create_task` of `create_task`."""
        return make_tool_name(self.name, tool)

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

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Namespace({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Namespace) else NotImplemented

    def __hash__(self) -> int:
        return hash((Namespace, self.name))
