"""The token of a request: in its URL, as `?token=`, or in its header, as `Bearer`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from folkmoot.core.errors import (
    AuthenticationRequired,
    RequestError,
    StoreError,
    TokenRefused,
    TokensDiffer,
)
from folkmoot.transports.connections import sign_in
from folkmoot.transports.guard import OPERATOR, is_operator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import Scope

    from folkmoot.rooms import Rooms
    from folkmoot.transports.browsers import Browsers

BEARER = "bearer "
MOST_PARAMETERS: Final = 50
CALLER: Final = "folkmoot.caller"
"""The member of a request's scope that says whose it is, once that was asked."""


class Callers:
    """Tells those who are signed in from strangers, before anything else of a request is read.

    It decides how much a request may cost; who may do what is asked again where it is done.
    `in_session` answers whose session a request without a valid token is in, empty where it is
    nobody's.
    """

    def __init__(
        self,
        rooms: Rooms,
        in_session: Callable[[Scope, str], Awaitable[str]],
        browsers: Browsers,
    ) -> None:
        self._rooms = rooms
        self._in_session = in_session
        self._browsers = browsers

    async def identify(self, scope: Scope) -> str:
        """The id of the account or guest whose credential a request carries; empty for none."""
        if is_operator(scope):
            return OPERATOR
        caller: str | None = scope.get(CALLER)
        if caller is None:
            try:
                caller = await self._caller(scope)
            except (AuthenticationRequired, RequestError, StoreError, ValueError):
                caller = ""
            scope[CALLER] = caller
            if caller:
                sign_in(scope, caller)
        return caller

    async def _caller(self, scope: Scope) -> str:
        query = scope["query_string"].decode("latin-1")
        pairs = parse_qsl(query, max_num_fields=MOST_PARAMETERS) if query else ()
        token = read_token(scope, (value for name, value in pairs if name == "token"))
        if secret := self._browsers.secret(scope, token):
            found = await self._browsers.identity(secret)
            return "" if found is None else found.principal.account_id
        if token:
            with contextlib.suppress(TokenRefused):
                return (await self._rooms.authenticate(token)).principal.account_id
        return await self._in_session(scope, token)


def read_token(scope: Scope, in_url: Iterable[str] = ()) -> str:
    """The token of a request; empty when it has none, refused when it has several.

    `in_url` are the values of `token` in its query.
    """
    tokens = {token for token in in_url if token}
    for name, value in scope["headers"]:
        if name != b"authorization":
            continue
        text = value.decode("latin-1").strip()
        if text.lower().startswith(BEARER) and (token := text[len(BEARER) :].strip()):
            tokens.add(token)
    if len(tokens) > 1:
        raise TokensDiffer("The request carries two different tokens; send one.")
    return tokens.pop() if tokens else ""
