"""How secrets look, and the names of members, headers and parameters whose value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from folkmoot.mcp.wire import SESSION_HEADER
from folkmoot.telemetry.redaction import BY_FORM, BY_NAME, NAMES, TOKENS, Form

_ALONE: Final = r"(?<![A-Za-z0-9])"

_JWT: Final = re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\Z)"
)
_ISSUED: Final = tuple(
    (hints, re.compile(_ALONE + pattern))
    for hints, pattern in (
        (("sk-",), r"sk-[\w-]{16,}"),
        (("sk_", "rk_", "pk_"), r"[srp]k_(?:live|test)_\w{10,}"),
        (("ghp_", "gho_", "ghs_", "ghu_", "ghr_"), r"gh[oprsu]_[A-Za-z0-9]{16,}"),
        (("github_pat_",), r"github_pat_\w{20,}"),
        (("glpat-",), r"glpat-[\w-]{16,}"),
        (("xox",), r"xox[a-z]-[\w-]{10,}"),
        (("xapp-",), r"xapp-[\w-]{10,}"),
        (("akia",), r"AKIA[0-9A-Z]{16}"),
        (("aiza",), r"AIza[\w-]{30,}"),
        (("ya29.",), r"ya29\.[\w-]{20,}"),
        (("npm_",), r"npm_[A-Za-z0-9]{30,}"),
        (("hf_",), r"hf_[A-Za-z0-9]{20,}"),
        (("pypi-",), r"pypi-[\w-]{20,}"),
    )
)

QUERY_NAMES: Final = (
    "key",
    "sig",
    "signature",
    "code",
    "auth",
    "access",
    "session_id",
    "sessionid",
    "x-amz-signature",
    "x-amz-credential",
    "x-goog-signature",
)
"""Parameters of a URL that open something, besides those whose name is a secret's anywhere."""

_QUERY: Final = re.compile(
    rf"(?P<kept>[?&](?:{'|'.join(QUERY_NAMES)})=)[^\s&#\"'<>\\]+", re.IGNORECASE
)
_USER: Final = re.compile(r"(?P<kept>://)[^\s/?#@:\"'<>]{16,}(?=@)")
_FLAGS: Final = (
    r"--?(?:[\w-]{0,64}(?:token|passw(?:or)?d|passphrase|pwd|secret|credentials?"
    r"|(?:api|private|access|secret|account)[-_]?key)|pass|auth|bearer)"
)
FLAG: Final = re.compile(_FLAGS, re.IGNORECASE)
"""An argument of a command behind which a secret stands."""
_FLAG: Final = re.compile(rf"(?P<kept>(?<!\S){_FLAGS}\s{{1,4}})[^\s-]\S*", re.IGNORECASE)
_ELEMENT: Final = re.compile(
    r"(?P<kept><[\w:.-]{0,64}(?:token|password|passphrase|secret|api[_-]?key)(?:\s[^<>]{0,128})?>)"
    r"[^<>]+",
    re.IGNORECASE,
)

FORMS: Final[tuple[Form, ...]] = (
    *BY_FORM,
    Form(("eyj",), _JWT),
    Form(("-----begin",), _PRIVATE_KEY),
    *(Form(hints, pattern) for hints, pattern in _ISSUED),
    Form(("://",), _USER),
    Form(("=",), _QUERY),
)
"""Secrets that show by what they look like or by where they stand in a URL."""

TEXT_FORMS: Final[tuple[Form, ...]] = (
    *FORMS,
    *BY_NAME,
    Form(("token", "pass", "pwd", "secret", "key", "credential", "auth", "bearer"), _FLAG),
    Form(("token", "pass", "secret", "key"), _ELEMENT),
)
"""All of them, and those that stand behind a name."""

_OWN = "|".join(TOKENS)
_CODE = "[A-HJ-NP-Za-hj-np-z2-9]{4}"

KINDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("token", re.compile(rf"(?i:(?:{_OWN})[a-z0-9]+)")),
    ("code", re.compile(rf"{_CODE}-{_CODE}-{_CODE}")),
    ("jwt", _JWT),
    ("key", _PRIVATE_KEY),
    *(("token", pattern) for _, pattern in _ISSUED),
)
"""What a placeholder calls a secret, by its whole form alone: equal ones are called the same."""

OTHER_KIND: Final = "secret"
MAIL_KIND: Final = "mail"
SESSION_KIND: Final = "session"


def kind_of(secret: str) -> str:
    """What kind of secret this is, as far as it shows."""
    for kind, pattern in KINDS:
        if pattern.fullmatch(secret):
            return kind
    return OTHER_KIND


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
