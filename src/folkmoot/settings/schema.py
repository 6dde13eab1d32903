"""The JSON Schema of the settings file, for editors and other programs."""

from __future__ import annotations

from typing import Any

import msgspec

from folkmoot.settings.backends import BackendSpec
from folkmoot.settings.fields import FIELDS, OPEN_TABLES
from folkmoot.settings.model import Settings

GROUP = {"type": "array", "items": {"type": "string"}}
GRANTED = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": {"type": "string"}, "payload": {"type": "object"}},
                "additionalProperties": False,
            },
        ]
    },
}


def schema() -> dict[str, Any]:
    """The schema of the file, which is that of the model without its secrets."""
    (top, backend), definitions = msgspec.json.schema_components(
        [Settings, BackendSpec], ref_template="#/$defs/{name}"
    )
    settings = definitions["Settings"]["properties"]
    for field in FIELDS.values():
        if field.secret:
            table = settings
            if field.section:
                table = definitions[type(getattr(Settings(), field.section)).__name__]["properties"]
            del table[field.name]
    described = definitions["BackendSpec"]
    del described["properties"]["name"]
    del described["required"]
    described["oneOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    values = {"backends": backend, "groups": GROUP, "grants": GRANTED}
    for name, description in OPEN_TABLES.items():
        settings[name] = {
            "type": "object",
            "description": description,
            "additionalProperties": values[name],
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Folkmoot settings",
        **top,
        "$defs": definitions,
    }
