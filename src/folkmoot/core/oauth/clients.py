"""Clients: apps that registered at the hub, and apps that publish a document about themselves.

A registration is kept nowhere: the id that the app gets holds it, sealed. The secret of an app that
wants one follows from its id.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from hmac import compare_digest
from typing import Any, Final, Literal, get_args
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.limits import (
    MAX_APP_DOCUMENT_BYTES,
    MAX_APP_NAME,
    MAX_CLIENT_ID,
    MAX_REDIRECTS_OF_APP,
    MAX_REGISTRATION_BYTES,
)
from folkmoot.core.oauth.redirects import fault, host_of, split
from folkmoot.core.paths import INVISIBLE
from folkmoot.core.strict import Limits, decode_object, learnt

AuthMethod = Literal["none", "client_secret_post", "client_secret_basic"]
AUTH_METHODS: Final[tuple[AuthMethod, ...]] = get_args(AuthMethod)
CODE_GRANT: Final = "authorization_code"
REFRESH_GRANT: Final = "refresh_token"
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
METADATA_ERROR: Final = "invalid_client_metadata"
GRANT_TYPES: Final = (CODE_GRANT, REFRESH_GRANT, DEVICE_GRANT)

_JSON_TYPE: Final = re.compile(
    r"application/(?:json|[a-z0-9!#$&^_.-]+\+json)\s*(?:;.*)?", re.IGNORECASE
)
_LIMITS: Final = Limits(nesting=16)
# Letters, by their code points, that look like another.
_LOOKALIKES: Final = str.maketrans(
    "01i\u04cf\u03bf\u043e\u0585\u03ba\u043a\u043c\u0442\u03c4\u0192", "ollloookkmttf"
)


class Client(Struct, frozen=True):
    """An app that asks to act for people."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth: AuthMethod = "none"
    document: bool = False
    """Whether its id is the URL of a document, whose host vouches for it."""

    @property
    def host(self) -> str:
        """The host that vouches for the app; empty where none does."""
        parts = split(self.id) if self.document else None
        return "" if parts is None else parts.host.lower()


class Registration(Struct, frozen=True, array_like=True):
    """What the id of a registered app holds."""

    name: str
    redirect_uris: tuple[str, ...]
    auth: int
    """Which of `AUTH_METHODS`."""


@learnt
class Metadata(Struct, frozen=True):
    """The members of a registration or document that mean something here."""

    client_id: str | None = None
    client_secret: Any = None
    client_name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    grant_types: tuple[str, ...] | None = None
    token_endpoint_auth_method: str | None = None


class Registrations(Entity):
    """Registers apps and knows them again by their ids."""

    seal: Callable[[Registration], str]
    open_: Callable[[str], Registration | None]
    secret_of: Callable[[str], str]
    """The secret that belongs to an id."""

    def register(self, body: bytes, now: float) -> dict[str, Any]:
        """Register an app; the answer, which tells it its id."""
        found = registered(body)
        client_id, auth = self.seal(found), AUTH_METHODS[found.auth]
        if len(client_id) > MAX_CLIENT_ID:
            raise _refused("Register fewer or shorter redirect addresses.")
        secret = {"client_secret": self.secret_of(client_id), "client_secret_expires_at": 0}
        return {
            "client_id": client_id,
            "client_id_issued_at": int(now),
            "client_name": found.name,
            "redirect_uris": list(found.redirect_uris),
            "grant_types": list(GRANT_TYPES),
            "response_types": ["code"],
            "token_endpoint_auth_method": auth,
            **({} if auth == "none" else secret),
        }

    def client(self, client_id: str) -> Client | None:
        """The app that was given an id; None if none was."""
        found = self.open_(client_id) if len(client_id) <= MAX_CLIENT_ID else None
        if found is None:
            return None
        return Client(client_id, found.name, found.redirect_uris, AUTH_METHODS[found.auth])

    def authenticated(self, client: Client, secret: str) -> bool:
        """Whether an app shows the secret that belongs to it, or needs none and shows none."""
        own = "" if client.auth == "none" else self.secret_of(client.id)
        return compare_digest(own.encode(), secret.encode("utf-8", "surrogatepass"))


