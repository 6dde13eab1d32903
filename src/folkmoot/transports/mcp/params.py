"""The params of requests, held against what their methods take."""

from __future__ import annotations

from typing import Any

from folkmoot.core.errors import ParamsInvalid


def text_in(params: dict[str, Any], name: str) -> str:
    """A member that must be a string."""
    value = params.get(name)
    if type(value) is not str:
        raise ParamsInvalid(f"{name} must be a string.")
    return value


def object_in(params: dict[str, Any], name: str) -> dict[str, Any] | None:
    """A member that is an object where it is given."""
    value = params.get(name)
    if value is not None and type(value) is not dict:
        raise ParamsInvalid(f"{name} must be an object.")
    return value


def texts_in(params: dict[str, Any], name: str) -> dict[str, str] | None:
    """A member that is an object of strings where it is given."""
    value = object_in(params, name)
    if value is not None and any(type(each) is not str for each in value.values()):
        raise ParamsInvalid(f"Every member of {name} must be a string.")
    return value


def check_completion(params: dict[str, Any]) -> None:
    """Refuse a wish for a completion that does not say of what."""
    ref, argument = object_in(params, "ref") or {}, object_in(params, "argument") or {}
    kinds = {"ref/prompt": "name", "ref/resource": "uri"}
    kind = ref.get("type")
    if type(kind) is not str or kind not in kinds:
        raise ParamsInvalid("ref must name a prompt or a resource.")
    text_in(ref, kinds[kind])
    text_in(argument, "name")
    text_in(argument, "value")
    texts_in(object_in(params, "context") or {}, "arguments")
