r"""Finds secrets in text that is about to be written where people read it.

Two ways lead to a secret: it has a form of its own (tokens, recovery codes, passwords in URLs,
invite paths), or it stands behind a name that says so (`token=…`, `"token": "…"`,
`Authorization: …`). Letters may also be spelled `%73` or `\u0073`, as they are inside URLs and
JSON.

`clean` makes whatever a caller logs fit to be written: no secret, one line, of bounded size.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MASK = "[redacted]"
SHORTEST = 7
"""Nothing shorter can hold a secret: `token=x` is the shortest that does."""
MOST = 1_024
"""Values that are hidden at once: a hub has a few of its own, and each backend may have some."""
MOST_HARMLESS = 4_096
LONGEST_HARMLESS = 128
"""How many texts of which length are remembered that have no secret in them."""

NAMES = frozenset(
    {
        "token",
        "recovery_code",
        "invite_code",
        "master_key",
        "private_key",
        "secret_key",
        "access_key",
        "api_key",
        "password",
        "passphrase",
        "secret",
        "authorization",
        "cookie",
        "credential",
    }
)
"""Names whose value is a secret, whatever it looks like, also as the end of a longer name."""

TOKENS = ("sk_", "gi_", "gk_")
"""How tokens begin: those of accounts, of invitations into a room, and of its guests."""

_ENDINGS = tuple(name.replace("_", "") for name in sorted(NAMES))
_NO_WORD = re.compile(r"[^a-z0-9]+")


def _letter(char: str) -> str:
    """A pattern for one character, plain or spelled as a percent or JSON escape."""
    codes = {f"{ord(form):02x}" for form in (char.lower(), char.upper())}
    digits = "|".join(sorted("".join(f"[{d}{d.upper()}]" for d in code) for code in codes))
    plain = "".join(sorted({re.escape(char.lower()), re.escape(char.upper())}))
    return rf"(?:[{plain}]|%(?:25){{0,4}}(?:{digits})|\\{{1,8}}u00(?:{digits}))"


_HEADERS = ("proxy-authorization", "authorization", "set-cookie", "cookie")
_OTHERS = sorted((n.replace("_", "[_-]?") for n in NAMES), key=len, reverse=True)
_JOINT = f"(?:{_letter('_')}|{_letter('-')})?"
_SPELLED = "|".join(
    _JOINT.join("".join(map(_letter, word)) for word in name.split("_")) for name in sorted(NAMES)
)
_TOKENS = "|".join(TOKENS)
_SPELLED_TOKENS = "|".join("".join(map(_letter, start)) for start in TOKENS)
_FIRST = r"%\\" + "".join(sorted({name[0] + name[0].upper() for name in NAMES}))
"""How a spelled name can begin; where it cannot, no name is tried."""
_BETWEEN = (
    r"(?:(?:\\{0,8}[\"'])?\s{0,8}(?:[:=]|=>|%(?:25){0,4}3[dDaA])|\\{0,8}[\"']\s{0,8},)\s{0,8}b?"
)
_QUOTED = r"(?P<quote>\\{0,8}[\"'])(?:(?!(?P=quote))[\s\S])*"
_BODY = r"(?:[A-Za-z0-9]|%(?:25){0,4}[3-7][0-9A-Fa-f]|\\{1,8}u00[3-7][0-9A-Fa-f])"
_UPPER = "[A-HJ-NP-Z2-9]{4}"
_ANY_CASE = "[A-HJ-NP-Za-hj-np-z2-9]{4}"
_DASH, _SLASH = _letter("-"), _letter("/")
_ALONE = r"(?:(?<![\w%\\-])|(?<=\\[nrt]))"
_CODE = re.compile(
    rf"{_UPPER}(?:{_DASH}{_UPPER}){{2}}|{_ALONE}{_ANY_CASE}(?:{_DASH}{_ANY_CASE}){{2}}(?![\w-])"
)
_DASHED_CODE = re.compile(
    rf"-(?:(?<={_UPPER}-){_UPPER}-{_UPPER}"
    rf"|(?<={_ALONE}{_ANY_CASE}-){_ANY_CASE}-{_ANY_CASE}(?![\w-]))"
)
"""The same but for its first part, and with plain dashes: begins with what is rare in a text."""


class Form(NamedTuple):
    """One way a secret can look: it is searched for only where one of its hints is present."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    first: re.Pattern[str] | None = None
    """Found quickly, and surely there where the pattern is: else that is not searched for."""