def registered(body: bytes) -> Registration:
    """Read an app's request to be registered."""
    given = _read(body, MAX_REGISTRATION_BYTES)
    method = given.token_endpoint_auth_method or "client_secret_basic"
    if method not in AUTH_METHODS:
        raise _refused(f"The way to authenticate must be one of {', '.join(AUTH_METHODS)}.")
    name, redirects = _checked(given)
    return Registration(name, redirects, AUTH_METHODS.index(method))


def is_document_id(client_id: str) -> bool:
    """Whether the id of an app is the URL of a document about it."""
    parts = split(client_id) if len(client_id) <= MAX_CLIENT_ID else None
    if parts is None or parts.scheme != "https" or not parts.host or len(parts.path) < 2:
        return False
    return not {".", ".."} & set(map(unquote, parts.path.split("/")))


def from_document(client_id: str, body: bytes, content_type: str) -> Client:
    """The app that a document is about, which was found at the URL that is the app's id."""
    if _JSON_TYPE.fullmatch(content_type) is None:
        raise _refused("The app's document must have the type application/json.")
    given = _read(body, MAX_APP_DOCUMENT_BYTES)
    if not is_document_id(client_id) or given.client_id != client_id:
        raise _refused("The app's document must name its own URL as client_id.")
    if given.client_secret is not None or given.token_endpoint_auth_method not in (None, "none"):
        raise _refused("The app's document must have the token_endpoint_auth_method none.")
    name, redirects = _checked(given)
    return Client(client_id, name, redirects, document=True)


def _read(body: bytes, most: int) -> Metadata:
    if len(body) > most:
        raise e.OAuthError(METADATA_ERROR, f"The metadata must have at most {most:,} bytes.", 413)
    try:
        return msgspec.convert(decode_object(body, _LIMITS), Metadata)
    except (e.MessageError, msgspec.ValidationError):
        raise _refused(
            "The metadata must be a JSON object with members as OAuth has them."
        ) from None


def _checked(given: Metadata) -> tuple[str, tuple[str, ...]]:
    """The name and the redirect addresses of an app."""
    grants = set(given.grant_types or (CODE_GRANT,))
    if not grants <= set(GRANT_TYPES):
        raise _refused(f"The grant types must be some of {', '.join(GRANT_TYPES)}.")
    redirects = tuple(dict.fromkeys(given.redirect_uris or ()))
    least = int(CODE_GRANT in grants)
    if not least <= len(redirects) <= MAX_REDIRECTS_OF_APP:
        sentence = f"redirect_uris must have one to {MAX_REDIRECTS_OF_APP} addresses."
        raise e.OAuthError("invalid_redirect_uri", sentence)
    for uri in redirects:
        if (why := fault(uri)) is not None:
            raise e.OAuthError("invalid_redirect_uri", why)
    name = cleaned(given.client_name or "")
    if imitates(name):
        raise _refused("The name of an app must not be that of the hub.")
    return name or (f"App of {host_of(redirects[0])}" if redirects else "App"), redirects


def cleaned(name: str) -> str:
    """A name on one line, of characters that can be seen."""
    shown = (c if c.isprintable() else " " if c.isspace() else "" for c in name)
    words = "".join(c for c in shown if c not in INVISIBLE).split()
    return " ".join(words)[:MAX_APP_NAME].rstrip()


def imitates(name: str) -> bool:
    """Whether a name could be mistaken for the hub's own."""
    return _skeleton(name) in _OWN_NAMES


def _skeleton(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_LOOKALIKES)
    return "".join(filter(str.isalnum, plain)).replace("rn", "m")


_OWN_NAMES: Final = frozenset(map(_skeleton, ("folkmoot", "folkmoot hub", "the folkmoot hub")))


def _refused(sentence: str) -> e.OAuthError:
    return e.OAuthError(METADATA_ERROR, sentence)
