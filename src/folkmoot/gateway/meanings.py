"""What a server may take a URI for, whatever it looks like: no spelling slips past a right.

A URI that is listed means itself. Any other is passed on only in its plain spelling, and only if
nothing speaks against what it may mean: with its escapes read, doubled slashes as one, backslashes
as slashes, and without what follows `?` or `#`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from folkmoot.core.errors import CapabilityDenied, KindError
from folkmoot.core.kinds import parse

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.core.kinds import Kind

MOST_DEEP: Final = 3
"""How often escapes within escapes are read."""
SEGMENTS: Final = re.compile(r"[/\\?#;]")
NEEDLESS: Final = re.compile(r"%(?:2[DE]|3\d|[46][1-9A-F]|5[0-9AF]|7[0-9AE])", re.IGNORECASE)
"""A character written as an escape that means the same when it is not."""
_OTHER_SCHEME: Final = re.compile(r"[a-z0-9]+://([A-Za-z][A-Za-z0-9+.-]*)/[/:]")
_FILE: Final = re.compile(r"[a-z0-9]+://file/[/:]", re.IGNORECASE)
_PLAIN_FILE: Final = re.compile(
    r"[a-z0-9]+://file//(?!localhost/)[^/?#]*(?:/(?!/)[^?#]*)?", re.IGNORECASE
)
_BEGINS: Final = (
    re.compile(r"[a-z0-9]+://"),
    re.compile(r"[a-z0-9]+://[A-Za-z][A-Za-z0-9+.-]*//"),
)
"""What stands before the path of a URI: of the backend's own scheme, and of another one."""
_SLASHES: Final = re.compile("/{2,}")
_END: Final = re.compile(r"(?<=[^:/])/*(?:[?#].*)?$", re.DOTALL)
_NOT_IN_FILE: Final = re.compile(r"(?<=.)//|%2f|%5c", re.IGNORECASE)


def has_other_spelling(uri: str) -> bool:
    """Whether a server could take a canonical URI for another, which has rights of its own."""
    if NEEDLESS.search(uri) is not None:
        return True
    scheme = _OTHER_SCHEME.match(uri)
    if scheme is not None and not scheme[1].islower():
        return True
    if _FILE.match(uri) is not None and not _is_plain_file(uri):
        return True
    *read, last = _readings(uri)
    return unquote(last) != last or any(map(_climbs, (*read, last)))


def hidden_deny(rights: Rights, kind: Kind) -> CapabilityDenied | None:
    """The refusal of a request whose URI means something denied once it is read as servers do."""
    try:
        denied = any(
            rights.denies(parse(f"{kind.base}:{meaning}"))
            for meaning in _meanings(kind.context or "")
        )
    except KindError:
        # What no right can speak of, such as a line break, nobody has a right to.
        denied = True
    told = f"A deny among your capabilities covers what {kind} means."
    return CapabilityDenied(told, attempted_kind=str(kind)) if denied else None


def _readings(uri: str) -> list[str]:
    """A URI, and what it says with its escapes read once, twice and so on."""
    found = [uri]
    while len(found) <= MOST_DEEP and (read := unquote(found[-1])) != found[-1]:
        found.append(read)
    return found


def _meanings(uri: str) -> list[str]:
    """What else a server may take a URI for."""
    found: dict[str, None] = {}
    for read in _readings(uri):
        slashed = read.replace("\\", "/")
        for whole in (slashed, _END.sub("", slashed)):
            found[whole] = None
            for begin in _BEGINS:
                if (begun := begin.match(whole)) is not None:
                    rest = _SLASHES.sub("/", whole[begun.end() :])
                    found[f"{begun[0]}{rest}"] = found[f"{begun[0]}{rest.lstrip('/')}"] = None
    found.pop(uri, None)
    return list(found)


def _climbs(uri: str) -> bool:
    return any(segment in {".", ".."} for segment in SEGMENTS.split(uri))


def _is_plain_file(uri: str) -> bool:
    """Whether the URI of a file has no host that is this one, no doubled slash and no query."""
    if _PLAIN_FILE.fullmatch(uri) is None:
        return False
    path = uri.split("//", 2)[2]
    return _NOT_IN_FILE.search(path) is None
