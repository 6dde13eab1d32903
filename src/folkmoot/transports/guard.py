"""Checks before routing: the host and the origin of a request."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.server.heads import head_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.transports.answers import Answers

OPERATOR_KEY: Final = "folkmoot.operator"
"""The member of a request's scope that says that it came on the operator's socket."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FOR_EVERYONE = frozenset({"/register", "/token", "/revoke", "/device_authorization"})
"""Where apps in pages of any origin ask: with the secrets in the request, and no cookie."""

ADVICE = (
    "This hub does not answer to the host in the request; "
    "its operator can add it to http.allowed_hosts."
)

NO_TOKENS_IN_URLS = (
    "This hub takes no token in a URL. Send it in the Authorization header, or sign in without it."
)

MOST_KNOWN, LONGEST_KNOWN = 256, 255
"""How many hosts are remembered that were found to be ours, and how long they may be."""

_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+(?:%[a-z0-9._-]+)?)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?))"
    r"(?::(?P<port>[0-9]{0,5}))?",
    re.ASCII | re.IGNORECASE,
)
"""A name or an address, and a port; anything else could be read as two hosts, or as markup."""
MOST_PORT = 65_535


def is_operator(scope: Scope) -> bool:
    """Whether a request came on the operator's socket."""
    return scope.get(OPERATOR_KEY) is True


def host_of(netloc: str) -> str:
    """The host of `host[:port]` in one spelling, or an empty string when it is not one."""
    # Read here and not by `urlsplit`, which passes over what stands around brackets.
    parts = _HOST.fullmatch(netloc)
    if parts is None or int(parts["port"] or 0) > MOST_PORT:
        return ""
    if parts["name"] is not None:
        return _one_spelling(parts["name"])
    try:
        ipaddress.IPv6Address(parts["address"])
    except ValueError:
        return ""
    return _one_spelling(parts["address"])


def _one_spelling(host: str) -> str:
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)


def is_loopback(host: str) -> bool:
    """Whether a host, in its one spelling, is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
    """The names this hub answers to: a page that rebinds its own name to us is not among them."""

    def __init__(
        self,
        bound: str,
        public_url: str = "",
        allowed: Iterable[str] = (),
        origins: Iterable[str] = (),
        advice: str = ADVICE,
    ) -> None:
        self.advice = advice
        names = {_one_spelling(bound), host_of(urlsplit(public_url).netloc)}
        patterns = [name.lower() for name in allowed]
        names.update(_one_spelling(name) for name in patterns if not name.startswith("*."))
        self._names = frozenset(names - {""})
        self._suffixes = tuple(name[1:] for name in patterns if name.startswith("*."))
        self._origins = frozenset(origins)
        self._known: set[tuple[bytes, str]] = set()

    @property
    def known(self) -> int:
        """How many hosts are remembered."""
        return len(self._known)

    def answers_to(self, named: bytes, reached: str) -> bool:
        """Whether a `Host`, as the request spells it, is ours; most requests name one of a few."""
        known = (named, reached)
        if known in self._known:
            return True
        allowed = self.allows(host_of(named.decode("latin-1")), _one_spelling(reached))
        if allowed and len(named) <= LONGEST_KNOWN:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known.add(known)
        return allowed

    def allows(self, host: str, reached: str = "") -> bool:
        """Whether `host` is ours; `reached` is the address the connection came in on."""
        return bool(host) and (
            is_loopback(host)
            or host in self._names
            or host == reached
            or host.endswith(self._suffixes)
        )

    def allows_origin(self, origin: str, reached: str = "") -> bool:
        """Whether pages of this origin may change something here."""
        _, _, netloc = origin.partition("://")
        return origin in self._origins or self.allows(host_of(netloc), reached)


def refusal(hosts: Hosts, scope: Scope) -> e.RequestError | None:
    """Why a request may not be served here, if it may not.

    A host that is not ours is refused always; a foreign origin where something would change.
    """
    head = head_of(scope)
    named = None if b"host" in head.twice else head.first.get(b"host")
    server = scope.get("server")
    if named is None or not hosts.answers_to(named, server[0] if server else ""):
        return e.HostNotAllowed(hosts.advice)
    if b"origin" not in head.first or (scope["type"] == "http" and scope["method"] in SAFE_METHODS):
        return None
    if scope["path"] in FOR_EVERYONE:
        return None
    return foreign_origin(hosts, scope)


def foreign_origin(hosts: Hosts, scope: Scope) -> e.OriginNotAllowed | None:
    """The refusal of a request that a page of another origin sent."""
    for name, value in scope["headers"]:
        if name == b"origin":
            server = scope.get("server")
            reached = _one_spelling(server[0] if server else "")
            if not hosts.allows_origin(value.decode("latin-1"), reached):
                return e.OriginNotAllowed("A web page of another origin may not do this.")
    return None


def token_in_url(scope: Scope) -> e.QueryInvalid | None:
    """The refusal of a request with a token in its URL, however that is spelled."""
    query = scope["query_string"].decode("latin-1")
    if any(name == "token" for name, _ in parse_qsl(query)):
        return e.QueryInvalid(NO_TOKENS_IN_URLS, parameter="token")
    return None


class HostGuard(Entity):
    """Keeps web pages from using a hub that only their reader's machine can reach.

    No page reaches the operator's socket, and those who use it name any host. Where tokens are not
    taken in URLs, requests that have one there go no further either.
    """

    app: ASGIApp
    hosts: Hosts
    answers: Answers
    takes_token_in_url: bool = True

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer 421 or 403, or let the request through."""
        guarded = scope["type"] in {"http", "websocket"} and scope.get(OPERATOR_KEY) is not True
        error = refusal(self.hosts, scope) if guarded else None
        if guarded and error is None and not self.takes_token_in_url:
            error = token_in_url(scope)
        app = self.app if error is None else self.answers.error(scope, error)
        return app(scope, receive, send)


class OriginGuard(Entity):
    """Keeps pages of other origins away altogether, where reading alone begins something."""

    app: ASGIApp
    hosts: Hosts
    answers: Answers

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer 403, or let the request through."""
        foreign = foreign_origin(self.hosts, scope)
        app = self.app if foreign is None else self.answers.error(scope, foreign)
        return app(scope, receive, send)
