"""Placeholders of a redacted tape, and the values that someone puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.core.message import M, encode_message, replace
from folkmoot.proxy.redaction.placeholder import PLACEHOLDER


def placeholders(message: M) -> list[str]:
    """The secrets of a message that the tape does not hold, each once."""
    text = encode_message(message).decode()
    return list(dict.fromkeys(found[0] for found in PLACEHOLDER.finditer(text)))


def filled(message: M, values: Mapping[str, str]) -> M:
    """The message with these values in place of their placeholders."""
    if not any(name in values for name in placeholders(message)):
        return message
    said = [name for name in ("params", "result") if hasattr(message, name)]
    return replace(message, **{name: _filled(getattr(message, name), values) for name in said})


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), value)
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, dict):
        return {name: _filled(member, values) for name, member in value.items()}
    return value