_ESCAPES = ("%", "\\u")

BY_NAME = (
    Form(
        ("authorization", "cookie"),
        re.compile(
            rf"(?P<kept>(?i:{'|'.join(_HEADERS)}){_BETWEEN})"
            rf"(?:{_QUOTED}|(?:(?!\\{{1,8}}[nr])[^\r\n])+)"
        ),
    ),
    Form(
        ("token", "code", "key", "pass", "secret", "credential"),
        re.compile(
            rf"(?P<kept>(?i:{'|'.join(_OTHERS)}){_BETWEEN})"
            rf"(?:{_QUOTED}|[^\s&\"'<>,;()\[\]{{}}]+)"
        ),
    ),
    Form(
        _ESCAPES,
        re.compile(
            rf"(?=[{_FIRST}])(?P<kept>(?:{_SPELLED}){_BETWEEN})(?:{_QUOTED}|[^\s&\"'<>,;()\[\]{{}}]+)"
        ),
    ),
    Form(("bearer",), re.compile(r"(?P<kept>(?i:bearer)(?:\s{1,8}|%20|\+))[\w~+/.=%-]{8,}")),
)
"""Secrets that stand behind a name; a header's value reaches to the end of its line."""

BY_FORM = (
    Form(_ESCAPES, re.compile(f"(?:{_SPELLED_TOKENS}){_BODY}{{8,}}")),
    Form(
        TOKENS,
        re.compile(rf"(?i:(?<![a-z0-9])(?:{_TOKENS})[a-z0-9]{{8,}}|(?:{_TOKENS})[0-9a-f]{{8,}})"),
    ),
    Form(_ESCAPES, _CODE),
    Form(("-",), _CODE, _DASHED_CODE),
    Form(("://",), re.compile(r"(?P<kept>://[^\s/?#@:\"'<>]*:)[^\s/?#\"'<>]+(?=@)")),
    Form(("invite",), re.compile(rf"(?P<kept>{_SLASH}(?i:invite){_SLASH})[\w~.%-]+")),
)
"""Secrets that show by what they look like: tokens, codes, passwords and invites in URLs."""
ALL = (*BY_NAME, *BY_FORM)


