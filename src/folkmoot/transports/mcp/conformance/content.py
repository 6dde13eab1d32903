"""Tools that answer at once, each with another kind of content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types

from folkmoot.transports.mcp.conformance.fixture import Call, Fixture, said

if TYPE_CHECKING:
    from folkmoot.transports.mcp.conformance.fixture import Context, ToolResult

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
"""One red pixel."""
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="
"""One silent sample."""

JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

HEADER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    """A resource within content."""
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(resource=contents)


def image() -> types.ImageContent:
    """The pixel."""
    return types.ImageContent(data=PNG, mime_type="image/png")


def answering(*content: types.ContentBlock, is_error: bool = False) -> Call:
    """A tool that always answers with this."""

    async def call(_: Context, __: types.CallToolRequestParams) -> ToolResult:
        return types.CallToolResult(content=list(content), is_error=is_error)

    return call


async def echo(_: Context, params: types.CallToolRequestParams) -> ToolResult:
    """The arguments, as they came."""
    return said(f"Received: {sorted((params.arguments or {}).items())}")


CONTENT = (
    Fixture(
        "test_simple_text",
        "Answers with text.",
        answering(types.TextContent(text="This is a simple text response for testing.")),
    ),
    Fixture("test_image_content", "Answers with an image.", answering(image())),
    Fixture(
        "test_audio_content",
        "Answers with audio.",
        answering(types.AudioContent(data=WAV, mime_type="audio/wav")),
    ),
    Fixture(
        "test_embedded_resource",
        "Answers with a resource.",
        answering(
            embedded(
                "test://embedded-resource", "text/plain", "This is an embedded resource content."
            )
        ),
    ),
    Fixture(
        "test_multiple_content_types",
        "Answers with text, an image and a resource.",
        answering(
            types.TextContent(text="Multiple content types test:"),
            image(),
            embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ),
    ),
    Fixture(
        "test_error_handling",
        "Answers with an error.",
        answering(
            types.TextContent(text="This tool intentionally returns an error for testing"),
            is_error=True,
        ),
    ),
    Fixture(
        "json_schema_2020_12_tool",
        "Has a schema with the keywords of JSON Schema 2020-12.",
        echo,
        JSON_SCHEMA_2020_12,
    ),
    Fixture(
        "test_headers",
        "Has an argument that a header repeats.",
        echo,
        HEADER_SCHEMA,
        # The suite calls this one without the query of its URL, where the token is.
        needs_account=False,
    ),
)
