r"""Redaction: the one table of what secrets are called and look like, for logs, errors and tapes.

Two ways lead to a secret in a text: it has a form of its own (tokens, recovery codes, passwords in
URLs, invite paths), or it stands behind a name that says so (`token=…`, `"token": "…"`,
`Authorization: …`). Letters may also be spelled `%73` or `\u0073`, as they are inside URLs and
JSON. Members, headers, parameters of a URL and options of a command are known by their names alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from typing import Final

from msgspec import Struct

NAMES: Final = (
    "token",
    "recovery_code",
    "invite_code",
    "master_key",
    "private_key",
    "secret_key",
    "access_key",
    "api_key",
    "signing_key",
    "encryption_key",
    "ssh_key",
    "session_key",
    "account_key",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "secret",
    "authorization",
    "cookie",
    "credential",
    "connection_string",
    "db_pass",
)
"""Names whose value is a secret, whatever it looks like, also as the end of a longer name."""
LAST_WORDS: Final = (
    "auth",
    "auth_code",
    "bearer",
    "code_verifier",
    "conn_str",
    "creds",
    "device_code",
    "dsn",
    "jwt",
    "one_time_code",
    "otp",
    "otp_code",
    "pass",
    "pin_code",
    "psk",
    "totp",
    "verification_code",
)
"""The same as the last words of a longer name, `DB_PASS` or `dbPass`, but not of a longer word."""
FOLDERS: Final = frozenset({"PWD", "OLDPWD", "INIT_CWD"})
"""Variables of an environment that say where a program runs. Lower-case `pwd` is a password."""
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
OPEN_HEADERS: Final = frozenset({"www-authenticate", "proxy-authenticate", ":authority"})
"""Headers that speak of secrets and hold none."""
TOKENS: Final = ("sk_", "gi_", "gk_")
"""How tokens begin: those of accounts, of invitations into a room, and of its guests."""
HEX_TOKENS: Final = ("bs_", "oc_", "ic_", "at_", "rt_", "ac_", "dc_")
"""How browser sessions, one-time codes and invite codes begin, and the tokens and codes of apps.
Names of other things begin so, too: only hexadecimal digits make a secret of them.
"""

OTHER_KIND: Final = "secret"

_JOINTS: Final = r'[^a-z0-9"]*'
"""What may stand between the words of a name, and around them."""
_ENDINGS: Final = "|".join(
    # `pass_word` is two words to some.
    name.replace("pass", "pass_").replace("_", _JOINTS)
    for name in NAMES
)
_SINGULAR: Final = re.compile(rf"(?:{_ENDINGS}){_JOINTS}\Z")
_PLURAL: Final = re.compile(rf"(?:{_ENDINGS})s{_JOINTS}\Z")
_LAST_WORDS: Final = re.compile(
    rf"(?<![a-z0-9])(?:{'|'.join(LAST_WORDS).replace('_', _JOINTS)}){_JOINTS}\Z"
)
_CASE: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins that only its capital letter tells."""
_HARMLESS: Final = re.compile(rf'(?:\A|"){_JOINTS}progress{_JOINTS}token{_JOINTS}\Z')
"""Only sounds like a secret's name."""
_PROMISES: Final = re.compile(r"auth(?!or(?!i[sz]))|cookie|token|key|secret|credential|passw")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret, be it text or a number."""
    plain = name.lower()
    if _SINGULAR.search(plain) is not None:
        return name not in FOLDERS and _HARMLESS.search(plain) is None
    return _LAST_WORDS.search(_CASE.sub("_", name).lower()) is not None


@lru_cache(maxsize=4096)
def are_secrets(name: str) -> bool:
    """Whether this names several secrets; a number under it is how many they are."""
    return _PLURAL.search(name.lower()) is not None


def sounds_secret(name: str) -> bool:
    """Whether a header, variable or option is likely to hold a secret: `X-Key-Id` as well."""
    return _PROMISES.search(name.lower()) is not None or is_secret_name(name)


def is_secret_header(name: str) -> bool:
    """Whether the value of a header opens a door."""
    return name not in OPEN_HEADERS and sounds_secret(name)


def is_secret_parameter(name: str) -> bool:
    """Whether the value of a parameter in a URL opens a door."""
    return name.lower() in QUERY_NAMES or is_secret_name(name)


def is_secret_option(argument: str) -> bool:
    """Whether an argument of a command says that the one behind it is a secret."""
    return argument[:1] == "-" and is_secret_name(argument)


class Form(Struct, frozen=True, dict=True):
    """One way a secret can look: it is searched for only where one of its hints is present."""

    name: str
    """What the documentation calls it."""
    hints: tuple[str, ...]
    expression: str
    kind: str = OTHER_KIND
    """What a placeholder says of it."""
    first: re.Pattern[str] | None = None
    """Found quickly, and surely there where the pattern is: else that is not searched for."""
    over_lines: bool = False
    """Whether it may reach over several lines, and so over the end of a JSON string."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when it is needed: some take longer than a command may."""
        return re.compile(self.expression)


