"""Signing a person in at a server behind the hub: the client's steps, as MCP's pages have them.

Each of `discover`, `register`, `exchange`, `refresh` and `revoke` is a generator: it gives the
requests that are to be sent, takes their answers, and returns what came of them. Whoever sends them
follows no redirect, since a request can hold a code or a token. What a server behind the hub says
is never believed beyond itself: its metadata lie on its own origin, name it as the resource, and
name an authorization server whose metadata name that server in turn, to the letter.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct, json

from folkmoot.core import errors as e
from folkmoot.core.limits import (
    MAX_CHALLENGE,
    MAX_CLIENT_ID,
    MAX_OAUTH_PARAMETER,
    MAX_REDIRECT,
    MAX_STEP_UPS,
    MAX_UPSTREAM_ANSWER_BYTES,
    MAX_UPSTREAM_TOKEN,
)
from folkmoot.core.oauth.challenges import INSUFFICIENT_SCOPE
from folkmoot.core.oauth.clients import AUTH_METHODS, CODE_GRANT, REFRESH_GRANT, AuthMethod
from folkmoot.core.oauth.metadata import OPENID_PATH, RESOURCE_PATH, SERVER_PATH, name_at
from folkmoot.core.oauth.redirects import LOOPBACK, Address, answered, split
from folkmoot.core.oauth.tokens import FORM
from folkmoot.core.strict import Limits, decode_object, learnt

T = TypeVar("T")

OFFLINE: Final = "offline_access"
"""The scope by which some servers are asked for a refresh token."""
UNKNOWN_CLIENT: Final = frozenset(("invalid_client", "unauthorized_client"))
"""Errors that mean that a server has forgotten our registration."""

_JSON: Final = "application/json"
_LIMITS: Final = Limits(message_bytes=MAX_UPSTREAM_ANSWER_BYTES, nesting=16)
_PORTS: Final = {"http": "80", "https": "443"}
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]++"
_PART: Final = re.compile(
    rf'(?P<name>{_WORD})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<plain>[^\s,"]++))'
    rf"|(?P<scheme>{_WORD})(?![=\w/+])"
)
_TOKEN: Final = re.compile(rf"[\x21-\x7e]{{1,{MAX_UPSTREAM_TOKEN}}}")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_ERROR: Final = re.compile(r"[a-z_]{1,64}")
_LONGEST: Final = 10 * 365 * 86_400


class Request(Struct, frozen=True):
    """What is to be sent."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = (("accept", _JSON),)
    body: bytes = b""

    # The body, and a header, can hold secrets.
    __repr__ = object.__repr__


class Answer(Struct, frozen=True):
    """What came back."""

    status: int
    body: bytes = b""
    challenges: tuple[str, ...] = ()
    """Its `WWW-Authenticate` headers."""
    type: str = ""
    """The media type of the body, in lower case and without parameters."""
    location: str = ""
    """Where it redirects to."""

    __repr__ = object.__repr__


Steps = Generator[Request, Answer, T]


class Challenge(Struct, frozen=True):
    """What a server's `WWW-Authenticate` says of the tokens that it takes."""

    resource_metadata: str = ""
    scope: str = ""
    error: str = ""


class AuthorizationServer(Struct, frozen=True):
    """Where people sign in to a server behind the hub."""

    issuer: str
    resource: str
    """What tokens are for: the server, as it names itself; empty for the hub itself."""
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    auth_methods: tuple[str, ...] = ("client_secret_basic",)
    documents: bool = False
    """Whether our id can be the URL of a document about us."""
    names_itself: bool = False
    """Whether it says `iss` in every answer."""
    scope: str = ""
    """What it takes to use the server, where no challenge says so."""
    offline: bool = False
    """Whether it wants to be asked for refresh tokens."""
    revocation_endpoint: str = ""


class OpenIdProvider(Struct, frozen=True):
    """Where the people of a company sign in."""

    server: AuthorizationServer
    jwks_uri: str
    """Where its keys are."""


class OwnClient(Struct, frozen=True):
    """What the hub is to an authorization server."""

    id: str
    secret: str = ""
    auth: AuthMethod = "none"
    until: int = 0
    """When the secret ends; 0 for never."""

    __repr__ = object.__repr__


