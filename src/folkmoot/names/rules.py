"""The rules of names, each with the id that errors and the linter know it by."""

from __future__ import annotations

from types import MappingProxyType

MOST_NAMESPACE = 20
MOST_TOOL = 128
"""As long as MCP lets the name of a tool be; the namespace comes on top."""
MOST_URI = 2048

RULES = MappingProxyType(
    {
        "missing-namespace": "A name begins with a namespace.",
        "namespace-characters": "A namespace has lower-case letters and digits only.",
        "namespace-start": "A namespace begins with a letter.",
        "namespace-length": f"A namespace has 3 to {MOST_NAMESPACE} characters.",
        "foreign-namespace": "A name is in the namespace that is expected.",
        "reserved-namespace": "A namespace is none of the reserved names.",
        "taken-namespace": "A namespace is nobody else's.",
        "slug-characters": (
            "A slug has letters, digits, hyphens, dots and underscores, and no scope before it."
        ),
        "tool-characters": "A tool's name has lower-case letters, digits and underscores only.",
        "tool-start": "A tool's name begins with a letter.",
        "tool-length": f"A tool's name has 2 to {MOST_TOOL} characters.",
        "uri-separator": "A resource URI has :// after its namespace.",
        "uri-length": f"A resource URI has at most {MOST_URI:,} characters.",
        "type-characters": "A resource type has lower-case letters, digits and underscores only.",
        "type-start": "A resource type begins with a letter.",
        "type-length": "A resource type has at least 2 characters.",
        "id-empty": "A resource URI has an id after its type, and no part of it is empty.",
        "id-characters": (
            "A resource id has lower-case letters, digits, hyphens, dots and underscores only."
        ),
        "id-dots": "No part of a resource id is . or .. alone.",
        "query-pair": "A query is key=value pairs joined by &.",
        "query-key": "The key of a query has letters, digits, hyphens, dots and underscores only.",
        "query-repeated": "A query has each key once.",
        "query-value": "The value of a query is percent-encoded UTF-8.",
        "version-syntax": "A version is numbers joined by dots, such as 1.4.0.",
        "removal-order": "A name is removed in a later release than it is deprecated in.",
    }
)
"""What must be so, by the rule's id."""
