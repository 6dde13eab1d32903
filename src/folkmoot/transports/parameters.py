"""From the head of a request to what its operation takes, or one clear sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from folkmoot.core import errors as e
from folkmoot.operations.arguments import truncated
from folkmoot.transports.credentials import read_token
from folkmoot.transports.limits import MAX_QUERY_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

    from folkmoot.operations.routes import Parameter
    from folkmoot.operations.schema import Schema


TOKEN: Final = "token"  # noqa: S105 - the name of the parameter
JSON: Final = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)
WHOLE: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
WORDS: Final = {"true": True, "false": False}


def read_query(scope: Scope, known: Iterable[Parameter]) -> tuple[str, dict[str, Any]]:
    """The token of a request, empty where it has none, and the parameters of its query.

    One that nobody knows, or that stands there twice, is refused.
    """
    try:
        pairs = parse_qsl(
            scope["query_string"].decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
    except ValueError:
        raise e.QueryInvalid("The URL has too many query parameters.") from None
    token = read_token(scope, [value for name, value in pairs if name == TOKEN])
    parameters = {parameter.name: parameter.schema for parameter in known}
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name == TOKEN:
            continue
        if name not in parameters:
            raise e.QueryInvalid(
                f"Unknown query parameter: {truncated(name)}.", parameter=truncated(name)
            )
        schema = parameters[name]
        if schema["type"] == "array":
            given.setdefault(name, []).append(read_value(name, schema["items"], text))
            continue
        if name in given:
            raise e.QueryInvalid(f"The query parameter {name} occurs twice.", parameter=name)
        given[name] = read_value(name, schema, text)
    defaults = {name: it["default"] for name, it in parameters.items() if "default" in it}
    return token, {**defaults, **given}


def read_value(name: str, schema: Schema, text: str) -> Any:
    """The value of one parameter of the query."""
    value: Any = text
    if schema["type"] == "integer" and WHOLE.fullmatch(text):
        value = int(text)
    if schema["type"] == "boolean":
        value = WORDS.get(text, text)
    if not fits(schema, value):
        raise e.QueryInvalid(f"The query parameter {name} takes {must_be(schema)}.", parameter=name)
    return value


def fits(schema: Schema, value: Any) -> bool:
    """Whether a simple value is what its schema says."""
    if schema["type"] == "boolean":
        return type(value) is bool
    if schema["type"] == "integer":
        return type(value) is int and schema["minimum"] <= value <= schema["maximum"]
    if type(value) is not str:
        return False
    if "enum" in schema:
        return value in schema["enum"]
    return bool(schema["minLength"] <= len(value) <= schema["maxLength"])


def must_be(schema: Schema) -> str:
    """What a simple value must be, in words."""
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    if "enum" in schema:
        *others, last = schema["enum"]
        return f"{', '.join(others)} or {last}"
    return f"a text of {schema['minLength']} to {schema['maxLength']} characters"


def check_media_type(scope: Scope) -> None:
    """Refuse a body that is not plain JSON."""
    types = [value.decode("latin-1") for name, value in scope["headers"] if name == b"content-type"]
    encoded = any(
        name == b"content-encoding" and value.lower() != b"identity"
        for name, value in scope["headers"]
    )
    if encoded or len(types) != 1 or JSON.fullmatch(types[0]) is None:
        raise e.MediaTypeUnsupported("The body must be application/json, in UTF-8, not compressed.")
