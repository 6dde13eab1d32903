"""The token of a request, in its URL or its header, and whether the operator made the request."""

from __future__ import annotations

import contextlib
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from folkmoot.accounts.credentials import OF_APPS
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.settings.types import is_loopback
from folkmoot.transports.address import FORWARDED_KEY
from folkmoot.transports.connections import sign_in
from folkmoot.transports.guard import OPERATOR_KEY, host_of, is_operator
from folkmoot.transports.limits import MAX_OPERATOR_TOKEN, MAX_QUERY_PARAMETERS, MIN_OPERATOR_TOKEN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import Scope

    from folkmoot.rooms import Rooms
    from folkmoot.transports.browsers import BrowserCookies


BEARER = "bearer "
NOT_IN_URL: Final = (
    "Authentication required. The token of an app belongs in the Authorization header, never in "
    "the URL."
)
CALLER: Final = "folkmoot.caller"
"""The member of a request's scope that says whose it is, once that was asked."""


class Callers(Entity):
    """Tells those who are signed in from strangers, before anything else of a request is read.

    It decides how much a request may cost; who may do what is asked again where it is done.
    `in_session` answers whose session a request without a valid token is in, empty where it is
    nobody's.
    """

    rooms: Rooms
    in_session: Callable[[Scope, str], Awaitable[str]]
    browsers: BrowserCookies

    async def identify(self, scope: Scope) -> str:
        """The id of the account or guest whose credential a request carries; empty for none."""
        if is_operator(scope):
            return OPERATOR_KEY
        caller: str | None = scope.get(CALLER)
        if caller is None:
            try:
                caller = await self._caller(scope)
            except (e.TokenRefused, e.AuthenticationRequired, e.RequestError, e.StoreError):
                caller = ""
            except ValueError:
                caller = ""
            scope[CALLER] = caller
            if caller:
                sign_in(scope, caller)
        return caller

    async def _caller(self, scope: Scope) -> str:
        query = scope["query_string"].decode("latin-1")
        pairs = parse_qsl(query, max_num_fields=MAX_QUERY_PARAMETERS) if query else ()
        token = read_token(scope, (value for name, value in pairs if name == "token"))
        if secret := self.browsers.secret(scope, token):
            found = await self.browsers.identity(secret)
            return "" if found is None else found.principal.account_id
        if token:
            with contextlib.suppress(e.TokenRefused):
                return (await self.rooms.authenticate(token)).principal.account_id
        return await self.in_session(scope, token)


def read_token(scope: Scope, in_url: Iterable[str] = ()) -> str:
    """The token of a request; empty when it has none, refused when it has several.

    `in_url` are the values of `token` in its query. Those of apps are never there: what is in a URL
    is in logs and histories.
    """
    tokens = {token for token in in_url if token}
    if any(token.startswith(OF_APPS) for token in tokens):
        raise e.TokenInvalid(NOT_IN_URL)
    for name, value in scope["headers"]:
        if name != b"authorization":
            continue
        text = value.decode("latin-1").strip()
        if text.lower().startswith(BEARER) and (token := text[len(BEARER) :].strip()):
            tokens.add(token)
    if len(tokens) > 1:
        raise e.TokensDiffer("The request carries two different tokens; send one.")
    return tokens.pop() if tokens else ""


FORWARDING: Final = (b"forwarded", b"x-forwarded", b"x-envoy-", b"x-original-", b"cf-")
"""How the headers begin that a proxy adds to what it passes on."""
FORWARDED: Final = frozenset(
    {
        b"via",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"true-client-ip",
        b"client-ip",
        b"fly-client-ip",
        b"fastly-client-ip",
        b"x-proxyuser-ip",
    }
)
"""And those that have names of their own."""


class Operators:
    """Tells an operator's request: by its token, or because it comes straight from this machine."""

    def __init__(
        self, *, everyone: bool = False, token: str = "", behind_proxy: bool = False
    ) -> None:
        self._everyone = everyone
        self._token = token.encode()
        self._behind_proxy = behind_proxy

    @property
    def has_token(self) -> bool:
        """Whether there is a token to show."""
        return bool(self._token)

    def admit(self, scope: Scope) -> bool:
        """Whether a request is an operator's."""
        if self._everyone or is_operator(scope):
            return True
        return self._shows_token(scope) or self._is_direct(scope)

    def _shows_token(self, scope: Scope) -> bool:
        if not self._token:
            return False
        try:
            shown = read_token(scope)
        except e.TokensDiffer:
            return False
        return compare_digest(shown.encode("utf-8", "surrogateescape"), self._token)

    def _is_direct(self, scope: Scope) -> bool:
        return not self._behind_proxy and is_direct(scope)


def is_direct(scope: Scope) -> bool:
    """Whether a request was made on this machine, and by no proxy or node that passes on another's.

    A hub with a `public_url` or `http.trusted_proxies` must not ask: it is behind a proxy.
    """
    client = scope.get("client")
    if not client or not is_loopback(client[0]) or FORWARDED_KEY in scope:
        return False
    for name, value in scope["headers"]:
        if name in FORWARDED or name.startswith(FORWARDING):
            return False
        # A proxy that adds no header may still pass on the name it was reached by.
        if name == b"host" and not is_loopback(host_of(value.decode("latin-1"))):
            return False
    return True


def operators_token(given: str, path: str) -> str:
    """The operator's token, given directly or in a file; an invalid one is a `SettingsError`."""
    name, token = "telemetry.token", given
    if path and not given:
        name = "telemetry.token_file"
        try:
            with Path(path).expanduser().open("rb") as file:
                token = file.read(MAX_OPERATOR_TOKEN).decode().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise e.SettingsError(f"{name}: {path} cannot be read: {reason}.") from None
    if (given or path) and len(token) < MIN_OPERATOR_TOKEN:
        raise e.SettingsError(
            f"{name}: the token must have at least {MIN_OPERATOR_TOKEN} characters."
        )
    return token
