"""What the URL of a request to `/mcp` asks for, and the hash of its token."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from msgspec import Struct

from folkmoot.core.errors import QueryInvalid

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.names import NameStyle

MOST_PARAMETERS = 50
TOKEN_ALONE = re.compile(rb"(?:token=([A-Za-z0-9_]+))?")
NO_TOKENS: frozenset[str] = frozenset()

CHOICES: dict[str, tuple[str, ...]] = {"names": ("safe", "canonical"), "tools": ("all", "search")}
"""Query parameters besides the token, and the values they take."""


class Query(Struct, frozen=True):
    """What the URL of a request asks for."""

    tokens: frozenset[str]
    names: NameStyle | None
    all_tools: bool
    search: bool = False
    """Whether tools are found by words instead of listed."""


def read_query(scope: Scope) -> Query:
    """The query parameters; those we do not know are not ours to judge."""
    # Most requests have nothing but their token, or nothing at all, in their URL.
    if (alone := TOKEN_ALONE.fullmatch(scope["query_string"])) is not None:
        tokens = frozenset((alone[1].decode(),)) if alone[1] else NO_TOKENS
        return Query(tokens=tokens, names=None, all_tools=False)
    try:
        pairs = parse_qsl(
            scope["query_string"].decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=MOST_PARAMETERS,
        )
    except ValueError:
        raise QueryInvalid("The URL has too many query parameters.") from None
    for name, value in pairs:
        if name in CHOICES and value not in CHOICES[name]:
            raise QueryInvalid(f"The query parameter {name} takes {' or '.join(CHOICES[name])}.")
    given: dict[str, Any] = dict(pairs)
    tokens = frozenset(value for name, value in pairs if name == "token" and value)
    tools = given.get("tools")
    return Query(tokens, given.get("names"), tools == "all", tools == "search")


def hash_shown(token: str) -> str:
    """The SHA-256 of the token that a request shows, valid or not; nothing for no token."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest() if token else ""
