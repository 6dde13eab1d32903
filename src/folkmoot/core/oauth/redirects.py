"""Redirect addresses: which can be registered, which of them match, and what is sent there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from folkmoot.core.limits import MAX_REDIRECT

LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
NEVER: Final = frozenset(
    (
        *("javascript", "vbscript", "livescript", "data", "blob", "filesystem", "file", "about"),
        *("view-source", "resource", "chrome", "edge", "opera", "res", "jar", "mhtml", "intent"),
        *("ws", "wss", "ftp", "ftps", "sftp", "ssh", "telnet", "smb", "nfs", "ldap", "ldaps"),
        *("gopher", "irc", "news", "nntp", "rtsp", "mailto", "tel", "sms", "sip", "sips", "urn"),
    )
)
"""Schemes that run something, or that belong to no app. Those of Windows begin with `ms-`."""
ANSWERS: Final = frozenset(("code", "state", "iss", "error", "error_description"))
"""Members of an answer, which a registered query must not have."""

_PIECE: Final = r"[A-Za-z0-9._~:@!$&'()*+,;=/-]|%[0-9A-Fa-f]{2}"
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):"
    r"(?://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?)?"
    rf"(?P<path>(?:/(?!/)(?:{_PIECE})*)?)(?P<query>(?:\?(?:\?|{_PIECE})*)?)"
)


class Address(NamedTuple):
    """The parts of a URL."""

    scheme: str
    host: str
    """Empty where it has none."""
    port: str
    path: str
    query: str
    """With its question mark."""


def split(url: str) -> Address | None:
    """The parts of a URL that every browser reads alike; None for any other.

    So one with a fragment, a user name, a backslash, a space, an escape in its host or letters
    that are not ASCII.
    """
    found = _URL.fullmatch(url)
    if found is None or int(found["port"] or 0) > 65_535:
        return None
    return Address(**{name: part or "" for name, part in found.groupdict().items()})


def fault(uri: str) -> str | None:
    """Why an address cannot be registered; None if it can."""
    if len(uri) > MAX_REDIRECT:
        return f"A redirect address must have at most {MAX_REDIRECT:,} characters."
    parts = split(uri)
    if parts is None or not (parts.host or parts.path):
        return "A redirect address must be a URL in plain characters, without fragment and user."
    scheme = parts.scheme
    if scheme != scheme.lower() or scheme in NEVER or scheme.startswith("ms-"):
        return f"A redirect address must not have the scheme {scheme}."
    if scheme in ("http", "https") and not parts.host:
        return "A redirect address must name a host."
    if scheme == "http" and parts.host not in LOOPBACK:
        return "A redirect address must use https; http is for localhost, 127.0.0.1 and [::1]."
    if ANSWERS & {name for name, _ in parse_qsl(parts.query[1:], keep_blank_values=True)}:
        return "The query of a redirect address must not have members that the answer has."
    return None


def matches(registered: Iterable[str], asked: str) -> bool:
    """Whether an address is one of those registered; on the own device, with whatever port."""
    known = tuple(registered)
    if asked in known:
        return True
    own = _without_port(asked)
    return own is not None and own in map(_without_port, known)


def _without_port(uri: str) -> Address | None:
    """An address on the own device; None for any other."""
    parts = split(uri)
    if parts is None or parts.scheme != "http" or parts.host not in LOOPBACK:
        return None
    return parts._replace(port="")


def answered(uri: str, **members: str) -> str:
    """An address with the members of an answer in its query; empty ones are left out."""
    given = {name: value for name, value in members.items() if value}
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(given, quote_via=quote, safe='')}"


def host_of(uri: str) -> str:
    """Where an address leads, in words for the person who decides."""
    parts = split(uri)
    if parts is None:
        return "an unknown place"
    if parts.scheme == "https":
        return parts.host.lower() + (f":{parts.port}" if parts.port else "")
    if parts.scheme == "http":
        return "this device"
    return f"the app on this device that opens {parts.scheme}: links"