def _mask(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"{groups.get('kept') or ''}{groups.get('quote') or ''}{MASK}"


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is a secret whatever it looks like."""
    return _NO_WORD.sub("", name.lower()).endswith(_ENDINGS)


class Redactor:
    """Replaces secrets in text. Values that no pattern knows are hidden by naming them once."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: tuple[str, ...] = ()
        self.harmless: set[str] = set()
        """Short texts in which there is nothing to mask, nor anything that cannot be seen."""
        self.hide(*values)

    def hide(self, *values: str) -> None:
        """Hide these exact values from now on; very short ones are ignored."""
        new = dict.fromkeys(v for v in values if len(v) >= SHORTEST and v not in self._values)
        if new:
            self._values = (*self._values, *new)[-MOST:]
            self.harmless = set()

    def redact(self, text: str) -> str:
        """The text with every secret masked, by its own form or by the name it stands behind."""
        if text in self.harmless:
            return text
        masked = self._apply(ALL, text)
        # Names, kinds and outcomes come again and again.
        if len(text) <= LONGEST_HARMLESS and masked == text and text.isprintable():
            if len(self.harmless) >= MOST_HARMLESS:
                self.harmless.clear()
            self.harmless.add(text)
        return masked

    def redact_forms(self, text: str) -> str:
        """The text with secrets masked that show by their own form; JSON stays valid."""
        return self._apply(BY_FORM, text)

    def _apply(self, forms: tuple[Form, ...], text: str) -> str:
        if len(text) < SHORTEST:
            return text
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        folded = text.lower()
        for hints, pattern, first in forms:
            for hint in hints:
                if hint in folded:
                    if first is None or first.search(text):
                        text = pattern.sub(_mask, text)
                    break
        return text


VALUE_LIMIT = 2_048
NAME_LIMIT = 128
ITEMS_LIMIT = 32
DEPTH_LIMIT = 4

NUMBERS = frozenset((bool, int, float))
_CUT = "… [cut]"
_TAIL = 128

CONTROLS = {
    code: repr(chr(code))[1:-1]
    for span in (
        range(0x20),
        range(0x7F, 0xA0),
        range(0x200B, 0x2010),
        range(0x2028, 0x202F),
        range(0x2066, 0x206A),
        range(0xD800, 0xE000),
        (0xFEFF,),
    )
    for code in span
}
"""What could break a line, hide in it or turn it around, and the visible spelling of each."""

redactor = Redactor()
"""The one every record passes through. `redactor.hide(value)` adds a secret no pattern knows."""


def clean(text: str, limit: int = VALUE_LIMIT) -> str:
    """One line of text: secrets masked, cut, and control characters spelled out."""
    if text in redactor.harmless:
        return text
    return visible(mask(text, limit))


def visible(text: str) -> str:
    """The text with control characters spelled out."""
    return text if text.isprintable() else text.translate(CONTROLS)


def mask(text: str, limit: int) -> str:
    """The text with its secrets masked, cut to about `limit` characters."""
    if len(text) <= limit:
        return redactor.redact(text)
    # A secret that straddles the first cut could escape its pattern: the second cut drops the end.
    return redactor.redact(text[: limit * 2])[:-_TAIL][:limit] + _CUT


def plain(value: Any, depth: int = 0) -> Any:
    """A value as bounded JSON-ready data in which every string is clean."""
    if type(value) in NUMBERS or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return clean(bytes(value[:VALUE_LIMIT]).decode("utf-8", "backslashreplace"))
    if depth < DEPTH_LIMIT and isinstance(value, dict):
        return fields(value, depth + 1)
    if depth < DEPTH_LIMIT and isinstance(value, list | tuple | set | frozenset):
        items = [plain(item, depth + 1) for item, _ in zip(value, range(ITEMS_LIMIT), strict=False)]
        return [*items, _CUT] if len(value) > ITEMS_LIMIT else items
    return clean(text_of(value))


def fields(values: Mapping[Any, Any], depth: int = 0) -> dict[str, Any]:
    """Named values made plain; a value whose name is a secret's is masked whole."""
    out: dict[str, Any] = {}
    harmless = redactor.harmless
    for name, value in islice(values.items(), ITEMS_LIMIT):
        key, secret = _key(name if type(name) is str else text_of(name))
        if secret:
            out[key] = MASK
        elif type(value) in NUMBERS or (type(value) is str and value in harmless):
            out[key] = value
        else:
            out[key] = plain(value, depth)
    if len(values) > ITEMS_LIMIT:
        out["cut"] = len(values) - ITEMS_LIMIT
    return out


@lru_cache(maxsize=1024)
def _key(name: str) -> tuple[str, bool]:
    """A name made clean, and whether its value is a secret: names come again and again."""
    return clean(name, NAME_LIMIT), is_secret_name(name)


def text_of(value: object) -> str:
    """`str(value)`, or its type's name when the value fails at that."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a record is written whatever its values do
        return f"<{type(value).__name__} that cannot be shown>"
