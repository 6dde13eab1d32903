"""The JSON Schema of the settings file, for editors and other programs."""

from __future__ import annotations

from typing import Any

import msgspec

from folkmoot.settings.fields import FIELDS
from folkmoot.settings.model import Settings


def schema() -> dict[str, Any]:
    """The schema of the file, which is that of the model without its secrets."""
    top = msgspec.json.schema(Settings)
    for field in FIELDS.values():
        if field.secret:
            del top["$defs"]["Settings"]["properties"][field.name]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Folkmoot settings",
        **top,
    }
