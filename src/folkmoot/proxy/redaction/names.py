"""Names whose value is a secret: of members, of headers and of parameters in URLs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from folkmoot.mcp.wire import SESSION_HEADER
from folkmoot.proxy.redaction.forms import FLAG, QUERY_NAMES
from folkmoot.telemetry.redaction import NAMES

ENDINGS: Final = tuple(
    sorted(
        {name.replace("_", "") for name in NAMES}
        | {"passwd", "pwd", "signingkey", "encryptionkey", "sshkey", "sessionkey", "accountkey"}
    )
)
PLURALS: Final = tuple(f"{ending}s" for ending in ENDINGS)
WHOLE_NAMES: Final = frozenset({"auth", "bearer"})
FOLDERS: Final = frozenset({"PWD", "OLDPWD", "INIT_CWD"})
"""Variables of an environment that say where a program runs. Lower-case `pwd` is a password."""
NO_SECRETS: Final = frozenset({"progresstoken"})
"""Names that only sound like it."""

_NO_WORD = re.compile(r"[^a-z0-9]+")
_HEADER = re.compile("auth|cookie|token|key|secret|credential|password")
SESSION_HEADERS: Final = frozenset({SESSION_HEADER})
OPEN_HEADERS: Final = frozenset({"www-authenticate", "proxy-authenticate", ":authority"})
"""Headers that speak of secrets and hold none."""

SESSION_NAMES: Final = frozenset({"session_id", "sessionid", "session"})
PAIRS: Final = ("name", "key", "header", "variable")
"""Members that name what the `value` beside them is."""

_SCHEMA_TYPES: Final = frozenset(
    {"string", "object", "number", "integer", "array", "boolean", "null"}
)
_SCHEMA_MEMBERS: Final = ("$ref", "anyOf", "oneOf", "allOf", "properties", "enum")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether what stands under this name is a secret, be it text or a number."""
    if name in FOLDERS:
        return False
    plain = _NO_WORD.sub("", name.lower())
    if plain in NO_SECRETS:
        return False
    return plain in WHOLE_NAMES or plain.endswith(ENDINGS)


@lru_cache(maxsize=4096)
def are_secrets(name: str) -> bool:
    """Whether this names several secrets; a number under it is how many they are."""
    return _NO_WORD.sub("", name.lower()).endswith(PLURALS)


def is_secret_flag(argument: str) -> bool:
    """Whether an argument of a command says that the one behind it is a secret."""
    return argument[:1] == "-" and FLAG.fullmatch(argument) is not None


def is_secret_header(name: str) -> bool:
    """Whether the value of a header opens a door."""
    if name in OPEN_HEADERS:
        return False
    return _HEADER.search(name) is not None or is_secret(name)


def is_secret_parameter(name: str) -> bool:
    """Whether the value of a parameter in a URL opens a door."""
    return name.lower() in QUERY_NAMES or is_secret(name)


def is_schema(value: dict[str, Any]) -> bool:
    """Whether an object describes a secret rather than holding one."""
    kind = value.get("type")
    known = kind in _SCHEMA_TYPES if isinstance(kind, str) else isinstance(kind, list)
    return known or any(member in value for member in _SCHEMA_MEMBERS)
