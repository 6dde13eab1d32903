"""Sign-in through the proxy: OAuth discovery of the server, with the proxy as the resource.

A client signs in to what it takes for the server, which is the proxy's address, and refuses
metadata that name another resource. The server takes only tokens that were issued for its own
address. So the metadata of the resource and of its authorization server are passed on with the
proxy's addresses, and whatever the client asks of the authorization server names the server's
resource again. Since the client no longer sees that resource, the proxy checks it in the client's
place: a server that names another's would otherwise get a token for the other. The proxy keeps
nothing of it: it sees codes and tokens pass, as it sees them later in headers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.client.url import HttpUrl
from folkmoot.transports.answers import JsonResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

RESOURCE: Final = "/.well-known/oauth-protected-resource"
SERVER: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"
ENDPOINT: Final = "/mcp"
OURS: Final = "/oauth"
"""Below it the proxy stands for authorization servers: `/oauth/0` for the first that is named."""
ORIGIN: Final = "origin"
"""Stands for the server's own origin, which was the authorization server up to 2025-03-26."""

CHALLENGES: Final = frozenset({401, 403})
METADATA: Final = re.compile(r'(resource_metadata=)(?:"[^"]*"|[^\s,]+)', re.IGNORECASE)
NAMED: Final = re.compile(r'resource_metadata=(?:"([^"]*)"|([^\s,]+))', re.IGNORECASE)
ISS: Final = "authorization_response_iss_parameter_supported"
JSON_ONLY: Final = Headers((("accept", "application/json"),))
FORM: Final = "application/x-www-form-urlencoded"
TOKEN_HEADERS: Final = ("authorization", "content-type", "accept", "dpop")
"""What a client says to an authorization server that concerns it."""
TOKEN_ANSWERS: Final = ("content-type", "cache-control", "pragma", "www-authenticate", "dpop-nonce")
MOST_SERVERS: Final = 8
MOST_BYTES: Final = 1024 * 1024
SECONDS: Final = 15.0
SHOWN: Final = 200
OK: Final = 200


class ProxySignIn(Entity):
    """What a proxy before one Streamable HTTP server answers to clients that want to sign in."""

    target: HttpTarget
    _named: HttpUrl | None = None
    """Where the server last said that its metadata are."""

    def routes(self) -> list[Route]:
        """Where clients look, by the order that the specification gives them."""
        which = f"{OURS}/{{which}}"
        return [
            *(Route(path, self.resource) for path in (RESOURCE, RESOURCE + ENDPOINT)),
            Route(SERVER, self.origin),
            Route(OPENID, self.origin),
            *(Route(known + which, self.server) for known in (SERVER, OPENID)),
            Route(which + OPENID, self.server),
            Route(f"{which}/authorize", self.authorize),
            Route(f"{which}/token", self.token, methods=["POST"]),
        ]

    def wrapping(self, app: ASGIApp) -> ASGIApp:
        """The endpoint, whose challenges point to the proxy's metadata."""

        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            async def challenging(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] in CHALLENGES:
                    headers = self._challenge(message["headers"], scope)
                    message = {**message, "headers": headers}
                await send(message)

            await app(scope, receive, challenging)

        return wrapped

    async def resource(self, request: Request) -> Response:
        """The server's protected resource metadata, with the proxy as the resource."""
        found = await self._resource_metadata()
        base = base_of(request.scope)
        servers = issuers(found)
        mapped = await asyncio.gather(*(self._can_be_mapped(each) for each in servers))
        told = [
            f"{base}{OURS}/{number}" if ours else server
            for number, (server, ours) in enumerate(zip(servers, mapped, strict=True))
        ]
        return JsonResponse(
            {**found, "resource": f"{base}{ENDPOINT}", "authorization_servers": told}
        )

    async def origin(self, request: Request) -> Response:
        """The metadata of a server that is its own authorization server."""
        return await self._mapped(request, ORIGIN, base_of(request.scope))

    async def server(self, request: Request) -> Response:
        """The metadata of one of the authorization servers that the resource names."""
        which = request.path_params["which"]
        return await self._mapped(request, which, f"{base_of(request.scope)}{OURS}/{which}")

    async def authorize(self, request: Request) -> Response:
        """Lead the browser on to the authorization server, with the server's resource."""
        metadata, resource = await self._known(request.path_params["which"])
        there = usable(metadata.get("authorization_endpoint"))
        asked = self._for_server(request.url.query, request.scope, resource)
        query = "&".join(filter(None, (there.query, asked)))
        return RedirectResponse(f"{there._replace(query='')}?{query}", 302)

    async def token(self, request: Request) -> Response:
        """Pass a token request on, with the server's resource."""
        metadata, resource = await self._known(request.path_params["which"])
        there = usable(metadata.get("token_endpoint"))
        body = await request.body()
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
            text = body.decode("utf-8", "replace")
            body = self._for_server(text, request.scope, resource).encode()
        named = ((name, request.headers.get(name)) for name in TOKEN_HEADERS)
        said = Headers(tuple((name, value) for name, value in named if value is not None))
        status, headers, answer = await fetch("POST", there, said, body)
        told = {name: headers.get(name) for name in TOKEN_ANSWERS}
        kept = {name: value for name, value in told.items() if value is not None}
        return Response(answer, status, kept)

    def _challenge(self, headers: Iterable[tuple[bytes, bytes]], scope: Scope) -> list[Any]:
        """The headers of a challenge, with the proxy's metadata in place of the server's."""
        told: list[tuple[bytes, bytes]] = []
        ours = f'\\1"{base_of(scope)}{RESOURCE}{ENDPOINT}"'
        for name, value in headers:
            if name == b"www-authenticate":
                text = value.decode("latin-1")
                self._remember(text)
                value = METADATA.sub(ours, text).encode("latin-1", "replace")
            told.append((name, value))
        return told

    def _remember(self, challenge: str) -> None:
        found = NAMED.search(challenge)
        if found is not None:
            try:
                self._named = usable(found[1] or found[2])
            except e.ServerAnswerInvalid:
                self._named = None

    async def _resource_metadata(self) -> dict[str, Any]:
        """What the server says of itself as a resource.

        Raises `NotFound` where it says nothing, and `ServerAnswerInvalid` where it names a
        resource that is not itself.
        """
        origin, path = self.target.url.origin, self.target.url.path.rstrip("/")
        places = [self._named] if self._named is not None else []
        places += [origin._replace(path=RESOURCE + path), origin._replace(path=RESOURCE)]
        for place in places:
            found = await fetch_object(place)
            if found is not None and isinstance(resource := found.get("resource"), str):
                if not covers(resource, self.target.url):
                    raise e.ServerAnswerInvalid(
                        f"The server names {resource[:SHOWN]!r} as its resource, which is not its "
                        "own address. Sign-in is refused."
                    )
                return found
        raise e.NotFound("The server has no protected resource metadata.")

    async def _known(self, which: str) -> tuple[dict[str, Any], str | None]:
        """The metadata of an authorization server, and the resource to name to it."""
        if which == ORIGIN:
            with suppress(e.NotFound):
                await self._resource_metadata()
            return await server_metadata(str(self.target.url.origin)), str(self.target.url)
        found = await self._resource_metadata()
        servers = issuers(found)
        if not which.isascii() or not which.isdigit() or int(which[:3]) >= len(servers):
            raise e.NotFound("The server names no such authorization server.")
        return await server_metadata(servers[int(which[:3])]), found["resource"]

    async def _mapped(self, request: Request, which: str, issuer: str) -> Response:
        """Metadata of an authorization server whose requests for codes and tokens come to us."""
        metadata, _ = await self._known(which)
        ours = f"{base_of(request.scope)}{OURS}/{which}"
        told = {**metadata, "issuer": issuer}
        for member, path in (("authorization_endpoint", "authorize"), ("token_endpoint", "token")):
            if member in metadata:
                told[member] = f"{ours}/{path}"
        return JsonResponse(told)

    async def _can_be_mapped(self, issuer: str) -> bool:
        """Whether we can stand for a server: not for one that names itself in its answers.

        A client would find another name in them than the one that it was given by us.
        """
        try:
            return (await server_metadata(issuer)).get(ISS) is not True
        except (e.NotFound, e.CarryError):
            return False

    def _for_server(self, form: str, scope: Scope, resource: str | None) -> str:
        """A form or query in which the proxy as the resource is the server again."""
        ours = f"{base_of(scope)}{ENDPOINT}"
        pairs = parse_qsl(form, keep_blank_values=True)
        return urlencode(
            [
                (name, resource if name == "resource" and value == ours and resource else value)
                for name, value in pairs
            ]
        )