class Tokens(Struct, frozen=True):
    """What a person's consent is good for."""

    access: str
    refresh: str = ""
    scope: str = ""
    """What was granted."""
    seconds: int = 0
    """How long the access token is good for; 0 where nobody says."""

    __repr__ = object.__repr__


@learnt
class _Resource(Struct, frozen=True):
    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] | None = None


@learnt
class _Server(Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None


@learnt
class _OpenId(_Server, frozen=True, kw_only=True):
    jwks_uri: str


@learnt
class _IdToken(Struct, frozen=True):
    id_token: str


@learnt
class _Client(Struct, frozen=True):
    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: int | float | None = None
    token_endpoint_auth_method: str | None = None


@learnt
class _Tokens(Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: int | float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None


class _Shape(Struct, Generic[T], frozen=True):
    """A type that an answer must have, and what is said of one that has not."""

    type: type[T]
    what: str


_RESOURCE: Final = _Shape(_Resource, "protected resource metadata")
_SERVER: Final = _Shape(_Server, "authorization server metadata")
_OPENID: Final = _Shape(_OpenId, "OpenID Connect metadata")
_ID_TOKEN: Final = _Shape(_IdToken, "answer to a request for an id token")
_CLIENT: Final = _Shape(_Client, "answer to a registration")
_TOKENS: Final = _Shape(_Tokens, "answer to a request for tokens")


def read_challenge(values: Iterable[str]) -> Challenge:
    """What the `WWW-Authenticate` headers of an answer say of bearer tokens."""
    found: dict[str, str] = {}
    for value in values:
        of_bearer = False
        for part in _PART.finditer(value[:MAX_CHALLENGE]):
            if part["scheme"] is not None:
                of_bearer = part["scheme"].lower() == "bearer"
            elif of_bearer:
                quoted = re.sub(r"\\(.)", r"\1", part["quoted"] or "")
                found.setdefault(part["name"].lower(), quoted or part["plain"] or "")
    names = Challenge.__struct_fields__
    return Challenge(**{name: text for name, text in found.items() if name in names})


def discover(
    url: str, challenge: Challenge, trusted: Collection[str] = ()
) -> Steps[AuthorizationServer]:
    """Where people sign in to the server at a URL, which answered with a challenge.

    Where issuers are `trusted`, it must be one of them.
    """
    own = _checked(url, url)
    found = yield from _resource(url, own, challenge)
    if found is None:
        # Up to 2025-03-26 a server was its own authorization server.
        origin = _origin(own)
        named, resource = [origin, f"{origin}/"], url.partition("?")[0]
    else:
        named, resource = list(found.authorization_servers), found.resource
    issuers = [each for each in named if each in trusted] if trusted else named
    if not issuers:
        raise e.SignInRefused("The server names no authorization server that is trusted here.")
    server = yield from _server(url, issuers if found is None else issuers[:1])
    scopes = None if found is None else found.scopes_supported
    return _described(server, resource, united(*(scopes or ())))


def discover_openid(issuer: str) -> Steps[OpenIdProvider]:
    """Where people sign in to the hub itself: the provider that its operator chose.

    Some providers support PKCE and do not say so; the nonce stands beside it.
    """
    _checked(issuer, issuer)
    answer = yield Request(f"{issuer.rstrip('/')}{OPENID_PATH}")
    if answer.status != 200:
        raise e.SignInRefused(f"The provider at {issuer} publishes no metadata.")
    found = _read(answer, _OPENID)
    if found.issuer != issuer:
        raise e.SignInRefused(f"What is found at {issuer} is the metadata of another provider.")
    for endpoint in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
        _checked(endpoint, issuer)
    return OpenIdProvider(_described(found), found.jwks_uri)


def _described(server: _Server, resource: str = "", scope: str = "") -> AuthorizationServer:
    return AuthorizationServer(
        issuer=server.issuer,
        resource=resource,
        authorization_endpoint=server.authorization_endpoint,
        token_endpoint=server.token_endpoint,
        registration_endpoint=server.registration_endpoint or "",
        auth_methods=server.token_endpoint_auth_methods_supported or ("client_secret_basic",),
        documents=server.client_id_metadata_document_supported is True,
        names_itself=server.authorization_response_iss_parameter_supported is True,
        scope=scope,
        offline=OFFLINE in (server.scopes_supported or ()),
        revocation_endpoint=server.revocation_endpoint or "",
    )


def _resource(url: str, own: Address, challenge: Challenge) -> Steps[_Resource | None]:
    """The metadata of a server behind the hub; None where it has none."""
    origin, path = _origin(own), own.path.rstrip("/")
    named = challenge.resource_metadata
    if named:
        place = _checked(named, url)
        if _origin(place) != origin:
            sentence = f"The server at {origin} has its sign-in described by another server."
            raise e.SignInRefused(sentence)
    places = (named,) if named else (f"{origin}{RESOURCE_PATH}{path}", f"{origin}{RESOURCE_PATH}")
    for each in dict.fromkeys(places):
        answer = yield Request(each)
        if answer.status == 200:
            found = _read(answer, _RESOURCE)
            if not _covers(found.resource, own):
                sentence = "The server names another server as the resource that tokens are for."
                raise e.SignInRefused(sentence)
            return found
    return None


def _server(url: str, issuers: Sequence[str]) -> Steps[_Server]:
    """The metadata of an authorization server, which has one of these names."""
    place = _checked(issuers[0], url)
    origin, path = _origin(place), place.path.rstrip("/")
    places = [f"{origin}{known}{path}" for known in (SERVER_PATH, OPENID_PATH)]
    for each in (*places, *([f"{origin}{path}{OPENID_PATH}"] if path else [])):
        answer = yield Request(each)
        if answer.status != 200:
            continue
        found = _read(answer, _SERVER)
        if found.issuer not in issuers:
            sentence = f"What is found at {origin} is the metadata of another authorization server."
            raise e.SignInRefused(sentence)
        if "S256" not in (found.code_challenge_methods_supported or ()):
            sentence = f"The authorization server at {origin} does not support PKCE with S256."
            raise e.SignInRefused(sentence)
        endpoints = (found.authorization_endpoint, found.token_endpoint)
        for endpoint in (*endpoints, found.registration_endpoint, found.revocation_endpoint):
            if endpoint is not None:
                _checked(endpoint, url)
        return found
    raise e.SignInRefused(f"The authorization server at {origin} publishes no metadata.")


def register(
    server: AuthorizationServer,
    redirect_uri: str,
    *,
    document: str = "",
    own_id: str = "",
    own_secret: str = "",
    name: str = "",
    is_public: bool = False,
) -> Steps[OwnClient]:
    """What the hub is to an authorization server.

    That is what the operator agreed with it, `own_id` and `own_secret`, else the URL of the hub's
    own `document`, else what the server gives us for asking. Who is public has no secret.
    """
    if own_id:
        return OwnClient(own_id, own_secret, _auth(server, is_public=not own_secret))
    if document and server.documents:
        return OwnClient(document)
    if not server.registration_endpoint:
        sentence = (
            f"The authorization server at {server.issuer} registers nobody by itself. Register "
            "the hub there, and set client_id and client_secret of the server."
        )
        raise e.SignInRefused(sentence)
    auth = _auth(server, is_public=is_public)
    asked = {
        "client_name": name or name_at(redirect_uri),
        "redirect_uris": [redirect_uri],
        "grant_types": [CODE_GRANT, REFRESH_GRANT],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth,
        "application_type": "web" if redirect_uri.startswith("https:") else "native",
    }
    headers = (("accept", _JSON), ("content-type", _JSON))
    answer = yield Request(server.registration_endpoint, "POST", headers, json.encode(asked))
    if answer.status not in (200, 201):
        raise _refused(answer, f"The authorization server at {server.issuer} does not register us")
    found = _read(answer, _CLIENT)
    secret, given = found.client_secret or "", found.token_endpoint_auth_method or auth
    is_fit = all(part.isascii() and part.isprintable() for part in (found.client_id, secret))
    if not is_fit or not 0 < len(found.client_id) <= MAX_CLIENT_ID or len(secret) > MAX_CLIENT_ID:
        raise e.SignInRefused("The authorization server registers us under an id that is not one.")
    if not secret:
        return OwnClient(found.client_id)
    if given not in AUTH_METHODS:
        raise e.SignInRefused(f"The authorization server wants {given[:64]!r}, which is not known.")
    until = max(0, min(int(found.client_secret_expires_at or 0), 1 << 53))
    return OwnClient(found.client_id, secret, given, until)


def _auth(server: AuthorizationServer, *, is_public: bool = False) -> AuthMethod:
    """How we show who we are: by a secret if that can be, in the way that is named first."""
    ways: dict[str, AuthMethod] = {each: each for each in AUTH_METHODS}
    found = [ways[each] for each in server.auth_methods if each in ways]
    found.sort(key=lambda each: each == "none")
    if is_public:
        return "none"
    if not found:
        sentence = f"The authorization server at {server.issuer} knows clients in no way of ours."
        raise e.SignInRefused(sentence)
    return found[0]


def scope_for(server: AuthorizationServer, challenge: Challenge, wanted: str = "") -> str:
    """What a person is asked for at first: what the operator set, the server demands, or says."""
    asked = wanted or challenge.scope or server.scope
    return united(asked, OFFLINE) if asked and server.offline else united(asked)


def step_up(asked: str, challenge: Challenge, times: int) -> str:
    """What a person is asked for once more, since a call needs more than was `asked` for before.

    A server that demands what it was asked for already, or more again and again, is refused.
    """
    more = united(asked, challenge.scope)
    if challenge.error != INSUFFICIENT_SCOPE or more == united(asked) or times >= MAX_STEP_UPS:
        sentence = "The server does not allow this call, whatever its person consents to."
        raise e.SignInRefused(sentence, INSUFFICIENT_SCOPE)
    return more


def authorization_url(
    server: AuthorizationServer,
    client: OwnClient,
    *,
    redirect_uri: str,
    state: str,
    verifier: str,
    scope: str,
    nonce: str = "",
) -> str:
    """Where a person is sent to consent. The `verifier` stays here until the code comes."""
    digest = base64.urlsafe_b64encode(sha256(verifier.encode()).digest())
    return answered(
        server.authorization_endpoint,
        response_type="code",
        client_id=client.id,
        redirect_uri=redirect_uri,
        state=state,
        code_challenge=digest.decode().rstrip("="),
        code_challenge_method="S256",
        resource=server.resource,
        scope=scope,
        nonce=nonce,
        # OpenID Connect has refresh tokens given only where consent is asked for.
        prompt="consent" if OFFLINE in scope.split() else "",
    )


def read_code(
    pairs: Sequence[tuple[str, str]], *, issuer: str, names_itself: bool, state: str
) -> str:
    """The code that a person came back with, from the server they were sent to and no other."""
    given = dict(pairs)
    if len(given) < len(pairs) or any(len(text) > MAX_OAUTH_PARAMETER for text in given.values()):
        raise e.SignInRefused("The answer of the authorization server is not in order.")
    shown = given.get("state", "").encode("utf-8", "surrogatepass")
    if not compare_digest(shown, state.encode()):
        raise e.SignInRefused("The answer does not belong to this sign-in. Start again.")
    named = given.get("iss")
    # Nothing of an answer from elsewhere is shown, its error neither.
    if named != issuer and (named is not None or names_itself):
        raise e.SignInRefused("The answer is not from the server that you were sent to.")
    if "error" in given:
        error = given["error"] if _ERROR.fullmatch(given["error"]) else "error"
        if error == "access_denied":
            raise e.SignInRefused("You did not consent at the server.", error)
        raise e.SignInRefused(f"The authorization server refuses: {error}.", error)
    if not (code := given.get("code", "")):
        raise e.SignInRefused("The answer of the authorization server has no code.")
    return code


def exchange(
    server: AuthorizationServer, client: OwnClient, *, code: str, redirect_uri: str, verifier: str
) -> Steps[Tokens]:
    """The tokens for a code."""
    form = {"code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    return (yield from _tokens(server, client, {"grant_type": CODE_GRANT, **form}))


def exchange_id(
    server: AuthorizationServer, client: OwnClient, *, code: str, redirect_uri: str, verifier: str
) -> Steps[str]:
    """The id token for a code, of which nothing is checked yet."""
    form = {"code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
    answer = yield from _granted(server, client, {"grant_type": CODE_GRANT, **form})
    found = _read(answer, _ID_TOKEN).id_token
    if not _TOKEN.fullmatch(found):
        raise e.SignInRefused("The provider gives an id token that is none.")
    return found


def refresh(server: AuthorizationServer, client: OwnClient, held: Tokens) -> Steps[Tokens]:
    """The next tokens; one that is not replaced stays."""
    form = {"grant_type": REFRESH_GRANT, "refresh_token": held.refresh}
    fresh = yield from _tokens(server, client, form)
    return msgspec.structs.replace(
        fresh, refresh=fresh.refresh or held.refresh, scope=fresh.scope or held.scope
    )


def revoke(server: AuthorizationServer, client: OwnClient, held: Tokens) -> Steps[None]:
    """Have the server forget tokens, where it can; whatever it answers."""
    if server.revocation_endpoint:
        for token in filter(None, (held.refresh, held.access)):
            yield _posted(server.revocation_endpoint, client, {"token": token})


def _posted(url: str, client: OwnClient, members: dict[str, str]) -> Request:
    """A form, with who we are; servers of the official SDK want the id in it in any case."""
    form, headers = {**members, "client_id": client.id}, [("accept", _JSON), ("content-type", FORM)]
    if client.auth == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        basic = base64.b64encode(pair.encode()).decode()
        headers.append(("authorization", f"Basic {basic}"))
    elif client.auth == "client_secret_post":
        form["client_secret"] = client.secret
    return Request(url, "POST", tuple(headers), urlencode(form).encode())


def _granted(
    server: AuthorizationServer, client: OwnClient, members: dict[str, str]
) -> Steps[Answer]:
    form = {**members, **({"resource": server.resource} if server.resource else {})}
    answer = yield _posted(server.token_endpoint, client, form)
    if answer.status != 200:
        raise _refused(answer, f"The authorization server at {server.issuer} gives no tokens")
    return answer


def _tokens(
    server: AuthorizationServer, client: OwnClient, members: dict[str, str]
) -> Steps[Tokens]:
    found = _read((yield from _granted(server, client, members)), _TOKENS)
    texts = (found.access_token, *([found.refresh_token] if found.refresh_token else []))
    if found.token_type.lower() != "bearer" or not all(map(_TOKEN.fullmatch, texts)):
        raise e.SignInRefused("The authorization server gives a token that is no bearer token.")
    return Tokens(
        access=found.access_token,
        refresh=found.refresh_token or "",
        scope=united(found.scope or ""),
        seconds=_seconds(found.expires_in),
    )


def _seconds(given: float | str | None) -> int:
    try:
        return max(0, min(int(given or 0), _LONGEST))
    except ValueError:
        return 0


def _checked(url: str, asker: str) -> Address:
    """The parts of an address that a server names, if it can be asked there.

    It must be https. Only a server on this machine can name others there.
    """
    parts, own = split(url) if len(url) <= MAX_REDIRECT else None, split(asker)
    if parts is not None and parts.host:
        is_local = own is not None and _is_local(own) and _is_local(parts)
        if parts.scheme == "https" or is_local:
            return parts
    raise e.SignInRefused("The server's sign-in leads to an address that is not an https URL.")


def _is_local(parts: Address) -> bool:
    return parts.scheme == "http" and parts.host in LOOPBACK


def _origin(parts: Address) -> str:
    port = "" if parts.port in ("", _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{parts.host.lower()}{port}"


def _covers(resource: str, own: Address) -> bool:
    """Whether a resource is this address, or one above it on the same origin."""
    parts = split(resource) if len(resource) <= MAX_REDIRECT else None
    if parts is None or parts.scheme not in _PORTS or _origin(parts) != _origin(own):
        return False
    return f"{own.path.rstrip('/')}/".startswith(f"{parts.path.rstrip('/')}/")


def united(*scopes: str) -> str:
    """All words of some scopes, each once; what no scope can have is left out."""
    words = dict.fromkeys(" ".join(scopes)[:MAX_OAUTH_PARAMETER].split())
    return " ".join(word for word in words if _SCOPE.fullmatch(word))


def _read(answer: Answer, shape: _Shape[T]) -> T:
    try:
        return msgspec.convert(decode_object(answer.body, _LIMITS), shape.type)
    except (e.MessageError, msgspec.ValidationError):
        # What is wrong is not told: it could quote a token.
        raise e.SignInRefused(f"The server's {shape.what} cannot be read.") from None


def _refused(answer: Answer, words: str) -> e.SignInRefused:
    """What is said of an error by OAuth; of its words only the code is believed."""
    try:
        found: Any = decode_object(answer.body, _LIMITS).get("error")
    except e.MessageError:
        found = None
    error = found if isinstance(found, str) and _ERROR.fullmatch(found) else ""
    return e.SignInRefused(f"{words}{f': {error}' if error else ''}.", error)
