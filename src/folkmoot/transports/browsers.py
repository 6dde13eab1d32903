"""Browsers that are signed in on the hub's own pages: their cookie, and who may use it.

Browsers send the cookie of a host to every port of it, and take a page of another port for the same
site. So a request with the cookie must come from a page of exactly this scheme, host and port;
where something changes, it must also carry a header that no form and no other page can send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from folkmoot.accounts.limits import OIDC_SECONDS
from folkmoot.accounts.passkeys import origin_of
from folkmoot.core import errors as e
from folkmoot.transports.guard import SAFE_METHODS, host_of, is_loopback
from folkmoot.transports.limits import MAX_COOKIE_BYTES

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.accounts import Accounts, Identity
    from folkmoot.operations.call import Bind, Caller

PAGE: Final = b"folkmoot-page"
"""The header with which the hub's own pages ask for something to be changed."""
PORTS: Final = {"http": 80, "https": 443}
TICKET: Final = "oidc_"

AGENTS: Final = (
    ("Firefox/", "Firefox"),
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
"""Words of a user agent; the first that is there decides."""

FOREIGN: Final = "A web page of another origin may not use your browser session."
NOT_A_PAGE: Final = "With a browser session, changes are made by the hub's own page alone."
BOTH: Final = "The request carries a token and the cookie of a browser session; send one."
NEEDS_TLS: Final = (
    "A browser can be signed in here only over HTTPS, except on the hub's own machine."
)


class BrowserCookies:
    """Reads the cookie of a request, and makes the one of an answer.

    `public_url` is the one address of a hub that has one; else a page may have any that is the
    hub's own, and stays at it.
    """

    def __init__(self, accounts: Accounts, public_url: str = "") -> None:
        self._accounts = accounts
        self._public = origin_of(public_url) if public_url else ""

    def origin(self, scope: Scope) -> str:
        """The origin of the hub's pages, as the browser that sent a request has it."""
        return self._public or f"{_scheme(scope)}://{_first(scope, b'host')}".lower()

    def secret(self, scope: Scope, token: str = "", *, upgrade: bool = False) -> str:
        """The secret of a request's session; empty without a cookie, refused where it may not be.

        An `upgrade` opens a WebSocket, which is as good as a change.
        """
        found = self._cookie(scope)
        if not found:
            return ""
        if token:
            raise e.TokensDiffer(BOTH)
        unsafe = upgrade or scope["method"] not in SAFE_METHODS
        self._check_origin(scope, needed=unsafe)
        if unsafe and not upgrade and not _first(scope, PAGE):
            raise e.OriginNotAllowed(NOT_A_PAGE)
        return found

    def quietly(self, scope: Scope, token: str = "") -> str:
        """The same, where an operation is for anyone: a look that may not use it has none."""
        try:
            return self.secret(scope, token)
        except (e.OriginNotAllowed, e.TokensDiffer):
            if scope["method"] in SAFE_METHODS:
                return ""
            raise

    def is_page(self, scope: Scope) -> bool:
        """Whether a page of the hub asks for a change; a page of another origin is refused."""
        if scope["method"] in SAFE_METHODS or not _first(scope, PAGE):
            return False
        self._check_origin(scope, needed=True)
        self.check_secure(scope)
        return True

    def check_secure(self, scope: Scope) -> None:
        """Refuse a browser that could not be signed in."""
        if not self._takes_cookies(scope):
            raise e.OriginNotAllowed(NEEDS_TLS)

    def _takes_cookies(self, scope: Scope) -> bool:
        scheme, _, netloc = self.origin(scope).partition("://")
        return scheme == "https" or is_loopback(host_of(netloc))

    async def identity(self, secret: str) -> Identity | None:
        """The identity of a valid browser session."""
        found = await self._accounts.authentication.by_browser(secret) if secret else None
        account = None if found is None else found.account
        return None if account is None or account.suspended_at is not None else found

    async def has_session(self, scope: Scope) -> bool:
        """Whether a request has the cookie of a session, wherever it was made: to choose a page."""
        return await self.identity(self._cookie(scope)) is not None

    async def sign_in(self, scope: Scope, bind: Bind, caller: Caller) -> dict[str, str]:
        """The header that signs a browser in; empty where the token is not good any more."""
        if bind.guest:
            return self._set(scope, bind.guest, self._accounts.browsers.times.longest)
        before = caller.session
        replaces = ""
        if before is not None and before.credential.account_id == bind.account_id:
            replaces = before.credential.id
            if await self._accounts.browsers.came_from(bind.token_id, replaces):
                # The new session would end with the one that it replaces. It could do no more.
                return self._set(scope, self._cookie(scope), self._accounts.browsers.times.longest)
        made = await self._accounts.browsers.open(
            bind.account_id,
            bind.token_id,
            called(_first(scope, b"user-agent")),
            replaces=replaces,
            scope=bind.scope,
        )
        if made is None:
            return {}
        if before is not None and before.account is not None and not replaces:
            await self._accounts.browsers.close(before.account, before.credential.id)
        return self._set(scope, made.token, self._accounts.browsers.times.longest)

    def sign_out(self, scope: Scope) -> dict[str, str]:
        """The header that has a browser forget its cookie."""
        return self._set(scope, "", 0)

    def ticket(self, scope: Scope) -> str:
        """What a browser keeps that was sent to its company's provider."""
        return self._cookie(scope, TICKET)

    def keep_ticket(self, scope: Scope, ticket: str) -> dict[str, str]:
        """The header for it. The browser comes back from another site, and must send it then."""
        return self._set(scope, ticket, OIDC_SECONDS, TICKET, "Lax")

    def _set(
        self, scope: Scope, value: str, seconds: int, what: str = "", same_site: str = "Strict"
    ) -> dict[str, str]:
        parts = [f"{self._name(scope, what)}={value}", "Path=/", f"Max-Age={seconds}", "HttpOnly"]
        parts.append(f"SameSite={same_site}")
        if self._is_secure(scope):
            parts.append("Secure")
        return {"set-cookie": "; ".join(parts)}

    def _is_secure(self, scope: Scope) -> bool:
        scheme, _, netloc = self.origin(scope).partition("://")
        return scheme == "https" or not is_loopback(host_of(netloc))

    def _name(self, scope: Scope, what: str = "") -> str:
        parts = urlsplit(self.origin(scope))
        try:
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            port = 0
        # With the prefix no other page, nor one of a subdomain, can set it.
        return f"{'__Host-' if self._is_secure(scope) else ''}folkmoot_{what}{port}"

    def _cookie(self, scope: Scope, what: str = "") -> str:
        sent = [value for name, value in scope["headers"] if name == b"cookie"]
        if not sent:
            return ""
        text = b"; ".join(sent)
        if len(text) > MAX_COOKIE_BYTES:
            return ""
        wanted = f"{self._name(scope, what)}="
        pairs = (pair.strip() for pair in text.decode("latin-1").split(";"))
        found = {pair[len(wanted) :] for pair in pairs if pair.startswith(wanted)}
        # Two of them: one was set by another page of this host, and nobody knows which.
        return found.pop() if len(found) == 1 else ""

    def _check_origin(self, scope: Scope, *, needed: bool) -> None:
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        ours = self.origin(scope).encode("latin-1")
        if any(value.lower() != ours for value in origins) or (needed and not origins):
            raise e.OriginNotAllowed(self._advice(origins))
        site = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
        if any(value != b"same-origin" for value in site):
            raise e.OriginNotAllowed(FOREIGN)

    def _advice(self, origins: list[bytes]) -> str:
        hint = f" Its pages are at {self._public}." if self._public and origins else ""
        return FOREIGN + hint


def called(agent: str) -> str:
    """What a browser is called in the list of tokens, such as `Firefox on Linux`."""
    browser = next((name for word, name in AGENTS if word in agent), "Browser")
    system = next((name for word, name in SYSTEMS if word in agent), "")
    return f"{browser} on {system}" if system else browser


def _first(scope: Scope, name: bytes) -> str:
    found: bytes = next((value for each, value in scope["headers"] if each == name), b"")
    return found.decode("latin-1")


def _scheme(scope: Scope) -> str:
    scheme: str = scope["scheme"]
    return {"ws": "http", "wss": "https"}.get(scheme, scheme)