def _letter(char: str) -> str:
    """A pattern for one character, plain or spelled as a percent or JSON escape."""
    codes = {f"{ord(form):02x}" for form in (char.lower(), char.upper())}
    digits = "|".join(sorted("".join(f"[{d}{d.upper()}]" for d in code) for code in codes))
    plain = "".join(sorted({re.escape(char.lower()), re.escape(char.upper())}))
    return rf"(?:[{plain}]|%(?:25){{0,4}}(?:{digits})|\\{{1,8}}u00(?:{digits}))"


_ESCAPES: Final = ("%", "\\u")
_HEADERS = ("proxy-authorization", "authorization", "set-cookie", "cookie")
_NOT_OF_PROGRESS = r"(?<!\bprogress)"
# In a text, PWD alone is a folder.
_ANY_CASE_NAMES = [name for name in NAMES if name != "pwd"]
_OTHERS = sorted((n.replace("_", "[_-]?") for n in _ANY_CASE_NAMES), key=len, reverse=True)
_OTHERS[_OTHERS.index("token")] = f"{_NOT_OF_PROGRESS}token"
_WORDS = "|".join(LAST_WORDS).replace("_", "[_-]?")
_CAPITALIZED = "|".join(name.title().replace("_", "") for name in LAST_WORDS)
_BEGINS_WORD = r"(?<![^\W_])"
_BEGINS_CAPITALIZED = "(?<=[a-z0-9])"
_ANY_NAME = (
    rf"(?:(?i:{'|'.join(_OTHERS)})|(?!PWD)(?i:pwd)|(?<=[_-])PWD"
    rf"|{_BEGINS_WORD}(?i:{_WORDS})|{_BEGINS_CAPITALIZED}(?:{_CAPITALIZED}))"
)
"""The end of the name of a secret, as it stands in a text."""
_NAME_HINTS = (
    *("token", "code", "key", "pass", "pwd", "secret", "cred", "auth", "bearer", "cookie"),
    *("conn", "dsn", "jwt", "otp", "psk"),
)
_JOINT = f"(?:{_letter('_')}|{_letter('-')})?"


def _spelled_starts(starts: Iterable[str]) -> str:
    return "|".join("".join(map(_letter, start)) for start in starts)


def _spelled(names: Iterable[str]) -> str:
    return "|".join(_JOINT.join("".join(map(_letter, w)) for w in n.split("_")) for n in names)


_OWN = "|".join(TOKENS)
_HEX_OWN = "|".join(HEX_TOKENS)
_FIRST = r"%\\" + "".join(sorted({n[0] + n[0].upper() for n in (*NAMES, *LAST_WORDS)}))
"""How a spelled name can begin; where it cannot, no name is tried."""
_BETWEEN = (
    r"(?:(?:\\{0,8}[\"'])?\s{0,8}(?:[:=]|=>|%(?:25){0,4}3[dDaA])|\\{0,8}[\"']\s{0,8},)\s{0,8}b?"
)
_QUOTED = r"(?P<quote>\\{0,8}[\"'])(?:(?!(?P=quote))[\s\S])*"
_SCHEME = r"(?:(?i:bearer|basic|digest|negotiate|token|apikey)\s{1,8})?"
_VALUE = rf"(?:{_QUOTED}|{_SCHEME}[^\s&\"'<>,;()\[\]{{}}]+)"
_BODY = r"(?:[A-Za-z0-9]|%(?:25){0,4}[3-7][0-9A-Fa-f]|\\{1,8}u00[3-7][0-9A-Fa-f])"
_UPPER = "[A-HJ-NP-Z2-9]{4}"
_ANY_CASE = "[A-HJ-NP-Za-hj-np-z2-9]{4}"
_DASH, _SLASH = _letter("-"), _letter("/")
_TO_HOST = r":(?:\\*/){2}"
"""What stands before the host of a URL. JSON may have a slash behind a backslash."""
_BEFORE_HOST = ("://", ":\\", ":/\\")
_ALONE = r"(?:(?<![\w%\\-])|(?<=\\[nrt]))"
_CODE = rf"{_UPPER}(?:{_DASH}{_UPPER}){{2}}|{_ALONE}{_ANY_CASE}(?:{_DASH}{_ANY_CASE}){{2}}(?![\w-])"
_DASHED_CODE = re.compile(
    rf"-(?:(?<={_UPPER}-){_UPPER}-{_UPPER}"
    rf"|(?<={_ALONE}{_ANY_CASE}-){_ANY_CASE}-{_ANY_CASE}(?![\w-]))"
)
"""The same but for its first part, and with plain dashes: begins with what is rare in a text."""
_JWT = r"eyJ[\w-]{8,2048}\.[\w-]{8,}\.[\w-]*"
"""Its first part is bounded, since every `eyJ` in a long word could begin one."""
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\Z)"
)


