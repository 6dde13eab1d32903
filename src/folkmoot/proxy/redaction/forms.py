"""How secrets look: the forms that logs know, and those of tokens that others hand out."""

from __future__ import annotations

import re
from typing import Final

from folkmoot.telemetry.redaction import BY_FORM, BY_NAME, TOKENS, Form

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
