"""Authorization requests: what an app asks for when it sends a person here, and the way back.

A request whose app or redirect address is wrong is never answered with a redirect: `read` raises a
plain `OAuthError`, which a page tells the person. Everything else that is wrong is the app's to
know: `read` raises `Redirected`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_CLIENT_ID, MAX_OAUTH_PARAMETER, MAX_OAUTH_PARAMETERS
from folkmoot.core.oauth import scopes
from folkmoot.core.oauth.clients import Client
from folkmoot.core.oauth.redirects import Address, answered, fault, matches, split

CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 in base64url."""
_STATE: Final = re.compile(rf"[\x20-\x7e]{{0,{MAX_OAUTH_PARAMETER}}}")
_PORTS: Final = {"http": "80", "https": "443"}

Pairs = Sequence[tuple[str, str]]


class AuthorizationRequest(Struct, frozen=True):
    """What an app asks for, once it is known to be in order."""

    client_id: str
    redirect_uri: str
    state: str
    scope: tuple[str, ...]
    resource: str
    code_challenge: str


class Redirected(e.OAuthError):
    """A refusal that is told to the app, at `location`."""

    def __init__(self, error: str, description: str, location: str) -> None:
        super().__init__(error, description)
        self.location = location


def client_id_of(pairs: Pairs) -> str:
    """The id of the app that asks."""
    found = [value for name, value in pairs[: MAX_OAUTH_PARAMETERS + 1] if name == "client_id"]
    if len(pairs) > MAX_OAUTH_PARAMETERS or len(found) != 1 or len(found[0]) > MAX_CLIENT_ID:
        raise e.OAuthError("invalid_request", "The link must name one app by its client_id.")
    return found[0]


def read(
    pairs: Pairs, client: Client | None, *, issuer: str, resource: str
) -> AuthorizationRequest:
    """What an app asks for; `client` is the one with the id that `client_id_of` found."""
    if client is None or client_id_of(pairs) != client.id:
        sentence = "This hub does not know the app. Start again in the app, so that it registers."
        raise e.OAuthError("invalid_client", sentence)
    times = Counter(name for name, _ in pairs)
    given = {name: value for name, value in pairs if times[name] == 1}
    redirect_uri, state = given.get("redirect_uri", ""), given.get("state", "")
    if fault(redirect_uri) is not None or not matches(client.redirect_uris, redirect_uri):
        sentence = "The app asks to be answered at an address that it did not register."
        raise e.OAuthError("invalid_request", sentence)
    is_fit = _STATE.fullmatch(state) is not None
    try:
        _check(given, issuer, resource, is_fit=is_fit and len(given) == len(pairs))
        return AuthorizationRequest(
            client_id=client.id,
            redirect_uri=redirect_uri,
            state=state,
            scope=scopes.asked(given.get("scope", "")),
            resource=resource,
            code_challenge=given["code_challenge"],
        )
    except e.OAuthError as refused:
        error, words = refused.error, refused.message
        location = denied(redirect_uri, state if is_fit else "", issuer, error, words)
        raise Redirected(error, words, location) from None


def _check(given: dict[str, str], issuer: str, resource: str, *, is_fit: bool) -> None:
    if not is_fit:
        sentence = "A parameter occurs twice, or state is too long or not plain text."
        raise e.OAuthError("invalid_request", sentence)
    if given.get("response_type") != "code":
        raise e.OAuthError("unsupported_response_type", "The response_type must be code.")
    if given.get("code_challenge_method") != "S256":
        raise e.OAuthError("invalid_request", "The code_challenge_method must be S256.")
    if CHALLENGE.fullmatch(given.get("code_challenge", "")) is None:
        raise e.OAuthError("invalid_request", "The code_challenge must be a SHA-256 in base64url.")
    asked = given.get("resource")
    if asked and not is_ours(asked, resource, issuer):
        raise e.OAuthError("invalid_target", f"The resource must be {resource}.")
    if given.get("prompt") == "none":
        raise e.OAuthError("interaction_required", "Consent is asked for each time.")


def is_ours(asked: str, *own: str) -> bool:
    """Whether a resource that an app names is one of these, whatever its query."""
    place = _place(asked)
    return place is not None and place in map(_place, own)


def _place(url: str) -> Address | None:
    parts = split(url) if len(url) <= MAX_OAUTH_PARAMETER else None
    if parts is None:
        return None
    scheme = parts.scheme.lower()
    port = parts.port or _PORTS.get(scheme, "")
    return Address(scheme, parts.host.lower(), port, parts.path.rstrip("/"), "")


def granted(request: AuthorizationRequest, issuer: str, code: str) -> str:
    """The way back to an app that was allowed what it asked for."""
    return answered(request.redirect_uri, code=code, state=request.state, iss=issuer)


def denied(uri: str, state: str, issuer: str, error: str, words: str) -> str:
    """The way back to an app that was refused."""
    return answered(uri, error=error, error_description=words, state=state, iss=issuer)