def base_of(scope: Scope) -> str:
    """The proxy's address as this client knows it; its host was checked before."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope.get('scheme', 'http')}://{host.decode('latin-1')}"


def issuers(found: dict[str, Any]) -> list[str]:
    """The authorization servers that a resource names."""
    named = found.get("authorization_servers")
    servers = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    return servers[:MOST_SERVERS]


def covers(resource: str, address: HttpUrl) -> bool:
    """Whether a resource is this address, or one above it on the same host."""
    try:
        named = usable(resource)
    except e.ServerAnswerInvalid:
        return False
    path = f"{named.path.rstrip('/')}/"
    return named.origin == address.origin and f"{address.path.rstrip('/')}/".startswith(path)


async def server_metadata(issuer: str) -> dict[str, Any]:
    """The metadata of an authorization server, from where the specification has clients look."""
    address = usable(issuer)
    path = address.path.rstrip("/")
    places = [SERVER + path, OPENID + path, *([path + OPENID] if path else [])]
    for place in places:
        found = await fetch_object(address._replace(path=place, query=""))
        if found is not None and found.get("issuer") in (issuer, issuer.rstrip("/"), f"{issuer}/"):
            return found
    raise e.NotFound("The authorization server has no metadata.")


def usable(address: Any) -> HttpUrl:
    """An address that a server names, if it may be asked."""
    with suppress(ValueError):
        url = HttpUrl.parse(address if isinstance(address, str) else "")
        if url.login is None:
            return url
    raise e.ServerAnswerInvalid("The server's metadata name an address that is no URL.")


async def fetch_object(url: HttpUrl) -> dict[str, Any] | None:
    """A JSON object at an address; None where there is none."""
    try:
        status, _, body = await fetch("GET", url, JSON_ONLY)
        value = msgspec.json.decode(body) if status == OK else None
    except (e.ServerAnswerInvalid, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def fetch(
    method: str, url: HttpUrl, headers: Headers, body: bytes | None = None
) -> tuple[int, Headers, bytes]:
    """One exchange with another server than the MCP one, which gets nothing that is meant for it.

    Raises the `CarryError` of a server that cannot be reached or answers too much.
    """
    try:
        async with (
            asyncio.timeout(SECONDS),
            HttpTarget(str(url), described=False) as target,
            target.ask(method, headers, body) as answer,
        ):
            said = bytearray()
            async for chunk in answer.chunks():
                said += chunk
                if len(said) > MOST_BYTES:
                    raise e.ServerAnswerInvalid(f"Response from {target.shown} exceeds 1 MiB.")
            return answer.status, answer.headers, bytes(said)
    except TimeoutError:
        raise e.ServerAnswerInvalid(f"{url.host} does not answer in {SECONDS:g} s.") from None
