"""Who may read what concerns the operator alone: metrics, and the details of readiness."""

from __future__ import annotations

from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import SettingsError, TokensDiffer
from folkmoot.settings.types import is_loopback
from folkmoot.transports.credentials import read_token
from folkmoot.transports.guard import host_of, is_operator

if TYPE_CHECKING:
    from starlette.types import Scope

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
MOST_TOKEN: Final = 4_096
LEAST_TOKEN: Final = 16


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
        except TokensDiffer:
            return False
        return compare_digest(shown.encode("utf-8", "surrogateescape"), self._token)

    def _is_direct(self, scope: Scope) -> bool:
        return not self._behind_proxy and is_direct(scope)


def is_direct(scope: Scope) -> bool:
    """Whether a request was made on this machine, and by no proxy that passes on another's.

    A hub with a `public_url` or `http.trusted_proxies` must not ask: it is behind a proxy.
    """
    client = scope.get("client")
    if not client or not is_loopback(client[0]):
        return False
    for name, value in scope["headers"]:
        if name in FORWARDED or name.startswith(FORWARDING):
            return False
        # A proxy that adds no header may still pass on the name it was reached by.
        if name == b"host" and not is_loopback(host_of(value.decode("latin-1"))):
            return False
    return True


def operators_token(given: str, path: str) -> str:
    """The token as it was given, or as a file holds it; what cannot be one is a `SettingsError`."""
    name, token = "telemetry.token", given
    if path and not given:
        name = "telemetry.token_file"
        try:
            with Path(path).expanduser().open("rb") as file:
                token = file.read(MOST_TOKEN).decode().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise SettingsError(f"{name}: {path} cannot be read: {reason}.") from None
    if (given or path) and len(token) < LEAST_TOKEN:
        raise SettingsError(f"{name}: the token must have at least {LEAST_TOKEN} characters.")
    return token
