"""Tokens: requests for them and to revoke them, PKCE, and which codes and tokens are good."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_OAUTH_PARAMETERS, MAX_TOKEN_REQUEST_BYTES
from folkmoot.core.oauth.clients import CODE_GRANT, DEVICE_GRANT, REFRESH_GRANT

ACCESS: Final = re.compile(r"at_[0-9a-f]{64}")
REFRESH: Final = re.compile(r"rt_[0-9a-f]{64}")
CODE: Final = re.compile(r"ac_[0-9a-f]{64}")
DEVICE: Final = re.compile(r"dc_[0-9a-f]{64}")
VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
FORM: Final = "application/x-www-form-urlencoded"
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    CODE_GRANT: ("code", "code_verifier"),
    REFRESH_GRANT: ("refresh_token",),
    DEVICE_GRANT: ("device_code",),
}
"""The members that each type of grant needs."""

_BASIC: Final = re.compile(r"basic +([A-Za-z0-9+/]+=*)", re.IGNORECASE)


class TokenRequest(Struct, frozen=True):
    """A request to `/token`, `/revoke` or `/device_authorization`; empty members were not given."""

    client_id: str = ""
    client_secret: str = ""
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    code_verifier: str = ""
    refresh_token: str = ""
    device_code: str = ""
    scope: str = ""
    resource: str = ""
    token: str = ""

    # Most members are secrets.
    __repr__ = object.__repr__


def read(body: bytes, content_type: str, authorization: str | None = None) -> TokenRequest:
    """Read a request of an app, which names itself in the body or in the header."""
    if len(body) > MAX_TOKEN_REQUEST_BYTES:
        sentence = f"The request must have at most {MAX_TOKEN_REQUEST_BYTES:,} bytes."
        raise e.OAuthError("invalid_request", sentence, 413)
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise e.OAuthError("invalid_request", f"The request must be of the type {FORM}.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_OAUTH_PARAMETERS,
        )
    except ValueError:
        raise e.OAuthError("invalid_request", "The request cannot be read as a form.") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise e.OAuthError("invalid_request", "A parameter occurs twice.")
    if authorization is not None and authorization[:6].lower() == "basic ":
        given |= _basic(authorization, given)
    if not all(value.isascii() and value.isprintable() for value in given.values()):
        raise e.OAuthError("invalid_request", "A parameter has a character that none can have.")
    known = TokenRequest.__struct_fields__
    request = TokenRequest(**{name: value for name, value in given.items() if name in known})
    if not request.client_id:
        raise e.OAuthError("invalid_client", "The request must name the app by its client_id.", 401)
    return request


def _basic(authorization: str, given: Mapping[str, str]) -> dict[str, str]:
    """The app's id and secret from the header; the body must not have others."""
    found = _BASIC.fullmatch(authorization)
    try:
        text = base64.b64decode(found[1], validate=True).decode("ascii") if found else ""
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    client_id, colon, secret = text.partition(":")
    if not colon:
        raise e.OAuthError("invalid_client", "The authorization header cannot be read.", 401)
    client_id, secret = unquote_plus(client_id), unquote_plus(secret)
    if given.get("client_secret") or given.get("client_id") not in (None, "", client_id):
        raise e.OAuthError("invalid_request", "An app must authenticate in one way only.")
    return {"client_id": client_id, "client_secret": secret}


def check_grant(request: TokenRequest) -> None:
    """Refuse a request for tokens whose type is not supported, or which lacks what it needs."""
    needed = NEEDED.get(request.grant_type)
    if needed is None:
        sentence = f"The grant_type must be one of {', '.join(NEEDED)}."
        raise e.OAuthError("unsupported_grant_type", sentence)
    for name in needed:
        if not getattr(request, name):
            raise e.OAuthError("invalid_request", f"The request must have a {name}.")


def verified(challenge: str, verifier: str) -> bool:
    """Whether a verifier is the one whose SHA-256 was the challenge."""
    if VERIFIER.fullmatch(verifier) is None:
        return False
    digest = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=")
    return compare_digest(digest, challenge.encode("utf-8", "surrogatepass"))
