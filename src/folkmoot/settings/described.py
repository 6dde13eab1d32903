"""The settings as they may be shown: what is in effect, where it comes from, and no secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from folkmoot.settings.fields import BACKEND_FIELDS, FIELDS
from folkmoot.settings.secretwords import MASK, masked_arguments, promises_secret

if TYPE_CHECKING:
    from folkmoot.settings.backends import Value
    from folkmoot.settings.load import Loaded


def in_effect(loaded: Loaded) -> Iterator[tuple[str, Any, str]]:
    """Path, value and origin of every setting, and of what is said of backends and rights."""
    for path, field in FIELDS.items():
        holder = getattr(loaded.settings, field.section) if field.section else loaded.settings
        value = getattr(holder, field.name)
        yield path, MASK if field.secret and value else value, loaded.origins[path]
    yield from described(loaded)


def described(loaded: Loaded) -> Iterator[tuple[str, Any, str]]:
    """Path, value and origin of all that the settings say of backends, groups and grants."""
    gateway, origins = loaded.gateway, loaded.gateway_origins
    for spec in gateway.backends.values():
        path = f"backends.{spec.name}"
        for field in BACKEND_FIELDS.values():
            value = getattr(spec, field.name)
            if value != field.default:
                inner = f"{path}.{field.name}"
                yield inner, shown_value(field.name, value), origins.get(inner, origins[path])
    for table in ("groups", "grants"):
        for name, members in getattr(gateway, table).items():
            path = f"{table}.{name}"
            yield path, list(members), origins.get(path, "")


def shown_value(name: str, value: Any) -> Any:
    """A value of a backend's, with references as they are and secrets masked."""
    match name:
        case "command":
            return list(masked_arguments(value))
        case "url":
            return without_query(value)
        case "env" | "headers":
            return {key: shown_secret(key, each) for key, each in value.items()}
        case _:
            return value


def shown_secret(name: str, value: Value) -> Any:
    """One variable or header."""
    if isinstance(value, str):
        return MASK if promises_secret(name) else value
    return {key: told for key, told in msgspec.structs.asdict(value).items() if told}


def without_query(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return parts._replace(query="…" if parts.query else "").geturl()
