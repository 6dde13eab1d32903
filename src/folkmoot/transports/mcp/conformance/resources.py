"""The resources of the conformance suite."""

from __future__ import annotations

import json
import re

import mcp_types as types

from folkmoot.transports.mcp.conformance.content import PNG

WATCHED = "test://watched-resource"
TEMPLATE = re.compile(r"test://template/([^/]{1,200})/data")

CONTENTS: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    contents.uri: contents
    for contents in (
        types.TextResourceContents(
            uri="test://static-text",
            mime_type="text/plain",
            text="This is the content of the static text resource.",
        ),
        types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
        types.TextResourceContents(
            uri=WATCHED, mime_type="text/plain", text="A resource to subscribe to."
        ),
    )
}

RESOURCES = [
    types.Resource(
        uri=uri,
        name=uri.removeprefix("test://"),
        description="A resource of the conformance suite.",
        mime_type=contents.mime_type,
    )
    for uri, contents in CONTENTS.items()
]

TEMPLATES = [
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="A template of the conformance suite.",
        mime_type="application/json",
    )
]


def read(uri: str) -> types.ReadResourceResult | None:
    """What is at a URI, if it is one of ours."""
    if uri in CONTENTS:
        return types.ReadResourceResult(contents=[CONTENTS[uri]])
    if (match := TEMPLATE.fullmatch(uri)) is None:
        return None
    given = match[1]
    text = json.dumps({"id": given, "templateTest": True, "data": f"Data for ID: {given}"})
    contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    return types.ReadResourceResult(contents=[contents])
