"""Paths: whether a value names something in a folder, however it is spelled.

A server may read one value in several ways: as it is written, with its percent escapes read, with
backslashes as slashes, with names trimmed or their Unicode normalised. `Folder.holds` answers yes
if the value is in the folder in every reading, no if it is in none, and None where that cannot be
told: it climbs out, begins somewhere else than the folder does, or is spelled so that servers may
differ. Upper and lower case are different.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_PATH, MAX_PATH_ESCAPES

ABSOLUTE: Final = "/"
RELATIVE: Final = ""
LOCAL: Final = frozenset(("", "localhost"))
HOSTED: Final = frozenset(("http", "https", "ws", "wss", "ftp"))
"""Schemes whose authority is a host, in which upper and lower case are the same."""
DOTS: Final = frozenset((".", ".."))

INVISIBLE: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that show nothing."""
_IGNORED: Final = frozenset(("Cc", "Cf", "Cn", "Me", "Mn", "Zl", "Zp", "Zs"))
"""Categories of characters that some servers drop."""

_END = re.compile("[:?#+]")
"""What a server may end a name at that it puts into a URL or opens as a file."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?#]*)([^?#]*)(.*)")
_UNCLEAR = re.compile(r"//|~|[A-Za-z]:")
"""How a path begins that is another one on other systems, or of another person."""
_NOT_IN_FOLDER = re.compile(r"[*%\\?#]|(?:^|/)\.\.(?:/|$)")


class PathPlace(NamedTuple):
    """Where a path begins, and the names from there on."""

    anchor: str
    """Empty for a relative path, `/` for an absolute one, `scheme://authority` for a URL."""
    names: tuple[str, ...]
    climbs: bool = False
    """Whether `..` stood in it, which a link may lead elsewhere than it looks."""


UNKNOWN: Final[frozenset[PathPlace | None]] = frozenset((None,))


class Folder:
    """One folder, written as a path or a URI."""

    __slots__ = ("place",)

    def __init__(self, text: str) -> None:
        place = None
        if text and _NOT_IN_FOLDER.search(text) is None and _CONTROL.search(text) is None:
            place = _place(text)
        if place is None:
            raise e.ConstraintSyntax(
                '"under" takes the path or URI of one folder, such as "notes/", without '
                r'"..", "*", "%", "?", "#" and "\", and not from "~".'
            )
        self.place = place

    def contains(self, other: Folder) -> bool:
        """Whether everything in the other folder is in this one."""
        return self._has(other.place)

    def holds(self, value: str) -> bool | None:
        """Whether a value names the folder or something in it; None if that cannot be told."""
        answers = {self._judge(place) for place in _places(value)}
        return answers.pop() if len(answers) == 1 else None

    def _has(self, place: PathPlace) -> bool:
        own = self.place
        return place.anchor == own.anchor and place.names[: len(own.names)] == own.names

    def _judge(self, place: PathPlace | None) -> bool | None:
        if place is None:
            return None
        if self._has(place):
            return True
        if place.climbs or not _apart(self.place.anchor, place.anchor):
            return None
        return None if self._is_like(place) else False

    def _is_like(self, place: PathPlace) -> bool:
        """Whether a server that trims or normalises names takes a path for one in the folder."""
        names = self.place.names
        return self.place.anchor == place.anchor and [
            _folded(name).rstrip(".") for name in place.names[: len(names)]
        ] == [_folded(name).rstrip(".") for name in names]


def _apart(folder: str, value: str) -> bool:
    """Whether it is certain that two paths which differ name different things."""
    if folder == value:
        return True
    if "://" not in folder:
        # Nobody here knows where a relative path begins; a URL is no path of a file.
        return "://" in value
    return "://" in value and _host(folder) != _host(value)


def _host(anchor: str) -> str:
    """The host of a URL, without its port and whoever is named before it."""
    authority = anchor.partition("://")[2]
    return authority.rpartition("@")[2].partition(":")[0].rstrip(".").lower()


@lru_cache(maxsize=64)
def _places(value: str) -> frozenset[PathPlace | None]:
    """What a value names in each way in which it may be read.

    Kept for a moment, since one call may be held against many folders.
    """
    readings = _readings(value)
    return UNKNOWN if readings is None else frozenset(map(_place, readings))


def _readings(value: str) -> set[str] | None:
    """Every way in which a value may be read; None if there are too many."""
    if not 0 < len(value) <= MAX_PATH:
        return None
    found = [value]
    try:
        while (read := unquote(found[-1], errors="strict")) != found[-1]:
            if len(found) > MAX_PATH_ESCAPES:
                return None
            found.append(read)
    except UnicodeDecodeError:
        return None
    if any(_CONTROL.search(reading) for reading in found):
        return None
    return {*found, *(reading.replace("\\", "/") for reading in found)}


def _place(text: str) -> PathPlace | None:
    """What a path or URI names, or None where servers may differ about it."""
    url = _URL.fullmatch(text)
    if url is not None:
        scheme, authority, path, rest = url[1].lower(), url[2], url[3], url[4]
        if scheme == "file":
            local = authority.lower() in LOCAL and path and not rest
            return _walk(ABSOLUTE, path) if local else None
        # Elsewhere what looks like a host may be the first name of a path.
        return _walk(f"{scheme}://{authority.lower() if scheme in HOSTED else authority}", path)
    if text[:5].lower() == "file:":
        text = text[5:]
        if not text.startswith("/"):
            return None
    if _UNCLEAR.match(text) is not None:
        return None
    return _walk(ABSOLUTE if text.startswith("/") else RELATIVE, text)


def _walk(anchor: str, path: str) -> PathPlace | None:
    """Follow a path name by name; None if it climbs above where it begins."""
    names: list[str] = []
    climbs = False
    for name in path.split("/"):
        if name == "..":
            if not names:
                return None
            climbs = True
            names.pop()
        elif name not in ("", "."):
            if is_unclear(name):
                return None
            names.append(name)
    return PathPlace(anchor, tuple(names), climbs)


def is_unclear(name: str) -> bool:
    """Whether a server that trims names or normalises Unicode may take a name for `..` or for none,
    or read more than one name in it.
    """
    plain = _folded(name)
    if not plain.partition(";")[0].strip("."):
        return True
    if plain.startswith("..") and not _END.split(plain, 1)[0].strip("."):
        return True
    return any(each in plain and each not in name for each in "/\\%")


def _folded(name: str) -> str:
    """A name without what nobody sees, and in the plain form of its letters."""
    if name.isascii():
        return "".join(name.split())
    return "".join(
        each
        for each in unicodedata.normalize("NFKC", name)
        if each not in INVISIBLE and unicodedata.category(each) not in _IGNORED
    )