def _issued(name: str, hints: tuple[str, ...], pattern: str) -> Form:
    return Form(name, hints, rf"(?<![A-Za-z0-9]){pattern}", "token")


FORMS: Final = (
    Form(
        "Folkmoot token",
        _ESCAPES,
        (
            f"(?:{_spelled_starts(TOKENS)}){_BODY}{{8,}}"
            f"|(?:{_spelled_starts(HEX_TOKENS)}){_BODY}{{32,}}"
        ),
        "token",
    ),
    Form(
        "Folkmoot token",
        (*TOKENS, *HEX_TOKENS),
        (
            rf"(?i:(?<![a-z0-9])(?:(?:{_OWN})[a-z0-9]{{8,}}|(?:{_HEX_OWN})[0-9a-f]{{16,}})"
            rf"|(?:{_OWN})[0-9a-f]{{8,}}|(?:{_HEX_OWN})[0-9a-f]{{64}})"
        ),
        "token",
    ),
    Form("recovery code", _ESCAPES, _CODE, "code"),
    Form("recovery code", ("-",), _CODE, "code", _DASHED_CODE),
    Form(
        "password in a URL",
        _BEFORE_HOST,
        rf"(?P<kept>{_TO_HOST}[^\s/?#@:\"'<>]*:)[^\s/?#\"'<>]+(?=@)",
    ),
    Form(
        "invite",
        ("invite",),
        rf"(?P<kept>{_SLASH}(?i:invite)\\{{0,8}}{_SLASH})[\w~.%-]+",
    ),
    Form("JSON Web Token", ("eyj",), _JWT, "jwt"),
    Form("private key", ("-----begin",), _PRIVATE_KEY, "key", over_lines=True),
    _issued("OpenAI or Anthropic key", ("sk-",), r"sk-[\w-]{16,}"),
    _issued("Stripe key", ("sk_", "rk_", "pk_"), r"[srp]k_(?:live|test)_\w{10,}"),
    _issued(
        "GitHub token",
        ("ghp_", "gho_", "ghs_", "ghu_", "ghr_"),
        r"gh[oprsu]_[A-Za-z0-9]{16,}",
    ),
    _issued("GitHub fine-grained token", ("github_pat_",), r"github_pat_\w{20,}"),
    _issued("GitLab token", ("glpat-",), r"glpat-[\w-]{16,}"),
    _issued("Slack token", ("xox",), r"xox[a-z]-[\w-]{10,}"),
    _issued("Slack app token", ("xapp-",), r"xapp-[\w-]{10,}"),
    _issued("AWS access key", ("akia",), r"AKIA[0-9A-Z]{16}"),
    _issued("Google API key", ("aiza",), r"AIza[\w-]{30,}"),
    _issued("Google access token", ("ya29.",), r"ya29\.[\w-]{20,}"),
    _issued("npm token", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    _issued("Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{20,}"),
    _issued("PyPI token", ("pypi-",), r"pypi-[\w-]{20,}"),
    Form(
        "token as the user of a URL",
        _BEFORE_HOST,
        rf"(?P<kept>{_TO_HOST})[^\s/?#@:\"'<>]{{16,}}(?=@)",
    ),
    Form(
        "key in a URL's query",
        ("?", "&"),
        rf"(?P<kept>[?&](?i:{'|'.join(QUERY_NAMES)})=)[^\s&#\"'<>\\]+",
    ),
)
"""Secrets that show by what they look like, or by where they stand in a URL."""

NAMED_FORMS: Final = (
    Form(
        "header with its value",
        ("authorization", "cookie"),
        (
            rf"(?P<kept>(?i:{'|'.join(_HEADERS)}){_BETWEEN})"
            rf"(?:{_QUOTED}|(?:(?!\\{{1,8}}[nr])[^\r\n])+)"
        ),
    ),
    Form(
        "secret behind its name",
        _NAME_HINTS,
        rf"(?P<kept>{_ANY_NAME}{_BETWEEN}){_VALUE}",
    ),
    Form(
        "secret behind its name",
        _ESCAPES,
        (
            rf"(?=[{_FIRST}])(?P<kept>(?:{_spelled(_ANY_CASE_NAMES)}"
            rf"|{_BEGINS_WORD}(?:{_spelled(LAST_WORDS)})){_BETWEEN}){_VALUE}"
        ),
    ),
    Form(
        "bearer token",
        ("bearer",),
        r"(?P<kept>(?i:bearer)(?:\s{1,8}|%20|\+))[\w~+/.=%-]{8,}",
    ),
    Form(
        "option of a command",
        _NAME_HINTS,
        rf"(?P<kept>(?<!\S)--?[\w-]{{0,64}}{_ANY_NAME}\s{{1,4}})[^\s-]\S*",
    ),
    Form(
        "element of XML",
        _NAME_HINTS,
        rf"(?P<kept><[\w:.-]{{0,64}}{_ANY_NAME}(?:\s[^<>]{{0,128}})?>)[^<>]+",
    ),
)
"""Secrets that stand behind a name; a header's value reaches to the end of its line."""

_KINDS: Final = (
    ("token", re.compile(rf"(?i:(?:{_OWN}|{_HEX_OWN})[a-z0-9]+)")),
    ("code", re.compile(rf"{_ANY_CASE}-{_ANY_CASE}-{_ANY_CASE}")),
)


def kind_of(secret: str) -> str:
    """The kind of a secret, judged by its form alone; equal secrets get the same name."""
    for kind, pattern in _KINDS:
        if pattern.fullmatch(secret):
            return kind
    known = (form for form in FORMS if form.kind != OTHER_KIND)
    return next((form.kind for form in known if form.pattern.fullmatch(secret)), OTHER_KIND)


def prepare() -> None:
    """Compile all patterns, for programs in which nobody may wait for that later."""
    for form in (*FORMS, *NAMED_FORMS):
        _ = form.pattern


def _not_behind(before: str, piece: str) -> str:
    """A pattern for a piece that does not stand behind a word, for a search that never looks back.

    Whatever part of that word stands there, it goes on with another letter.
    """
    last = len(before) - 1
    parts = (f"[^{before[last - at]}]){before[len(before) - at :]}" for at in range(len(before)))
    return "|".join(f"(?:^|{part}{piece}" for part in parts)


_SPELLED_JOINTS: Final = r'(?:\\+(?:u[0-9a-f]{4}|[bfnrt])|[^a-z0-9"])*'
"""Those between the words of a name, as they stand in JSON."""

SIGNS: Final = (
    *("secre", "cred", "pass", "pwd", "auth", "bearer", "recovery", "invite", "cookie"),
    *("dsn", "jwt", "otp", "psk"),
    *(
        name.replace("_", _SPELLED_JOINTS)
        for name in (
            *("connection_string", "conn_str", "code_verifier"),
            *("device_code", "one_time_code", "pin_code", "verification_code"),
        )
    ),
    *("eyj", "aiza", "ya29", "akia", r"\\u00"),
    _not_behind('"progress', "token"),
    _not_behind('"', "key"),
    *("[sgrp][ki]_", f"(?:{_HEX_OWN})[0-9a-f]{{16}}", "gh[oprsu]_", "npm_", "hf_", "_pat_"),
    *("sk-", "xox[a-z]-", "xapp-", "glpat-", "pypi-", "-----begin"),
    "-[a-hj-np-z2-9]{4}-[a-hj-np-z2-9]{4}",
    # No `\s`: of UTF-8 read byte by byte, half a letter may look like a space.
    rf"{_TO_HOST}[^ \t\n\r\x0b\x0c/?#@\"'<>]*@",
    "[?&](?:key|sig|signature|code|access|session_?id|x-[a-z]+-[a-z]+)=",
    "%(?:25)*[2-7][0-9a-f]",
)
"""Whatever the table knows has one of these in it; any letter may be an escape."""


@cache
def searcher(*more: str) -> Callable[[str], bool]:
    """Looks for signs of a secret in a text, and for these patterns, in letters of any case."""
    return engine(f"(?i){'|'.join((*SIGNS, *more))}")


def engine(pattern: str) -> Callable[[str], bool]:
    """Looks for a pattern in a text.

    The one engine at hand that finds all parts of one in one pass over a text is that of JSON
    Schema.
    """
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options).is_valid


def may_hold_secret(text: str) -> bool:
    """Whether something in a text could be a secret; wrong only by saying yes."""
    try:
        return searcher()(text)
    except (ValueError, ImportError):
        # Half of a surrogate pair is no text; and what ends loads no engine any more.
        return True
